"""The least noise that keeps a rho for a universe that is known value by value, and its window guard.

Equation (15) holds for any universe of m values. If their positions are known, less noise keeps the promise literally (no
single value above rho). The implied loss can be enormous: on a long range it reveals the value to within a few units. The
window guard requires that no run of w neighboring values together is above rho.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

ROUNDING = 1e-12  # margin for floating point, on the safe side


def tight_scale(universe: Sequence[float], rho: float, *, prior: Sequence[float] | None = None) -> float:
    """Return the smallest scale for a sum (slope 1 in each row) with which no value of the universe exceeds rho.

    Solves ``min over i of sum_j p_j exp(-|u_i - u_j| / scale) / p_i = 1 / rho``. For a mean over n rows divide by n.
    Zero if no noise is needed, infinite if rho cannot be kept.
    """
    values = np.asarray(universe, np.float64)
    weights = np.full(values.size, 1 / values.size) if prior is None else np.asarray(prior, np.float64)
    order = np.argsort(values, kind="stable")
    return _smallest(
        lambda scale: _risk(values[order], weights[order], scale) <= rho, span=float(np.ptp(values)) or 1.0
    )


def _risk(values: np.ndarray, weights: np.ndarray, scale: float) -> float:
    """Return max_i p_i / sum_j p_j exp(-|u_i - u_j| / scale), by two running sums over sorted values."""
    shrink = np.exp(-np.diff(values) / scale)
    left, right = weights.astype(float).copy(), weights.astype(float).copy()
    for i in range(1, values.size):
        left[i] += left[i - 1] * shrink[i - 1]
    for i in range(values.size - 2, -1, -1):
        right[i] += right[i + 1] * shrink[i]
    return float(np.max(weights / (left + right - weights)))


def window_scale(worlds: int, rho: float, *, window: int = 1, prior: Sequence[float] | None = None) -> float:
    """Return the smallest scale on a grid of `worlds` values (step 1) with which no run of `window` of them exceeds rho.

    Equally likely values: worst at an end, (1 - q**window) / (1 - q**worlds) = rho with q = exp(-1 / scale). With a `prior`
    every run is bounded at every response. window = 1 is `tight_scale`. Infinite if the prior alone reaches rho.
    """
    if prior is not None:
        weights = np.asarray(prior, np.float64)
        if likeliest_run(weights, window) >= rho:
            return math.inf
        bound = rho * (1 - ROUNDING)
        return _smallest(lambda scale: _run_risk(weights, window, scale) <= bound, span=float(worlds))
    if rho * worlds <= window:
        return math.inf

    def is_sufficient(scale: float) -> bool:
        return math.expm1(-window / scale) / math.expm1(-worlds / scale) <= rho

    return _smallest(is_sufficient, span=float(worlds))


def likeliest_run(prior: Sequence[float] | np.ndarray, window: int) -> float:
    """Return the prior probability of the likeliest run of `window` neighboring values."""
    upto = np.concatenate([[0.0], np.cumsum(np.asarray(prior, np.float64))])
    return float(np.max(upto[window:] - upto[:-window]))


def _run_risk(weights: np.ndarray, window: int, scale: float) -> float:
    """Return the highest probability that any response gives to any run of `window` neighboring values.

    A response on a value of the run itself favors it most: one further out favors all values beyond the run equally and
    those on its own side more. Between two values a run's odds are monotonic, so that the values suffice; beyond the ends
    nothing changes. With left(r) the sum of p_j q**(r - j) over j <= r, its part in the run is
    left(r) - q**(d + 1) left(r - d - 1), where d is the offset of r in the run; the same holds for the right side.
    """
    q = math.exp(-1 / scale)
    left, right = _decayed_sums(weights, q), _decayed_sums(weights[::-1], q)[::-1]
    runs, worst = weights.size - window + 1, 0.0
    for into in range(window):
        first, after = into, window - 1 - into  # values of the run below and above the response
        here = slice(into, into + runs)
        before = np.concatenate([[0.0], left])[:runs]
        beyond = np.concatenate([right, [0.0]])[window : window + runs]
        inside = left[here] - q ** (first + 1) * before + right[here] - q ** (after + 1) * beyond - weights[here]
        worst = max(worst, float(np.max(inside / (left[here] + right[here] - weights[here]))))
    return worst


def _decayed_sums(weights: np.ndarray, q: float) -> np.ndarray:
    """Return the sums of weights[j] * q**(i - j) over j <= i, for every i.

    Each pass doubles how far back the sums reach: a few passes of NumPy, where a recursive filter would need scipy.
    """
    sums, reach, factor = np.array(weights, np.float64), 1, q
    while reach < sums.size and factor > 0:
        sums[reach:] += factor * sums[:-reach]
        reach, factor = 2 * reach, factor * factor
    return sums


def _smallest(is_sufficient: Callable[[float], bool], *, span: float) -> float:
    """Return the smallest sufficient scale, by bisection, rounded up."""
    low, high = span * 1e-9, span
    while not is_sufficient(high):
        low, high = high, high * 2
        if high > span * 1e15:
            return math.inf
    if is_sufficient(low):
        return 0.0 if low == span * 1e-9 else low
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if is_sufficient(middle) else (middle, high)
    return high
