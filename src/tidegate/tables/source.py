"""The identity of a source, which distinguishes a changed table from the one that was queried before.

A plain hash of the data would be a leak: an adversary who knows all rows but one could try every candidate for it. So the
values computed here are never published; the ledger stores them under a keyed hash and publishes an index (see
`ledger/source_states.py`).

`open_table` opens the source that a policy names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from tidegate.errors import SourceMissing, Unsupported
from tidegate.extras import late
from tidegate.policy import Policy
from tidegate.tables.header import find_file

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.tables.table import Table
else:
    pa = late("pyarrow")


def open_table(
    policy: Policy, source: Any = None, *, folder: Path | None = None, snapshots: Path | None = None
) -> Table:
    """Open the policy's source. `source` replaces the policy's own: a path, a URL, or a table in memory.

    Relative paths start from `folder`, the policy file's folder. No row is read, except from a CSV file, of which a snapshot
    is written once into the private folder `snapshots` (a temporary one if it is None).
    """
    if policy.tables:
        raise Unsupported(
            f'The policy "{policy.dataset.name}" has several tables ({", ".join(policy.tables)}), and this needs one.',
            "Ask for statistics of them, or use a policy of its own for one of the tables.",
        )
    chosen = policy.dataset.source if source is None else source
    if isinstance(chosen, Path) or (isinstance(chosen, str) and chosen):
        return _open_named(str(chosen), policy, folder or Path(), snapshots)
    if chosen is None or isinstance(chosen, str | bytes):
        raise SourceMissing(
            f'The policy "{policy.dataset.name}" does not name a source.',
            'Add source = "people.csv" to [dataset], or pass a table.',
        )
    return _open_object(chosen, policy)


def _open_named(source: str, policy: Policy, folder: Path, snapshots: Path | None) -> Table:
    from tidegate.tables.table import Table

    if source.startswith(("postgresql://", "postgres://")):
        from tidegate.tables.engines import postgres

        return Table(postgres.open_url(source), policy, "postgres")
    if source.startswith("spark://"):
        from tidegate.tables.engines import spark

        return Table(spark.open_url(source), policy, "spark")
    from tidegate.tables.engines import duckdb

    path = folder / Path(source).expanduser()
    return Table(duckdb.open_file(path, dict(policy.attributes), snapshots=snapshots), policy, "duckdb")


def _open_object(table: Any, policy: Policy) -> Table:
    from tidegate.tables.table import Table

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
        f"A value of type {type(table).__name__} cannot be opened as a table.",
        "Pass a path, a URL, or a pandas, polars, Arrow, Spark or Ibis table.",
    )


def is_current(table: Table) -> bool:
    """Return whether an open table shows the present rows: a snapshot does not once its CSV file has changed."""
    if table.engine != "duckdb":
        return True
    from tidegate.tables.engines import duckdb

    return all(snapshot.is_current() for snapshot in duckdb.snapshots_of(table.source))


def snapshot_folder(ledger: str) -> Path | None:
    """Return the folder of snapshots beside a ledger that is a file; None for a database."""
    file = ledger.removeprefix("sqlite:///")
    return None if "://" in file or file in ("", ":memory:") else Path(f"{file}.snapshots")


CHUNK = 1 << 20
SHORTEST, LONGEST = 512, 1 << 16  # bytes of the beginning of a file


@dataclass(frozen=True)
class SourceState:
    """The current state of a source. `stamp` is cheap and changes whenever the content might; `digest` reads the content.

    `is_exact` is False if only counters of changes are known: different counters mean that the source might have changed.
    """

    stamp: str
    digest: Callable[[], str]
    is_exact: bool = True


def source_address(policy: Policy, source: Any = None, *, folder: Path | None = None) -> str:
    """Return the address of the data without user and password; empty for a table in memory."""
    if policy.tables:
        from tidegate.tables.links import linked_address

        return linked_address(policy, source, folder=folder)
    address = policy.dataset.source if source is None else source
    if not isinstance(address, str | Path) or not str(address):
        return ""
    if "://" not in str(address):
        return str(((folder or Path()) / Path(address).expanduser()).resolve())
    if str(address).startswith("spark://"):  # it holds no password, and `local[2]` is no host name
        return str(address)
    url = urlsplit(str(address))
    options = [(name, value) for name, value in parse_qsl(url.query) if name not in ("user", "password")]
    host = f"{url.hostname or ''}:{url.port}" if url.port else url.hostname or ""
    scheme = "postgresql" if url.scheme == "postgres" else url.scheme
    return urlunsplit((scheme, host, url.path, urlencode(sorted(options)), url.fragment))


class SourceNames(NamedTuple):
    """The names of a source: `own` are recorded; `shorter` are names under which a smaller state of it can be recorded."""

    own: tuple[str, ...] = ()
    shorter: tuple[str, ...] = ()


def source_names(
    policy: Policy, source: Any, open_table: Callable[[], Table], *, folder: Path | None = None
) -> SourceNames:
    """Return every name by which a source is recognized: its address first; none for a table in memory.

    A file is named by its path without links, by device and inode with the beginning of its content (so that a hard link is
    recognized after rows were appended), and by the beginning alone if it has 512 bytes or more (so that a copy is too). A
    table in Postgres is named by what the server says of itself, regardless of host, role and search path. The tables
    under a view and copies in another format cannot be recognized.
    """
    if policy.tables:
        from tidegate.tables.links import linked_names

        return linked_names(policy, source, folder=folder)
    address = source_address(policy, source, folder=folder)
    if address.startswith("postgresql:"):
        from tidegate.tables.engines import postgres

        table = open_table()
        with table.turn:
            name = postgres.read_identity(table.source)
        return SourceNames((address, name) if name else (address,))
    if not address or "://" in address:
        return SourceNames((address,) if address else ())
    by_inode, by_content = _names_of_file(Path(address))
    return SourceNames((address, *by_inode[-1:], *by_content[-1:]), (*by_inode[:-1], *by_content[:-1]))


def _names_of_file(path: Path) -> tuple[list[str], list[str]]:
    """Return names from the inode and from beginnings of a file, whose lengths are powers of two, the longest last."""
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as opened:
                start, status = opened.read(LONGEST), path.stat()
            sizes = [1 << power for power in range(6, LONGEST.bit_length()) if 1 << power <= len(start)]
            digests = [(size, hashlib.sha256(start[:size]).hexdigest()) for size in sizes]
            inode = f"inode {status.st_dev} {status.st_ino}"
            by_inode = [f"{inode} {size} {digest}" for size, digest in digests]
            return by_inode, [f"beginning {size} {digest}" for size, digest in digests if size >= SHORTEST]
    return [], []


def source_state(
    policy: Policy, source: Any, open_table: Callable[[], Table], *, folder: Path | None = None
) -> SourceState | None:
    """Return the state of a source, or None if changes cannot be detected (views, Spark tables, streams).

    Files are not opened as tables, so that stored answers stay cheap. A table in memory is read once.
    """
    if policy.tables:
        from tidegate.tables.links import linked_state

        return linked_state(policy, source, folder=folder)
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
        statuses = [(file, file.stat()) for file in files]
        stamps = [f"{f.relative_to(path)} {s.st_size} {s.st_mtime_ns} {s.st_ino}" for f, s in statuses]
        return SourceState("\n".join(stamps), lambda: _digest_of_files(path, files)) if statuses else None
    return None


def _digest_of_files(path: Path, files: list[Path]) -> str:
    """Return a digest of names and contents. The path of the source itself does not count: it can be moved."""
    total = hashlib.sha256()
    for file in files:
        find_file(file)
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        total.update(f"{file.relative_to(path)} {digest}\n".encode())
    return total.hexdigest()


def _frame_state(frame: Any, columns: list[str]) -> SourceState | None:
    """Return the state of the declared columns of a pandas, polars or Arrow table, from its Arrow bytes."""
    arrow: pa.Table | None = None
    with suppress(Exception):  # a frame that Arrow cannot represent has no state; the engine reports the problem
        if isinstance(frame, pa.Table):
            arrow = frame.select([name for name in frame.column_names if name in columns])
        elif type(frame).__module__.startswith("pandas"):
            declared = [name for name in frame.columns if name in columns]
            arrow = pa.Table.from_pandas(frame[declared], preserve_index=False)
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
    """A file that stores only the hash of its content."""

    closed = False

    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return len(data)

    def flush(self) -> None: ...

    def close(self) -> None: ...
