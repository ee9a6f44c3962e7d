"""Conversion of queries to JSON values and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, get_args

from tidegate.answer.request import MOST_TERMS, Query, Statistic, quantile
from tidegate.errors import Unsupported
from tidegate.exact import exact
from tidegate.policy.predicates import OPERATORS, Both, Compare, Either, Missing, Opposite, Predicate, Value, as_value
from tidegate.tables.expressions import holds

ALONE = ("count", "persons")
STATISTICS: tuple[str, ...] = get_args(Statistic)
DEEPEST = 20  # conditions within conditions
PAIRS: dict[str, type[Both] | type[Either]] = {"and": Both, "or": Either}
FORM = 'For example {"compare": ["age", ">=", 30]}, {"missing": "age"}, {"and": [..., ...]}, {"or": ...}, {"not": ...}.'


def query_to_dict(query: Query) -> dict[str, Any]:
    """Return a query as JSON values."""
    content: dict[str, Any] = {"ask": query.statistic}
    content |= {"column": query.column} if query.column else {}
    content |= {"by": list(query.groups)} if query.groups else {}
    content |= {"where": query.condition.to_dict()} if query.condition is not None else {}
    content |= {"table": query.table} if query.table else {}
    content |= {"share": str(query.share)} if query.share is not None else {}
    return content | ({"on": list(query.terms), "method": query.method} if query.terms else {})


def query_from_dict(content: Mapping[str, Any]) -> Query:
    """Return the query that `query_to_dict` wrote; anything else is refused."""
    table = content.get("table") or ""
    if not isinstance(table, str):
        raise Unsupported('"table" must be the name of a table.', 'For example {"ask": "count", "table": "visits"}.')
    return replace(_query(content), table=table)


def _query(content: Mapping[str, Any]) -> Query:
    ask, column = content.get("ask"), content.get("column") or ""
    by, on = _names(content.get("by")), _names(content.get("on"))
    if ask not in STATISTICS or not isinstance(column, str) or (ask in ALONE) == bool(column):
        raise Unsupported(
            f'A query needs "ask", one of {", ".join(STATISTICS)}, and a "column" (except for "count" and "persons").',
            'For example {"ask": "mean", "column": "age", "by": ["sex"]}.',
        )
    condition = None if content.get("where") is None else condition_from_dict(content["where"])
    if ask == "quantile":
        quantile_query = quantile(column, _number(content.get("share")))
        return Query("quantile", column, condition, by, quantile_query.share)
    if ask == "regression":
        return Query(ask, column, condition, by, terms=_terms(column, on), method=_method(content))
    return Query(ask, column, condition, by)


def condition_from_dict(content: Any, *, deep: int = 0) -> Predicate:
    """Return a condition from its JSON values."""
    if not isinstance(content, Mapping) or len(content) != 1 or deep > DEEPEST:
        raise Unsupported(f"A condition is malformed, or nested more than {DEEPEST} levels deep.", FORM)
    ((word, inner),) = content.items()
    if word == "holds" and isinstance(inner, str):
        return holds(inner)
    if word == "missing" and isinstance(inner, str):
        return Missing(inner)
    if word == "not":
        return Opposite(condition_from_dict(inner, deep=deep + 1))
    if word in PAIRS and isinstance(inner, list) and len(inner) >= 2:
        return PAIRS[word](*(condition_from_dict(part, deep=deep + 1) for part in inner))
    if word == "compare" and isinstance(inner, list) and len(inner) == 3:
        return _compared(*inner)
    raise Unsupported("A condition is malformed.", FORM)


def _compared(column: Any, operator: Any, value: Any) -> Predicate:
    if not isinstance(column, str) or operator not in OPERATORS:
        raise Unsupported(f"A comparison needs a column, one of {' '.join(OPERATORS)}, and a value.", FORM)
    return Compare(column, operator, _value(value))


def _value(value: Any) -> Value:
    if isinstance(value, Mapping) and set(value) == {"number"}:
        return _number(value["number"])
    if isinstance(value, str | bool):
        return value
    return as_value(_number(value))


def _number(value: Any) -> Fraction:
    """Read a number of moderate length: reading takes time in proportion to its digits."""
    try:
        if isinstance(value, str) and (len(value) > 60 or "e" in value.lower()):
            raise ValueError
        return exact(value)
    except (TypeError, ValueError):
        pass
    raise Unsupported("The value must be a number.", 'Write 0.25, or "1/3" for an exact fraction.')


def _names(value: Any) -> tuple[str, ...]:
    names = () if value is None else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
        raise Unsupported("Columns must be a list of names.", 'For example ["sex", "town"].')
    return tuple(names)


def _terms(column: str, on: tuple[str, ...]) -> tuple[str, ...]:
    if not on or len(on) > MOST_TERMS or len({column, *on}) != len(on) + 1:
        raise Unsupported(
            f"A regression needs 1 to {MOST_TERMS} different predictors, none of them the outcome.",
            'Name them in "on".',
        )
    return on


def _method(content: Mapping[str, Any]) -> str:
    method = content.get("method") or "k-norm"
    if method not in ("k-norm", "functional"):
        raise Unsupported('The `method` of a regression must be "k-norm" or "functional".')
    return str(method)
