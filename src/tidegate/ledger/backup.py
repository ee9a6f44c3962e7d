"""Backup: a consistent copy of a whole ledger, while others charge it.

A backup is always a SQLite file, even of a Postgres ledger: `tidegate ledger verify BACKUP` reads it like any other ledger.
It is marked, so that it cannot be charged by mistake; `tidegate.ledger.restore` restores it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Table, insert, select

from tidegate.errors import LedgerUnavailable
from tidegate.ledger import file
from tidegate.ledger.ledger import Ledger
from tidegate.ledger.schema import metadata
from tidegate.ledger.store import write_new
from tidegate.ledger.verify import Verdict

AT_ONCE = 1000  # rows per statement


@dataclass(frozen=True)
class Copied:
    """A finished backup, or a restored ledger."""

    path: str
    entries: int
    head: str
    size: int = 0
    written_off: dict[str, str] = field(default_factory=dict)  # account -> amount charged again
    aside: str = ""  # path of the replaced ledger


def backup(ledger: Ledger, to: str | Path) -> Copied:
    """Copy a whole ledger into a new file that only its owner can read, and verify the copy.

    Guarantee:
        The copy is the ledger at one moment, while others write. The file is complete, or does not exist.

    Raises:
        LedgerUnavailable: A file of this name exists, or cannot be written.
        LedgerBroken: The ledger does not verify.
    """
    path = Path(to).expanduser()
    verdicts: list[Verdict] = []

    def write(temporary: Path) -> None:
        if ledger.store.path is not None:
            copy_file(ledger.store.path, temporary)
        else:
            with _empty_ledger(temporary) as target, ledger.store.reading() as source:
                copy_rows(source, target)
        mark(temporary, file.BACKUP)
        verdicts.append(verify_file(temporary))

    if path.exists() or not file.create(path, write):
        raise LedgerUnavailable(f"The file {path} exists.", "Name a new file: a backup never replaces another.")
    return Copied(str(path), verdicts[0].entries, verdicts[0].head, path.stat().st_size)


def copy_file(source: Path, to: Path) -> None:
    """Copy a SQLite file with its log, at one moment, into one file."""
    with (
        contextlib.closing(
            sqlite3.connect(f"file:{quote(str(source.absolute()))}?mode=ro", uri=True, timeout=60)
        ) as origin,
        contextlib.closing(sqlite3.connect(to, isolation_level=None)) as copy,
    ):
        origin.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")


def mark(path: Path, state: int) -> None:
    """Mark a file as whole, or as a backup."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(f"PRAGMA user_version = {state}")


@contextlib.contextmanager
def _empty_ledger(path: Path) -> Iterator[Connection]:
    """Open a new, empty ledger in a file, to be filled with another's rows."""
    write_new(path)
    ledger = Ledger(str(path))
    try:
        with ledger.store.writing() as connection:
            for table in reversed(metadata.sorted_tables):
                connection.execute(table.delete())
            yield connection
    finally:
        ledger.close()


def copy_rows(source: Connection, target: Connection) -> None:
    """Copy the rows of every table into empty tables."""
    for table in metadata.sorted_tables:
        if source.dialect.has_table(source, table.name):
            _copy_table(source, target, table)


def _copy_table(source: Connection, target: Connection, table: Table) -> None:
    rows = source.execution_options(yield_per=AT_ONCE).execute(select(table)).mappings()
    for part in rows.partitions(AT_ONCE):
        target.execute(insert(table), [dict(row) for row in part])


def verify_file(path: Path, *, head: str = "") -> Verdict:
    """Return the verdict on a backup, or raise LedgerBroken."""
    with contextlib.closing(Ledger(str(path), read_only=True)) as ledger:
        verdict = ledger.verify(head=head)
    verdict.refuse()
    return verdict
