"""Entries that charge nothing: failures after a charge, inspections by the owner, and reasons for a second account.

Whether an answer failed is an output that no price covers, if one row can decide it. Reading is total, so that no row
should; if reading fails nevertheless, the failure is recorded, and after three for one query only the owner is answered
until they have looked at the data.
"""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from tidegate.errors import Unsupported
from tidegate.ledger.chain import append, ends, unchanged
from tidegate.ledger.entry import FAILED, INSPECTED, SECOND, Entry, canonical
from tidegate.ledger.schema import entries
from tidegate.ledger.store import Store

MOST_FAILURES = 3  # of one query
FAILURE = "The source could not be read; the charge stands and the same question costs nothing more."


def note_failure(store: Store, charge: Entry) -> None:
    """Record that the run of a charge failed."""
    _append(store, charge.account, FAILED, {"charge": charge.number}, question=charge.question)


def note_inspection(store: Store, account: str) -> None:
    """Record that the owner compared the data with the policy, if there were failures since the last time."""
    with store.reading() as connection:
        failures = _failures(connection, account)
    if failures:
        _append(store, account, INSPECTED, {})


def note_second_account(store: Store, account: str, *, reason: str) -> None:
    """Record why a source has a second account."""
    _append(store, account, SECOND, {"reason": reason})


def refuse_suspended(store: Store, account: str) -> None:
    """Refuse a data set whose source could not be read several times for one query. Do not call it for the owner."""
    with store.reading() as connection:
        failures = _failures(connection, account)
    if failures >= MOST_FAILURES:
        raise Unsupported(
            f'"{account}" answers only its owner: its source could not be read {MOST_FAILURES} times for one query.',
            "Ask the owner to run tidegate check POLICY --data.",
        )


def _failures(connection: Connection, account: str) -> int:
    """Return the failures of the query that failed most often since the last inspection."""
    of_account = entries.c.account == account
    since = select(func.max(entries.c.number)).where(of_account, entries.c.kind == INSPECTED)
    inspected = connection.execute(since).scalar() or 0
    numbers = select(func.count()).where(of_account, entries.c.kind == FAILED, entries.c.number > inspected)
    return max(connection.execute(numbers.group_by(entries.c.question)).scalars(), default=0)


def _append(store: Store, account: str, kind: str, body: dict[str, object], *, question: str = "") -> None:
    with store.writing() as connection:
        end, head = ends(connection, account)
        if head is not None:
            names = {"request": f"{kind} {head.number}", "question": question, "body": canonical(body)}
            append(connection, end, kind=kind, amount="0", **names, **unchanged(head))
