"""How well scores tell sensitive groups from ordinary ones: the area under the ROC curve, with an interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tidegate.arrays import Floats


def beaten(sensitive: float, ordinary: Floats) -> float:
    """The share of ordinary groups that a sensitive one outscores; a tie counts half. nan, no score, ties with all."""
    if math.isnan(sensitive):
        return 0.5
    above = np.where(np.isnan(ordinary) | (ordinary == sensitive), 0.5, ordinary < sensitive)
    return float(above.mean())


def area(shares: Sequence[float], *, confidence: float) -> tuple[float, float, float]:
    """The mean of independent shares `beaten`, which is the area under the curve, and an interval for it.

    Guarantee  The interval misses the true area with probability 1 - confidence at most, for any number of shares:
               Hoeffding's inequality in its Kullback-Leibler form, for independent numbers between 0 and 1. No normal
               approximation; about twice as wide as one, and never empty at an area of 0 or 1.
    Reference  Hoeffding 1963, Theorem 1, equation (2.1).
    """
    mean = math.fsum(shares) / len(shares)
    reach = math.log(2 / (1 - confidence)) / len(shares)
    low = _edge(lambda area: relative_entropy(mean, area) > reach, outside=0.0, inside=mean)
    high = _edge(lambda area: relative_entropy(mean, area) > reach, outside=1.0, inside=mean)
    return mean, low, high


def relative_entropy(seen: float, true: float) -> float:
    """KL between two coins, in nats."""
    parts = ((seen, true), (1 - seen, 1 - true))
    return math.fsum(a * math.log(a / b) if b else math.inf for a, b in parts if a)


def _edge(excluded: Callable[[float], bool], *, outside: float, inside: float) -> float:
    """The end of the interval on one side, by halving; on the safe side."""
    if not excluded(outside):
        return outside
    for _ in range(50):
        middle = (outside + inside) / 2
        outside, inside = (middle, inside) if excluded(middle) else (outside, middle)
    return outside
