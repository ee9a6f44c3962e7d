"""The source of a draft: an uploaded file, a file that is already in the folder, or a table of an allowed database.

Guarantee:
    An upload is written below `data` under a name of letters, digits, dots, dashes and underscores, replaces no file, has at
    most the allowed number of bytes, and only the service's user can read it. No message quotes its content.
"""

from __future__ import annotations

import codecs
import csv
import os
import re
import secrets
import unicodedata
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from tidegate.errors import NotThere, SourceUnreadable, TidegateError, TooLarge, Unsupported
from tidegate.policy.draft import ColumnType
from tidegate.service.drafts.notation import AS_WRITTEN, Notation, rewrite
from tidegate.service.folder import ServiceFolder
from tidegate.tables.column_types import column_types, table_types
from tidegate.tables.header import CSV, PARQUET

ENCODINGS = {
    "utf-8": "UTF-8",
    "utf-8-any": "UTF-8 with characters that cannot be read",
    "cp1252": "Windows-1252 (older Excel files)",
    "utf-16": "UTF-16 (Excel: Unicode text)",
    "latin-1": "Latin-1",
}
MOST_COLUMNS = 1_000
LONGEST_HEADER = 1024 * 1024  # bytes of the first line of a CSV file
LARGEST_FOOTER = 16 * 1024 * 1024  # bytes of the description in a Parquet file
BLOCK = 1024 * 1024  # bytes that are written at a time
TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}(\.[A-Za-z_][A-Za-z0-9_$]{0,62})?")
SAVE_AS = "Save the table as CSV (UTF-8) or Parquet, and upload it again."


def safe_name(name: str) -> str:
    """Return the name under which an upload is stored. Folders, hidden files and unknown types are refused or removed."""
    base = unicodedata.normalize("NFKD", re.split(r"[/\\]", name)[-1])
    base = "".join(letter for letter in base if not unicodedata.combining(letter))
    stem, _, suffix = base.rpartition(".")
    if f".{suffix.lower()}" not in (*CSV, *PARQUET):
        raise Unsupported(f"Only {', '.join((*CSV, *PARQUET))} files can be uploaded.", SAVE_AS)
    clean = re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_-")[:60]
    return f"{clean or 'table'}.{suffix.lower()}"


@dataclass
class Upload:
    """A file that is being received. It becomes visible under its name only when it is complete and readable."""

    folder: ServiceFolder
    name: str
    limit: int
    encoding: str = "utf-8"
    notation: Notation = AS_WRITTEN
    replaces: Path | None = None  # the earlier upload of the same draft

    def __post_init__(self) -> None:
        self.name = safe_name(self.name)
        if self.encoding not in ENCODINGS:
            raise Unsupported("This encoding is not supported.", f"Choose one of {', '.join(ENCODINGS)}.")
        self._temporary = self.folder.data / f".{secrets.token_hex(8)}{Path(self.name).suffix}"

    async def receive(self, stream: AsyncIterator[bytes], *, patience: float) -> tuple[Path, dict[str, ColumnType]]:
        """Write the stream to the folder; return the file and the types of its columns.

        Raises:
            TooLarge: It has more bytes than are allowed, or took too long.
            Unsupported: It was interrupted, or cannot be read as a table.
        """
        problem: TidegateError | None = None
        try:
            with anyio.fail_after(patience):
                await self._write(stream)
            types = await run_in_threadpool(self._read)
            return await run_in_threadpool(self._publish), types
        except TimeoutError:
            problem = TooLarge(
                "The upload took too long to arrive.", "Put the file into the data folder of the service."
            )
        except ClientDisconnect:
            problem = Unsupported("The upload was interrupted.", "Upload the file again.")
        except OSError as error:
            reason = error.strerror or type(error).__name__
            problem = Unsupported(f"The upload cannot be stored: {reason}.", "Ask the operator of the service.")
        finally:
            self._temporary.unlink(missing_ok=True)
        raise problem

    def _read(self) -> dict[str, ColumnType]:
        """Return the types of the columns; a notation is rewritten before."""
        is_text = Path(self.name).suffix in CSV
        if is_text and self.notation:
            _check_text(self._temporary, self.name)
            self._rewrite()
        return read_types(self._temporary, self.name)

    def _rewrite(self) -> None:
        problem: TidegateError | None = None
        try:
            rewrite(self._temporary, self.notation)
        except SourceUnreadable as error:
            problem = Unsupported(error.what.replace(self._temporary.name, self.name), error.do)
        except csv.Error:
            problem = Unsupported(f'"{self.name}" has a value of more than 2 MB.', SAVE_AS)
        if problem:
            raise problem

    async def _write(self, stream: AsyncIterator[bytes]) -> None:
        is_text = Path(self.name).suffix in CSV
        checker = codecs.getincrementaldecoder("utf-8")() if is_text and self.encoding == "utf-8" else None
        plain = self.encoding in ("utf-8", "utf-8-any")
        decoder = codecs.getincrementaldecoder(self.encoding)("replace") if is_text and not plain else None
        size, waiting = 0, bytearray()
        descriptor = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            async for chunk in stream:
                size += len(chunk)
                if size > self.limit:
                    raise _too_large(self.limit)
                _check_encoding(checker, chunk, self.name)
                waiting += decoder.decode(chunk).encode() if decoder else chunk
                if len(waiting) >= BLOCK:
                    await run_in_threadpool(file.write, bytes(waiting))
                    waiting.clear()
            _check_encoding(checker, b"", self.name, final=True)
            waiting += decoder.decode(b"", True).encode() if decoder else b""
            await run_in_threadpool(file.write, bytes(waiting))
        if not size:
            raise Unsupported("The file is empty.", SAVE_AS)

    def _publish(self) -> Path:
        """Give the file its name; if a file has it, add a number. The earlier upload of the draft is deleted first."""
        if self.replaces is not None:
            self.replaces.unlink(missing_ok=True)
        stem, suffix = Path(self.name).stem, Path(self.name).suffix
        for number in range(1, 1_000):
            path = self.folder.data / (f"{stem}-{number}{suffix}" if number > 1 else self.name)
            try:
                os.link(self._temporary, path)
                return path
            except FileExistsError:
                continue
        raise Unsupported("Too many files of that name were uploaded.", "Rename the file.")


def _check_encoding(
    checker: codecs.IncrementalDecoder | None, chunk: bytes, shown: str, *, final: bool = False
) -> None:
    """Refuse bytes that are not UTF-8: letters such as é would be lost."""
    if checker is None:
        return
    is_text = True
    try:
        checker.decode(chunk, final)
    except UnicodeDecodeError:
        is_text = False
    if not is_text:
        raise Unsupported(
            f'"{shown}" is not UTF-8 text.',
            "Choose its encoding: Windows-1252 for an older Excel file, UTF-16 for Unicode text from Excel.",
        )


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"The file is larger than {limit // 1024**2:,} MB.",
        "Put it into the data folder of the service, or upload it as Parquet.",
    )


def read_types(path: Path, shown: str) -> dict[str, ColumnType]:
    """Return each column of a file with its type. Checks what would make reading expensive before it is read."""
    is_text = path.suffix.lower() in CSV
    (_check_text if is_text else _check_parquet)(path, shown)
    problem: TidegateError | None = None
    try:
        types = column_types(path)
    except SourceUnreadable as error:
        problem = Unsupported(error.what.replace(path.name, shown), error.do)
    if problem:
        raise problem
    if len(types) > MOST_COLUMNS:
        raise _too_wide(shown)
    if any(not name.isprintable() or len(name) > 200 for name in types):
        raise Unsupported(
            f'A name in the first line of "{shown}" is longer than 200 characters or contains control characters.',
            "Correct the header line, and upload the file again.",
        )
    return types


def _check_text(path: Path, shown: str) -> None:
    with path.open("rb") as file:
        first = file.read(LONGEST_HEADER + 1)
    line = first.partition(b"\n")[0]
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in first:
        raise Unsupported(
            f'"{shown}" is not UTF-8 text.', "If it is UTF-16, choose that encoding. Otherwise save it as CSV (UTF-8)."
        )
    if len(line) > LONGEST_HEADER or max(line.count(mark) for mark in (b",", b";", b"\t", b"|")) >= MOST_COLUMNS:
        raise _too_wide(shown)
    try:
        line.decode("utf-8-sig")
    except UnicodeDecodeError:
        line = b""
    if not line.strip():
        raise Unsupported(
            f'The first line of "{shown}" is empty or not UTF-8 text.',
            "If Excel wrote it, choose the encoding Windows-1252. Otherwise save it as CSV (UTF-8) with a header line.",
        )


def _check_parquet(path: Path, shown: str) -> None:
    with path.open("rb") as file:
        start, size = file.read(4), file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 8))
        end = file.read(8)
    if start != b"PAR1" or end[4:] != b"PAR1" or int.from_bytes(end[:4], "little") > min(LARGEST_FOOTER, size):
        raise Unsupported(f'"{shown}" is not a Parquet file.', SAVE_AS)


def _too_wide(shown: str) -> TooLarge:
    return TooLarge(
        f'"{shown}" has more than {MOST_COLUMNS:,} columns, or its first line is longer than 1 MB.',
        "Remove columns that no query needs.",
    )


def listed_files(folder: ServiceFolder) -> list[str]:
    """Return the tables in the data folder by name."""
    suffixes = (*CSV, *PARQUET)
    paths = [
        path for path in folder.data.iterdir() if path.suffix.lower() in suffixes and not path.name.startswith(".")
    ]
    return sorted(path.name for path in paths if path.is_file())


def listed_file(folder: ServiceFolder, name: str) -> Path:
    """Return a file of the list; other paths are refused."""
    if name not in listed_files(folder):
        raise NotThere("There is no file of that name in the data folder.", "Choose one of the list, or upload it.")
    return folder.data / name


def shown_address(address: str) -> str:
    """Return the address of a database without user and password."""
    parts = urlsplit(address)
    options = [(name, value) for name, value in parse_qsl(parts.query) if name not in ("user", "password")]
    host = f"{parts.hostname or ''}:{parts.port}" if parts.port else parts.hostname or ""
    return urlunsplit(("postgresql", host, parts.path, urlencode(options), ""))


def table_address(databases: Sequence[str], database: str, table: str) -> str:
    """Return the address of a table in an allowed database, which is named by its address without a password."""
    address = next((known for known in databases if shown_address(known) == database), None)
    if address is None:
        raise NotThere("This database is not in the list of the service.", "Choose one of the list.")
    if not TABLE.fullmatch(table):
        raise Unsupported("This is not the name of a table.", "Write a name such as people, or schema.people.")
    parts = urlsplit(address)
    query = urlencode([*parse_qsl(parts.query), ("table", table)])
    return urlunsplit(("postgresql", parts.netloc, parts.path, query, ""))


def read_table_types(address: str) -> dict[str, ColumnType]:
    """Return each column of a Postgres table with its type."""
    from tidegate.tables.engines import postgres

    types = table_types(postgres.open_url(address))
    if len(types) > MOST_COLUMNS:
        raise TooLarge(f"The table has more than {MOST_COLUMNS:,} columns.", "Use a view with fewer columns.")
    return types


def source_of(source: Mapping[str, Any], databases: Sequence[str]) -> str:
    """Return the source of a draft for its policy file: a path, or an address with the user and password of the list."""
    if source.get("kind") == "database":
        return table_address(databases, str(source["database"]), str(source["table"]))
    return str(source.get("path", ""))


def shown_source(source: Mapping[str, Any]) -> str:
    """Return the source of a draft for readers, without a password."""
    if source.get("kind") == "database":
        address = str(source["database"])
        return f"{address}{'&' if '?' in address else '?'}table={source['table']}"
    return str(source.get("path", ""))
