"""Small changes of a source text that are worth planting: one node of its syntax tree, replaced by another."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
CALLS = {"min": "max", "max": "min", "ceil": "floor", "floor": "ceil", "any": "all", "all": "any", "sum": "max"}
NOT_RUN = ("decorator_list", "returns", "annotation")  # read by tools and by the compiler, not at run time


@dataclass(frozen=True)
class Fault:
    """One change of a file: its position, and the code before and after."""

    file: str
    line: int
    column: int
    before: str
    after: str

    def __str__(self) -> str:
        before, after = (" ".join(code.split()) for code in (self.before, self.after))
        return f"{self.file}:{self.line}: {before[:70]}  =>  {after[:70]}"


def faults(source: str, *, file: str) -> list[Fault]:
    """Return all faults that can be planted in a source text, in the order of the text."""
    return [fault for fault, _, _ in _changes(ast.parse(source), file)]


def with_fault(source: str, fault: Fault) -> str:
    """Return the source text with one fault in it; its comments are lost."""
    tree = ast.parse(source)
    for candidate, old, new in _changes(tree, fault.file):
        if candidate == fault:
            return ast.unparse(ast.fix_missing_locations(_Exchange(old, new).visit(tree)))
    raise ValueError(f"The source has changed: it has no {fault}")


class _Exchange(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


def _changes(tree: ast.AST, file: str) -> Iterator[tuple[Fault, ast.AST, ast.AST]]:
    for node in _executed_nodes(tree):
        for new in _others(node):
            before, after = ast.unparse(node), ast.unparse(new)
            if before != after and isinstance(node, (ast.expr, ast.stmt)):
                yield Fault(file, node.lineno, node.col_offset, before, after), node, new


def _executed_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run, without annotations, decorators and code for type checkers."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    yield node
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and field not in NOT_RUN:
                yield from _executed_nodes(child)


def _others(node: ast.AST) -> list[ast.AST]:
    """Return what can replace a node."""
    match node:
        case ast.Compare(ops=signs):
            return [_with(node, ops=[*signs[:i], other(), *signs[i + 1 :]])
                    for i, sign in enumerate(signs) for other in COMPARISONS[type(sign)]]  # fmt: skip
        case ast.BoolOp(op=word):
            return [_with(node, op=ast.Or() if isinstance(word, ast.And) else ast.And())]
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return [ast.Call(ast.Name("bool", ast.Load()), [inner], [])]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return [inner]
        case ast.BinOp(op=sign) | ast.AugAssign(op=sign):
            return [_with(node, op=OPERATIONS[type(sign)]())] if type(sign) in OPERATIONS and _numeric(node) else []
        case ast.Constant(value=bool(value)):
            return [ast.Constant(not value)]
        case ast.Constant(value=int(value) | float(value)):
            return [ast.Constant(value + 1), ast.Constant(value - 1)]
        case ast.Call(func=ast.Name(id=name) as called):
            return [_with(node, func=_with(called, id=CALLS[name]))] if name in CALLS else _without_sorting(node)
        case ast.Call(func=ast.Attribute(attr=name) as called):
            return [_with(node, func=_with(called, attr=CALLS[name]))] if name in CALLS else []
        case ast.If() | ast.IfExp():
            return [_with(node, test=ast.Constant(False)), _with(node, test=ast.Constant(True))]
        case ast.While():
            return [_with(node, test=ast.Constant(False))]
        case ast.Return(value=ast.expr()):
            return [ast.Return(ast.Constant(None))]
        case ast.Raise() | ast.Expr(value=ast.Call()):
            return [ast.Pass()]
    return []


def _with(node: ast.AST, **fields: Any) -> Any:
    """Return a copy of a node with other fields."""
    new = copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _without_sorting(call: ast.Call) -> list[ast.AST]:
    named = isinstance(call.func, ast.Name) and call.func.id == "sorted"
    return [ast.Call(ast.Name("list", ast.Load()), call.args, [])] if named else []


def _numeric(node: ast.BinOp | ast.AugAssign) -> bool:
    """Return whether an operation is neither the joining of texts nor a union of types."""
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else []
    if any(isinstance(side, ast.JoinedStr) or isinstance(getattr(side, "value", None), str) for side in sides):
        return False
    types = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)
    return not types or any(isinstance(side, ast.Name) and side.id[:1].islower() for side in sides)
