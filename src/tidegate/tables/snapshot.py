"""Snapshots of CSV files: a file is read once, as text, and answers come from a private Parquet file.

An open quote in one record can change how later records are read, so a CSV file has no neighbor that differs in one row.
The rows of its snapshot do. Reading never fails because of a record: a short one is filled with missing values, the rest
of a long one is ignored, a value that does not have the declared type is missing, and a byte that is not UTF-8 becomes
U+FFFD. The numbers of these cases are exact; only `tidegate check --data` shows them.

A snapshot is as private as the data. Its name is a keyed hash of the file's path, size and time and of the column types.
"""

from __future__ import annotations

import atexit
import hashlib
import hmac
import json
import logging
import os
import secrets
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidegate.errors import SourceMissing, SourceUnreadable
from tidegate.tables.csv_reader import Malformed, Unfit, read_strictly, read_tolerantly
from tidegate.tables.guard import ask_engine
from tidegate.tables.header import quoted

try:
    import fcntl
except ImportError:  # Windows, which removes no file that is open
    fcntl = None  # type: ignore[assignment]

LOG = logging.getLogger("tidegate.tables")
VERSION = 1  # of the reader: another one reads every file again
SECONDS_UNTIL_NOTE = 3.0


class Snapshot:
    """A Parquet file with the rows of a CSV file. It is not removed while this object exists."""

    def __init__(self, path: Path, source: Path, stamp: str, handle: int) -> None:
        self.path, self._source, self._stamp = path, source, stamp
        self._close = weakref.finalize(self, os.close, handle)

    def is_current(self) -> bool:
        """Return whether the CSV file is still the one that was read."""
        return _stamp(self._source) == self._stamp

    @property
    def malformed(self) -> Malformed:
        """What did not fit."""
        metadata = pq.read_metadata(self.path).metadata or {}
        return Malformed(**json.loads(metadata[b"tidegate"]))


def open_snapshot(
    path: Path,
    header: tuple[str, list[str]],
    columns: Mapping[str, str],
    *,
    connect: Callable[[], Any],
    folder: Path | None = None,
) -> Snapshot:
    """Return the snapshot of a CSV file, which is read only if there is none of its present state.

    Args:
        header: The delimiter and the names in the first line.
        columns: The columns to keep, each with the SQL expression of its value; {} stands for its text.
        connect: Opens a DuckDB connection.
        folder: The folder of snapshots; a temporary one of this process if it is None or cannot be written.

    Raises:
        SourceMissing: The file is gone.
        SourceUnreadable: The file cannot be read or the snapshot cannot be written, for reasons outside its rows.
    """
    problem = ""
    try:
        private = _writable(folder)
        with _alone(private / "lock"):
            key, stamp = _key(private), _stamp(path)
            if not stamp:
                raise SourceMissing(f'There is no file "{path}".', "Correct `source` in the policy.")
            name = f"{_keyed(key, str(path.resolve()))}-{_keyed(key, stamp)}"
            target = private / f"{name}-{_keyed(key, json.dumps([VERSION, *columns.items()]))}.parquet"
            if not target.exists():
                _clear(private, name)
                _write(target, path, header, columns, connect)
            handle = os.open(target, os.O_RDONLY)
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_SH)
            return Snapshot(target, path, stamp, handle)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    raise SourceUnreadable(
        f'The snapshot of "{path.name}" cannot be written: {problem}.',
        "Check the permissions of the file and of the ledger's folder, and the free space of the disk.",
    )


def _stamp(path: Path) -> str:
    """Return what changes when a file does; empty if there is no file."""
    with suppress(OSError):
        status = path.stat()
        return f"{status.st_size} {status.st_mtime_ns} {status.st_ino}"
    return ""


def _keyed(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()[:32]


def _writable(folder: Path | None) -> Path:
    if folder is not None:
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
            if os.access(folder, os.W_OK):
                return folder
    return _temporary_folder()


@cache
def _temporary_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="tidegate-"))  # mode 700
    owner = os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    return folder


def _key(folder: Path) -> bytes:
    """Return the random key of the names. Without it, they would reveal the size of the file."""
    path = folder / "key"
    if not path.exists() or path.stat().st_size != 32:
        with _new_file(path) as file:
            file.write(secrets.token_bytes(32))
    return path.read_bytes()


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the lock of a folder, so that two processes do not read the same file at once."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


@contextmanager
def _new_file(path: Path) -> Iterator[Any]:
    """Write a file under a temporary name; it gets its own name when it is complete and on disk."""
    temporary = path.with_name(f"{path.name}.part")
    with open(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _clear(folder: Path, name: str) -> None:
    """Remove what a crash left, and the snapshots of earlier states of a file that nobody reads."""
    old = [file for file in folder.glob(f"{name.partition('-')[0]}-*.parquet") if not file.name.startswith(name)]
    for file in [*folder.glob("*.part"), *old]:
        with suppress(OSError):
            handle = os.open(file, os.O_RDONLY)
            try:
                if fcntl is not None:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while a table reads it
            finally:
                os.close(handle)
            file.unlink()


def _write(
    target: Path, path: Path, header: tuple[str, list[str]], columns: Mapping[str, str], connect: Callable[[], Any]
) -> None:
    for read in (read_strictly, read_tolerantly):
        malformed = Malformed(values=dict.fromkeys(columns, 0))
        with suppress(Unfit), _new_file(target) as file:
            batches = _noted(path, read(path, header, list(columns), malformed, connect))
            _convert(file, batches, columns, malformed, connect)
            return


def _noted(path: Path, batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the batches, and log once if that takes long."""
    begin, is_noted = time.monotonic(), False
    for batch in batches:
        yield batch
        if not is_noted and time.monotonic() > begin + SECONDS_UNTIL_NOTE:
            is_noted = True
            LOG.info('Reading "%s". This is needed once; answers then read a snapshot of it.', path.name)


def _convert(
    file: Any, batches: Iterator[pa.Table], columns: Mapping[str, str], malformed: Malformed, connect: Callable[[], Any]
) -> None:
    """Write text columns in their declared types, and count the values that do not have them."""
    connection = connect().con
    connection.execute("SET TimeZone = 'UTC'")
    values = ", ".join(f"{_in_sql(sql, name)} AS {quoted(name)}" for name, sql in columns.items())

    def typed(batch: pa.Table) -> pa.Table:
        connection.register("batch", batch)
        return connection.execute(f"SELECT {values} FROM batch").to_arrow_table()  # noqa: S608 - declared columns

    nothing = pa.table({name: pa.array([], pa.string()) for name in columns})
    with pq.ParquetWriter(file, ask_engine(lambda: typed(nothing).schema, what="preparing the snapshot")) as writer:
        for batch in batches:
            rows = ask_engine(partial(typed, batch), what="writing the snapshot")
            for name in columns:
                texts = pc.sum(pc.fill_null(pc.not_equal(batch[name], ""), False)).as_py() or 0
                malformed.values[name] += texts - (len(rows) - rows[name].null_count)
            writer.write_table(rows)
        writer.add_key_value_metadata({"tidegate": json.dumps(malformed.to_dict())})


def _in_sql(expression: str, name: str) -> str:
    return expression.replace("{}", f"NULLIF({quoted(name)}, '')")
