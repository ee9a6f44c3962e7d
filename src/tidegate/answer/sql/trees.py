"""Questions about syntax trees, and small changes of them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from sqlglot import exp

from tidegate.answer.sql.measures import READERS, is_aggregate
from tidegate.errors import Unsupported
from tidegate.tables.expressions import ALLOWED, NAMED, function_name, links, write

RANKING = (exp.Rank, exp.RowNumber, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile)
WINDOWS = (*RANKING, *(exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue))
RELEASED = frozenset((*ALLOWED, *WINDOWS, *READERS, exp.Exists)) - {exp.Anonymous}


def check_released(tree: Any) -> None:
    """Refuse functions on released numbers that are not listed: some take memory and time without bound."""
    for part in tree.walk():
        named = isinstance(part, exp.Anonymous) and part.name.lower() in NAMED
        if isinstance(part, exp.Func) and type(part) not in RELEASED and not named:
            raise Unsupported(
                f"{function_name(part)} is not one of the supported functions of released numbers.",
                "Supported: arithmetic, comparisons, CASE, COALESCE, ROUND, text and date functions, aggregates and windows.",
            )


def has_clauses(node: exp.Subquery) -> bool:
    return any(value for name, value in node.args.items() if name not in ("this", "alias"))


def replaced(node: Any, **arguments: Any) -> Any:
    copied = node.copy()
    for name, value in arguments.items():
        copied.set(name, value)
    return copied


def move_join_conditions(select: exp.Select, joins: list[Any]) -> None:
    """Write FROM a, b WHERE a.key = b.key as a JOIN b ON a.key = b.key. An inner join has the same rows either way."""
    where = select.args.get("where")
    for join in joins:
        if where is None or any(join.args.get(name) for name in ("on", "using", "side", "kind", "method")):
            continue
        alias, parts = join.this.alias_or_name.lower(), links(where.this, exp.And)
        equal = next((part for part in parts if _relates(part, alias)), None)
        if equal is not None:
            join.set("on", equal.copy())
            others = [part.copy() for part in parts if part is not equal]
            where = exp.Where(this=exp.and_(*others, copy=False)) if others else None
            select.set("where", where)


def _relates(node: Any, alias: str) -> bool:
    """Return whether a condition compares a column of one table with a column of another."""
    if not isinstance(node, exp.EQ) or not all(isinstance(side, exp.Column) for side in (node.this, node.expression)):
        return False
    tables = [node.this.table.lower(), node.expression.table.lower()]
    return all(tables) and tables.count(alias) == 1


def with_tables(tree: Any, tables: list[Any]) -> Any:
    if tables:
        tree.set("with_", exp.With(expressions=[table.copy() for table in tables]))
    return tree


def in_subquery(node: Any, root: Any) -> bool:
    parent = node.parent
    while parent is not None and parent is not root:
        if isinstance(parent, exp.Select):
            return True
        parent = parent.parent
    return isinstance(root, exp.Select)


def nearest_queries(select: Any, *, without: set[int]) -> list[Any]:
    """Return the subqueries of a query that are not within another one, nor among the nodes `without`."""
    queries = []
    waiting = list(select.iter_expressions())
    while waiting:
        node = waiting.pop()
        if id(node) in without:
            continue
        if isinstance(node, exp.Select | exp.SetOperation):
            queries.append(node)
        else:
            waiting += list(node.iter_expressions())
    return queries


def is_star(node: Any) -> bool:
    """Return whether an item of a SELECT is * or t.*."""
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def is_aggregated(select: exp.Select) -> bool:
    if select.args.get("group") is not None:
        return True
    clauses = [
        *select.expressions,
        *(select.args[name] for name in ("having", "order", "qualify") if select.args.get(name)),
    ]
    return any(contains_aggregate(node) for node in clauses)


def contains_aggregate(node: Any) -> bool:
    """Return whether a tree adds up rows, outside of subqueries; a window function alone does not."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.Select | exp.SetOperation):
            continue
        if isinstance(part, exp.Window):
            function = part.this.this if isinstance(part.this, exp.IgnoreNulls | exp.RespectNulls) else part.this
            waiting += [child for child in part.iter_expressions() if child is not part.this]
            waiting += list(function.iter_expressions()) if isinstance(function, exp.Expression) else []
            continue
        if is_aggregate(part):
            return True
        waiting += list(part.iter_expressions())
    return False


def title(node: Any) -> str:
    return write(node)[:60]


def rollup(several: list[list[Any]]) -> list[list[list[Any]]]:
    return [several[:count] for count in range(len(several), -1, -1)]


def cube(several: list[list[Any]]) -> list[list[list[Any]]]:
    sizes = range(len(several), -1, -1)
    return [list(chosen) for size in sizes for chosen in combinations(several, size)]


def each(several: list[list[Any]]) -> list[list[list[Any]]]:
    return [[chosen] for chosen in several]
