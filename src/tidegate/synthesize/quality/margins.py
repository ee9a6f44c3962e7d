"""Columns one by one: how many rows would have to change their value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.arrays import Floats
from tidegate.risk.pmse import total_variation
from tidegate.synthesize.quality.cells import Cells, counts
from tidegate.synthesize.quality.codes import CodedTable


@dataclass(frozen=True)
class Margin:
    """One column: shares of its cells in both tables (the mean of several synthetic ones), and their distance.

    `distance` is the total variation, `expected` the value that chance alone gives between two samples of these sizes. Both are
    None if one of the tables has no value in this column.
    """

    column: str
    labels: tuple[str, ...]
    original: tuple[float, ...]
    synthetic: tuple[float, ...]
    distance: float | None
    expected: float | None
    missing: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        shares = zip(self.labels, self.original, self.synthetic, strict=True)
        return {
            "column": self.column,
            "total_variation": self.distance,
            "expected_by_chance": self.expected,
            "missing": {"original": self.missing[0], "synthetic": self.missing[1]},
            "cells": [{"label": label, "original": a, "synthetic": b} for label, a, b in shares],
        }


def margin(cells: Cells, original: CodedTable, synthetic: Sequence[CodedTable]) -> Margin:
    """Compare one column."""
    original_counts = counts(cells.cell_of(original.column(cells.name)), cells.count)
    synthetic_counts = [counts(cells.cell_of(table.column(cells.name)), cells.count) for table in synthetic]
    empty = not original_counts.sum() or not all(table.sum() for table in synthetic_counts)
    distance = (
        None if empty else float(np.mean([total_variation(table, original_counts) for table in synthetic_counts]))
    )
    absent = float(np.mean([table.absent(cells.name) for table in synthetic]))
    return Margin(
        cells.name,
        tuple(cells.labels()),
        tuple(shares(original_counts).tolist()),
        tuple(np.mean([shares(table) for table in synthetic_counts], axis=0).tolist()),
        distance,
        None if empty else by_chance(original_counts, synthetic_counts[0]),
        (original.absent(cells.name), absent),
    )


def shares(amounts: Any) -> Floats:
    """Return counts as shares of their sum; zeros if there are none."""
    return np.asarray(amounts, np.float64) / max(int(np.sum(amounts)), 1)


def by_chance(left: Any, right: Any) -> float:
    """Return the mean total variation between two samples of the pooled distribution, of the sizes of `left` and `right`.

    Each cell's difference is approximately normal, and E|normal| = sd sqrt(2 / pi).
    """
    n, m = int(np.sum(left)), int(np.sum(right))
    pooled = (np.asarray(left, np.float64) + right) / (n + m)
    spread = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    return float(spread.sum() * math.sqrt(2 / math.pi) / 2)
