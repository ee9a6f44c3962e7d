"""Conditions of SQL as predicates.

A comparison of one column with a value stays a comparison. Anything else is an expression that is evaluated over the universe
of its columns; AND, OR and NOT are split, so that only single expressions are limited in size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from tidegate.errors import Unsupported
from tidegate.exact import exact
from tidegate.policy import Attribute, Category, Numeric, Policy
from tidegate.policy.predicates import Both, Compare, Either, Holds, Missing, Operator, Opposite, Predicate, Value
from tidegate.tables.expressions import check_nodes, column_name, columns_of, links, write
from tidegate.tables.universe import truth_of

COMPARISONS: dict[type, Operator] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
FLIPPED: dict[Operator, Operator] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
MOST_ATOMS = 200


def read_condition(node: Any, policy: Policy) -> Predicate:
    """Return a condition whose names are those of the policy."""
    check_nodes(node)
    predicate = _Reader(policy).read(node)
    if len(predicate.tests()) > MOST_ATOMS:
        raise Unsupported(
            f"The condition has more than {MOST_ATOMS} different expressions.",
            "Use comparisons of columns with values, IN (...) and BETWEEN.",
        )
    return predicate


class _Reader:
    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def read(self, node: Any) -> Predicate:
        build = READERS.get(type(node))
        predicate = build(self, node) if build else None
        return predicate if predicate is not None else self.holds(node)

    def holds(self, node: Any) -> Predicate:
        names = columns_of(node)
        predicate = Holds(write(node), tuple(names))
        truth_of(self.policy, predicate.text)
        return predicate

    def chain(self, node: Any) -> Predicate:
        """Read a chain of AND or OR as one flat condition; expressions of the same columns become one."""
        simple: list[Predicate] = []
        others: dict[tuple[str, ...], list[Any]] = {}
        for part in links(node, type(node)):
            predicate = self.read(part) if type(part) in READERS else None
            if predicate is None or isinstance(predicate, Holds):
                others.setdefault(tuple(sorted(columns_of(part))), []).append(part)
            else:
                simple.append(predicate)
        join = exp.and_ if isinstance(node, exp.And) else exp.or_
        parts = [
            *simple,
            *(self.holds(join(*same, copy=True) if len(same) > 1 else same[0]) for same in others.values()),
        ]
        if len(parts) == 1:
            return parts[0]
        return Both(*parts) if isinstance(node, exp.And) else Either(*parts)

    def compare(self, node: Any) -> Predicate | None:
        operator, left, right = COMPARISONS[type(node)], node.this, node.expression
        if isinstance(right, exp.Column) and not isinstance(left, exp.Column):
            operator, left, right = FLIPPED[operator], right, left
        if not isinstance(left, exp.Column):
            return None
        return self._comparison(column_name(left), operator, right)

    def _comparison(self, name: str, operator: Operator, right: Any) -> Predicate | None:
        if name in self.policy.references:
            return None
        attribute, value = self.policy.countable(name), value_of(right)
        if value is None or not _fits(attribute, operator, value):
            return None
        comparison = Compare(name, operator, value)
        comparison.check(self.policy)
        return comparison

    def is_in(self, node: Any) -> Predicate | None:
        if not isinstance(node.this, exp.Column) or not node.expressions or node.args.get("query"):
            return None
        tests = [self._comparison(column_name(node.this), "=", item) for item in node.expressions]
        if any(test is None for test in tests):
            return None
        known = [test for test in tests if test is not None]
        return Either(*known) if len(known) > 1 else known[0]

    def between(self, node: Any) -> Predicate | None:
        if not isinstance(node.this, exp.Column) or node.args.get("symmetric"):
            return None
        name = column_name(node.this)
        low, high = self._comparison(name, ">=", node.args["low"]), self._comparison(name, "<=", node.args["high"])
        return Both(low, high) if low is not None and high is not None else None

    def is_missing(self, node: Any) -> Predicate | None:
        if not isinstance(node.this, exp.Column) or not isinstance(node.expression, exp.Null):
            return None
        name = column_name(node.this)
        if name in self.policy.references:
            return None
        attribute = self.policy.attribute(name)
        if attribute.kind in ("key", "items"):
            self.policy.countable(name)
        return Missing(name)

    def opposite(self, node: Any) -> Predicate:
        inner = self.read(node.this)
        return self.holds(node) if isinstance(inner, Holds) else Opposite(inner)


def _fits(attribute: Attribute, operator: Operator, value: Value) -> bool:
    """Return whether a value can be compared with a column as it is; otherwise it is an expression, with SQL's casts."""
    if isinstance(attribute, Category):
        kind = attribute.value_type
        whole = not isinstance(value, str | bool) and value.denominator == 1
        return operator in ("=", "!=") and (isinstance(value, kind) if kind is not int else whole)
    if isinstance(attribute, Numeric) and attribute.kind in ("integer", "grid", "decimal"):
        return not isinstance(value, str | bool)
    return False


def value_of(node: Any) -> Value | None:
    """Return a plain value; None for anything else."""
    if isinstance(node, exp.Paren):
        return value_of(node.this)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        inner = value_of(node.this)
        return -inner if inner is not None and not isinstance(inner, str | bool) else None
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string else _number(node.this)
    return None


def _number(text: str) -> Value:
    try:
        if len(text) <= 400:
            return exact(text)
    except (TypeError, ValueError, ZeroDivisionError):
        pass
    raise Unsupported("The SQL contains a number that cannot be read.", "Write it with fewer digits.")


READERS: dict[type, Callable[[_Reader, Any], Predicate | None]] = {
    **dict.fromkeys(COMPARISONS, _Reader.compare),
    exp.In: _Reader.is_in,
    exp.Between: _Reader.between,
    exp.Is: _Reader.is_missing,
    exp.Paren: lambda reader, node: reader.read(node.this),
    exp.And: _Reader.chain,
    exp.Or: _Reader.chain,
    exp.Not: _Reader.opposite,
}
