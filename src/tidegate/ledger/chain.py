"""Appends to the chain, inside a transaction that no other writer overlaps.

Entry 0 records the creation of a ledger. Commitments to its secrets make every later change of them visible. A ledger of an
earlier version has no entry 0. It gets an adoption entry when its schema is migrated: its older entries do not change, so
that earlier exports and noted heads still verify.
"""

from __future__ import annotations

import logging
import secrets as system
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, select

from tidegate.errors import LedgerUnavailable
from tidegate.ledger import merkle, queries
from tidegate.ledger.entry import ADOPTED, ARRIVED, CREATED, FORMAT, GENESIS, MOVED, Entry, canonical, sha256
from tidegate.ledger.schema import secrets
from tidegate.ledger.statements import Statement, write

LOG = logging.getLogger("tidegate.ledger")
_NAMES = tuple(Entry.__dataclass_fields__)
_ADD_ENTRY = Statement(
    f"INSERT INTO tidegate_entries ({', '.join(_NAMES)}) VALUES ({', '.join(['{0}'] * len(_NAMES))})"  # noqa: S608
)
_ADD_RESULT = Statement("INSERT INTO tidegate_results (number, payload) VALUES ({0}, {0})")
SERVICE = "/service"  # no data set has a slash in its name
NOTHING = {"account": "", "policy": "", "question": "", "amount": "0", "spent": "0", "ceiling": "0"}


def moment_text(moment: datetime) -> str:
    """Return a moment in the form of entries."""
    return moment.isoformat(timespec="milliseconds")


def ends(connection: Connection, account: str) -> tuple[Entry | None, Entry | None]:
    """Return the last entry of the chain, and the last one of an account."""
    end = queries.last(connection)
    return end, end if end is None or end.account == account else queries.head(connection, account)


def append(connection: Connection, end: Entry | None, *, at: str = "", **fields: Any) -> Entry:
    """Append an entry after the last one. `at` is its time, by default now."""
    refuse_moved(end, **fields)
    number, previous = (end.number + 1, end.hash) if end else (1, GENESIS)
    entry = Entry(number=number, at=at or moment_text(datetime.now(UTC)), previous=previous, **fields).sealed()
    LOG.debug("An entry is written.", extra={"entry_kind": entry.kind})
    _add(connection, entry)
    merkle.add(connection, number)
    return entry


def _add(connection: Connection, entry: Entry) -> None:
    write(connection, _ADD_ENTRY, tuple(entry.__dict__[name] for name in _NAMES))


def add_result(connection: Connection, entry: Entry, payload: str) -> None:
    """Store the result of an entry, in its transaction."""
    write(connection, _ADD_RESULT, (entry.number, payload))


def refuse_moved(end: Entry | None, *, kind: str, **fields: Any) -> None:
    """Refuse to continue a ledger that was moved to another store."""
    if end is not None and end.kind == MOVED and kind != ARRIVED:
        raise LedgerUnavailable(
            "This ledger was moved to another store: it can be read, but nothing can be charged here.",
            "Name the new store in the policy (`ledger` in [dataset]), or with --ledger.",
        )


def unchanged(head: Entry) -> dict[str, Any]:
    """Return the account's fields for an entry that does not change them."""
    return {"account": head.account, "policy": head.policy, "spent": head.spent, "ceiling": head.ceiling}


def commitment(account: str, value: str) -> str:
    """Return the hash that represents a secret in the chain. A secret has 256 random bits, so its hash does not reveal it."""
    return sha256(f"tidegate secret\n{account}\n{value}")


def create_secret(connection: Connection, account: str) -> str:
    """Create the secret of an account; its commitment must be in an entry of the same transaction."""
    value = system.token_hex(32)
    connection.execute(secrets.insert(), {"account": account, "value": value})
    return value


def write_genesis(connection: Connection) -> Entry:
    """Write entry 0 into a ledger that has none yet."""
    create_secret(connection, SERVICE)
    now = moment_text(datetime.now(UTC))
    names = {"kind": CREATED, "request": "genesis", "body": _body(connection)}
    entry = Entry(number=0, at=now, previous=GENESIS, **names, **NOTHING).sealed()
    _add(connection, entry)
    return entry


def adopt(connection: Connection) -> None:
    """Commit to the secrets of a ledger that was written before there was a genesis entry."""
    first = connection.execute(queries.ALL.limit(1)).mappings().first()
    if first is not None and first["kind"] == CREATED:
        return
    if connection.execute(select(secrets).where(secrets.c.account == SERVICE)).first() is None:
        create_secret(connection, SERVICE)
    names = {"kind": ADOPTED, "request": "adoption", "body": _body(connection)}
    append(connection, queries.last(connection), **names, **NOTHING)


def _body(connection: Connection) -> str:
    commitments = {account: commitment(account, value) for account, value in queries.secrets(connection)}
    return canonical({"format": FORMAT, "secrets": commitments})
