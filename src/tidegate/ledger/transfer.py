"""A ledger moves to another store: from SQLite to Postgres, or back, with the same entries.

The source is closed first, by an entry after which nothing can be charged. Then everything is copied in one transaction, and
an entry in the target opens it. If the copy fails, the source stays closed and the same command continues: at no moment can
both be charged.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from tidegate.errors import LedgerUnavailable
from tidegate.ledger import queries
from tidegate.ledger.backup import Copied, copy_rows
from tidegate.ledger.chain import NOTHING, SERVICE, append
from tidegate.ledger.entry import ARRIVED, MOVED, Entry, canonical
from tidegate.ledger.ledger import Ledger
from tidegate.ledger.schema import metadata, secrets
from tidegate.ledger.source_states import keyed


def copy(source: str, target: str) -> Copied:
    """Move a ledger to a new address. Randomized reports are in a folder of their own, and stay there.

    Raises:
        LedgerBroken: The source does not verify. Nothing was changed.
        LedgerUnavailable: The target has entries, or the source was moved elsewhere before.
    """
    origin = Ledger(source)
    try:
        verdict = origin.verify()
        verdict.refuse()
        destination = Ledger(target, is_witnessed=False)
        try:
            if destination.store.shown == origin.store.shown:
                raise LedgerUnavailable("Source and target are the same ledger.", "Name another target.")
            moved = _close(origin, destination)
            with destination.store.writing() as into, origin.store.reading() as connection:
                _refuse_used(into, moved)
                for table in reversed(metadata.sorted_tables):
                    into.execute(table.delete())
                copy_rows(connection, into)
                end = queries.last(into)
                if end is None or end.hash != moved.hash:
                    raise LedgerUnavailable("The source changed while it was copied.", "Run the same command again.")
                append(
                    into,
                    end,
                    kind=ARRIVED,
                    request="arrival/" + moved.hash,
                    body=canonical({"head": moved.hash}),
                    **NOTHING,
                )
            now = destination.verify()
            now.refuse()
            return Copied(destination.store.shown, now.entries, now.head)
        finally:
            destination.close()
    finally:
        origin.close()


def _close(origin: Ledger, destination: Ledger) -> Entry:
    """Append the last entry of the source; if it is there, refuse another target."""
    with origin.store.writing() as connection:
        salt = connection.execute(select(secrets.c.value).where(secrets.c.account == SERVICE)).scalar_one()
        body: dict[str, Any] = {"to": keyed(salt, destination.store.shown)}
        end = queries.last(connection)
        if end is not None and end.kind == MOVED:
            if end.content() != body:
                raise LedgerUnavailable(
                    "This ledger was moved to another store before.", "Use the ledger at its new address."
                )
            return end
        with destination.store.reading() as target:
            _refuse_used(target, None)
        return append(connection, end, kind=MOVED, request="moved", body=canonical(body), **NOTHING)


def _refuse_used(target: Connection, moved: Entry | None) -> None:
    last = queries.last(target)
    if last is not None and last.number > 0:
        arrived = moved is not None and last.kind == ARRIVED and last.content() == {"head": moved.hash}
        raise LedgerUnavailable(
            "The ledger was copied to this target before." if arrived else "The target is a ledger with entries.",
            "Use it from now on." if arrived else "Name a new file, or an empty database.",
        )
