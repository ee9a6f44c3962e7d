"""Files and in-memory tables, streamed by an embedded DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa

from tidegate.policy import Attribute
from tidegate.tables.csv_reader import value_sql
from tidegate.tables.guard import ask_engine
from tidegate.tables.header import CSV, PARQUET, check_kind, check_names, find_file, find_parquet, read_header
from tidegate.tables.scratch import hide_progress
from tidegate.tables.snapshot import Snapshot, open_snapshot

FEW_BYTES = 4_000_000  # of Parquet: threads would take longer to wake up than one takes to read
_SHARED: ContextVar[Any] = ContextVar("shared connection", default=None)


@contextmanager
def one_connection() -> Iterator[None]:
    """Open every table of this block in the same in-memory DuckDB, so that they can be joined."""
    token = _SHARED.set(connect_anew())
    try:
        yield
    finally:
        _SHARED.reset(token)


def connect() -> Any:
    """Return the DuckDB that a block shares, or a new one."""
    return connect_anew() if _SHARED.get() is None else _SHARED.get()


def connect_anew() -> Any:
    """Return a new in-memory DuckDB. Rows can arrive in any order, so that it streams with little memory."""
    connection = ibis.duckdb.connect()
    connection.raw_sql("SET preserve_insertion_order = false")
    hide_progress(connection.con)
    return connection


def open_file(path: Path, attributes: Mapping[str, Attribute], *, snapshots: Path | None = None) -> Any:
    """Return the table in a file or a folder of Parquet files. `snapshots` is the folder for snapshots of CSV files."""
    find_file(path)
    if path.is_dir():
        return _parquet(find_parquet(path), path)
    check_kind(path)
    if path.suffix.lower() in CSV:
        return _csv(path, attributes, snapshots)
    if path.suffix.lower() in PARQUET:
        return _parquet([path], path)
    read = ask_engine(lambda: pa.ipc.open_file(pa.memory_map(str(path))).read_all(), what=f"opening {path.name}")
    return open_object(read, attributes)


def open_object(table: Any, attributes: Mapping[str, Attribute]) -> Any:
    """Return a pandas or polars data frame, or an Arrow table, without a copy if the engine allows.

    A pandas column of mixed types, or with text that is not Unicode, is refused here: the engine would fail in the middle
    of an answer.
    """
    if hasattr(table, "collect_schema") and hasattr(table, "collect"):  # a polars LazyFrame
        table = table.collect()
    connection = connect()

    def register() -> Any:
        arrow = table.to_arrow() if hasattr(table, "to_arrow") else table
        if not hasattr(arrow, "schema"):
            names = [name for name in arrow.columns if name in attributes]
            arrow = pa.Table.from_pandas(arrow[names], preserve_index=False)
        name = f"people{len(connection.list_tables())}"  # several tables can share a connection
        connection.con.register(name, arrow)
        _add_files(connection, [])
        return connection.table(name)

    return ask_engine(register, what="reading the table in memory")


def _parquet(paths: list[Path], shown: Path) -> Any:
    connection = connect()

    def read() -> Any:
        if _SHARED.get() is None and sum(path.stat().st_size for path in paths) < FEW_BYTES:
            connection.raw_sql("SET threads = 1")
        _add_files(connection, paths)
        return connection.read_parquet([str(path) for path in paths])

    return ask_engine(read, what=f"opening {shown.name}")


def _add_files(backend: Any, paths: list[Path]) -> None:
    backend.tidegate_files = (*getattr(backend, "tidegate_files", ()), *paths)


def stamp_of(table: Any) -> tuple[tuple[int, ...], ...] | None:
    """Return a stamp that changes when a file of a table or its permissions do; None if this module did not open the table.

    Raises:
        OSError: A file is missing.
    """
    paths: tuple[Path, ...] | None = getattr(table.get_backend(), "tidegate_files", None)
    if paths is None:
        return None
    statuses = [path.stat() for path in paths]
    return tuple((status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns) for status in statuses)


def _csv(path: Path, attributes: Mapping[str, Attribute], snapshots: Path | None) -> Any:
    """Return the declared columns of a CSV file from its snapshot (see `tidegate.tables.snapshot`)."""
    delimiter, header = read_header(path)
    check_names(header, attributes)
    columns = {name: value_sql(attribute) for name, attribute in attributes.items()}
    snapshot = open_snapshot(path, (delimiter, header), columns, connect=connect_anew, folder=snapshots)
    table = _parquet([snapshot.path], path)
    backend = table.get_backend()
    backend.tidegate_snapshots = (*snapshots_of(table), snapshot)  # they exist as long as the connection
    return table


def snapshots_of(table: Any) -> tuple[Snapshot, ...]:
    """Return the snapshots of CSV files that a table reads: several if it joins them."""
    return getattr(table.get_backend(), "tidegate_snapshots", ())
