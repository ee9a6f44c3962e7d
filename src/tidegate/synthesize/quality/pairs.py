"""Columns in pairs: the total variation of their joint table, and the strength of their association in each table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from tidegate.arrays import Ints
from tidegate.policy import Numeric
from tidegate.risk.pmse import total_variation
from tidegate.synthesize.quality.cells import Cells, counts, group_cells
from tidegate.synthesize.quality.codes import ABSENT, CodedTable
from tidegate.synthesize.quality.margins import by_chance


@dataclass(frozen=True)
class Pair:
    """Two columns. `association` is Cramér's V (original, synthetic); `correlation` is Pearson's, if both are numbers."""

    columns: tuple[str, str]
    distance: float | None
    expected: float | None
    association: tuple[float, float]
    correlation: tuple[float, float] | None

    @property
    def change(self) -> float:
        """How much stronger the association is in the synthetic table."""
        return self.association[1] - self.association[0]

    def to_dict(self) -> dict[str, Any]:
        both = self.correlation
        return {
            "columns": list(self.columns),
            "total_variation": self.distance,
            "expected_by_chance": self.expected,
            "cramers_v": {"original": self.association[0], "synthetic": self.association[1]},
            "correlation": None if both is None else {"original": both[0], "synthetic": both[1]},
        }


def pairs_of(cells: Sequence[Cells], original: CodedTable, synthetic: Sequence[CodedTable]) -> tuple[Pair, ...]:
    """Compare every two columns."""
    groups = [
        group_cells(column, counts(column.cell_of(original.column(column.name)), column.count)) for column in cells
    ]
    original_groups, synthetic_groups = (
        _group_table(cells, groups, original),
        [_group_table(cells, groups, table) for table in synthetic],
    )
    sizes = [int(group.max()) + 1 for group in groups]
    return tuple(
        _pair(
            (cells[i], cells[j]),
            _table(original_groups, i, j, sizes),
            [_table(places, i, j, sizes) for places in synthetic_groups],
            original,
            synthetic,
        )
        for i, j in combinations(range(len(cells)), 2)
    )


def cramers_v(table: Any) -> float:
    """Return the association from 0 to 1 of a table of counts, corrected for chance (so that sizes do not matter).

    Reference:
        Bergsma 2013, "A bias-correction for Cramér's V and Tschuprow's T", J. Korean Statistical Society 42.
    """
    filled = np.asarray(table, np.float64)
    filled = filled[filled.sum(axis=1) > 0][:, filled.sum(axis=0) > 0]
    total, (rows, columns) = filled.sum(), filled.shape
    if total < 2 or min(rows, columns) < 2:
        return 0.0
    even = np.outer(filled.sum(axis=1), filled.sum(axis=0)) / total
    phi = float(((filled - even) ** 2 / even).sum()) / total
    by_chance_alone = (rows - 1) * (columns - 1) / (total - 1)
    smaller = min(size - (size - 1) ** 2 / (total - 1) for size in (rows, columns))
    return min(1.0, math.sqrt(max(0.0, phi - by_chance_alone) / (smaller - 1))) if smaller > 1 else 0.0


def _group_table(cells: Sequence[Cells], groups: Sequence[Ints], table: CodedTable) -> list[Ints]:
    cells_by_column = [column.cell_of(table.column(column.name)) for column in cells]
    return [
        np.where(column_cells == ABSENT, ABSENT, group[column_cells])
        for column_cells, group in zip(cells_by_column, groups, strict=True)
    ]


def _table(groups: Sequence[Ints], i: int, j: int, sizes: Sequence[int]) -> Ints:
    both = (groups[i] >= 0) & (groups[j] >= 0)
    flat = groups[i][both] * sizes[j] + groups[j][both]
    return np.bincount(flat, minlength=sizes[i] * sizes[j]).reshape(sizes[i], sizes[j])


def _pair(
    cells: tuple[Cells, Cells],
    original_table: Ints,
    synthetic_tables: list[Ints],
    original: CodedTable,
    synthetic: Sequence[CodedTable],
) -> Pair:
    left, right = cells
    empty = not original_table.sum() or not all(table.sum() for table in synthetic_tables)
    numbers = isinstance(left.attribute, Numeric) and isinstance(right.attribute, Numeric)
    return Pair(
        (left.name, right.name),
        None
        if empty
        else float(np.mean([total_variation(table.ravel(), original_table.ravel()) for table in synthetic_tables])),
        None if empty else by_chance(original_table, synthetic_tables[0]),
        (cramers_v(original_table), float(np.mean([cramers_v(table) for table in synthetic_tables]))),
        (
            _correlation(original, left.name, right.name),
            float(np.mean([_correlation(table, left.name, right.name) for table in synthetic])),
        )
        if numbers
        else None,
    )


def _correlation(table: CodedTable, left: str, right: str) -> float:
    """Return Pearson's correlation over rows where both are numbers; 0 if one of them does not vary."""
    x, y = table.column(left), table.column(right)
    present = (x >= 0) & (y >= 0) & (x < table.attributes[left].size) & (y < table.attributes[right].size)
    a, b = x[present].astype(np.float64), y[present].astype(np.float64)
    if a.size < 2 or a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.clip(((a - a.mean()) * (b - b.mean())).mean() / (a.std() * b.std()), -1, 1))
