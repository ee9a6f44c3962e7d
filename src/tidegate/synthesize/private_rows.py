"""The private rows as models read them: counts of codes in memory, or counts that the engine computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Ints
from tidegate.errors import LedgerBroken
from tidegate.synthesize.facts import Column
from tidegate.tables import Axis, Table
from tidegate.tables.pairs import (
    cell_type,
    count_pairs,
    count_some_pairs,
    read_columns,
    refuse_too_many_pairs,
    rows_as_codes,
)

MOST_BYTES = 2**28  # of codes in memory; larger tables are counted by the engine
TABLES_AT_ONCE = 64  # tables of two columns in memory, of at most 60,000 cells each


class ArrayRows:
    """Private rows as codes, rows by columns or a list of columns. -1 and codes outside a column's values are not listed."""

    def __init__(self, codes: Ints | Sequence[NDArray[Any]], columns: Sequence[Column]) -> None:
        by_column = codes if isinstance(codes, list) else list(np.asarray(codes, np.int64).T)
        self._codes = {column.name: by_column[index] for index, column in enumerate(columns)}

    def places(self, column: Column) -> Ints:
        codes = self._listed(column)
        return np.bincount(codes[codes >= 0], minlength=column.size + column.missing)

    def margin(self, column: Column) -> Ints:
        cells = self._cells(column)
        return np.bincount(cells[cells >= 0], minlength=column.cells)

    def pairs(self, columns: Sequence[Column]) -> Mapping[tuple[int, int], Ints]:
        refuse_too_many_pairs({column.name: column.cells for column in columns})
        cells = [self._cells(column) for column in columns]
        return {
            (i, j): _table(cells[i], cells[j], (columns[i].cells, columns[j].cells))
            for i in range(len(columns))
            for j in range(i + 1, len(columns))
        }

    def pair(self, left: Column, right: Column) -> Ints:
        return _table(self._cells(left), self._cells(right), (left.cells, right.cells))

    def explained(self, columns: Sequence[Column], pairs: Sequence[tuple[int, int]]) -> Ints:
        cells = [self._cells(column) for column in columns]
        tables = (_table(cells[i], cells[j], (columns[i].cells, columns[j].cells)) for i, j in pairs)
        return np.array([table.max(axis=1).sum() for table in tables], np.int64)

    def codes(self, columns: Sequence[Column]) -> Ints:
        return np.column_stack([self._listed(column) for column in columns])

    def _listed(self, column: Column) -> Ints:
        codes = self._codes[column.name].astype(np.int64)
        return np.where((codes >= 0) & (codes < column.size + column.missing), codes, -1)

    def _cells(self, column: Column) -> Ints:
        codes = self._listed(column)
        return codes if len(column.starts) == column.size else column.cell_of(codes)


def _table(left: Ints, right: Ints, shape: tuple[int, int]) -> Ints:
    """Return the number of rows in each pair of cells of two columns."""
    both = (left >= 0) & (right >= 0)
    return np.bincount(left[both] * shape[1] + right[both], minlength=shape[0] * shape[1]).reshape(shape)


class EngineRows:
    """A table of the policy.

    The codes of `columns` are read into memory once if they fit there: models count hundreds of times, on cells that are
    found on the way. Without them, or if they do not fit, the engine counts, and rows are read only for models that need
    codes. The counts are the same.
    """

    def __init__(self, table: Table, columns: Sequence[Column] = ()) -> None:
        self._table, self._columns = table, columns

    @cached_property
    def _in_memory(self) -> ArrayRows | None:
        axes = [self._axis(column, single=True) for column in self._columns]
        bytes_per_row = sum(cell_type(axis.length).itemsize for axis in axes)
        if not axes or self._table.size * bytes_per_row > MOST_BYTES:
            return None
        return ArrayRows(read_columns(self._table, axes), self._columns)

    def places(self, column: Column) -> Ints:
        if self._in_memory:
            return self._in_memory.places(column)
        return np.asarray(self._table.count([self._axis(column, single=True)]), np.int64)

    def margin(self, column: Column) -> Ints:
        if self._in_memory:
            return self._in_memory.margin(column)
        return np.asarray(self._table.count([self._axis(column)]), np.int64)

    def pairs(self, columns: Sequence[Column]) -> Mapping[tuple[int, int], Ints]:
        if self._in_memory:
            return self._in_memory.pairs(columns)
        return count_pairs(self._table, [self._axis(column) for column in columns])

    def pair(self, left: Column, right: Column) -> Ints:
        if self._in_memory:
            return self._in_memory.pair(left, right)
        return np.asarray(self._table.count([self._axis(left), self._axis(right)]), np.int64)

    def explained(self, columns: Sequence[Column], pairs: Sequence[tuple[int, int]]) -> Ints:
        if self._in_memory:
            return self._in_memory.explained(columns, pairs)
        axes = [self._axis(column) for column in columns]
        unordered = sorted({(min(pair), max(pair)) for pair in pairs})
        sums: dict[tuple[int, int], int] = {}
        for (i, j), table in count_some_pairs(self._table, axes, unordered, at_once=TABLES_AT_ONCE):
            sums[i, j], sums[j, i] = int(table.max(axis=1).sum()), int(table.max(axis=0).sum())
        return np.array([sums[pair] for pair in pairs], np.int64)

    def codes(self, columns: Sequence[Column]) -> Ints:
        if self._in_memory:
            return self._in_memory.codes(columns)
        return rows_as_codes(self._table, [self._axis(column, single=True) for column in columns])

    def rehearse(self, columns: Sequence[Column]) -> None:
        """Have the engine compile every column, as cells and as single codes. On a table without rows, an error is public."""
        rows_as_codes(self._table, [self._axis(column) for column in columns])
        self.codes(columns)

    def _axis(self, column: Column, *, single: bool = False) -> Axis:
        policy = self._table.policy
        gaps = {
            gap.name: gap for gap in (policy.synthesis.gap(end, policy.attributes) for end in policy.synthesis.orders)
        }
        attribute = gaps[column.name] if column.name in gaps else policy.countable(column.name)
        return Axis(column.name, attribute, starts=() if single else column.starts)


class NoRows:
    """Stands in for the rows if the diary is complete: a model that is rebuilt from its diary reads no rows."""

    def places(self, column: Column) -> Ints:
        raise self._refused()

    def margin(self, column: Column) -> Ints:
        raise self._refused()

    def pairs(self, columns: Sequence[Column]) -> Mapping[tuple[int, int], Ints]:
        raise self._refused()

    def pair(self, left: Column, right: Column) -> Ints:
        raise self._refused()

    def explained(self, columns: Sequence[Column], pairs: Sequence[tuple[int, int]]) -> Ints:
        raise self._refused()

    def codes(self, columns: Sequence[Column]) -> Ints:
        raise self._refused()

    def _refused(self) -> LedgerBroken:
        return LedgerBroken(
            "The stored diary of this synthetic table lacks numbers that its model needs.",
            "Another version of the model wrote it: use that version, or request again under a new edition.",
        )
