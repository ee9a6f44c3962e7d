"""Which differences between noisy values are larger than their noise, all pairs decided together.

Reference  Holm 1979, "A simple sequentially rejective multiple test procedure" (Scand. J. Statist. 6).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

ALLOWED = 0.05  # the chance of any false claim
MOST_GROUPS = 200  # that are compared one by one: 19,900 pairs
Ends = tuple[NDArray[np.float64], NDArray[np.float64]]


def larger_ones(between: Callable[[float], Ends], groups: int, *, least: float) -> tuple[NDArray[np.bool_], Ends]:
    """Return which of `groups` values are higher than which (row above column), and the intervals of all differences.

    `between(tail)` gives the intervals of value i minus value j that are too high, and too low, with probability `tail` each.
    Every ordered pair is a hypothesis of Holm's procedure: each one rejected leaves more of the allowed error for the others.

    Guarantee  Any false claim, in either direction, has at most probability ALLOWED. Claimed differences exceed `least`.

    The intervals are those of the last step that rejected something: at most one direction of a pair is rejected, so that at
    least half of the hypotheses and one more shared the allowed error, and two sides of it are at most 5%.
    """
    hypotheses = groups * (groups - 1)
    apart, ends = np.zeros((groups, groups), np.bool_), between(ALLOWED / hypotheses)
    step = ends
    while int((step[0] > least).sum()) > int(apart.sum()):
        apart, ends = step[0] > least, step
        step = between(ALLOWED / (hypotheses - int(apart.sum())))
    return apart, ends
