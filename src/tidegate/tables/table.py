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
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.errors import TooManyCells, Unsupported
from tidegate.policy import Category, Key, Numeric, Policy
from tidegate.policy.predicates import Predicate
from tidegate.tables.axes import Axis, scatter
from tidegate.tables.codes import check_columns, code, in_cells, listed
from tidegate.tables.filters import condition
from tidegate.tables.guard import ask_engine
from tidegate.tables.moments import MomentSums
from tidegate.tables.persons import bound_rows
from tidegate.tables.products import gram, product_measures

MOST_CELLS = 2**25
AT_ONCE = 5_000  # keys in one query
NAMED, CELL = "tidegate_key", "tidegate_cell_"
SPARE_GROUPS = 100_000  # groups of unlisted values that are fetched and folded here, rather than by the engine
Cells = NDArray[Any]


class Table:
    """A policy's columns on an engine. `counted` rows are those after at most k rows a person were kept."""

    def __init__(self, expression: Any, policy: Policy, engine: str) -> None:
        self._source, self.policy, self.engine = expression, policy, engine
        self.turn = threading.Lock()  # an engine's connection takes one query at a time
        check_columns(expression, dict(policy.attributes))

    @property
    def source(self) -> Any:
        """All rows and columns, as an expression."""
        return self._source

    @cached_property
    def counted(self) -> Any:
        """The rows after at most k of each person were kept, as an expression."""
        return bound_rows(self._source, self.policy)

    def without_rows(self) -> Table:
        """The same columns on the same engine with no row: what fails on it fails for a public reason."""
        empty = Table(self._source.filter(ibis.literal(False)), self.policy, self.engine)
        empty.turn = self.turn  # it is the same connection
        return empty

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
        sums = MomentSums(column, attribute, self._source[column].type())
        found = self._aggregate(by, sums.measures(powers), where)
        return tuple(np.asarray(cells) for cells in sums.finish(found, center=center, powers=powers))

    def products(
        self, columns: Sequence[str], *, centers: Sequence[int], where: Predicate | None = None
    ) -> NDArray[Any]:
        """Sums of products of (1, code - center, ...) over the rows where every column is there, exact: a square matrix."""
        found = {name: self.policy.attribute(name) for name in columns}
        numbers = {name: one for name, one in found.items() if isinstance(one, Numeric)}
        if len(numbers) != len(columns):
            raise Unsupported("a product is of different columns, and all of them numbers.")
        return gram(self._aggregate((), product_measures(numbers), where), list(numbers.values()), centers)

    def records(self, keys: Sequence[str | int], columns: Sequence[str], axes: Sequence[Axis] = ()) -> Records:
        """The records that some keys name, with their cell on each axis (DROPPED where it has none).

        A key that names nothing is left out; one that names several records is listed in `twice` and left out.
        """
        name, source = self.key_column, self._source
        places = {f"{CELL}{n}": _raw(source, axis) for n, axis in enumerate(axes)}
        keyed = source.mutate(**{NAMED: source[name].cast("string"), **places}).select(NAMED, *columns, *places)
        parts = []
        for start in range(0, len(keys), AT_ONCE):
            rows = self._among(keyed, [str(key) for key in keys[start : start + AT_ONCE]])
            with self.turn:
                parts.append(ask_engine(rows.to_pyarrow, what="looking up records"))
        return _records(parts, columns, axes)

    def _among(self, keyed: Any, wanted: list[str]) -> Any:
        """The rows of some keys. Hundreds of literals take Ibis longer to compile than DuckDB to join them."""
        if self.engine == "duckdb" and len(wanted) > 20:
            return keyed.semi_join(ibis.memtable(pa.table({NAMED: wanted})), NAMED)
        return keyed.filter(keyed[NAMED].isin(wanted))

    def batches(self, columns: Sequence[str], *, rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        """The named columns of every counted row as Arrow batches, streamed where the engine can. Until they are read to
        the end, or let go, other questions to this table wait."""
        for name in columns:
            self.policy.attribute(name)
        selected = self.counted.select(list(columns))
        with self.turn:
            reader = ask_engine(lambda: selected.to_pyarrow_batches(chunk_size=rows), what="reading rows")
            while (batch := ask_engine(lambda: next(reader, None), what="reading rows")) is not None:
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
        rows = self.counted.filter(condition(self.counted, self.policy, where)) if where is not None else self.counted
        with self.turn:
            groups = _groups(rows, axes, measures, most=4 * math.prod(shape) + SPARE_GROUPS)
        places = [axis.places(groups[f"g{number}"]) for number, axis in enumerate(axes)]
        return {name: scatter(shape, places, _integers(groups[name])) for name in measures}


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
    names = found[NAMED].to_pylist()
    rows = found.select(list(columns)).to_pylist() if columns else [{} for _ in names]
    places = [axis.places(found[f"{CELL}{n}"]).tolist() for n, axis in enumerate(axes)]
    twice = frozenset(name for name, times in Counter(names).items() if times > 1)
    once = [place for place, name in enumerate(names) if name not in twice]
    return Records(
        {names[i]: rows[i] for i in once}, {names[i]: tuple(place[i] for place in places) for i in once}, twice
    )


def _groups(table: Any, axes: list[Axis], measures: dict[str, Any], *, most: int) -> pa.Table:
    """One row per group of codes and raw categories, as a hand-written query would give. Where a category holds so many
    values that are not listed that this is too much to fetch, the engine folds those into one first."""
    keys = {f"g{n}": _raw(table, axis) for n, axis in enumerate(axes)}
    built = {name: build(table) for name, build in measures.items()}
    if not keys:
        return ask_engine(table.aggregate(**built).to_pyarrow, what="counting")
    first = table.group_by(**keys).aggregate(**built)
    if not any(isinstance(axis.attribute, Category) for axis in axes):
        return ask_engine(first.to_pyarrow, what="counting")
    found = ask_engine(first.limit(most + 1).to_pyarrow, what="counting")
    if found.num_rows <= most:
        return found
    folded = {f"g{n}": _folded(first[f"g{n}"], axis) for n, axis in enumerate(axes)}
    again = first.group_by(**folded).aggregate(**{name: first[name].sum() for name in measures})
    return ask_engine(again.to_pyarrow, what="counting")


def _raw(table: Any, axis: Axis) -> Any:
    column = table[axis.name]
    if not isinstance(axis.attribute, Numeric):
        return column
    found = code(column, axis.attribute)
    return in_cells(found, axis.starts, axis.starts) if axis.starts and axis.firsts else found  # few groups come back


def _folded(column: Any, axis: Axis) -> Any:
    return listed(column, axis.attribute) if isinstance(axis.attribute, Category) else column


def _integers(column: pa.ChunkedArray) -> NDArray[Any]:
    """Engine sums as integers: 64-bit where the engine's type is, Python's own where it is wider."""
    if pa.types.is_integer(column.type):
        return np.asarray(column.fill_null(0).to_numpy(), dtype=np.int64)
    return np.array([int(value) if value is not None else 0 for value in column.to_pylist()], dtype=object)
