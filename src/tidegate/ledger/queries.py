"""The queries of the ledger, as statements that are built once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, select

from tidegate.ledger import schema
from tidegate.ledger.entry import (
    ANSWERED,
    CHARGED,
    COLLECTING,
    DESK,
    HIDING_KEY,
    HIDING_OPEN,
    INVITATION_KEY,
    OPENED,
    WITNESSED,
    Entry,
    entry_from,
)
from tidegate.ledger.replay import IdSum
from tidegate.ledger.schema import counts as counted
from tidegate.ledger.schema import entries, results
from tidegate.ledger.schema import requests as asked_for
from tidegate.ledger.statements import Statement, read_all

_OF_ACCOUNT = entries.c.account == bindparam("account")

ALL = select(entries).order_by(entries.c.number)
_ENTRY = f"SELECT {', '.join(Entry.__dataclass_fields__)} FROM tidegate_entries"  # noqa: S608
LAST = Statement(f"{_ENTRY} ORDER BY number DESC LIMIT 1")
NUMBERED = Statement(f"{_ENTRY} WHERE number = {{0}}")
HEAD = Statement(f"{_ENTRY} WHERE account = {{0}} ORDER BY number DESC LIMIT 1")
REQUEST = Statement(f"{_ENTRY} WHERE account = {{0}} AND kind = {{0}} AND request = {{0}}")
QUESTION = Statement(
    f"{_ENTRY} WHERE account = {{0}} AND question = {{0}} AND kind = '{CHARGED}' ORDER BY number LIMIT 1"
)
OF_KIND = select(entries).where(_OF_ACCOUNT, entries.c.kind == bindparam("kind"))
COUNTS = select(counted).order_by(counted.c.opened, counted.c.question)
REQUESTS = select(asked_for).order_by(asked_for.c.account, asked_for.c.number)
PAYLOAD = select(results.c.payload).where(results.c.number == bindparam("number"))
_ANSWERS = entries.alias()
RESULTS_SINCE = (  # each charge with its result, in the order of the results
    select(entries, _ANSWERS.c.number.label("answer"), results.c.payload)
    .join(
        _ANSWERS,
        (_ANSWERS.c.account == entries.c.account)
        & (_ANSWERS.c.kind == ANSWERED)
        & (_ANSWERS.c.request == entries.c.request),
    )
    .join(results, results.c.number == _ANSWERS.c.number)
    .where(_OF_ACCOUNT, entries.c.kind == CHARGED, _ANSWERS.c.number > bindparam("since"))
    .order_by(_ANSWERS.c.number)
)


class Snapshot(NamedTuple):
    """All that `verify` needs, as it was at one moment. A table that an older schema does not have is None."""

    entries: list[Entry]
    payloads: dict[Any, str]
    requests: list[dict[str, Any]]
    counts: list[dict[str, Any]]
    secrets: list[tuple[str, str]]
    ids: dict[Any, tuple[int, str]]
    shares: list[tuple[str, str, str]] | None
    sources: list[dict[str, Any]] | None
    totals: list[tuple[str, ...]] | None
    selection: list[dict[str, Any]] | None


def snapshot(connection: Connection) -> Snapshot:
    """Return everything that `verify` needs."""
    later = (schema.shares, schema.totals, schema.selection)
    has_shares, has_totals, has_selection = (connection.dialect.has_table(connection, table.name) for table in later)
    return Snapshot(
        every(connection),
        payloads(connection),
        requests(connection),
        counts(connection),
        secrets(connection),
        id_sums(connection),
        [(account, user, spent) for account, user, spent in connection.execute(select(schema.shares))]
        if has_shares
        else None,
        [dict(row) for row in connection.execute(select(schema.sources)).mappings()] if has_shares else None,
        [tuple(row) for row in connection.execute(select(schema.totals))] if has_totals else None,
        [dict(row) for row in connection.execute(select(schema.selection)).mappings()] if has_selection else None,
    )


def integrity(connection: Connection) -> list[str]:
    """Return the problems that SQLite finds in its pages, indexes and constraints."""
    rows = connection.exec_driver_sql("PRAGMA integrity_check(20)").scalars()
    return [f"The database file is damaged: {line}." for line in rows if line != "ok"]


def every(connection: Connection) -> list[Entry]:
    """Return every entry in order."""
    return [entry_from(dict(row)) for row in connection.execute(ALL).mappings()]


def secrets(connection: Connection) -> list[tuple[str, str]]:
    """Return the secret of every account."""
    return [(account, value) for account, value in connection.execute(select(schema.secrets))]


def id_sums(connection: Connection) -> dict[Any, tuple[int, str]]:
    """Return the number of report ids of every version of a collection, and the digest of their set."""
    sums: dict[Any, IdSum] = {}
    rows = connection.execution_options(yield_per=10_000).execute(select(schema.report_ids))
    for part in rows.partitions(10_000):
        names_by_version: dict[Any, list[bytes]] = {}
        for opened, name in part:
            names_by_version.setdefault(opened, []).append(name)
        for opened, names in names_by_version.items():
            sums.setdefault(opened, IdSum()).add(names)
    return {opened: (total.size, total.text) for opened, total in sums.items()}


def last(connection: Connection) -> Entry | None:
    """Return the last entry of the chain."""
    return _one(connection, LAST)


def head(connection: Connection, account: str) -> Entry | None:
    """Return the last entry of an account."""
    return _one(connection, HEAD, account)


def find(connection: Connection, account: str, kind: str, request: str) -> Entry | None:
    """Return the charge or the result of a request."""
    return _one(connection, REQUEST, account, kind, request)


def numbered(connection: Connection, number: int) -> Entry | None:
    """Return the entry with a number."""
    return _one(connection, NUMBERED, number)


def asked(connection: Connection, account: str, question: str) -> Entry | None:
    """Return the first charge for a query, regardless of its key: its answer is the stored one."""
    return _one(connection, QUESTION, account, question)


def last_policy(connection: Connection, account: str) -> Any:
    """Return the body of the latest policy entry of an account."""
    entry = _latest(connection, account, OPENED)
    return entry.content() if entry else {}


def policies(connection: Connection, account: str) -> list[Entry]:
    """Return all policy entries of an account, in order."""
    return _of_kind(connection, account, OPENED)


def desk(connection: Connection, account: str) -> Entry | None:
    """Return the entry that last opened the release desk of an account."""
    return _latest(connection, account, DESK)


def desks(connection: Connection, account: str) -> list[Entry]:
    """Return all entries that opened a release desk of an account, in order."""
    return _of_kind(connection, account, DESK)


def hiding_key(connection: Connection, account: str) -> Entry | None:
    """Return the entry that commits to the key of an account's selections."""
    return _latest(connection, account, HIDING_KEY)


def hiding_openings(connection: Connection, account: str) -> list[Entry]:
    """Return all openings of an account's selections, in order."""
    return _of_kind(connection, account, HIDING_OPEN)


def collection(connection: Connection, account: str) -> Entry | None:
    """Return the entry that opened the latest version of a collection."""
    return _latest(connection, account, COLLECTING)


def collections(connection: Connection, account: str) -> list[Entry]:
    """Return the entries that opened the versions of a collection, in order."""
    return _of_kind(connection, account, COLLECTING)


def invitation_keys(connection: Connection, account: str) -> list[Entry]:
    """Return the entries of the keys for a collection's invitations, in order."""
    return _of_kind(connection, account, INVITATION_KEY)


def witness_changes(connection: Connection) -> list[Entry]:
    """Return the entries about witnesses and the signing key, in order."""
    return _of_kind(connection, "", WITNESSED)


def payload(connection: Connection, number: int) -> str:
    """Return the stored result of an entry."""
    return str(connection.execute(PAYLOAD, {"number": number}).scalar_one())


def payloads(connection: Connection) -> dict[Any, str]:
    """Return every stored result by the number of its entry.

    A number that is not an integer, or occurs twice, gets a separate name, so that `verify` assigns it to no entry.
    """
    payloads_by_number: dict[Any, str] = {}
    for number, payload in connection.execute(select(results.c.number, results.c.payload)):
        plain = type(number) is int and number not in payloads_by_number
        payloads_by_number[number if plain else f"{number!r}, number {len(payloads_by_number)}"] = payload
    return payloads_by_number


def requests(connection: Connection) -> list[dict[str, Any]]:
    """Return every request for a record, of every account."""
    return [dict(row) for row in connection.execute(REQUESTS).mappings()]


def counts(connection: Connection) -> list[dict[str, Any]]:
    """Return the counts of every collection."""
    return [dict(row) for row in connection.execute(COUNTS).mappings()]


def _one(connection: Connection, statement: Statement, *values: Any) -> Entry | None:
    [rows] = read_all(connection, [(statement, values)])
    return first_entry(rows)


def first_entry(rows: Sequence[Any]) -> Entry | None:
    """Return the entry of the first row, if there is one."""
    return Entry(*rows[0]) if rows else None


def _of_kind(connection: Connection, account: str, kind: str) -> list[Entry]:
    """Return the entries of a kind of which an account has few.

    They are sorted here: a database that sorts by number would use the index of all entries and read most of them.
    """
    rows = connection.execute(OF_KIND, {"account": account, "kind": kind}).mappings()
    return sorted((entry_from(dict(row)) for row in rows), key=lambda entry: entry.number)


def _latest(connection: Connection, account: str, kind: str) -> Entry | None:
    return next(reversed(_of_kind(connection, account, kind)), None)
