"""Questions as SQL: a small, safe part of it. Anything else is refused with the supported form."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import sqlglot
from sqlglot import exp

from tidegate.answer.request import Query, quantile
from tidegate.errors import Unsupported
from tidegate.exact import exact
from tidegate.policy import Policy
from tidegate.policy.predicates import Both, Compare, Either, Missing, Operator, Opposite, Predicate, Value

FORM = (
    "SELECT [columns,] COUNT(*) | SUM(x) | AVG(x) | VARIANCE(x) | STDDEV(x) | MEDIAN(x) | QUANTILE(x, 0.9) | MIN(x) | MAX(x) | HISTOGRAM(x) "
    "[, ...] FROM {name} [WHERE x >= 1 AND y = 'a' AND z IN (...) AND w BETWEEN 1 AND 9 ...] [GROUP BY columns]"
)
SIMPLE: dict[type, str] = {
    exp.Sum: "sum",
    exp.Avg: "mean",
    exp.Variance: "variance",
    exp.Stddev: "std",
    exp.StddevSamp: "std",
    exp.Min: "min",
    exp.Max: "max",
}
OPERATORS: dict[type, Operator] = {exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
FLIPPED: dict[Operator, Operator] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
LONGEST = 50_000  # characters of a query
ALLOWED = {"kind", "expressions", "from", "from_", "where", "group"}


def parse_sql(text: str, policy: Policy) -> tuple[Query, ...]:
    """Return the queries of one SELECT, or of several that are separated by semicolons, in their order."""
    return _Reader(policy).read(text)


class _Reader:
    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def refuse(self, what: str) -> Unsupported:
        return Unsupported(f"{what}.", f"Supported: {FORM.format(name=self.policy.dataset.name)}")

    def read(self, text: str) -> tuple[Query, ...]:
        if len(text) > LONGEST:
            raise self.refuse(f"The SELECT has more than {LONGEST:,} characters")
        queries = None
        with contextlib.suppress(RecursionError):  # thousands of parentheses, in the parser or in the steps below
            queries = self._queries(text)
        if queries is None:
            raise self.refuse("The SELECT is nested too deeply")
        return queries

    def _queries(self, text: str) -> tuple[Query, ...]:
        try:
            statements = sqlglot.parse(text, read="duckdb")
        except sqlglot.errors.SqlglotError:
            statements = []
        selects = [statement for statement in statements if statement is not None]  # None: after a last semicolon
        if not selects or not all(isinstance(select, exp.Select) for select in selects):
            raise self.refuse("The text is not a valid SELECT, or several that are separated by semicolons")
        return tuple(query for select in selects for query in self._queries_of(select))

    def _queries_of(self, select: Any) -> tuple[Query, ...]:
        extra = [name for name, value in select.args.items() if value and name not in ALLOWED]
        if extra:
            raise self.refuse(f"{extra[0].upper()} is not supported")
        self._check_source(select)
        group = select.args.get("group")
        if group is not None and not _only(group, "expressions"):
            raise self.refuse("GROUP BY accepts plain columns only")
        groups = tuple(self._column(node) for node in (group.expressions if group else []))
        where = self._predicate(select.args["where"].this) if select.args.get("where") else None
        queries, shown = [], []
        for item in select.expressions:
            inner = item.this if isinstance(item, exp.Alias) else item
            if isinstance(inner, exp.Column):
                shown.append(self._column(inner))
            else:
                queries.append(self._aggregate(inner, where, groups))
        if not queries:
            raise self.refuse("The SELECT contains no statistic, and single rows are never returned")
        if set(shown) - set(groups):
            raise self.refuse(f'"{(set(shown) - set(groups)).pop()}" is selected but not in GROUP BY')
        return tuple(queries)

    def _check_source(self, select: exp.Select) -> None:
        source = select.args.get("from") or select.args.get("from_")
        table = source.this if source else None
        if (
            not isinstance(table, exp.Table)
            or table.name != self.policy.dataset.name
            or not _only(table, "this", "alias")
        ):
            raise self.refuse(f"The only table is {self.policy.dataset.name}")

    def _aggregate(self, node: Any, where: Predicate | None, groups: tuple[str, ...]) -> Query:
        statistic = self._statistic(node)
        if statistic is None:
            raise self.refuse(f"{node.sql()[:60]} is not a supported statistic")
        query = statistic if where is None else statistic.where(where)
        return query.by(*groups) if groups else query

    def _statistic(self, node: Any) -> Query | None:
        if isinstance(node, exp.Count):
            return Query("count") if isinstance(node.this, exp.Star) and not node.expressions else None
        if type(node) in SIMPLE and isinstance(node.this, exp.Column) and _only(node, "this"):
            return Query(SIMPLE[type(node)], self._column(node.this))
        if isinstance(node, exp.Median):
            return quantile(self._column(node.this), "1/2")
        if isinstance(node, exp.Quantile | exp.PercentileCont):
            share = node.args.get("quantile") or node.args.get("expression")
            return quantile(self._column(node.this), share.sql()) if isinstance(share, exp.Literal) else None
        if isinstance(node, exp.Anonymous) and node.name.lower() == "histogram" and len(node.expressions) == 1:
            return Query("histogram", self._column(node.expressions[0]))
        if type(node).__name__ == "Histogram" and isinstance(node.this, exp.Column):
            return Query("histogram", self._column(node.this))
        return None

    def _column(self, node: Any) -> str:
        if not isinstance(node, exp.Column):
            raise self.refuse(f"{node.sql()[:60]} is not a plain column")
        if node.table and node.table != self.policy.dataset.name:
            raise self.refuse(f"The only table is {self.policy.dataset.name}")
        self.policy.attribute(node.name)
        return node.name

    def _predicate(self, node: Any) -> Predicate:
        build = PREDICATES.get(type(node))
        predicate = build(self, node) if build else None
        if predicate is None:
            raise self.refuse(f"The condition {node.sql()[:60]} is not supported")
        return predicate

    def _compare(self, node: Any) -> Predicate | None:
        operator, left, right = OPERATORS[type(node)], node.this, node.expression
        if isinstance(right, exp.Column):
            operator, left, right = FLIPPED[operator], right, left
        return Compare(self._column(left), operator, self._value(right))

    def _in(self, node: Any) -> Predicate | None:
        if not node.expressions or node.args.get("query"):
            return None
        name = self._column(node.this)
        tests = [Compare(name, "=", self._value(item)) for item in node.expressions]
        return Either(*tests) if len(tests) > 1 else tests[0]

    def _chain(self, node: Any) -> Predicate:
        """Read long chains of AND or OR as one flat condition."""
        parts = [self._predicate(part) for part in _links(node)]
        return Both(*parts) if isinstance(node, exp.And) else Either(*parts)

    def _between(self, node: Any) -> Predicate:
        name = self._column(node.this)
        return Both(
            Compare(name, ">=", self._value(node.args["low"])), Compare(name, "<=", self._value(node.args["high"]))
        )

    def _is(self, node: Any) -> Predicate | None:
        return Missing(self._column(node.this)) if isinstance(node.expression, exp.Null) else None

    def _value(self, node: Any) -> Value:
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
            return -exact(node.this.this)
        if isinstance(node, exp.Literal):
            return str(node.this) if node.is_string else exact(node.this)
        raise self.refuse(f"{node.sql()[:60]} is not a plain value")


def _links(node: Any) -> list[Any]:
    """Return the conditions of a chain of one operator, from left to right."""
    links, waiting = [], [node]
    while waiting:
        part = waiting.pop()
        if type(part) is type(node):
            waiting += [part.expression, part.this]
        else:
            links.append(part)
    return links


def _only(node: Any, *names: str) -> bool:
    """Return whether a node has no other clauses, such as a sample, filter or rollup."""
    return not any(value for name, value in node.args.items() if name not in names)


PREDICATES: dict[type, Callable[[_Reader, Any], Predicate | None]] = {
    **dict.fromkeys(OPERATORS, _Reader._compare),
    exp.In: _Reader._in,
    exp.Between: _Reader._between,
    exp.Is: _Reader._is,
    exp.Paren: lambda reader, node: reader._predicate(node.this),
    exp.And: _Reader._chain,
    exp.Or: _Reader._chain,
    exp.Not: lambda reader, node: Opposite(reader._predicate(node.this)),
}
