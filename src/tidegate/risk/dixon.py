"""Critical values of Dixon's Q for any number of distances: is the largest of them an outlier?"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np

from tidegate.arrays import Floats
from tidegate.errors import Unsupported
from tidegate.extras import extra
from tidegate.risk.critical import check_significance

PRINTED: dict[float, tuple[float, ...]] = {
    0.2: (0.781, 0.560, 0.451, 0.386, 0.344, 0.314, 0.290, 0.273),
    0.1: (0.886, 0.679, 0.557, 0.482, 0.434, 0.399, 0.370, 0.349),
    0.05: (0.941, 0.765, 0.642, 0.560, 0.507, 0.468, 0.437, 0.412),
    0.01: (0.988, 0.889, 0.780, 0.698, 0.637, 0.590, 0.555, 0.527),
}
"""Figure 10 of Bezzi et al. 2012: 3 to 10 distances. Off the exact values by up to 0.0024."""

POINTS = 96
NEGLIGIBLE = 1e-15


def dixon_critical(
    number: int, significance: float | Fraction, *, table: Literal["exact", "printed"] = "exact"
) -> float:
    """Return the value that Q = (largest - second) / (largest - smallest) exceeds with probability `significance`.

    Guarantee:
        "exact": within 1e-8 for `number` independent normal variables. "printed": the published table.

    Needs:
        At least three distances. Distances are not normal and their groups differ in size: among groups that
        all follow the baseline the test raises an alarm more often than its significance.

    Reference:
        Dixon 1950 (r10, one side); Bezzi et al. 2012, Figure 10, for the printed table.
    """
    level = check_significance(significance)
    if number < 3:
        raise Unsupported(
            f"Dixon's test needs three distinct distances, and there are {number}.",
            "Fewer distances need no test: do not compute a critical value.",
            number=number,
        )
    return _exact(int(number), level) if table == "exact" else _printed(int(number), level)


def _printed(number: int, level: float) -> float:
    row = PRINTED.get(level)
    if row is None or number - 3 >= len(row):
        raise Unsupported(
            f"The printed table has no critical value for {number} distances at significance {level:g}.",
            'It covers 3 to 10 distances at 0.2, 0.1, 0.05 and 0.01. Use table="exact" for all others.',
            number=number,
            significance=level,
        )
    return row[number - 3]


@lru_cache(maxsize=1024)
def _exact(number: int, level: float) -> float:
    exceeds = _tail(number)
    low, high = 0.0, 1.0
    for _ in range(32):
        middle = (low + high) / 2
        low, high = (middle, high) if exceeds(middle) > level else (low, middle)
    return (low + high) / 2


@lru_cache(maxsize=16)  # 200 kB each; the same for every level
def _tail(number: int) -> Callable[[float], float]:
    """Return P(Q > q) = n (n-1) integral of phi(x) phi(y) [Phi(y - q (y - x)) - Phi(x)]^(n-2) over x < y.

    x is the smallest and y the largest distance.
    """
    with extra("release", "Releasing records"):
        from scipy.special import ndtr, ndtri  # type: ignore[import-untyped] # imported late: it is slow to load

    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    # up to a negligible probability, the smallest of n is between these, and the largest between their mirror images
    lowest, highest = float(ndtri(NEGLIGIBLE / number)), float(ndtri(-np.expm1(np.log(NEGLIGIBLE) / number)))
    x, over_x = (each[:, None] for each in _stretch(nodes, weights, np.array(lowest), np.array(highest)))
    y, over_y = _stretch(nodes, weights, np.maximum(x, -highest), np.array(-lowest))  # (points of x, points of y)
    below_x = ndtr(x)
    weight = number * (number - 1) * over_x * over_y * np.exp(-(x**2 + y**2) / 2) / (2 * np.pi)

    def exceeds(q: float) -> float:
        return float((weight * (ndtr(y - q * (y - x)) - below_x) ** (number - 2)).sum())

    return exceeds


def _stretch(nodes: Floats, weights: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Gauss-Legendre points and weights, moved from (-1, 1) to (low, high)."""
    half = (high - low) / 2
    return np.asarray((low + high) / 2 + half * nodes), np.asarray(half * weights)
