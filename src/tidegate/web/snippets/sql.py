"""SQL text of a query, as `tidegate answer` reads it."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache

from tidegate.answer.request import Query
from tidegate.exact import plain
from tidegate.policy.predicates import Chain, Compare, Missing, Opposite, Predicate, Value

FUNCTIONS = {"sum": "SUM", "mean": "AVG", "variance": "VARIANCE", "std": "STDDEV", "min": "MIN", "max": "MAX"}
FUNCTIONS |= {"histogram": "HISTOGRAM"}
SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _NotInSql(Exception):
    """The query cannot be written in the supported part of SQL."""


def sql_of(query: Query, dataset: str) -> str | None:
    """Return a SELECT statement of this query, or None if there is none."""
    try:
        columns = ", ".join([*map(_name, query.groups), _statistic(query)])
        where = f" WHERE {_condition(query.condition)}" if query.condition is not None else ""
    except _NotInSql:
        return None
    by = f" GROUP BY {', '.join(map(_name, query.groups))}" if query.groups else ""
    return f"SELECT {columns} FROM {_name(dataset)}{where}{by}"  # noqa: S608  (text for the reader: nothing executes it)


def _statistic(query: Query) -> str:
    if query.statistic == "count":
        return "COUNT(*)"
    if query.statistic == "quantile" and query.share is not None:
        if query.share == Fraction(1, 2):
            return f"MEDIAN({_name(query.column)})"
        return f"QUANTILE({_name(query.column)}, {_number(query.share)})"
    if query.statistic not in FUNCTIONS:
        raise _NotInSql
    return f"{FUNCTIONS[query.statistic]}({_name(query.column)})"


def _condition(condition: Predicate) -> str:
    if isinstance(condition, Compare):
        return f"{_name(condition.column)} {condition.operator} {_value(condition.value)}"
    if isinstance(condition, Missing):
        return f"{_name(condition.column)} IS NULL"
    if isinstance(condition, Opposite):
        return f"NOT ({_condition(condition.inner)})"
    if isinstance(condition, Chain):
        return f" {condition.word.upper()} ".join(_inner(part) for part in condition.parts)
    raise _NotInSql


def _inner(condition: Predicate) -> str:
    text = _condition(condition)
    return f"({text})" if isinstance(condition, Chain) else text


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return _number(value) if isinstance(value, Fraction) else "'{}'".format(value.replace("'", "''"))


def _number(value: Fraction) -> str:
    written = str(plain(value))
    if "/" in written or "E" in written:
        raise _NotInSql
    return written


def _name(name: str) -> str:
    """Return a name, in quotes if SQL requires them."""
    bare = SIMPLE.fullmatch(name) and name.upper() not in _words()
    return name if bare else '"{}"'.format(name.replace('"', '""'))


@cache
def _words() -> frozenset[str]:
    from sqlglot.tokens import Tokenizer

    return frozenset(word.upper() for word in Tokenizer.KEYWORDS)
