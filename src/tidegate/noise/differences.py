"""Tests of which differences between noisy values are larger than their noise, for all pairs at once.

Reference:
    Holm 1979, "A simple sequentially rejective multiple test procedure" (Scand. J. Statist. 6).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

ALLOWED = 0.05  # probability of any false claim
MOST_GROUPS = 200  # groups that are compared pair by pair: 19,900 pairs
Ends = tuple[NDArray[np.float64], NDArray[np.float64]]


def larger_ones(between: Callable[[float], Ends], groups: int, *, least: float) -> tuple[NDArray[np.bool_], Ends]:
    """Return which of `groups` values exceed which others (row above column), and the intervals of all differences.

    `between(tail)` returns the intervals of value i minus value j; each end is wrong with probability `tail`. Every ordered
    pair is a hypothesis of Holm's procedure: each rejection leaves more of the allowed error for the remaining pairs.

    Guarantee:
        The probability of any false claim, in either direction, is at most ALLOWED. Claimed differences exceed `least`.

    The intervals are those of the last step with a rejection. At most one direction of a pair is rejected, so the allowed
    error was split among more than half of the hypotheses, and both sides of an interval together have at most 5%.
    """
    hypotheses = groups * (groups - 1)
    apart, ends = np.zeros((groups, groups), np.bool_), between(ALLOWED / hypotheses)
    step = ends
    while int((step[0] > least).sum()) > int(apart.sum()):
        apart, ends = step[0] > least, step
        step = between(ALLOWED / (hypotheses - int(apart.sum())))
    return apart, ends
