"""Entry 0 records the creation of a ledger. Commitments to its secrets make every later change of them visible.

A ledger of an earlier version has no entry 0. It gets an adoption entry when its schema is migrated: its older entries do
not change, so that earlier exports and noted heads still verify.
"""

from __future__ import annotations

import secrets as system
from datetime import UTC, datetime

from sqlalchemy import Connection, select

from tidegate.ledger import queries
from tidegate.ledger.chain import ADD_ENTRY, append
from tidegate.ledger.entry import ADOPTED, CREATED, FORMAT, GENESIS, Entry, canonical, sha256
from tidegate.ledger.schema import secrets

SERVICE = "/service"  # no data set has a slash in its name
_NOTHING = {"account": "", "policy": "", "question": "", "amount": "0", "spent": "0", "ceiling": "0"}


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
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    names = {"kind": CREATED, "request": "genesis", "body": _body(connection)}
    entry = Entry(number=0, at=now, previous=GENESIS, **names, **_NOTHING).sealed()
    connection.execute(ADD_ENTRY, entry.__dict__)
    return entry


def adopt(connection: Connection) -> None:
    """Commit to the secrets of a ledger that was written before there was a genesis entry."""
    first = connection.execute(queries.ALL.limit(1)).mappings().first()
    if first is not None and first["kind"] == CREATED:
        return
    if connection.execute(select(secrets).where(secrets.c.account == SERVICE)).first() is None:
        create_secret(connection, SERVICE)
    names = {"kind": ADOPTED, "request": "adoption", "body": _body(connection)}
    append(connection, queries.last(connection), **names, **_NOTHING)


def _body(connection: Connection) -> str:
    commitments = {account: commitment(account, value) for account, value in queries.secrets(connection)}
    return canonical({"format": FORMAT, "secrets": commitments})
