"""A locked-down DuckDB for public numbers: universes that a policy lists, and numbers that were released.

It has no access to files, extensions or the network, one thread, limited memory and limited time. No private source is ever
attached to it, so that whatever it raises is public.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tidegate.errors import Unsupported
from tidegate.extras import late

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
else:
    duckdb, pa = late("duckdb"), late("pyarrow")

SECONDS = 1.5  # of one query
MEMORY = "512MB"
MOST_ROWS = 2**22  # of a result


class ScratchFailed(Exception):
    """The query cannot be bound, or fails on these numbers. Its text is DuckDB's and is not shown to users."""


def hide_progress(connection: Any) -> None:
    """Turn off the progress bar if there is one. A notebook without ipywidgets cannot change the setting."""
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchone()[0]:
        connection.execute("SET enable_progress_bar = false")


class Scratch:
    """One connection. Use it in one thread at a time."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(":memory:", config={"threads": 1})
        hide_progress(self._connection)
        for setting in (
            f"memory_limit = '{MEMORY}'",
            "TimeZone = 'UTC'",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            self._connection.execute(f"SET {setting}")

    def run(self, query: str, tables: Mapping[str, pa.Table], *, seconds: float = SECONDS) -> pa.Table:
        """Return the result of a query over some tables.

        Raises:
            ScratchFailed: The query cannot be run.
            Unsupported: It takes too long.
        """
        return self.run_each(query, [tables], seconds=seconds)[0]

    def run_each(
        self, query: str, several: Iterable[Mapping[str, pa.Table]], *, seconds: float = SECONDS
    ) -> list[pa.Table]:
        """Return the results of a query over several sets of tables, in this time together; see `run`."""
        over = threading.Event()

        def stop() -> None:
            over.set()
            self._connection.interrupt()

        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        problem, names = "", set[str]()
        try:
            results = []
            for tables in several:
                for name, table in tables.items():
                    self._connection.register(name, table)
                    names.add(name)
                results.append(_read(self._connection.execute(query).to_arrow_reader(2**16)))
                if over.is_set():
                    break
            else:
                return results
        except Exception as error:  # of any kind: nothing private is here
            problem = str(error)
        finally:
            timer.cancel()
            for name in names:
                self._connection.unregister(name)
        if over.is_set():
            raise Unsupported("The query takes too long to compute.", "Use simpler expressions or fewer columns.")
        raise ScratchFailed(problem)


def _read(reader: pa.RecordBatchReader) -> pa.Table:
    """Return a result of moderate length."""
    batches, rows = [], 0
    for batch in reader:
        batches.append(batch)
        rows += batch.num_rows
        if rows > MOST_ROWS:
            raise ScratchFailed("The result is too long.")
    return pa.Table.from_batches(batches, reader.schema)


_local = threading.local()


def scratch() -> Scratch:
    """Return the connection of this thread."""
    if not hasattr(_local, "scratch"):
        _local.scratch = Scratch()
    connection: Any = _local.scratch
    return connection  # type: ignore[no-any-return]
