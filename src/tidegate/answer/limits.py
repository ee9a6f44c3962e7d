"""Limits of queries that follow from the policy alone: universes, cells and sums that no engine can compute.

Everything here is public and is checked before the charge. A query that passes cannot fail for its size afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.answer.mechanisms.mechanism import cells_of
from tidegate.answer.request import Query
from tidegate.errors import TooManyCells, Unsupported
from tidegate.policy import EachPerson, Numeric, Policy
from tidegate.tables.boundary import ROWS
from tidegate.tables.table import MOST_CELLS

MOST_SUM = 10**38  # the widest whole numbers that engines add up
RANKED = ("quantile", "min", "max")
POWERS = {"sum": 1, "mean": 1, "variance": 2, "std": 2}


def check_limits(queries: Sequence[Query], policy: Policy) -> None:
    """Refuse queries whose columns, cells or sums are too large to be computed exactly."""
    for query in queries:
        for name in _columns(query, policy):
            _check_universe(name, policy)
        _check_cells(query, policy)
        _check_sums(query, policy)


def _columns(query: Query, policy: Policy) -> list[str]:
    """Return the columns whose codes are computed: all of them for persons, because they decide which rows count."""
    if isinstance(policy.dataset.unit, EachPerson):
        return list(policy.attributes)
    looked_at = query.condition.columns() if query.condition is not None else set()
    return sorted({query.column, *query.terms, *query.groups, *looked_at} - {""})


def _check_universe(name: str, policy: Policy) -> None:
    attribute = policy.attribute(name)
    if isinstance(attribute, Numeric) and attribute.too_large:
        raise Unsupported(
            f'"{name}" {attribute.too_large}.', f'Declare a coarser step or narrower bounds for "{name}".'
        )


def _check_cells(query: Query, policy: Policy) -> None:
    cells = cells_of(query, policy)
    if query.statistic in RANKED:
        cells *= policy.attribute(query.column).size + 1  # every value is a candidate, and missing is counted
    if cells > MOST_CELLS:
        raise TooManyCells(
            f"{query.says()[0].upper()}{query.says()[1:]} needs {cells:,} cells, more than the limit of {MOST_CELLS:,}.",
            "Group by fewer columns, or declare a coarser step for the long ones.",
        )


def _check_sums(query: Query, policy: Policy) -> None:
    reaches = [_reach(policy.attribute(name)) for name in (query.column, *query.terms) if name]
    if query.statistic == "regression":
        largest = max(reach * other for reach in reaches for other in reaches)
    else:
        largest = max(reaches, default=0) ** POWERS.get(query.statistic, 0)
    if largest * ROWS >= MOST_SUM:
        raise Unsupported(
            f"{query.says()[0].upper()}{query.says()[1:]} adds up numbers of more than 38 digits.",
            "Declare a coarser step or narrower bounds for its columns.",
        )


def _reach(attribute: object) -> int:
    """Return the largest number that an engine adds up for one row: a value of a whole column, otherwise a code."""
    if not isinstance(attribute, Numeric):
        return 0
    whole = max(abs(attribute.low), abs(attribute.high)) if attribute.width == 1 else 0
    return max(int(whole), attribute.size)
