"""Rows that lie in memory: a matrix of codes, counted with numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tidegate.arrays import Ints
from tidegate.synthesize.facts import Column


class ArrayRows:
    """Private rows as a matrix of codes, (rows, columns); -1, and anything outside a column's universe, is not listed."""

    def __init__(self, codes: Ints, columns: Sequence[Column]) -> None:
        self._places = {column.name: place for place, column in enumerate(columns)}
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
    """How many rows lie in each cell of one column and each cell of another."""
    both = (left >= 0) & (right >= 0)
    return np.bincount(left[both] * shape[1] + right[both], minlength=shape[0] * shape[1]).reshape(shape)
