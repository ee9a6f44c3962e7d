"""The few things that are looked up in the record, as statements that are built once."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, bindparam, select

from tidegate.ledger.entry import ANSWERED, CHARGED, COLLECTING, DESK, OPENED, Entry, entry_from
from tidegate.ledger.schema import counts as counted
from tidegate.ledger.schema import entries, results
from tidegate.ledger.schema import requests as asked_for

_OF_ACCOUNT = entries.c.account == bindparam("account")
_LATEST = entries.c.number.desc()

ALL = select(entries).order_by(entries.c.number)
LAST = select(entries).order_by(_LATEST).limit(1)
HEAD = select(entries).where(_OF_ACCOUNT).order_by(_LATEST).limit(1)
REQUEST = select(entries).where(
    _OF_ACCOUNT, entries.c.kind == bindparam("kind"), entries.c.request == bindparam("request")
)
QUESTION = (
    select(entries)
    .where(_OF_ACCOUNT, entries.c.question == bindparam("question"), entries.c.kind == CHARGED)
    .order_by(entries.c.number)
    .limit(1)
)
POLICY = select(entries).where(_OF_ACCOUNT, entries.c.kind == OPENED).order_by(_LATEST).limit(1)
LAST_DESK = select(entries).where(_OF_ACCOUNT, entries.c.kind == DESK).order_by(_LATEST).limit(1)
DESKS = select(entries).where(_OF_ACCOUNT, entries.c.kind == DESK)
LAST_COLLECTION = select(entries).where(_OF_ACCOUNT, entries.c.kind == COLLECTING).order_by(_LATEST).limit(1)
COUNTS = select(counted).order_by(counted.c.opened, counted.c.question)
REQUESTS = select(asked_for).order_by(asked_for.c.account, asked_for.c.number)
PAYLOAD = select(results.c.payload).where(results.c.number == bindparam("number"))
RESULTS_SINCE = (
    select(entries.c.number, entries.c.request, results.c.payload)
    .join(results, results.c.number == entries.c.number)
    .where(_OF_ACCOUNT, entries.c.kind == ANSWERED, entries.c.number > bindparam("since"))
    .order_by(entries.c.number)
)


def last(connection: Connection) -> Entry | None:
    """The last entry of the chain."""
    return _one(connection, LAST)


def head(connection: Connection, account: str) -> Entry | None:
    """The last entry of an account."""
    return _one(connection, HEAD, account=account)


def find(connection: Connection, account: str, kind: str, request: str) -> Entry | None:
    """The charge or the result of a request."""
    return _one(connection, REQUEST, account=account, kind=kind, request=request)


def asked(connection: Connection, account: str, question: str) -> Entry | None:
    """The first charge for a question, whatever its key: the answer that it keeps."""
    return _one(connection, QUESTION, account=account, question=question)


def last_policy(connection: Connection, account: str) -> Any:
    """The body of the latest policy entry of an account."""
    found = _one(connection, POLICY, account=account)
    return found.content() if found else {}


def desk(connection: Connection, account: str) -> Entry | None:
    """The entry that last opened the release desk of an account."""
    return _one(connection, LAST_DESK, account=account)


def desks(connection: Connection, account: str) -> list[Entry]:
    """All entries that opened a release desk of an account, in their order."""
    rows = connection.execute(DESKS, {"account": account}).mappings()
    return sorted((entry_from(dict(row)) for row in rows), key=lambda entry: entry.number)


def collection(connection: Connection, account: str) -> Entry | None:
    """The entry that opened the latest version of a collection."""
    return _one(connection, LAST_COLLECTION, account=account)


def payload(connection: Connection, number: int) -> str:
    """The stored result of an entry."""
    return str(connection.execute(PAYLOAD, {"number": number}).scalar_one())


def payloads(connection: Connection) -> dict[Any, str]:
    """Every stored result by the number of its entry. A number that is no integer, or comes twice, gets a name of its own,
    so that `verify` finds it belonging to nothing."""
    found: dict[Any, str] = {}
    for number, payload in connection.execute(select(results.c.number, results.c.payload)):
        plain = type(number) is int and number not in found
        found[number if plain else f"{number!r}, number {len(found)}"] = payload
    return found


def requests(connection: Connection) -> list[dict[str, Any]]:
    """Every request for a record, of every account."""
    return [dict(row) for row in connection.execute(REQUESTS).mappings()]


def counts(connection: Connection) -> list[dict[str, Any]]:
    """What was counted of every collection."""
    return [dict(row) for row in connection.execute(COUNTS).mappings()]


def _one(connection: Connection, statement: Any, **named: Any) -> Entry | None:
    row = connection.execute(statement, named).mappings().first()
    return entry_from(dict(row)) if row else None
