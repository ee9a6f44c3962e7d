"""Backup: a consistent copy of everything that a ledger holds, while others charge.

A backup is always a SQLite file, also that of a Postgres ledger: `tidegate ledger verify BACKUP` reads it like any other
ledger. It is marked, so that nobody charges it by mistake; `tidegate.ledger.restore` puts it back.
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

AT_ONCE = 1000  # rows copied in one statement


@dataclass(frozen=True)
class Copied:
    """A backup that was made, or a ledger that was restored."""

    path: str
    entries: int
    head: str
    size: int = 0
    written_off: dict[str, str] = field(default_factory=dict)  # account -> what was charged again
    aside: str = ""  # where the ledger that was replaced is now


def backup(ledger: Ledger, to: str | Path) -> Copied:
    """Copy everything that a ledger holds into a new file that only its owner can read, and verify the copy.

    Guarantee:
        The copy is the ledger's state at one moment, while others write. It exists as a whole or not at all.

    Raises:
        LedgerUnavailable: A file of this name exists, or cannot be written.
        LedgerBroken: The ledger does not verify.
    """
    path = Path(to).expanduser()
    verdicts: list[Verdict] = []

    def write(beside: Path) -> None:
        if ledger.store.path is not None:
            copy_file(ledger.store.path, beside)
        else:
            with _filled(beside) as target, ledger.store.reading() as source:
                copy_rows(source, target)
        mark(beside, file.BACKUP)
        verdicts.append(verify_file(beside))

    if path.exists() or not file.create(path, write):
        raise LedgerUnavailable(f"The file {path} exists.", "Name a new file: a backup never replaces another.")
    return Copied(str(path), verdicts[0].entries, verdicts[0].head, path.stat().st_size)


def copy_file(source: Path, to: Path) -> None:
    """Copy a SQLite file with its log as it is at one moment, into one file."""
    with (
        contextlib.closing(
            sqlite3.connect(f"file:{quote(str(source.absolute()))}?mode=ro", uri=True, timeout=60)
        ) as one,
        contextlib.closing(sqlite3.connect(to, isolation_level=None)) as other,
    ):
        one.backup(other)
        other.execute("PRAGMA journal_mode = DELETE")


def mark(path: Path, state: int) -> None:
    """Write into a file whether it is whole, or a backup."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(f"PRAGMA user_version = {state}")


@contextlib.contextmanager
def _filled(path: Path) -> Iterator[Connection]:
    """A new ledger in a file, whose rows are to be replaced by others'."""
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
    """Copy the rows of every table into tables that are empty."""
    for table in metadata.sorted_tables:
        if source.dialect.has_table(source, table.name):
            _copy_table(source, target, table)


def _copy_table(source: Connection, target: Connection, table: Table) -> None:
    rows = source.execution_options(yield_per=AT_ONCE).execute(select(table)).mappings()
    for part in rows.partitions(AT_ONCE):
        target.execute(insert(table), [dict(row) for row in part])


def verify_file(path: Path, *, head: str = "") -> Verdict:
    """The verdict on a backup that holds."""
    with contextlib.closing(Ledger(str(path), read_only=True)) as ledger:
        verdict = ledger.verify(head=head)
    verdict.refuse()
    return verdict
