"""Limits of queries that follow from the policy alone: universes, cells and sums that no engine can compute, and noise
that leaves nothing to know.

Everything here is public and is checked before the charge. A query that passes cannot fail for its size afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from decimal import ROUND_UP, Context
from fractions import Fraction

from tidegate.accounting import Event, budget_of
from tidegate.accounting.budget import SHORT
from tidegate.answer.comparison import number
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.mechanisms.mechanism import cells_of, most_rows, rows_per_cell
from tidegate.answer.mechanisms.ranks import Ranks
from tidegate.answer.request import Query
from tidegate.answer.spending import for_error
from tidegate.errors import TooManyCells, Unsupported
from tidegate.policy import EachPerson, EachRow, Numeric, Policy
from tidegate.tables.axes import MOST_CELLS, ROWS
from tidegate.tables.universe import is_never_true, measured_of

MOST_SUM = 10**38  # the widest whole numbers that engines add up
RANKED, COUNTED = ("quantile", "min", "max"), ("count", "histogram", "persons", "distinct")
POWERS = {"sum": 1, "mean": 1, "variance": 2, "std": 2}


def check_limits(queries: Sequence[Query], policy: Policy) -> None:
    """Refuse queries whose columns, cells or sums are too large to be computed exactly."""
    for query in queries:
        target = query.target(policy)
        for name in _columns(query, target):
            _check_universe(name, target)
        _check_cells(query, target)
        _check_sums(query, target)


def _columns(query: Query, policy: Policy) -> list[str]:
    """Return the columns whose codes are computed: all of them for persons, because they decide which rows count."""
    if isinstance(policy.dataset.unit, EachPerson):
        return list(policy.attributes)
    return sorted(query.bases(policy))


def _check_universe(name: str, policy: Policy) -> None:
    attribute = policy.attribute(name)
    if isinstance(attribute, Numeric) and attribute.too_large:
        raise Unsupported(
            f'"{name}" {attribute.too_large}.', f'Declare a coarser step or narrower bounds for "{name}".'
        )


def _check_cells(query: Query, policy: Policy) -> None:
    cells = cells_of(query, policy)
    if query.statistic in RANKED:
        cells *= measured_of(policy, query.column).size + 1  # every value is a candidate, and missing is counted
    if cells > MOST_CELLS:
        raise TooManyCells(
            f"{query.says()[0].upper()}{query.says()[1:]} needs {cells:,} cells, more than the limit of {MOST_CELLS:,}.",
            "Group by fewer columns, or declare a coarser step for the long ones.",
        )


def _check_sums(query: Query, policy: Policy) -> None:
    summed = [] if query.statistic in COUNTED else [query.column, *query.terms]
    reaches = [_reach(measured_of(policy, name)) for name in summed if name]
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


GOOD_PART = 20  # a proposed error is this part of the range


def check_usefulness(
    queries: Sequence[Query], policy: Policy, events: Sequence[Event], confidence: float = 0.95
) -> None:
    """Refuse answers that say no more than the policy, or than the middle of their public range.

    Some declared value must satisfy the condition. The error must be below half of the range: of the column for a mean, of
    the public number of rows for a count, and in ranks for quantiles, lowest and highest values.

    Raises:
        Unsupported: An answer would be useless. If it is the error, the message names the loss with which it is 1/20 of the
            range.
    """
    for query, event in zip(queries, events, strict=True):
        target, says = query.target(policy), f"{query.says()[0].upper()}{query.says()[1:]}"
        if note := condition_note(query, target):
            raise Unsupported(
                f"{says} would be useless: {note}.",
                "Compare the condition with the policy's values, or use `anyway` (--anyway) to ask all the same.",
            )
        error, extent, unit = error_and_range(query, target, event, confidence)
        if error is not None and 0 < extent <= 2 * error:
            raise Unsupported(
                f"{says} would be useless: its error of {number(error)}{unit} ({confidence:.0%} confidence) is at least half of "
                f"its range of {number(extent)}{unit}, so the middle of the range is as good.",
                f"{_proposal(query, policy, event, error, extent)}use `anyway` (--anyway) to ask all the same.",
            )


def check_public(queries: Sequence[Query], policy: Policy) -> None:
    """Refuse to sell the number of all rows where the policy states it and every row is one person."""
    rows = policy.dataset.rows if isinstance(policy.dataset.unit, EachRow) else None
    if rows is not None and (not queries or Query("count") in queries):
        others = "" if len(queries) <= 1 else " Leave it out of the request."
        raise Unsupported(f"The number of rows is public: {rows:,}.", f"Nothing is charged for it.{others}")


def usefulness_note(query: Query, policy: Policy, event: Event) -> str:
    """Return a note for the preview of an answer that `check_usefulness` refuses; empty for others."""
    error, extent, _ = error_and_range(query, policy, event, 0.95)
    is_useless = error is not None and 0 < extent <= 2 * error
    return "useless, because the error is at least half of the range" if is_useless else ""


def condition_note(query: Query, policy: Policy) -> str:
    """Return a note for a condition that no declared value satisfies; empty for others."""
    return "no value that the policy declares satisfies the condition" if is_never_true(policy, query.condition) else ""


def error_and_range(query: Query, policy: Policy, event: Event, confidence: float) -> tuple[float | None, float, str]:
    """Return the error, the range that it is compared with, and their unit; no error if it is not known in advance."""
    mechanism = mechanism_for(query)
    rows = rows_per_cell(query, policy)
    if isinstance(mechanism, Ranks) and rows is not None:
        return float(mechanism.rank_error(query, policy, event, confidence=confidence)), float(rows), " ranks"
    if query.statistic in ("count", "histogram"):
        return mechanism.error(query, policy, event, confidence=confidence), float(most_rows(policy) or 0), " rows"
    attribute = measured_of(policy, query.column) if query.statistic == "mean" else None
    if isinstance(attribute, Numeric) and rows is not None:
        extent = float(attribute.high - attribute.low)
        return mechanism.error(query, policy, event, confidence=confidence), extent, ""
    return None, 0.0, ""


def _proposal(query: Query, policy: Policy, event: Event, error: float, extent: float) -> str:
    """Return the loss with which the error is a small part of the range, as the beginning of a sentence.

    If the whole budget is smaller than that, return what else helps.
    """
    budget = budget_of(policy)
    unit = budget.unit
    target = extent / GOOD_PART
    amount: Fraction | None = None
    if isinstance(mechanism_for(query), Ranks):
        times = Fraction(error / target).limit_denominator(1000)
        price = event.price.z.value if unit == "z" else event.price.pure.value if event.price.pure else None
        amount = price * (times**2 if unit == "z" else times) if price is not None else None
    else:
        with suppress(Unsupported):
            amount = for_error((query,), policy, target, 0.95).amount
    if amount is None:
        return "Otherwise, "
    if amount > budget.ceiling.value:
        whole = f"{SHORT[unit]} {budget.ceiling.say()}"
        helps = (
            "Use fewer or wider groups" if query.groups else "Use a wider condition or narrower bounds of the column"
        )
        return f"Even the whole budget, {whole}, does not give an error of 1/{GOOD_PART} of the range. {helps}, or "
    rounded = Context(prec=3, rounding=ROUND_UP).divide(amount.numerator, amount.denominator)
    return f"Request {SHORT[unit]} {rounded:f} for an error of 1/{GOOD_PART} of the range, or "
