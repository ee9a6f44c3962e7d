"""The least noise that keeps a rho for a universe that is known value by value, and its windowed guard.

Equation (15) holds for any universe of m values; knowing where they lie, less noise keeps the letter of the promise (no
single value above rho). The loss it implies can be enormous: on a long range it tells the value to within a few
units. The window guard asks that no run of w neighbouring values is above rho together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np


def tight_scale(universe: Sequence[float], rho: float, *, prior: Sequence[float] | None = None) -> float:
    """The smallest scale for a sum (slope 1 in each row) with which no value of the universe exceeds rho.

    Solves min over i of sum_j p_j exp(-|u_i - u_j| / scale) / p_i = 1 / rho. For a mean over n rows divide by n.
    Zero where no noise is needed, infinite where rho cannot be kept.
    """
    values = np.asarray(universe, np.float64)
    weights = np.full(values.size, 1 / values.size) if prior is None else np.asarray(prior, np.float64)
    order = np.argsort(values, kind="stable")
    return _smallest(
        lambda scale: _risk(values[order], weights[order], scale) <= rho, span=float(np.ptp(values)) or 1.0
    )


def _risk(values: np.ndarray, weights: np.ndarray, scale: float) -> float:
    """max_i p_i / sum_j p_j exp(-|u_i - u_j| / scale), by two running sums over sorted values."""
    shrink = np.exp(-np.diff(values) / scale)
    left, right = weights.astype(float).copy(), weights.astype(float).copy()
    for i in range(1, values.size):
        left[i] += left[i - 1] * shrink[i - 1]
    for i in range(values.size - 2, -1, -1):
        right[i] += right[i + 1] * shrink[i]
    return float(np.max(weights / (left + right - weights)))


def window_scale(worlds: int, rho: float, *, window: int = 1) -> float:
    """The smallest scale on a grid of `worlds` neighbouring values (step 1) with which no run of `window` of them is above rho.

    Worst at an end: (1 - q**window) / (1 - q**worlds) = rho with q = exp(-1 / scale). window = 1 is `tight_scale`.
    """
    if rho * worlds <= window:
        return math.inf

    def kept(scale: float) -> bool:
        return math.expm1(-window / scale) / math.expm1(-worlds / scale) <= rho

    return _smallest(kept, span=float(worlds))


def _smallest(kept: Callable[[float], bool], *, span: float) -> float:
    """The smallest scale that is kept, by halving; a hair above it rather than below."""
    low, high = span * 1e-9, span
    while not kept(high):
        low, high = high, high * 2
        if high > span * 1e15:
            return math.inf
    if kept(low):
        return 0.0 if low == span * 1e-9 else low
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if kept(middle) else (middle, high)
    return high
