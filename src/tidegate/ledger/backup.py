"""Copies of a whole ledger while others charge it: a backup to restore, and an export to verify.

A backup is always a SQLite file, even of a Postgres ledger: `tidegate ledger verify BACKUP` reads it like any other ledger.
It is marked, so that it cannot be charged by mistake; `tidegate.ledger.restore` restores it.
An export is JSON lines, for an auditor who trusts neither the database nor the disk.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Table, insert, select

from tidegate.errors import LedgerUnavailable
from tidegate.ledger import file
from tidegate.ledger.entry import Entry, canonical, entry_from
from tidegate.ledger.ledger import Ledger
from tidegate.ledger.schema import metadata
from tidegate.ledger.store import write_new
from tidegate.ledger.verify import Verdict, verify

AT_ONCE = 1000  # rows per statement
HEADER = {"tidegate-ledger": 1}


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


# The export


def export_lines(ledger: Ledger, *, dataset: str = "") -> Iterator[str]:
    """Yield a header, then every entry in order, each result right after the entry that recorded it.

    With `dataset`, yield only the entries of a data set and its collections, for an auditor who must not see the others.
    Such an export names the data set in its header. Its entries and totals verify; only the whole ledger shows whether
    entries are missing.
    """
    entries, payloads, *_ = ledger.snapshot()
    yield canonical({**HEADER, "dataset": dataset} if dataset else HEADER)
    for entry in entries:
        if dataset and entry.account.partition("/")[0] != dataset:
            continue
        yield entry.line()
        if entry.number in payloads:
            yield canonical({"number": entry.number, "payload": payloads[entry.number]})


def verify_export(path: Path, *, head: str = "") -> Verdict:
    """Verify an exported file. Every byte counts: a line that is not in its exact form is a change."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LedgerUnavailable(
            f'Cannot read "{path}": {error.strerror or type(error).__name__}.', "Check the path and its permissions."
        ) from None
    entries: list[Entry] = []
    payloads: dict[int, str] = {}
    lines = content.split(b"\n")
    dataset = _dataset(lines[0])
    if dataset is None or lines[-1] != b"":
        return _broken("The file is not a complete export.")
    for number, line in enumerate(lines[1:-1], start=2):
        if not _take(line, entries, payloads):
            return _broken(f"Line {number:,} is not in the form of an export.")
    return verify(entries, payloads, head=head, dataset=dataset)


def _dataset(line: bytes) -> str | None:
    """Return the data set of an export; empty for the whole ledger, None if this is not a header."""
    try:
        header = json.loads(line)
        dataset = header.get("dataset", "")
        named = {**HEADER, "dataset": dataset} if dataset else HEADER
        return dataset if canonical(named).encode() == line and isinstance(dataset, str) else None
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None


def _take(line: bytes, entries: list[Entry], payloads: dict[int, str]) -> bool:
    try:
        value = json.loads(line)
        if canonical(value).encode() != line:
            return False
        if set(value) == {"number", "payload"}:
            number = value["number"]
            in_place = bool(entries) and type(number) is int and entries[-1].number == number and number not in payloads
            payloads[value["number"]] = value["payload"]
            return in_place
        entry = entry_from(value)
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    entries.append(entry)
    return set(value) == set(Entry.__dataclass_fields__)


def _broken(problem: str) -> Verdict:
    return Verdict(problems=[problem])
