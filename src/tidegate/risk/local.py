"""Local loss: by how much a report can change the odds between any two values.

A channel is an array (reports, values) of P(report | value); a report that never happens says nothing.
"""

from __future__ import annotations

import math

from tidegate.arrays import Floats


def largest_ratio(channel: Floats) -> float:
    """gamma: the largest ratio of P(report | value) over P(report | other value); infinite where a zero faces a non-zero."""
    seen = channel[channel.max(axis=1) > 0]
    low, high = seen.min(axis=1), seen.max(axis=1)
    return math.inf if (low == 0).any() else float((high / low).max())


def local_epsilon(channel: Floats) -> float:
    """The logarithm of `largest_ratio`: every belief about a person changes its odds by e**epsilon at most."""
    return math.log(largest_ratio(channel))


def composed_epsilon(epsilon: float, *, times: int) -> float:
    """The loss of several independent reports of one value: they add up, which is why answers are memoised."""
    return epsilon * times
