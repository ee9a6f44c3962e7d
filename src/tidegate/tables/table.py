"""Table access: a small set of verbs, the same integers on every engine.

Everything is an exact integer on the attributes' public grids: sums are sums of codes (positions on the grid), so no
engine's floating point and no order of rows can change them. The results of these methods are private and exact; only the
verbs (answer, release, synthesize) can call them, after the ledger was charged.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import ibis
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.errors import SourceUnreadable, TooManyCells, Unsupported
from tidegate.policy import Attribute, Decimal, EachPerson, Key, Numeric, Policy
from tidegate.policy.predicates import Predicate
from tidegate.tables.axes import MOST_CELLS, Axis, scatter
from tidegate.tables.boundaries import boundary_of
from tidegate.tables.codes import check_columns, with_codes
from tidegate.tables.filters import keep_rows
from tidegate.tables.groups import cells_on_axes, group_rows, in_final_cells, integers, prepare, scattered
from tidegate.tables.guard import ask_engine
from tidegate.tables.header import check_names
from tidegate.tables.mappings import DROPPED, Measured
from tidegate.tables.moments import MomentSums, gram, product_measures
from tidegate.tables.persons import bound_rows
from tidegate.tables.positions import is_coded
from tidegate.tables.universe import LatestResults, grouping_of, measured_of

AT_ONCE = 5_000  # keys per query
NAMED, CELL, CODED = "tidegate_key", "tidegate_cell_", "tidegate_code_of"
MOST_PREPARED = 200  # queries of a table
T = TypeVar("T")
Cells = NDArray[Any]
Measures = Mapping[str, Callable[[Any], Any]]
COUNT: Measures = {"n": lambda table: table.count()}


class Table:
    """A policy's columns on an engine. `counted` contains at most k rows per person.

    `is_prepared`: the expression has the form of `prepared` already (a join of prepared tables).
    """

    def __init__(self, expression: Any, policy: Policy, engine: str, *, is_prepared: bool = False) -> None:
        self.source, self.policy, self.engine = expression, policy, engine
        self.turn = threading.Lock()  # an engine's connection accepts one query at a time
        self._empty: Table | None = None
        self._rehearsed: LatestResults | None = None  # what the engine returned without rows
        if not is_prepared:
            check_columns(expression, policy.attributes)
        self.boundary = boundary_of(expression, engine)
        if is_prepared:
            self._source = expression
            return
        unit = policy.dataset.unit
        key = unit.key if isinstance(unit, EachPerson) else ""
        self._source = self.boundary.columns(expression, policy.attributes, key=key)

    @property
    def prepared(self) -> Any:
        """All rows as the engine's boundary presents them, with the text of the person key, as an expression."""
        return self._source

    @cached_property
    def counted(self) -> Any:
        """At most k rows of each person, as an expression."""
        rows = bound_rows(self._source, self.policy, self.boundary)
        return rows if rows is self._source else self.boundary.as_view(rows)

    def without_rows(self) -> Table:
        """Return the same columns on the same engine without rows: a failure there has a public reason."""
        check_names(self._source.columns, self.policy.attributes)
        if self._empty is None:
            empty = copy(self)
            for name in ("counted", "size", "_statements", "_reads"):
                empty.__dict__.pop(name, None)
            empty._source, empty._rehearsed = self._source.filter(ibis.literal(False)), LatestResults(MOST_PREPARED)
            self._empty = empty
        self._empty.turn = self.turn
        return self._empty

    def coded(self, name: str) -> Any:
        """Return all rows with the code of one column as CODED (NULL if missing or outside), as an expression."""
        return with_codes(self._source, {CODED: (name, self.policy.countable(name))}, self.boundary)

    def axis(self, name: str, *, binned: bool = False) -> Axis:
        """Return the axis of a column for a grouping."""
        return Axis(name, self.policy.countable(name), binned)

    def count(self, by: Sequence[str | Axis] = (), *, where: Predicate | None = None) -> Cells:
        """Return the rows in every cell of the declared universe, including empty cells: one axis per attribute."""
        return self._aggregate(by, COUNT, where, shape="count")["n"]

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
        """Return the rows in every bin of a column (its values, if the policy declares no bins)."""
        return self.count([self.axis(column, binned=True)])

    def sums(self, column: str, by: Sequence[str | Axis] = ()) -> Cells:
        """Return exact sums of a column's codes in every cell; missing values add nothing."""
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
        """Return exact sums of (code - center) ** power over the rows with a value, in every cell."""
        attribute = measured_of(self.policy, column)
        if not isinstance(attribute, Numeric):
            raise Unsupported(f'Column "{column}" is not numeric, so it has no sum.', "Choose a numeric column.")
        sign = 1
        if isinstance(attribute, Measured):
            if not attribute.sign:
                return self._added_up(column, attribute, by, where, center, powers)
            column, sign = attribute.mapped.columns[0], attribute.sign
            center = center if sign > 0 else attribute.size - 1 - center
            base = self.policy.attribute(column)
            assert isinstance(base, Numeric)  # noqa: S101  (only numeric columns have a sign)
            attribute = base
        sums = MomentSums(column, attribute, self._source[column].type(), self.boundary)
        results = self._aggregate(by, sums.measures(powers), where, shape=f"moments {max(powers)} {column}")
        return ask_engine(
            lambda: tuple(
                np.asarray(sign**power * cells)
                for power, cells in zip(powers, sums.finish(results, center=center, powers=powers), strict=True)
            ),
            what="adding up",
        )

    def _added_up(
        self,
        column: str,
        attribute: Measured,
        by: Sequence[str | Axis],
        where: Predicate | None,
        center: int,
        powers: Sequence[int],
    ) -> tuple[Cells, ...]:
        """Return moments of an expression: rows are counted by combinations of codes, whose numbers are public."""
        axes = self._axes(by)
        shape = tuple(axis.length for axis in axes)

        def moments(fetched: pa.Table) -> tuple[Cells, ...]:
            *axis_cells, codes = cells_on_axes(fetched, [*axes, Axis(column, attribute)])
            counts, there = integers(fetched["n"]).astype(object), codes != DROPPED
            chosen = [cells[there] for cells in axis_cells]
            shifted = codes[there].astype(object) - center
            return tuple(scatter(shape, chosen, counts[there] * shifted**power) for power in powers)

        return self._fetch([*axes, Axis(column, attribute)], COUNT, where, moments, shape="count")

    def distinct(self, column: str, *, by: Sequence[str | Axis] = (), where: Predicate | None = None) -> Cells:
        """Return the number of different values of a column or an expression, in every cell."""
        axes, attribute = self._axes(by), self.policy.attributes.get(column)
        shape = tuple(axis.length for axis in axes)
        if isinstance(attribute, Key):
            return self._different_keys(column, self.counted, axes, where)
        values = Axis(column, grouping_of(self.policy, column))
        nothing = values.labels().index(None) if None in values.labels() else DROPPED  # a missing value is no value

        def count(fetched: pa.Table) -> Cells:
            *axis_cells, codes = cells_on_axes(fetched, [*axes, values])
            there = (codes != DROPPED) & (codes != nothing)
            chosen = np.unique(np.stack([codes[there], *(cells[there] for cells in axis_cells)]), axis=1)
            return scatter(shape, list(chosen[1:]), np.ones(chosen.shape[1], np.int64))

        return self._fetch([*axes, values], COUNT, where, count, shape="count")

    def persons(self, *, by: Sequence[str | Axis] = (), where: Predicate | None = None) -> Cells:
        """Return the number of persons in every cell: of all their rows if there is one cell, of at most k otherwise."""
        unit = self.policy.dataset.unit
        assert isinstance(unit, EachPerson)  # noqa: S101  (the plan has seen to it)
        axes = self._axes(by)
        return self._different_keys(unit.key, self.counted if axes else self._source, axes, where)

    def _different_keys(self, key: str, rows: Any, axes: list[Axis], where: Predicate | None) -> Cells:
        named = f"{'counted' if rows is self.counted else 'all'} keys {key}"

        def build() -> Any:
            chosen = self._chosen(rows, where)
            if not axes:
                return chosen.aggregate(n=chosen[key].nunique())
            pairs = in_final_cells(chosen, axes, self.policy, self.boundary, person=key).distinct()
            return pairs.group_by([f"g{n}" for n in range(len(axes))]).aggregate(n=pairs.person.count())

        return self._read(named, axes, where, build, lambda fetched: scattered(fetched, axes, ["n"], final=True)["n"])

    def products(
        self, columns: Sequence[str], *, centers: Sequence[int], where: Predicate | None = None
    ) -> NDArray[Any]:
        """Return exact sums of products of (1, code - center, ...) over the rows without missing values: a square matrix."""
        attributes = {name: self.policy.attribute(name) for name in columns}
        numbers = {name: attribute for name, attribute in attributes.items() if isinstance(attribute, Numeric)}
        if len(numbers) != len(columns):
            raise Unsupported("Products need distinct numeric columns.", "Name each numeric column once.")
        sums = self._aggregate((), product_measures(numbers, self.boundary), where, shape=f"products {list(numbers)}")
        return ask_engine(lambda: gram(sums, list(numbers.values()), centers), what="adding up")

    def records(self, keys: Sequence[str | int], columns: Sequence[str], axes: Sequence[Axis] = ()) -> Records:
        """Return the records of some keys, with their cell on each axis (DROPPED if it has none).

        Dates, times and decimals are on their grid, never finer. Unknown keys are left out. A key with several records is listed in `twice` and left out.
        """
        parts = []
        for start in range(0, len(keys), AT_ONCE):
            read = self._lookup(columns, axes, [str(key) for key in keys[start : start + AT_ONCE]])
            with self.turn:
                parts.append(ask_engine(read, what="looking up records"))
        labels = {name: self.policy.attribute(name) for name in columns if is_coded(self.policy.attribute(name))}
        return ask_engine(lambda: _records(parts, columns, axes, labels), what="looking up records")

    def _keyed(self, columns: Sequence[str], axes: Sequence[Axis]) -> Any:
        """Return all rows with the text of their key, some columns, and the code on each axis, as an expression."""
        cells = {f"{CELL}{n}": (axis.name, axis.attribute) for n, axis in enumerate(axes)}
        coded = with_codes(self._source, cells, self.boundary)
        key = coded[self.key_column]
        text = key if key.type().is_binary() or key.type().is_string() else self.boundary.encoded(key.cast("string"))
        return coded.mutate(**{NAMED: text}).select(NAMED, *columns, *cells)

    def all_records(self, columns: Sequence[str], axes: Sequence[Axis], *, rows: int = 65_536) -> Iterator[RecordBatch]:
        """Yield every row with its key, some columns, and its cell on each axis (DROPPED if it has none), in parts.

        Other queries on this table wait until all parts are read.
        """
        keyed = self._keyed(columns, axes)
        labels = {name: self.policy.attribute(name) for name in columns if is_coded(self.policy.attribute(name))}
        with self.turn:
            reader = ask_engine(lambda: keyed.to_pyarrow_batches(chunk_size=rows), what="reading records")
            while (batch := ask_engine(lambda: next(reader, None), what="reading records")) is not None:
                part = pa.Table.from_batches([batch])
                yield ask_engine(lambda: _record_batch(part, columns, axes, labels), what="reading records")  # noqa: B023

    def _lookup(self, columns: Sequence[str], axes: Sequence[Axis], keys: list[str]) -> Callable[[], pa.Table]:
        """Return a function that reads the rows of some keys.

        On DuckDB the statement is compiled once and the keys are parameters: compiling takes 8 ms, reading 10,000 rows 2 ms.
        """
        if self.engine == "duckdb":
            statement = self._lookup_statement(tuple(columns), tuple(axis.name for axis in axes), axes)
            values = [[key_value.encode() for key_value in keys]]
            return lambda: self.boundary.backend.con.execute(statement, values).to_arrow_table()
        keyed = self._keyed(columns, axes)
        literals = [self.boundary.literal(key_value) for key_value in keys] if self.boundary.encodes else keys
        read: Callable[[], pa.Table] = keyed.filter(keyed[NAMED].isin(literals)).to_pyarrow
        return read

    def _lookup_statement(self, columns: tuple[str, ...], names: tuple[str, ...], axes: Sequence[Axis]) -> str:
        """Return the compiled statement of a lookup. An axis follows from its name, because a release uses bins only."""
        if (columns, names) not in self._statements:
            compiled = ask_engine(lambda: ibis.to_sql(self._keyed(columns, axes)), what="looking up records")
            self._statements[columns, names] = (
                f'SELECT * FROM ({compiled}) WHERE "{NAMED}" IN (SELECT UNNEST(?::BLOB[]))'  # noqa: S608  (names of the policy)
            )
        return self._statements[columns, names]

    @cached_property
    def _statements(self) -> dict[tuple[tuple[str, ...], tuple[str, ...]], str]:
        return {}

    def batches(self, columns: Sequence[str], *, rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        """Yield the named columns of every counted row as Arrow batches, streamed if the engine supports it.

        Dates and times are codes. Other queries on this table wait until the batches are read to the end or discarded.
        """
        for name in columns:
            self.policy.attribute(name)
        selected = self.counted.select(**{name: self._number(name) for name in columns})
        with self.turn:
            reader = ask_engine(lambda: selected.to_pyarrow_batches(chunk_size=rows), what="reading rows")
            while (batch := ask_engine(lambda: _next_batch(reader), what="reading rows")) is not None:
                yield batch

    def _number(self, name: str) -> Any:
        """Return a counted column with the codes of decimals as numbers."""
        column, attribute = self.counted[name], self.policy.attribute(name)
        if not isinstance(attribute, Decimal):
            return column
        return column.cast("float64") * float(attribute.width) + float(attribute.low)

    @cached_property
    def key_column(self) -> str:
        """The policy's only key."""
        keys = [name for name, attribute in self.policy.attributes.items() if isinstance(attribute, Key)]
        if len(keys) != 1:
            raise Unsupported(
                f"Records need a policy with exactly one key, and this policy has {len(keys)}.",
                'Declare one attribute with kind = "key".',
            )
        return keys[0]

    def _axes(self, by: Sequence[str | Axis]) -> list[Axis]:
        return [axis if isinstance(axis, Axis) else Axis(axis, grouping_of(self.policy, axis)) for axis in by]

    def _aggregate(
        self, by: Sequence[str | Axis], measures: Measures, where: Predicate | None = None, *, shape: str
    ) -> dict[str, Cells]:
        axes = self._axes(by)
        lengths = tuple(axis.length for axis in axes)
        if math.prod(lengths) > MOST_CELLS:
            raise TooManyCells(
                f"The grouping has {' x '.join(f'{n:,}' for n in lengths)} = {math.prod(lengths):,} cells, more than the limit of {MOST_CELLS:,}.",
                "Group by fewer columns, or declare bins for the long ones.",
            )
        return self._fetch(axes, measures, where, lambda fetched: scattered(fetched, axes, measures), shape=shape)

    def _fetch(
        self,
        axes: list[Axis],
        measures: Measures,
        where: Predicate | None,
        finish: Callable[[pa.Table], T],
        *,
        shape: str,
    ) -> T:
        """Return what follows from the groups of codes. `shape` names the measures: equal names have equal measures."""

        def build() -> Any:
            return group_rows(self._chosen(self.counted, where), axes, measures, self.boundary, self.policy)

        return self._read(shape, axes, where, build, finish)

    def _chosen(self, rows: Any, where: Predicate | None) -> Any:
        """Return the rows for which a condition is true, as an expression."""
        return rows if where is None else self.boundary.as_view(keep_rows(rows, self.policy, where, self.boundary))

    def _read(
        self,
        shape: str,
        axes: list[Axis],
        where: Predicate | None,
        build: Callable[[], Any],
        finish: Callable[[pa.Table], T],
    ) -> T:
        """Return what follows from a query, which is prepared once for each shape, grouping and condition.

        Any failure of the engine can quote a value, so none is shown.
        """
        grouping = tuple((axis.name, type(axis.attribute), axis.binned, axis.starts) for axis in axes)
        query = (shape, grouping, repr(where))
        read = self._reads.get(query, lambda: _prepare(build()))
        with self.turn:
            return ask_engine(lambda: finish(self._run(query, read)), what="counting")

    def _run(self, query: Any, read: Callable[[], pa.Table]) -> pa.Table:
        """Return the rows of a prepared query. Without rows, DuckDB returns the same until a file changes."""
        if self._rehearsed is None or self.engine != "duckdb":
            return read()
        from tidegate.tables.engines.duckdb import stamp_of

        stamp = stamp_of(self.source)
        return read() if stamp is None else self._rehearsed.get((query, stamp), read)

    @cached_property
    def _reads(self) -> LatestResults:
        return LatestResults(MOST_PREPARED)


@dataclass(frozen=True)
class Records:
    """Records by key: the named columns, and the cell on each axis."""

    columns: dict[str, dict[str, Any]]
    cells: dict[str, tuple[int, ...]]
    twice: frozenset[str]


@dataclass(frozen=True)
class RecordBatch:
    """Some rows of a table: their keys as text, and their cells on each axis."""

    keys: list[str]
    cells: list[NDArray[np.int64]]
    columns: Mapping[str, list[Any]]

    def row(self, index: int) -> dict[str, Any]:
        """Return the named columns of one row."""
        return {name: values[index] for name, values in self.columns.items()}


def _prepare(expression: Any) -> Callable[[], pa.Table]:
    return ask_engine(lambda: prepare(expression), what="counting")


def _record_batch(
    part: pa.Table, columns: Sequence[str], axes: Sequence[Axis], labels: Mapping[str, Attribute]
) -> RecordBatch:
    values = {
        name: [_label(value, labels[name]) if name in labels else _text(value) for value in part[name].to_pylist()]
        for name in columns
    }
    cells = [np.asarray(axis.cells_of(part[f"{CELL}{n}"]), np.int64) for n, axis in enumerate(axes)]
    return RecordBatch([str(_text(name)) for name in part[NAMED].to_pylist()], cells, values)


def _records(
    parts: list[pa.Table], columns: Sequence[str], axes: Sequence[Axis], labels: Mapping[str, Attribute]
) -> Records:
    if not parts:
        return Records({}, {}, frozenset())
    records = pa.concat_tables(parts)
    names = [_text(name) for name in records[NAMED].to_pylist()]
    rows = records.select(list(columns)).to_pylist() if columns else [{} for _ in names]
    rows = [
        {column: _label(value, labels[column]) if column in labels else _text(value) for column, value in row.items()}
        for row in rows
    ]
    axis_cells = [axis.cells_of(records[f"{CELL}{n}"]).tolist() for n, axis in enumerate(axes)]
    twice = frozenset(name for name, times in Counter(names).items() if times > 1)
    once = [position for position, name in enumerate(names) if name not in twice]
    return Records(
        {names[i]: rows[i] for i in once},
        {names[i]: tuple(position[i] for position in axis_cells) for i in once},
        twice,
    )


def _text(value: Any) -> Any:
    """Return the engine's bytes as text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _label(code: int | None, attribute: Attribute) -> Any:
    return None if code is None else attribute.label(code)


def _next_batch(reader: Any) -> pa.RecordBatch | None:
    """Return the next rows, with text decoded."""
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
