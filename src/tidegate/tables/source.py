"""The identity of a source: what distinguishes a changed table from the one that was answered before.

A plain hash of the data would be a leak: whoever knows all rows but one could try every candidate for it. So what is
computed here never leaves; the ledger stores it under a keyed hash and publishes an index (see `ledger/source_states.py`).

From a policy's source to a table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import pyarrow as pa

from tidegate.errors import SourceMissing
from tidegate.policy import Policy
from tidegate.tables.table import Table


def open_table(policy: Policy, source: Any = None, *, folder: Path | None = None) -> Table:
    """The policy's columns where they are. `source` replaces the policy's own: a path, a URL, or a table in memory.

    Relative paths start from `folder`, which is the policy file's own. No row is read, except from a CSV file, which
    is looked through once for rows that do not fit.
    """
    given = policy.dataset.source if source is None else source
    if isinstance(given, Path) or (isinstance(given, str) and given):
        return _open_named(str(given), policy, folder or Path())
    if given is None or isinstance(given, str | bytes):
        raise SourceMissing(
            f'the policy "{policy.dataset.name}" says not where its data is.',
            'Add source = "people.csv" to [dataset], or pass a table.',
        )
    return _open_object(given, policy)


def _open_named(source: str, policy: Policy, folder: Path) -> Table:
    if source.startswith(("postgresql://", "postgres://")):
        from tidegate.tables.engines import postgres

        return Table(postgres.open_url(source), policy, "postgres")
    if source.startswith("spark://"):
        from tidegate.tables.engines import spark

        return Table(spark.open_url(source), policy, "spark")
    from tidegate.tables.engines import duckdb

    return Table(duckdb.open_file(folder / Path(source).expanduser(), dict(policy.attributes)), policy, "duckdb")


def _open_object(table: Any, policy: Policy) -> Table:
    module = type(table).__module__
    if module.startswith("ibis."):
        return Table(table, policy, table.get_backend().name)
    if module.startswith("pyspark."):
        from tidegate.tables.engines import spark

        return Table(spark.open_frame(table), policy, "spark")
    if module.startswith(("pandas", "polars", "pyarrow")):
        from tidegate.tables.engines import duckdb

        return Table(duckdb.open_object(table, policy.attributes), policy, "duckdb")
    raise SourceMissing(
        f"a table cannot be made of {type(table).__name__}.",
        "Pass a path, a URL, or a pandas, polars, Arrow, Spark or Ibis table.",
    )


CHUNK = 1 << 20


@dataclass(frozen=True)
class SourceState:
    """A source as it is now. `stamp` is cheap, and changes whenever the content may have; `digest` reads the content.

    `is_exact` is False where only counters of changes are known: then the source may have changed.
    """

    stamp: str
    digest: Callable[[], str]
    is_exact: bool = True


def source_address(policy: Policy, source: Any = None, *, folder: Path | None = None) -> str:
    """Return where the data is, without user and password: the same text for the same place. Empty for a table in memory."""
    address = policy.dataset.source if source is None else source
    if not isinstance(address, str | Path) or not str(address):
        return ""
    if "://" not in str(address):
        return str(((folder or Path()) / Path(address).expanduser()).resolve())
    if str(address).startswith("spark://"):  # it holds no password, and `local[2]` is no host name
        return str(address)
    url = urlsplit(str(address))
    options = [(name, value) for name, value in parse_qsl(url.query) if name not in ("user", "password")]
    place = f"{url.hostname or ''}:{url.port}" if url.port else url.hostname or ""
    scheme = "postgresql" if url.scheme == "postgres" else url.scheme
    return urlunsplit((scheme, place, url.path, urlencode(sorted(options)), url.fragment))


def source_state(
    policy: Policy, source: Any, open_table: Callable[[], Table], *, folder: Path | None = None
) -> SourceState | None:
    """Return the state of a source, or None where nothing tells whether it changed (views, Spark tables, streams).

    Files are not opened as tables for it, so that a stored answer stays cheap. A table in memory is read once.
    """
    address = source_address(policy, source, folder=folder)
    if address.startswith("postgresql:"):
        from tidegate.tables.engines import postgres

        table = open_table()
        with table.turn:  # the connection takes one query at a time
            counters = postgres.read_counters(table.source)
        return SourceState(counters, lambda: counters, is_exact=False) if counters else None
    if address.startswith("spark:"):
        folder_of_files = dict(parse_qsl(address.partition("?")[2])).get("parquet", "")
        return _file_state(Path(folder_of_files)) if folder_of_files else None
    if address:
        return _file_state(Path(address))
    return _frame_state(source, list(policy.attributes))


def _file_state(path: Path) -> SourceState | None:
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    with suppress(OSError):
        found = [(file, file.stat()) for file in files]
        stamps = [f"{f.relative_to(path)} {s.st_size} {s.st_mtime_ns} {s.st_ino}" for f, s in found]
        return SourceState("\n".join(stamps), lambda: _digest_of_files(path, files)) if found else None
    return None


def _digest_of_files(path: Path, files: list[Path]) -> str:
    """Names inside a folder count, the path of the source itself does not: a moved source is the same one."""
    total = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        total.update(f"{file.relative_to(path)} {digest}\n".encode())
    return total.hexdigest()


def _frame_state(frame: Any, columns: list[str]) -> SourceState | None:
    """The declared columns of a pandas, polars or Arrow table, as Arrow bytes."""
    arrow: pa.Table | None = None
    with suppress(Exception):  # a frame that Arrow cannot hold has no state here; the engine says what is wrong with it
        if isinstance(frame, pa.Table):
            arrow = frame.select([name for name in frame.column_names if name in columns])
        elif type(frame).__module__.startswith("pandas"):
            kept = [name for name in frame.columns if name in columns]
            arrow = pa.Table.from_pandas(frame[kept], preserve_index=False)
        elif type(frame).__module__.startswith("polars") and hasattr(frame, "to_arrow"):
            arrow = frame.select([name for name in frame.columns if name in columns]).to_arrow()
    if arrow is None:
        return None
    sink = _HashSink()
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), arrow.schema.remove_metadata()) as writer:
        writer.write_table(arrow.combine_chunks().replace_schema_metadata(None), max_chunksize=CHUNK)
    digest = sink.digest.hexdigest()
    return SourceState(digest, lambda: digest)


class _HashSink:
    """A file that keeps only the hash of what is written."""

    closed = False

    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return len(data)

    def flush(self) -> None: ...

    def close(self) -> None: ...
