"""Conditions as Ibis expressions on codes: the same rows on every engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ibis

from tidegate.policy import Category, Policy
from tidegate.policy.predicates import (
    OPERATORS,
    Both,
    Chain,
    Compare,
    Either,
    Missing,
    Opposite,
    Predicate,
    category_value,
    code_bounds,
)
from tidegate.tables.boundary import Boundary
from tidegate.tables.codes import with_codes

Codes = dict[str, Any]  # code of each column, NULL if it is missing


def keep_rows(table: Any, policy: Policy, predicate: Predicate, boundary: Boundary) -> Any:
    """Return the rows for which a condition is true."""
    names = {column: f"tidegate_where_{index}" for index, column in enumerate(sorted(predicate.columns()))}
    coded_columns = {name: (column, policy.countable(column)) for column, name in names.items()}
    coded = with_codes(table, coded_columns, boundary)
    codes = {column: coded[name] for column, name in names.items()}
    return coded.filter(condition(codes, policy, predicate)).drop(*names.values())


def condition(codes: Codes, policy: Policy, predicate: Predicate) -> Any:
    """Return true, false or unknown (NULL) for each row."""
    return BUILDERS[type(predicate)](codes, policy, predicate)


def _compare(codes: Codes, policy: Policy, predicate: Compare) -> Any:
    attribute: Any = policy.attribute(predicate.column)
    codes_of_column = codes[predicate.column]
    if isinstance(attribute, Category):
        listed_code = attribute.codes[category_value(attribute, predicate.column, predicate.value)]
        return OPERATORS[predicate.operator](codes_of_column, listed_code)
    bounds = code_bounds(attribute, predicate.operator, predicate.value)  # type: ignore[arg-type]
    if isinstance(bounds, bool):  # for every code or for none; unknown if there is no code
        return ibis.cases((codes_of_column.isnull(), ibis.null("boolean")), else_=ibis.literal(bounds))
    return OPERATORS[bounds[0]](codes_of_column, bounds[1])


def _chain(codes: Codes, policy: Policy, predicate: Chain) -> Any:
    """Join parts by bisection: a thousand parts make an expression ten deep. Equalities of a column become one test."""
    lists: dict[str, list[int]] = {}
    parts = []
    for part in predicate.parts:
        code = _equal_code(policy, part) if isinstance(predicate, Either) else None
        if code is None:
            parts.append(condition(codes, policy, part))
        else:
            lists.setdefault(part.column, []).append(code)  # type: ignore[attr-defined]
    parts += [codes[column].isin(sorted(set(column_codes))) for column, column_codes in lists.items()]
    return _halves(parts, (lambda a, b: a & b) if isinstance(predicate, Both) else (lambda a, b: a | b))


def _equal_code(policy: Policy, part: Predicate) -> int | None:
    if not isinstance(part, Compare) or part.operator != "=":
        return None
    attribute: Any = policy.attribute(part.column)
    if isinstance(attribute, Category):
        return int(attribute.codes[category_value(attribute, part.column, part.value)])
    bounds = code_bounds(attribute, "=", part.value)  # type: ignore[arg-type]
    return None if isinstance(bounds, bool) else bounds[1]


def _halves(parts: list[Any], join: Callable[[Any, Any], Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return join(_halves(parts[:middle], join), _halves(parts[middle:], join))


BUILDERS: dict[type, Any] = {
    Compare: _compare,
    Missing: lambda codes, _, predicate: codes[predicate.column].isnull(),
    Both: _chain,
    Either: _chain,
    Opposite: lambda codes, policy, predicate: ~condition(codes, policy, predicate.inner),
}
