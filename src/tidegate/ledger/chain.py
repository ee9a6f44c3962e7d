"""Appends to the chain, inside a transaction that no other writer overlaps."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from tidegate.ledger import queries
from tidegate.ledger.entry import GENESIS, Entry
from tidegate.ledger.schema import entries

LOG = logging.getLogger("tidegate.ledger")
ADD_ENTRY = entries.insert()


def moment_text(moment: datetime) -> str:
    """Return a moment in the form of entries."""
    return moment.isoformat(timespec="milliseconds")


def ends(connection: Connection, account: str) -> tuple[Entry | None, Entry | None]:
    """Return the last entry of the chain, and the last one of an account."""
    end = queries.last(connection)
    return end, end if end is None or end.account == account else queries.head(connection, account)


def append(connection: Connection, end: Entry | None, *, at: str = "", **fields: Any) -> Entry:
    """Append an entry after the last one. `at` is its time, by default now."""
    number, previous = (end.number + 1, end.hash) if end else (1, GENESIS)
    entry = Entry(number=number, at=at or moment_text(datetime.now(UTC)), previous=previous, **fields).sealed()
    LOG.debug("An entry is written.", extra={"entry_kind": entry.kind})
    connection.execute(ADD_ENTRY, entry.__dict__)
    return entry


def unchanged(head: Entry) -> dict[str, Any]:
    """Return the account's fields for an entry that does not change them."""
    return {"account": head.account, "policy": head.policy, "spent": head.spent, "ceiling": head.ceiling}
