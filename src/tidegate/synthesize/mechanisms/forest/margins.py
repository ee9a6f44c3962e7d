"""The distribution of one column, as far as it is known: noisy counts, made plausible, refreshed by every pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats, Ints
from tidegate.synthesize.facts import Column
from tidegate.synthesize.mechanisms.forest.smoothing import smoothed

ODD = 4.0  # standard deviations: a total so far from the number of rows says that rows were left out


@dataclass(frozen=True, eq=False)
class Margin:
    """Estimated counts of one column's cells, scaled to all rows, with the variance of each.

    `listed`: the share of rows that has a listed value in this column (1 unless the noisy counts clearly say otherwise).
    """

    column: Column
    rows: int
    estimate: Floats
    variance: Floats
    listed: float = 1.0

    @classmethod
    def measured(cls, column: Column, rows: int, noisy: Floats, scale: float) -> Margin:
        listed = believed_share(float(noisy.sum()), rows, 2 * scale**2 * noisy.size)
        return cls(column, rows, noisy / listed, np.full(noisy.size, 2 * (scale / listed) ** 2), listed)

    def shares(self) -> Floats:
        """A distribution over the cells."""
        smooth = smoothed(self.estimate, self.variance, self.column, self.rows)
        return onto_simplex(smooth, max(self.rows, 1)) / max(self.rows, 1)

    def refreshed(self, groups: Ints, sums: Floats, variance: float) -> Margin:
        """With another measurement of sums over groups of cells: weighted least squares, spread by the cells' variances."""
        v_group = np.bincount(groups, self.variance)
        gain = v_group / (v_group + variance)
        step = gain * (sums - np.bincount(groups, self.estimate)) / v_group
        estimate = self.estimate + self.variance * step[groups]
        left = self.variance * (1 - self.variance * (gain / v_group)[groups])
        return Margin(self.column, self.rows, estimate, left, self.listed)


def believed_share(total: float, rows: int, variance: float) -> float:
    """Which share of the rows the counts hold: all, unless their noisy total is clearly another one."""
    if rows <= 0 or abs(total - rows) <= ODD * variance**0.5:
        return 1.0
    return min(max(total / rows, 0.05), 1.0)


def onto_simplex(values: Floats, total: float) -> Floats:
    """The nearest non-negative numbers with a given sum (least squares)."""
    falling = -np.sort(-values)
    over = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    level = over[np.flatnonzero(falling > over)[-1]]
    out: NDArray[np.float64] = np.maximum(values - level, 0)
    return out
