"""Conditions as Ibis expressions on codes: the same rows on every engine."""

from __future__ import annotations

from typing import Any

import ibis

from tidegate.policy import Category, Policy
from tidegate.policy.predicates import (
    OPERATORS,
    Both,
    Compare,
    Either,
    Missing,
    Opposite,
    Predicate,
    category_value,
    code_bounds,
)
from tidegate.tables.codes import code, listed


def condition(table: Any, policy: Policy, predicate: Predicate) -> Any:
    """True, false or unknown (NULL) for each row."""
    return BUILDERS[type(predicate)](table, policy, predicate)


def _compare(table: Any, policy: Policy, predicate: Compare) -> Any:
    attribute: Any = policy.attribute(predicate.column)
    column = table[predicate.column]
    if isinstance(attribute, Category):
        wanted = category_value(attribute, predicate.column, predicate.value)
        return OPERATORS[predicate.operator](listed(column, attribute), wanted)
    found = code(column, attribute)
    bounds = code_bounds(attribute, predicate.operator, predicate.value)  # type: ignore[arg-type]
    if isinstance(bounds, bool):  # for every code or for none; unknown where there is no code
        return ibis.cases((found.isnull(), ibis.null("boolean")), else_=ibis.literal(bounds))
    return OPERATORS[bounds[0]](found, bounds[1])


def _missing(table: Any, policy: Policy, predicate: Missing) -> Any:
    attribute: Any = policy.attribute(predicate.column)
    column = table[predicate.column]
    return (listed(column, attribute) if isinstance(attribute, Category) else code(column, attribute)).isnull()


BUILDERS: dict[type, Any] = {
    Compare: _compare,
    Missing: _missing,
    Both: lambda t, p, predicate: condition(t, p, predicate.one) & condition(t, p, predicate.other),
    Either: lambda t, p, predicate: condition(t, p, predicate.one) | condition(t, p, predicate.other),
    Opposite: lambda t, p, predicate: ~condition(t, p, predicate.one),
}
