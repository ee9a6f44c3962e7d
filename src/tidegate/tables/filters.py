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
    Holds,
    Missing,
    Opposite,
    Predicate,
    category_value,
    code_bounds,
)
from tidegate.tables.boundary import Boundary
from tidegate.tables.codes import with_codes, with_products
from tidegate.tables.universe import FALSE, TRUE, truth_of

TEST = "tidegate_test_"
Codes = dict[str, Any]  # code of each column (NULL if it is missing), and outcome of each expression


def keep_rows(table: Any, policy: Policy, predicate: Predicate, boundary: Boundary) -> Any:
    """Return the rows for which a condition is true."""
    tests = {text: f"{TEST}{index}" for index, text in enumerate(sorted(predicate.tests()))}
    columns = list(table.columns)
    truths = {name: truth_of(policy, text) for text, name in tests.items()}
    table = with_products(table, truths, policy, boundary, final=True)
    names = {column: f"tidegate_where_{index}" for index, column in enumerate(sorted(predicate.compared()))}
    coded_columns = {name: (column, policy.attribute(column)) for column, name in names.items()}
    coded = with_codes(table, coded_columns, boundary)
    codes = {column: coded[name] for column, name in names.items()}
    codes |= {text: coded[name] for text, name in tests.items()}
    return coded.filter(condition(codes, policy, predicate)).select(columns)


def condition(codes: Codes, policy: Policy, predicate: Predicate) -> Any:
    """Return true, false or unknown (NULL) for each row."""
    return BUILDERS[type(predicate)](codes, policy, predicate)


def _compare(codes: Codes, policy: Policy, predicate: Compare) -> Any:
    attribute: Any = policy.attribute(predicate.column)
    codes_of_column = codes[predicate.column]
    if isinstance(attribute, Category):
        listed_code = attribute.codes[category_value(attribute, predicate.column, predicate.value)]
        return OPERATORS[predicate.operator](codes_of_column, listed_code)
    bounds = code_bounds(attribute, predicate.operator, predicate.value)
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
    bounds = code_bounds(attribute, "=", part.value)
    return None if isinstance(bounds, bool) else bounds[1]


def _halves(parts: list[Any], join: Callable[[Any, Any], Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return join(_halves(parts[:middle], join), _halves(parts[middle:], join))


BUILDERS: dict[type, Any] = {
    Compare: _compare,
    Holds: lambda codes, _, predicate: ibis.cases(
        (codes[predicate.text] == TRUE, ibis.literal(True)),
        (codes[predicate.text] == FALSE, ibis.literal(False)),
        else_=ibis.null("boolean"),
    ),
    Missing: lambda codes, _, predicate: codes[predicate.column].isnull(),
    Both: _chain,
    Either: _chain,
    Opposite: lambda codes, policy, predicate: ~condition(codes, policy, predicate.inner),
}
