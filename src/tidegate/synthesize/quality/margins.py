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
from tidegate.synthesize.quality.codes import Coded


@dataclass(frozen=True)
class Margin:
    """One column: shares of its cells in both tables (the mean of several synthetic ones), and how far they are apart.

    `distance` is the total variation, `expected` what chance alone gives between two samples of these sizes. Both are
    None where one of the tables has no value in this column.
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


def margin(cells: Cells, original: Coded, synthetic: Sequence[Coded]) -> Margin:
    """Compare one column."""
    truth = counts(cells.places(original.column(cells.name)), cells.count)
    found = [counts(cells.places(table.column(cells.name)), cells.count) for table in synthetic]
    empty = not truth.sum() or not all(one.sum() for one in found)
    distance = None if empty else float(np.mean([total_variation(one, truth) for one in found]))
    absent = float(np.mean([table.absent(cells.name) for table in synthetic]))
    return Margin(
        cells.name,
        tuple(cells.labels()),
        tuple(shares(truth).tolist()),
        tuple(np.mean([shares(one) for one in found], axis=0).tolist()),
        distance,
        None if empty else by_chance(truth, found[0]),
        (original.absent(cells.name), absent),
    )


def shares(amounts: Any) -> Floats:
    """Counts as parts of one; zeros where there is nothing."""
    return np.asarray(amounts, np.float64) / max(int(np.sum(amounts)), 1)


def by_chance(one: Any, other: Any) -> float:
    """The total variation that two samples of one distribution (their pooled one) show on average: each cell's difference
    is about normal, and E|normal| = sd sqrt(2 / pi)."""
    n, m = int(np.sum(one)), int(np.sum(other))
    pooled = (np.asarray(one, np.float64) + other) / (n + m)
    spread = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    return float(spread.sum() * math.sqrt(2 / math.pi) / 2)
