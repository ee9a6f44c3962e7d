"""The store of received reports that are not yet counted: no time, no order, no address.

Every function works inside the caller's transaction. `collection` is the account and the version (`people/shoppers/1`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from tidegate.ledger import queries
from tidegate.ledger.counts import known_ids
from tidegate.ledger.entry import CLOSED
from tidegate.ledger.schema import waiting

AT_ONCE = 10_000  # ids in one statement
Arrival = tuple[bytes, str]  # the id of a report, and its randomized answers as canonical JSON

State = Literal["waits", "known", "spent", "full"]


class Received(NamedTuple):
    """A checked report on its way into the store. `nonce` is the hash of its invitation's nonce; empty if it needs none."""

    id: bytes
    body: str
    nonce: bytes = b""


_OF = waiting.c.collection == bindparam("collection_")
_COUNT = select(func.count()).select_from(waiting).where(_OF)
_READ = select(waiting.c.id, waiting.c.body).where(_OF).order_by(waiting.c.id)
_KNOWN = select(waiting.c.id).where(_OF, waiting.c.id.in_(bindparam("ids", expanding=True)))
_REMOVE = delete(waiting).where(_OF, waiting.c.id == bindparam("id_"))
_COLLECTIONS = select(waiting.c.collection).distinct().order_by(waiting.c.collection)


def add(connection: Connection, collection: str, arrivals: Iterable[Arrival]) -> None:
    """Add reports, in the order of their ids."""
    rows = [{"collection": collection, "id": name, "body": body} for name, body in sorted(arrivals)]
    if rows:
        connection.execute(insert(waiting), rows)


def known(connection: Connection, collection: str, ids: Sequence[bytes]) -> set[bytes]:
    """Return the ids that wait."""
    waiting_ids: set[bytes] = set()
    for start in range(0, len(ids), AT_ONCE):
        part = list(ids[start : start + AT_ONCE])
        rows = connection.execute(_KNOWN, {"collection_": collection, "ids": part})
        waiting_ids |= {bytes(name) for (name,) in rows}
    return waiting_ids


def count(connection: Connection, collection: str) -> int:
    """Return the number of waiting reports. For decisions only: show it rounded (`BatchRule.rounded`)."""
    return int(connection.execute(_COUNT, {"collection_": collection}).scalar_one())


def read(connection: Connection, collection: str) -> list[Arrival]:
    """Return all waiting reports, in the order of their ids."""
    return [(bytes(name), body) for name, body in connection.execute(_READ, {"collection_": collection})]


def remove(connection: Connection, collection: str, ids: Iterable[bytes]) -> None:
    """Remove counted reports."""
    rows = [{"collection_": collection, "id_": name} for name in sorted(ids)]
    if rows:
        connection.execute(_REMOVE, rows)


def collections(connection: Connection) -> list[str]:
    """Return the collections for which reports wait."""
    return [str(name) for (name,) in connection.execute(_COLLECTIONS)]


def problems(connection: Connection) -> list[str]:
    """Return the problems of the store: a report must wait for an open version, and must not be counted already."""
    wrong: list[str] = []
    if not connection.dialect.has_table(connection, waiting.name):  # an earlier ledger that is only read
        return wrong
    for name in collections(connection):
        account, _, version = name.rpartition("/")
        opened = queries.collection(connection, account)
        is_latest = opened is not None and str(opened.content()["description"]["version"]) == version
        if opened is None or not is_latest or queries.find(connection, account, CLOSED, f"closing/{version}"):
            wrong.append(f"Reports are waiting for version {version} of {account}, which is not open.")
        elif known_ids(connection, opened.number, [report_id for report_id, _ in read(connection, name)]):
            wrong.append(f"Reports of {account} are waiting although they were counted.")
    return wrong
