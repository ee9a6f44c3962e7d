"""Segments: randomized reports as Parquet files in a folder or at any fsspec URL, for DuckDB and Spark.

There is one column for each question: 32-bit codes, or for sets rows of packed bits (value v is bit v % 8 of byte v // 8).
Rows are sorted, so that the order of arrival is not stored.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tidegate.arrays import Ints
from tidegate.errors import SourceMissing, SourceUnreadable, Unsupported, did_you_mean
from tidegate.extras import extra
from tidegate.tables.guard import ask_engine

MEMORY = "512MB"  # for DuckDB; counting streams for any number of reports
AT_ONCE = 1 << 21  # bytes of packed bits that are counted at once
BITS = (np.arange(256)[:, None] >> np.arange(8)) & 1  # (bytes, bits)
FEW_WORDS = 8  # 64-bit words: up to this number, sorting by each word is faster than by all as one text
Array = NDArray[Any]


@dataclass(frozen=True)
class Column:
    """The reports of one question: codes below `size`, or sets of values below `size`.

    If only some people are asked, the column is `optional` and has one more cell: the code `size` of a person who was not
    asked, or the value `size` in the set of a person who was.
    """

    form: Literal["code", "set"]
    size: int
    optional: bool = False

    @property
    def cells(self) -> int:
        """The number of codes or values, with that of an optional column."""
        return self.size + self.optional

    @property
    def width(self) -> int:
        """The number of bytes of a packed set: whole 64-bit words."""
        return 8 * -(-self.cells // 64)

    def count(self, reports: Array) -> Ints:
        """Return the number of reports with each code, or containing each value."""
        if self.form == "code":
            return np.bincount(reports, minlength=self.cells).astype(np.int64)
        step = max(1, AT_ONCE // self.width)
        parts = (reports[start : start + step] for start in range(0, len(reports), step))
        return sum((_count_bits(part, self.cells) for part in parts), np.zeros(self.cells, np.int64))

    def answers(self, reports: int, counts: Ints) -> tuple[int, Ints]:
        """Return how many people answered the question, and the counts of their reports alone."""
        if not self.optional:
            return reports, counts
        last = int(counts[self.size])
        return (reports - last if self.form == "code" else last), counts[: self.size]

    def is_answered(self, reports: Array) -> Array:
        """Return whether each report answers the question."""
        if not self.optional:
            return np.ones(len(reports), bool)
        if self.form == "code":
            return np.asarray(reports < self.size)
        return np.asarray(reports[:, self.size // 8] >> (self.size % 8) & 1, bool)

    def without_mark(self, reports: Array) -> Array:
        """Return reports that answer the question, without what marks them."""
        if not self.optional or self.form == "code":
            return reports
        plain = reports.copy()
        plain[:, self.size // 8] &= 255 - (1 << self.size % 8)
        return plain[:, : Column(self.form, self.size).width]


@dataclass(frozen=True)
class Segment:
    """A written file: its name in the folder, and the SHA-256 of its content."""

    name: str
    sha256: str


class Segments:
    """The segments of one collection, in a folder or at a URL that fsspec knows (s3://..., memory://...)."""

    def __init__(self, location: str | Path, columns: Mapping[str, Column], *, below: str = "") -> None:
        with extra("collect", "Estimating from randomized reports"):
            from fsspec.core import url_to_fs  # type: ignore[import-untyped]
        with extra("collect", "Estimating from randomized reports"):
            from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]

        fs, root = ask_engine(lambda: url_to_fs(str(location)), what="opening the location of the reports")
        self._fs, self._root = fs, f"{str(root).rstrip('/')}/{below}".rstrip("/")
        self._local = isinstance(fs, LocalFileSystem)
        self.columns = dict(columns)
        self._called = _names(self.columns)

    def path(self, name: str) -> str:
        """Return the path or URL of a segment, in the form that DuckDB and Spark accept."""
        return f"{self._root}/{name}" if self._local else str(self._fs.unstrip_protocol(f"{self._root}/{name}"))

    def write(self, reports: Mapping[str, Array], *, batch: str) -> Segment:
        """Write the reports of a batch, sorted. When this returns, the file is complete and on disk.

        The same reports of the same batch get the same name: a batch that is sent again after a crash overwrites itself.
        """
        content = self._encode(reports)
        digest = hashlib.sha256(content).hexdigest()
        name = f"{hashlib.sha256(f'{batch}/{digest}'.encode()).hexdigest()[:32]}.parquet"
        store = self._store_local if self._local else self._store_remote
        _store(lambda: store(name, content))
        return Segment(name, digest)

    def digest(self, name: str) -> str:
        """Return the SHA-256 of a segment as it is now; empty if it is gone."""
        path = f"{self._root}/{name}"
        content = ask_engine(
            lambda: self._fs.cat_file(path) if self._fs.exists(path) else None, what="reading a segment of reports"
        )
        return "" if content is None else hashlib.sha256(content).hexdigest()

    def count(self, names: Sequence[str], *, engine: str = "duckdb", memory: str = MEMORY) -> dict[str, Ints]:
        """Return the counts of every question over some segments: the same integers from either engine."""
        if engine not in ENGINES:
            raise Unsupported(f'Unknown engine: "{engine}".', did_you_mean(engine, ENGINES))
        if not names:
            return {question: np.zeros(column.cells, np.int64) for question, column in self.columns.items()}
        counted = ENGINES[engine]
        return ask_engine(lambda: counted(self, names, memory), what=f"counting the reports with {engine}")

    def read(
        self, names: Sequence[str], questions: Sequence[str], *, memory: str = MEMORY
    ) -> Iterator[dict[str, Array]]:
        """Yield the reports of some questions together, tens of thousands at a time: codes, or rows of packed bits."""
        yield from _arrays(self, names, questions, memory) if names else ()

    def _encode(self, reports: Mapping[str, Array]) -> bytes:
        order = np.lexsort([key for question in self.columns for key in _keys(reports[question])])
        arrays = {self._called[q]: _arrow(reports[q][order], column) for q, column in self.columns.items()}
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(arrays), sink, compression="zstd", store_schema=False)
        return bytes(sink.getvalue())

    def _store_local(self, name: str, content: bytes) -> None:
        folder = Path(self._root)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = folder / f".{name}.{secrets.token_hex(4)}"  # hidden: no engine reads it as a segment
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, folder / name)
        _sync_folder(folder)

    def _store_remote(self, name: str, content: bytes) -> None:
        """Store a file remotely: object stores show a file once it is complete."""
        self._fs.makedirs(self._root, exist_ok=True)
        self._fs.pipe_file(f"{self._root}/{name}", content)


def _count_in_duckdb(segments: Segments, names: Sequence[str], memory: str) -> dict[str, Ints]:
    connection, counts = _connect(segments, memory), {}
    for question, column in segments.columns.items():
        called, files = _quote(segments._called[question]), [segments.path(name) for name in names]
        if column.form == "code":
            query = f"SELECT {called} AS code, count(*) AS n FROM read_parquet($files) GROUP BY 1"  # noqa: S608 - a column of ours
            rows = connection.execute(query, {"files": files}).fetchnumpy()
            counts[question] = _scatter(rows["code"], rows["n"], column.cells)
        else:
            parts = (column.count(part[question]) for part in _arrays(segments, names, [question], memory))
            counts[question] = sum(parts, np.zeros(column.cells, np.int64))
    return counts


def _count_in_spark(segments: Segments, names: Sequence[str], memory: str) -> dict[str, Ints]:
    from tidegate.tables.engines.spark import _session

    start = "file://" if segments._local else ""
    frame = _session("").read.parquet(*(start + segments.path(name) for name in names))
    counts = {}
    for question, column in segments.columns.items():
        called = f"`{segments._called[question]}`"
        if column.form == "code":
            rows = frame.selectExpr(f"{called} AS code").groupBy("code").count().collect()
            counts[question] = _scatter([row[0] for row in rows], [row[1] for row in rows], column.cells)
        else:  # byte by byte: 256 groups each, and no Python on the cluster
            bytewise = frame.selectExpr(called + " AS held", f"explode(sequence(1, {column.width})) AS place")
            bytewise = bytewise.selectExpr("place", "conv(hex(substring(held, place, 1)), 16, 10) AS byte")
            rows = bytewise.groupBy("place", "byte").count().collect()
            counts[question] = _unfold_bits([(row[0] - 1, int(row[1]), row[2]) for row in rows], column)
    return counts


ENGINES: dict[str, Callable[[Segments, Sequence[str], str], dict[str, Ints]]] = {
    "duckdb": _count_in_duckdb,
    "spark": _count_in_spark,
}


def _arrays(
    segments: Segments, names: Sequence[str], questions: Sequence[str], memory: str
) -> Iterator[dict[str, Array]]:
    """Stream through DuckDB, so that memory does not grow with the number of reports."""
    chosen = {question: segments.columns[question] for question in questions}
    selected = ", ".join(_quote(segments._called[question]) for question in chosen)
    widest = max(column.width if column.form == "set" else 4 for column in chosen.values())
    files = [segments.path(name) for name in names]
    query = f"SELECT {selected} FROM read_parquet($files)"  # noqa: S608 - columns of ours
    cursor = _connect(segments, memory).execute(query, {"files": files})
    for batch in cursor.to_arrow_reader(max(1024, min(65_536, AT_ONCE // widest))):
        yield {q: _plain(batch.column(index), column) for index, (q, column) in enumerate(chosen.items())}


def _connect(segments: Segments, memory: str) -> Any:
    import duckdb

    from tidegate.tables.scratch import hide_progress

    connection = duckdb.connect()
    connection.execute(f"SET memory_limit = '{memory}'")
    connection.execute("SET preserve_insertion_order = false")
    hide_progress(connection)
    if not segments._local:
        connection.register_filesystem(segments._fs)
    return connection


def _plain(array: Any, column: Column) -> Array:
    if column.form == "code":
        return np.asarray(array.to_numpy(zero_copy_only=False))
    fixed = array.cast(pa.binary(column.width))
    packed = np.frombuffer(fixed.buffers()[1], np.uint8)
    return packed[fixed.offset * column.width :][: len(fixed) * column.width].reshape(-1, column.width)


def _arrow(reports: Array, column: Column) -> Any:
    if column.form == "code":
        return pa.array(np.ascontiguousarray(reports, np.int32))
    packed = pa.py_buffer(np.ascontiguousarray(reports, np.uint8).tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(column.width), len(reports), [None, packed])


def _keys(reports: Array) -> list[Array]:
    """Return whole numbers to sort by, equal only for equal reports."""
    if reports.ndim == 1:
        return [reports]
    words = np.ascontiguousarray(reports).view(np.uint64)
    if words.shape[1] <= FEW_WORDS:
        return list(words.T)
    whole = words.view(np.dtype((np.void, 8 * words.shape[1]))).ravel()
    return [np.asarray(np.unique(whole, return_inverse=True)[1])]


def _count_bits(packed: Array, size: int) -> Ints:
    """Return the number of rows with each bit, counted by byte: ten times as fast as bit by bit."""
    width = packed.shape[1]
    seen = np.bincount((packed + 256 * np.arange(width)).ravel(), minlength=256 * width).reshape(width, 256)
    return np.asarray(seen @ BITS).ravel()[:size]


def _scatter(codes: Any, numbers: Any, size: int) -> Ints:
    positions, counts = np.asarray(codes, np.int64), np.zeros(size, np.int64)
    if positions.size and not (positions.min() >= 0 and positions.max() < size):
        raise SourceUnreadable(
            "A segment contains reports that its collection cannot have, so the file was changed.",
            "Restore the segment from a backup.",
        )
    counts[positions] = numbers
    return counts


def _unfold_bits(rows: Sequence[tuple[int, int, int]], column: Column) -> Ints:
    """Return counts of byte values at each position as counts of bits."""
    counts = np.zeros((column.width, 8), np.int64)
    for position, byte, number in rows:
        counts[position] += number * BITS[byte]
    return counts.ravel()[: column.cells]


def _names(columns: Mapping[str, Column]) -> dict[str, str]:
    """Return the column names in the file: engines do not distinguish age from Age, so the second gets a number."""
    called: dict[str, str] = {}
    for question in columns:
        name, number = question, 2
        while name.lower() in {taken.lower() for taken in called.values()}:
            name, number = f"{question}_{number}", number + 1
        called[question] = name
    return called


def _quote(name: str) -> str:
    return f'"{name}"'


def _store(store: Callable[[], None]) -> None:
    problem = ""
    try:
        store()
    except OSError as error:
        problem = error.strerror or type(error).__name__
    except Exception as error:  # every file system has its own exceptions; a message can contain a URL with a password
        problem = type(error).__name__
    if problem:
        raise SourceMissing(
            f"The reports cannot be written: {problem}.",
            "Nothing was counted. Make the location writable, then send the same batch again.",
        )


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def folder_next_to_ledger(address: str) -> str:
    """Return the folder of reports next to a ledger in a file. A ledger in a database needs a named location."""
    file = address.removeprefix("sqlite:///")
    if "://" not in file:
        return f"{file}.reports"
    raise SourceMissing(
        "The ledger is a database, so the location of the reports must be set.",
        'Add reports = "s3://bucket/people" (or a folder) to [dataset], or pass `reports`.',
    )
