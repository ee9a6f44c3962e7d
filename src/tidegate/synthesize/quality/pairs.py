"""Columns in pairs: the total variation of their joint table, and how strongly they are associated in each table."""

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
from tidegate.synthesize.quality.cells import Cells, counts, grouped
from tidegate.synthesize.quality.codes import ABSENT, Coded
from tidegate.synthesize.quality.margins import by_chance


@dataclass(frozen=True)
class Pair:
    """Two columns. `association`: Cramér's V (original, synthetic); `correlation`: Pearson's, where both are numbers."""

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


def pairs_of(cells: Sequence[Cells], original: Coded, synthetic: Sequence[Coded]) -> tuple[Pair, ...]:
    """Every two columns."""
    groups = [grouped(one, counts(one.places(original.column(one.name)), one.count)) for one in cells]
    truth, found = _grouped(cells, groups, original), [_grouped(cells, groups, table) for table in synthetic]
    sizes = [int(group.max()) + 1 for group in groups]
    return tuple(
        _pair(
            (cells[i], cells[j]),
            _table(truth, i, j, sizes),
            [_table(one, i, j, sizes) for one in found],
            original,
            synthetic,
        )
        for i, j in combinations(range(len(cells)), 2)
    )


def cramers_v(table: Any) -> float:
    """Association from 0 to 1 of a table of counts, corrected for what chance adds (so that sizes do not matter).

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


def _grouped(cells: Sequence[Cells], groups: Sequence[Ints], table: Coded) -> list[Ints]:
    places = [one.places(table.column(one.name)) for one in cells]
    return [np.where(place == ABSENT, ABSENT, group[place]) for place, group in zip(places, groups, strict=True)]


def _table(places: Sequence[Ints], i: int, j: int, sizes: Sequence[int]) -> Ints:
    both = (places[i] >= 0) & (places[j] >= 0)
    flat = places[i][both] * sizes[j] + places[j][both]
    return np.bincount(flat, minlength=sizes[i] * sizes[j]).reshape(sizes[i], sizes[j])


def _pair(
    cells: tuple[Cells, Cells], truth: Ints, found: list[Ints], original: Coded, synthetic: Sequence[Coded]
) -> Pair:
    one, other = cells
    empty = not truth.sum() or not all(table.sum() for table in found)
    numbers = isinstance(one.attribute, Numeric) and isinstance(other.attribute, Numeric)
    return Pair(
        (one.name, other.name),
        None if empty else float(np.mean([total_variation(table.ravel(), truth.ravel()) for table in found])),
        None if empty else by_chance(truth, found[0]),
        (cramers_v(truth), float(np.mean([cramers_v(table) for table in found]))),
        (
            _correlation(original, one.name, other.name),
            float(np.mean([_correlation(table, one.name, other.name) for table in synthetic])),
        )
        if numbers
        else None,
    )


def _correlation(table: Coded, one: str, other: str) -> float:
    """Pearson's correlation over rows where both are numbers; 0 where one of them does not vary."""
    x, y = table.column(one), table.column(other)
    there = (x >= 0) & (y >= 0) & (x < table.attributes[one].size) & (y < table.attributes[other].size)
    a, b = x[there].astype(np.float64), y[there].astype(np.float64)
    if a.size < 2 or a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.clip(((a - a.mean()) * (b - b.mean())).mean() / (a.std() * b.std()), -1, 1))
