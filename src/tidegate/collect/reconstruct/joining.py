"""Neighbouring reports that say the same about every value are counted together: the tails of the noise mostly do.

Beyond the values, each report under Laplace noise says what the next one says; 400 kinds of report become 102.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tidegate.arrays import Floats

LOST = 1e-3  # information about the masses that one joining may cost; a feature is visible from 10 on


def joined(counts: Floats, matrix: Floats) -> tuple[Floats, Floats]:
    """Counts and channel with such reports joined."""
    starts = np.flatnonzero(joining_starts(np.ascontiguousarray(matrix), float(counts.sum()), LOST))
    return np.add.reduceat(counts, starts), np.add.reduceat(matrix, starts, axis=0)


@njit(cache=True)
def joining_starts(matrix: Floats, total: float, lost: float) -> Floats:
    """1 where a group of reports starts. A report joins the group before it if the information lost,
    N a b / (a + b) mean (A / a - B / b)^2 with a and b the mean chances of both, is small."""
    reports, values = matrix.shape
    starts = np.zeros(reports)
    starts[0] = 1.0
    group = matrix[0].copy()
    for s in range(1, reports):
        a, b = group.mean(), matrix[s].mean()
        apart = 0.0 if (a > 0) == (b > 0) else np.inf  # what no value can give joins nothing else
        if a > 0 and b > 0:
            for j in range(values):
                apart += (group[j] / a - matrix[s, j] / b) ** 2
            apart *= total * a * b / (a + b) / values
        if apart <= lost:
            group += matrix[s]
        else:
            starts[s] = 1.0
            group = matrix[s].copy()
    return starts
