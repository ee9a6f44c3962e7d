"""Typical queries of a policy with the accuracy that each would get. Everything follows from the policy; no row is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tidegate.accounting import Amount, budget_of
from tidegate.accounting.budget import SHORT
from tidegate.answer import Query
from tidegate.answer.limits import error_and_range
from tidegate.answer.spending import RequestedLoss, error_of, for_error
from tidegate.errors import TidegateError
from tidegate.policy import Category, EachPerson, Moment, Numeric, Policy
from tidegate.policy.tables import public_columns

CONFIDENCE = 0.95
GOOD_PART = 0.05  # of the range: the error of a query that is accurate enough for a first look
EACH = 3  # queries of a kind
MOST_GROUPS = 30
PLANS = (10, 20, 50, 100, 200)  # numbers of queries to choose from


def typical_queries(policy: Policy) -> Iterator[Query]:
    """Yield means of numbers, counts by group, shares above the middle, and histograms."""
    public = public_columns(policy)
    columns = {name: attribute for name, attribute in policy.attributes.items() if name not in public}
    numbers = [name for name, attribute in columns.items() if isinstance(attribute, Numeric) and attribute.size > 1]
    groups = [
        name
        for name, attribute in columns.items()
        if isinstance(attribute, Category) and attribute.cells <= MOST_GROUPS
    ]
    plain = [name for name in numbers if not isinstance(columns[name], Moment)]
    yield from (Query("mean", name) for name in plain[:EACH])
    yield from (Query("count").by(name) for name in groups[:EACH])
    yield from (Query("quantile", name, share=Fraction(1, 2)) for name in plain[:1])
    yield from (Query("histogram", name) for name in numbers[:1])
    if plain and groups:
        yield Query("mean", plain[0]).by(groups[0])


def simulate(policy: Policy, *, queries: int, rows: int | None = None) -> dict[str, Any]:
    """Return typical queries with their error if `queries` equal ones share the budget, and how many good ones it allows.

    Args:
        rows: The assumed number of rows (of persons, if they are protected), if the policy does not declare it. It changes no
            promise.
    """
    assumed = rows if policy.dataset.rows is None else None
    if assumed is not None:
        policy = replace(policy, dataset=replace(policy.dataset, rows=assumed))
    budget = budget_of(policy)
    loss = RequestedLoss(Amount.down(budget.ceiling.value / queries).value, budget.unit)
    lines = [line for query in typical_queries(policy) if (line := _line(query, policy, loss))]
    return {
        "queries": queries,
        "unit": SHORT[budget.unit],
        "budget": str(budget.ceiling),
        "each": str(Amount.down(loss.amount)),
        "rows": policy.dataset.rows,
        "counted": "persons" if isinstance(policy.dataset.unit, EachPerson) else "rows",
        "assumed": assumed,
        "lines": lines,
    }


def _line(query: Query, policy: Policy, loss: RequestedLoss) -> dict[str, Any] | None:
    try:
        query.check(policy)
        error, extent, unit = error_and_range(query, policy, loss.event(query, policy), CONFIDENCE)
        if error is None:
            error = error_of(query, policy, loss, CONFIDENCE)
    except (TidegateError, ValueError, ZeroDivisionError):
        return None
    says = query.says()
    about = {"query": f"{says[:1].upper()}{says[1:]}", "error": error, "unit": unit.strip()}
    part = error / extent if error is not None and extent else None
    return {**about, "range": extent or None, "part": part, "good": _count(query, policy, extent)}


def _count(query: Query, policy: Policy, extent: float) -> int | None:
    """Return how many such queries with an error of 5% of the range fit into the budget; None if that is not known."""
    try:
        needed = for_error((query,), policy, GOOD_PART * extent, CONFIDENCE).amount if extent else None
    except (TidegateError, ValueError, ZeroDivisionError):
        return None
    return int(budget_of(policy).ceiling.value / needed) if needed else None
