"""Table access: a small set of verbs, the same integers on every engine.

Everything is an exact integer on the attributes' public grids: sums are sums of codes (places on the grid), so no
engine's floating point and no order of rows can change them. What leaves these methods is private and exact; only
the verbs (answer, release, synthesize) may call them, after the ledger was charged.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.errors import SourceUnreadable, TooManyCells, Unsupported
from tidegate.policy import Category, EachPerson, Key, Numeric, Policy
from tidegate.policy.predicates import Predicate
from tidegate.tables.axes import Axis, scatter
from tidegate.tables.boundary import Boundary, boundary_of
from tidegate.tables.codes import OUTSIDE, check_columns, check_names, code, in_cells, with_codes
from tidegate.tables.filters import keep_rows
from tidegate.tables.guard import ask_engine
from tidegate.tables.moments import MomentSums, gram, product_measures
from tidegate.tables.persons import bound_rows

MOST_CELLS = 2**25
AT_ONCE = 5_000  # keys in one query
NAMED, CELL, CODED = "tidegate_key", "tidegate_cell_", "tidegate_code_of"
Cells = NDArray[Any]


class Table:
    """A policy's columns on an engine. `counted` rows are those after at most k rows a person were kept."""

    def __init__(self, expression: Any, policy: Policy, engine: str) -> None:
        self.source, self.policy, self.engine = expression, policy, engine
        self.turn = threading.Lock()  # an engine's connection takes one query at a time
        check_columns(expression, policy.attributes)
        self.boundary = boundary_of(expression, engine)
        unit = policy.dataset.unit
        key = unit.key if isinstance(unit, EachPerson) else ""
        self._source = self.boundary.columns(expression, policy.attributes, key=key)

    @cached_property
    def counted(self) -> Any:
        """The rows after at most k of each person were kept, as an expression."""
        return bound_rows(self._source, self.policy, self.boundary)

    def without_rows(self) -> Table:
        """The same columns on the same engine with no row: what fails on it fails for a public reason."""
        check_names(self._source, self.policy.attributes)
        empty = copy(self)
        for name in ("counted", "size"):
            empty.__dict__.pop(name, None)
        empty._source = self._source.filter(ibis.literal(False))
        return empty

    def coded(self, name: str) -> Any:
        """All rows with the code of one column as CODED: NULL where it is missing or outside. An expression."""
        return with_codes(self._source, {CODED: (name, self.policy.countable(name))}, self.boundary)

    def axis(self, name: str, *, binned: bool = False) -> Axis:
        """One attribute of a grouping, by its column's name."""
        return Axis(name, self.policy.countable(name), binned)

    def count(self, by: Sequence[str | Axis] = (), *, where: Predicate | None = None) -> Cells:
        """Rows in every cell of the declared universe, empty cells too. Shape: one axis per attribute."""
        return self._aggregate(by, {"n": lambda table: table.count()}, where)["n"]

    @cached_property
    def size(self) -> int:
        """The number of counted rows."""
        return int(self.count().item())

    def check_rows(self) -> None:
        """Refuse a source whose number of rows is not the one that the policy declares.

        The declared number is public, and the refusal does not show the true one. Call it only where no person's presence
        changes the number.

        Raises:
            SourceUnreadable: The numbers differ.
        """
        declared = self.policy.dataset.rows
        if declared is not None and self.size != declared:
            raise SourceUnreadable(
                f"The policy declares {declared:,} rows, but the source has a different number of rows.",
                "Correct rows in [dataset]; tidegate check POLICY --data shows the owner what the source holds.",
            )

    def histogram(self, column: str) -> Cells:
        """Rows in every bin of a column (its values, where the policy gives no bins)."""
        return self.count([self.axis(column, binned=True)])

    def sums(self, column: str, by: Sequence[str | Axis] = ()) -> Cells:
        """Exact sums of a column's codes in every cell; rows where it is missing add nothing."""
        return self.moments(column, by=by, powers=(1,))[0]

    def moments(
        self,
        column: str,
        *,
        by: Sequence[str | Axis] = (),
        where: Predicate | None = None,
        center: int = 0,
        powers: Sequence[int] = (0, 1, 2),
    ) -> tuple[Cells, ...]:
        """Sums of (code - center) ** power over the rows where the column is not missing, exact, in every cell."""
        attribute = self.policy.attribute(column)
        if not isinstance(attribute, Numeric):
            raise Unsupported(f'"{column}" is not a number: it has no sum.')
        sums = MomentSums(column, attribute, self._source[column].type(), self.boundary)
        found = self._aggregate(by, sums.measures(powers), where)
        return ask_engine(
            lambda: tuple(np.asarray(cells) for cells in sums.finish(found, center=center, powers=powers)),
            what="adding up",
        )

    def products(
        self, columns: Sequence[str], *, centers: Sequence[int], where: Predicate | None = None
    ) -> NDArray[Any]:
        """Sums of products of (1, code - center, ...) over the rows where every column is there, exact: a square matrix."""
        found = {name: self.policy.attribute(name) for name in columns}
        numbers = {name: one for name, one in found.items() if isinstance(one, Numeric)}
        if len(numbers) != len(columns):
            raise Unsupported("a product is of different columns, and all of them numbers.")
        sums = self._aggregate((), product_measures(numbers, self.boundary), where)
        return ask_engine(lambda: gram(sums, list(numbers.values()), centers), what="adding up")

    def records(self, keys: Sequence[str | int], columns: Sequence[str], axes: Sequence[Axis] = ()) -> Records:
        """The records that some keys name, with their cell on each axis (DROPPED where it has none).

        A key that names nothing is left out; one that names several records is listed in `twice` and left out.
        """
        cells = {f"{CELL}{n}": (axis.name, axis.attribute) for n, axis in enumerate(axes)}
        coded = with_codes(self._source, cells, self.boundary)
        key = coded[self.key_column]
        text = key if key.type().is_binary() or key.type().is_string() else self.boundary.encoded(key.cast("string"))
        keyed = coded.mutate(**{NAMED: text}).select(NAMED, *columns, *cells)
        parts = []
        for start in range(0, len(keys), AT_ONCE):
            rows = self._among(keyed, [str(key) for key in keys[start : start + AT_ONCE]])
            with self.turn:
                parts.append(ask_engine(rows.to_pyarrow, what="looking up records"))
        return ask_engine(lambda: _records(parts, columns, axes), what="looking up records")

    def _among(self, keyed: Any, wanted: list[str]) -> Any:
        """The rows of some keys. Hundreds of literals take Ibis longer to compile than DuckDB to join them."""
        if self.engine == "duckdb" and len(wanted) > 20:
            return keyed.semi_join(ibis.memtable(pa.table({NAMED: [key.encode() for key in wanted]})), NAMED)
        literals = [self.boundary.literal(key) for key in wanted] if self.boundary.encodes else wanted
        return keyed.filter(keyed[NAMED].isin(literals))

    def batches(self, columns: Sequence[str], *, rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        """The named columns of every counted row as Arrow batches, streamed where the engine can. Until they are read to
        the end, or let go, other questions to this table wait."""
        for name in columns:
            self.policy.attribute(name)
        selected = self.counted.select(list(columns))
        with self.turn:
            reader = ask_engine(lambda: selected.to_pyarrow_batches(chunk_size=rows), what="reading rows")
            while (batch := ask_engine(lambda: _next_batch(reader), what="reading rows")) is not None:
                yield batch

    @cached_property
    def key_column(self) -> str:
        """The policy's one key."""
        keys = [name for name, attribute in self.policy.attributes.items() if isinstance(attribute, Key)]
        if len(keys) != 1:
            raise Unsupported(f"a record by key needs a policy with one key; this one has {len(keys)}.")
        return keys[0]

    def _aggregate(
        self, by: Sequence[str | Axis], measures: dict[str, Any], where: Predicate | None = None
    ) -> dict[str, Cells]:
        axes = [axis if isinstance(axis, Axis) else self.axis(axis) for axis in by]
        shape = tuple(axis.length for axis in axes)
        if math.prod(shape) > MOST_CELLS:
            raise TooManyCells(
                f"{' x '.join(f'{n:,}' for n in shape)} = {math.prod(shape):,} cells are more than the {MOST_CELLS:,} that can be held.",
                "Group by fewer columns, or give the long ones bins.",
            )
        rows = self.counted if where is None else keep_rows(self.counted, self.policy, where, self.boundary)
        groups = _groups(rows, axes, measures, self.boundary)

        def cells() -> dict[str, Cells]:
            found = groups.to_pyarrow()
            places = [axis.places(found[f"g{number}"]) for number, axis in enumerate(axes)]
            return {name: scatter(shape, places, _integers(found[name])) for name in measures}

        with self.turn:
            return ask_engine(cells, what="counting")  # from the query to the cells: whatever fails may quote a value


@dataclass(frozen=True)
class Records:
    """Records by their key: the named columns, and the cell on each axis."""

    columns: dict[str, dict[str, Any]]
    cells: dict[str, tuple[int, ...]]
    twice: frozenset[str]


def _records(parts: list[pa.Table], columns: Sequence[str], axes: Sequence[Axis]) -> Records:
    if not parts:
        return Records({}, {}, frozenset())
    found = pa.concat_tables(parts)
    names = [_text(name) for name in found[NAMED].to_pylist()]
    rows = found.select(list(columns)).to_pylist() if columns else [{} for _ in names]
    rows = [{column: _text(value) for column, value in row.items()} for row in rows]
    places = [axis.places(found[f"{CELL}{n}"]).tolist() for n, axis in enumerate(axes)]
    twice = frozenset(name for name, times in Counter(names).items() if times > 1)
    once = [place for place, name in enumerate(names) if name not in twice]
    return Records(
        {names[i]: rows[i] for i in once}, {names[i]: tuple(place[i] for place in places) for i in once}, twice
    )


def _text(value: Any) -> Any:
    """Bytes of the engine's text as text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _next_batch(reader: Any) -> pa.RecordBatch | None:
    """The next rows, with text as text."""
    batch = next(reader, None)
    if batch is None or not any(pa.types.is_binary(field.type) for field in batch.schema):
        return batch
    columns = [
        pa.array([_text(value) for value in column.to_pylist()], pa.string())
        if pa.types.is_binary(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _groups(table: Any, axes: list[Axis], measures: dict[str, Any], boundary: Boundary) -> Any:
    """One row for each group of codes, OUTSIDE where one is missing. Categories are grouped by their stored bytes first and
    coded afterwards, so that a list is looked up once for each distinct value; the inner groups never leave the engine."""
    built = {name: build(table) for name, build in measures.items()}
    if not axes:
        return table.aggregate(**built)
    listed = {f"r{n}": axis for n, axis in enumerate(axes) if isinstance(axis.attribute, Category)}
    keys = {f"r{n}" if f"r{n}" in listed else f"g{n}": _number(table, axis, boundary) for n, axis in enumerate(axes)}
    first = table.group_by(**keys).aggregate(**built)
    if not listed:
        return first
    coded = with_codes(first, {f"g{name[1:]}": (name, axis.attribute) for name, axis in listed.items()}, boundary)
    codes = {f"g{n}": coded[f"g{n}"].fill_null(OUTSIDE) for n in range(len(axes))}
    return coded.group_by(**codes).aggregate(**{name: coded[name].sum() for name in measures})


def _number(table: Any, axis: Axis, boundary: Boundary) -> Any:
    column = table[axis.name]
    if not isinstance(axis.attribute, Numeric):
        return column
    found = code(column, axis.attribute, boundary)
    return in_cells(found, axis.starts, axis.starts) if axis.starts and axis.firsts else found  # few groups come back


def _integers(column: pa.ChunkedArray) -> NDArray[Any]:
    """Engine sums as integers: 64-bit where the engine's type is, Python's own where it is wider."""
    if pa.types.is_integer(column.type):
        return np.asarray(column.fill_null(0).to_numpy(), dtype=np.int64)
    return np.array([int(value) if value is not None else 0 for value in column.to_pylist()], dtype=object)
