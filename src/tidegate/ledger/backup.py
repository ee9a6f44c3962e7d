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
from typing import Any, BinaryIO
from urllib.parse import quote

from sqlalchemy import Connection, Table, insert, select

from tidegate.errors import LedgerUnavailable
from tidegate.ledger import file, stream
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
        with _written(path):
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


@contextlib.contextmanager
def _written(path: Path) -> Iterator[None]:
    problem = ""
    try:
        yield
    except sqlite3.Error as error:  # its text can contain values
        problem = str(getattr(error, "sqlite_errorname", "")) or type(error).__name__
    if problem:
        raise LedgerUnavailable(
            f"The backup {path} cannot be written ({problem}). The ledger is unchanged.",
            "Check that its disk is neither full nor damaged, or name a file on another disk.",
        )


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
    ledger = Ledger(str(path), is_witnessed=False)
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
    yield canonical({**HEADER, "dataset": dataset} if dataset else HEADER)
    with ledger.store.reading() as connection:
        payloads = stream.Payloads(connection)
        for entry in stream.Entries(connection):
            payload = payloads.pop(entry.number)
            if dataset and entry.account.partition("/")[0] != dataset:
                continue
            yield entry.line()
            if payload is not None:
                yield canonical({"number": entry.number, "payload": payload})


def verify_export(path: Path, *, head: str = "") -> Verdict:
    """Verify an exported file. Every byte counts: a line that is not in its exact form is a change."""
    problem = ""
    try:
        with path.open("rb") as file:
            dataset = _dataset(file.readline().removesuffix(b"\n"))
            if dataset is None:
                return _broken("The file is not a complete export.")
            lines = _Lines(file)
            verdict = verify(lines, lines.payloads, head=head, dataset=dataset)
            return _broken(lines.problem) if lines.problem else verdict
    except OSError as error:
        problem = error.strerror or type(error).__name__
    raise LedgerUnavailable(f'Cannot read "{path}": {problem}.', "Check the path and its permissions.")


class _Lines:
    """The entries of an export, line by line. `payloads` receives the results that follow them."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._number = file, 1
        self.payloads = stream.Pairs()
        self.problem = ""

    def __iter__(self) -> Iterator[Entry]:
        value = self._read()
        while value is not None:
            if set(value) != set(Entry.__dataclass_fields__):
                return self._break()
            entry, value = entry_from(value), self._read()
            if value is not None and set(value) == {"number", "payload"}:
                if value["number"] != entry.number or type(value["number"]) is not int:
                    return self._break()
                self.payloads[entry.number] = value["payload"]
                value = self._read()
            yield entry
        return None

    def _read(self) -> Any:
        """Return the next line as values; None at the end, or if it is not in the exact form."""
        line = self._file.readline()
        self._number += 1
        if not line:
            return None
        try:
            value = json.loads(line)
            is_exact = isinstance(value, dict) and line == canonical(value).encode() + b"\n"
        except (ValueError, TypeError, RecursionError):
            is_exact = False
        if is_exact:
            return value
        self.problem = self.problem or (
            f"Line {self._number:,} is not in the form of an export."
            if line.endswith(b"\n")
            else "The file is not a complete export."
        )
        return None

    def _break(self) -> None:
        self.problem = self.problem or f"Line {self._number:,} is not in the form of an export."


def _dataset(line: bytes) -> str | None:
    """Return the data set of an export; empty for the whole ledger, None if this is not a header."""
    try:
        header = json.loads(line)
        dataset = header.get("dataset", "")
        named = {**HEADER, "dataset": dataset} if dataset else HEADER
        return dataset if canonical(named).encode() == line and isinstance(dataset, str) else None
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None


def _broken(problem: str) -> Verdict:
    return Verdict(problems=[problem])
