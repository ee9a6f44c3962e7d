"""The private rows as models read them: counts of a matrix of codes in memory, or counts that the engine computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tidegate.arrays import Ints
from tidegate.errors import LedgerBroken
from tidegate.synthesize.facts import Column
from tidegate.tables import Axis, Table
from tidegate.tables.pairs import count_pairs, rows_as_codes


class ArrayRows:
    """Private rows as a matrix of codes, (rows, columns). -1 and codes outside a column's values are not listed."""

    def __init__(self, codes: Ints, columns: Sequence[Column]) -> None:
        self._places = {column.name: index for index, column in enumerate(columns)}
        self._codes = np.asarray(codes, np.int64)

    def places(self, column: Column) -> Ints:
        codes = self._listed(column)
        return np.bincount(codes[codes >= 0], minlength=column.size + column.missing)

    def margin(self, column: Column) -> Ints:
        cells = self._cells(column)
        return np.bincount(cells[cells >= 0], minlength=column.cells)

    def pairs(self, columns: Sequence[Column]) -> Mapping[tuple[int, int], Ints]:
        cells = [self._cells(column) for column in columns]
        return {
            (i, j): _table(cells[i], cells[j], (columns[i].cells, columns[j].cells))
            for i in range(len(columns))
            for j in range(i + 1, len(columns))
        }

    def codes(self, columns: Sequence[Column]) -> Ints:
        return np.column_stack([self._listed(column) for column in columns])

    def _listed(self, column: Column) -> Ints:
        codes = self._codes[:, self._places[column.name]]
        return np.where((codes >= 0) & (codes < column.size + column.missing), codes, -1)

    def _cells(self, column: Column) -> Ints:
        return column.cell_of(self._listed(column))


def _table(left: Ints, right: Ints, shape: tuple[int, int]) -> Ints:
    """Return the number of rows in each pair of cells of two columns."""
    both = (left >= 0) & (right >= 0)
    return np.bincount(left[both] * shape[1] + right[both], minlength=shape[0] * shape[1]).reshape(shape)


class EngineRows:
    """A table of the policy. The engine counts; rows are read only for models that need codes."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def places(self, column: Column) -> Ints:
        return np.asarray(self._table.count([self._axis(column, single=True)]), np.int64)

    def margin(self, column: Column) -> Ints:
        return np.asarray(self._table.count([self._axis(column)]), np.int64)

    def pairs(self, columns: Sequence[Column]) -> Mapping[tuple[int, int], Ints]:
        return count_pairs(self._table, [self._axis(column) for column in columns])

    def codes(self, columns: Sequence[Column]) -> Ints:
        return rows_as_codes(self._table, [self._axis(column, single=True) for column in columns])

    def rehearse(self, columns: Sequence[Column]) -> None:
        """Have the engine compile every column, as cells and as single codes. On a table without rows, an error is public."""
        rows_as_codes(self._table, [self._axis(column) for column in columns])
        self.codes(columns)

    def _axis(self, column: Column, *, single: bool = False) -> Axis:
        return Axis(column.name, self._table.policy.countable(column.name), starts=() if single else column.starts)


class NoRows:
    """Stands in for the rows if the diary is complete: a model that is rebuilt from its diary reads no rows."""

    def places(self, column: Column) -> Ints:
        raise self._refused()

    def margin(self, column: Column) -> Ints:
        raise self._refused()

    def pairs(self, columns: Sequence[Column]) -> Mapping[tuple[int, int], Ints]:
        raise self._refused()

    def codes(self, columns: Sequence[Column]) -> Ints:
        raise self._refused()

    def _refused(self) -> LedgerBroken:
        return LedgerBroken(
            "The stored diary of this synthetic table lacks numbers that its model needs.",
            "Another version of the model wrote it: use that version, or request again under a new edition.",
        )
