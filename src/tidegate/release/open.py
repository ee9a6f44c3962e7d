"""The opening of a desk: baselines and critical values are fixed in the ledger before the first request."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from tidegate.errors import Infeasible, PolicyLoosened
from tidegate.ledger import Ledger
from tidegate.ledger.release_book import ReleaseBook
from tidegate.policy import Concealment, Policy
from tidegate.release.plan import Plan, make_plan, plan_from_dict
from tidegate.release.request import Progress
from tidegate.tables import Table


def open_plans(
    name: str,
    policy: Policy,
    table: Callable[[], Table],
    ledger: Ledger,
    book: ReleaseBook,
    progress: Progress | None,
    source: str = "",
) -> dict[str, Plan]:
    """Return the plans in the ledger, in the order of the cells that it stores.

    They are created now if the desk opens for the first time under this policy.
    """
    opening = book.desk()
    if opening and opening[0].policy != policy.fingerprint:
        _refuse_other_cells(policy, book, opening[1])
    book.refuse_joins(name, source)
    ledger.open_account(policy)
    if opening and opening[0].policy == policy.fingerprint:
        if not book.has_opened(name, source):
            book.open_desk(opening[1], name, source)
    else:
        earlier = opening[1] if opening else {}
        plans = {}
        for title, promise in policy.concealments.items():
            plan = _plan(title, promise, policy, table, earlier.get(title), progress)
            plans[title] = {**plan.to_dict(), "columns": _columns(policy, promise)}
        opening = book.open_desk(plans, name, source)
    return {title: plan_from_dict(promise, opening[1][title]) for title, promise in sorted(policy.concealments.items())}


def _columns(policy: Policy, promise: Concealment) -> dict[str, Any]:
    """Return the description of the columns of a promise, which gives its cells their meaning."""
    described = policy.public_dict()["attributes"]
    return {column: described[column] for column in (*promise.reveals, *promise.about)}


def _refuse_other_cells(policy: Policy, book: ReleaseBook, plans: dict[str, Any]) -> None:
    """Refuse a policy that changes the meaning of cells in which released records are counted."""
    with book.look() as view:
        has_requests = bool(view.last()[0])
    for name, promise in policy.concealments.items():
        if name not in plans and has_requests:
            raise Infeasible(
                f"Records were requested before [promise.concealment.{name}] was added, so their cells under it are unknown.",
                "Remove it: a promise must be made before the first record is requested.",
            )
        if name in plans and plans[name].get("columns") != _columns(policy, promise):
            raise PolicyLoosened(
                f"The description of columns by which [promise.concealment.{name}] counts released records has changed "
                f"({', '.join((*promise.reveals, *promise.about))}).",
                "Restore the earlier description of these columns.",
            )


def _plan(
    name: str,
    promise: Concealment,
    policy: Policy,
    table: Callable[[], Table],
    earlier: Any,
    progress: Progress | None,
) -> Plan:
    if earlier:  # a baseline is fixed once
        weights = [[Fraction(item) for item in earlier[part]] for part in ("baseline", "shares")]
        return make_plan(promise, *weights, progress=progress)
    if promise.baseline:
        shares = promise.shares or (Fraction(1),) * policy.cells(promise.about)
        return make_plan(promise, promise.baseline, shares, progress=progress)
    _refuse_too_early(name, promise)
    return make_plan(promise, *_weights(promise, table()), progress=progress)


def _refuse_too_early(name: str, promise: Concealment) -> None:
    day, today = promise.baseline_from_table_on, datetime.now(UTC).date().isoformat()
    if not day or today < day:
        raise Infeasible(
            f"The baseline of [promise.concealment.{name}] will be taken from the table on {day}; today is {today}."
            if day
            else f"[promise.concealment.{name}] states no baseline for {', '.join(promise.reveals)}.",
            'Set weights (`baseline = [...]`) or the day on which to take it (`baseline_from_table_on = "2026-04-01"`).',
        )


def _weights(promise: Concealment, table: Table) -> tuple[list[Fraction], list[Fraction]]:
    """Count the records of each value, and of each target, in the table."""
    axes = [table.axis(column, binned=True) for column in (*promise.reveals, *promise.about)]
    counts = table.count(axes).reshape(table.policy.cells(promise.reveals), -1)
    values, targets = ([Fraction(int(n)) for n in counts.sum(axis=axis)] for axis in (1, 0))
    return values, list(promise.shares) or targets
