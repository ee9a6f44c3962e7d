"""Mean, variance and third cumulant of G for sizes at which drawing whole tables is too slow.

G is a sum over targets. The mean of each part is an exact sum over binomials; variance and third cumulant of one target
come from paths of one column, and beyond the longest path from Bartlett's relation: there g is distributed like
E[g] / freedom times a chi-square variable. The distribution of the records over targets is averaged out. A shifted gamma
variable with the same three moments gives the quantile; a chi-square is one itself, so the limit is correct.

Reference:
    Lawley 1956 (Bartlett's correction holds for all cumulants).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.extras import extra
from tidegate.risk._paths import expected_divergence

with extra("release", "Releasing records"):
    from scipy.special import chdtri, gammaln, ndtri  # type: ignore[import-untyped]

NODES = 160
REACH = 9.0
GROUPS = 64


@dataclass(frozen=True)
class Cumulants:
    """Mean, variance and third cumulant at several sizes."""

    sizes: Ints
    mean: Floats
    variance: Floats
    third: Floats

    def quantile(self, significance: float) -> Floats:
        """Return the values that shifted gamma variables with these cumulants exceed with this probability."""
        deviation = np.sqrt(self.variance)
        skews = self.third / deviation**3
        upper = np.array([standard_gamma(float(skew), significance) for skew in skews])
        return np.asarray(self.mean + deviation * upper)


def standard_gamma(skewness: float, significance: float) -> float:
    """Return the upper quantile of a gamma variable with mean 0, standard deviation 1 and this skewness."""
    if abs(skewness) < 1e-4:  # the gamma formula would lose its digits
        z = float(-ndtri(significance))
        return z + skewness * (z * z - 1) / 6
    shape = 4 / skewness**2
    level = significance if skewness > 0 else 1 - significance
    return float((chdtri(2 * shape, level) / 2 - shape) * skewness / 2)


def spaced(first: int, last: int, *, dense: int, ratio: float) -> Ints:
    """Return whole numbers from first to last, all of them up to `dense`, then in geometric steps."""
    numbers = list(range(first, min(last, dense) + 1)) or [first][: last >= first]
    while numbers and numbers[-1] < last:
        numbers.append(min(last, max(numbers[-1] + 1, round(numbers[-1] * ratio))))
    return np.array(numbers, np.int64)


def column_mean(sizes: Ints, baseline: Floats) -> Floats:
    """Return E[g] of n draws from the baseline, exactly."""
    shares, times = np.unique(baseline, return_counts=True)
    return np.asarray(expected_divergence(sizes, shares, times), np.float64)


def column_cumulants(sizes: Ints, baseline: Floats, paths: tuple[Ints, Floats] | None = None) -> Cumulants:
    """Return the cumulants of one target at `sizes`. `paths` gives variance and third cumulant up to its last size.

    `paths` is (sizes, G at each size on each path).
    """
    mean, freedom = column_mean(sizes, baseline), baseline.size - 1
    variance, third = 2 * freedom * (mean / freedom) ** 2, 8 * freedom * (mean / freedom) ** 3
    if paths:
        sampled, grown = paths
        known = sizes <= sampled[-1]
        centered = grown - column_mean(sampled, baseline)[:, None]
        variance[known] = np.interp(sizes[known], sampled, (centered**2).mean(axis=1))
        third[known] = np.interp(sizes[known], sampled, (centered**3).mean(axis=1))
    return Cumulants(sizes, mean, variance, third)


def total_mean(sizes: Ints, weights: Floats, column: Cumulants) -> Floats:
    """Return E[G] of N independent records, with targets drawn by their weights."""
    shares, times = _group_weights(weights)
    return np.array([times @ _average(column.mean, column, int(size), shares) for size in sizes])


def total_cumulants(sizes: Ints, weights: Floats, column: Cumulants) -> Cumulants:
    """Return the cumulants of G at `sizes` from those of one target; `column.sizes` must cover any target's number."""
    if weights.size == 1:
        at = np.searchsorted(column.sizes, sizes)
        return Cumulants(sizes, column.mean[at], column.variance[at], column.third[at])
    shares, times = _group_weights(weights)
    spread = [_spread(int(size), shares, times, column) for size in sizes]
    variance, third = (np.array(each) for each in zip(*spread, strict=True))
    return Cumulants(sizes, total_mean(sizes, weights, column), variance, third)


def _group_weights(weights: Floats) -> tuple[Floats, Ints]:
    """Return distinct weights and their frequencies; more than GROUPS are grouped within 1% of their mean."""
    shares, times = np.unique(weights, return_counts=True)
    if shares.size <= GROUPS:
        return shares, times
    _, group = np.unique(np.round(np.log(weights) / 0.02), return_inverse=True)
    times = np.bincount(group)
    return np.bincount(group, weights) / times, times


def _average(what: Floats, column: Cumulants, size: int, shares: Floats) -> Floats:
    """Return the mean of a column's cumulant over n of Binomial(size, share), for each share."""
    if shares.size == 1 and shares[0] == 1:
        return np.interp([size], column.sizes, what)
    numbers = _numbers(size, shares)
    logs = (
        _log_choose(size, numbers) + numbers * np.log(shares)[:, None] + (size - numbers) * np.log1p(-shares)[:, None]
    )
    return np.asarray((_weights(logs) * _at(numbers, column.sizes, what)).sum(axis=1))


def _spread(size: int, shares: Floats, times: Ints, column: Cumulants) -> tuple[float, float]:
    """Return the variance and third cumulant of G.

    Numbers per target are treated as independent Poisson variables conditional on their sum: only the part of E[g | n] that is
    not linear in n varies, since the linear parts of all targets add up to a constant.
    """
    numbers = _numbers(size, shares)
    chance = _weights(numbers * np.log(size * shares)[:, None] - gammaln(numbers + 1))
    mean = _at(numbers, column.sizes, column.mean)
    mean = mean - (chance * mean).sum(axis=1, keepdims=True)
    off = numbers - size * shares[:, None]
    slope = float(times @ (chance * mean * off).sum(axis=1)) / size
    rest = mean - slope * off
    inner = _at(numbers, column.sizes, column.variance)
    variance = times @ (chance * (inner + rest**2)).sum(axis=1)
    third = times @ (chance * (_at(numbers, column.sizes, column.third) + 3 * rest * inner + rest**3)).sum(axis=1)
    return float(variance), float(third)


def _numbers(size: int, shares: Floats) -> Ints:
    """Return evenly spaced numbers of records that cover all but a negligible probability: (shares, nodes)."""
    mean = size * shares
    reach = REACH * np.sqrt(mean) + 20
    low = np.maximum(0, np.floor(mean - reach)).astype(np.int64)
    stride = np.ceil((np.minimum(size, mean + reach) - low) / NODES).astype(np.int64)
    return np.asarray(low[:, None] + np.maximum(1, stride)[:, None] * np.arange(NODES + 1))


def _at(numbers: Ints, sizes: Ints, what: Floats) -> Floats:
    """Return a column's cumulant at these numbers of records; it is 0 without records."""
    return np.asarray(np.interp(numbers, np.concatenate([[0], sizes]), np.concatenate([[0.0], what])))


def _log_choose(size: int, numbers: Ints) -> Floats:
    with np.errstate(invalid="ignore"):
        logs = math.lgamma(size + 1) - gammaln(numbers + 1) - gammaln(np.maximum(size - numbers, 0) + 1)
    return np.asarray(np.where(numbers <= size, logs, -np.inf))


def _weights(logs: Floats) -> Floats:
    lifted = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(lifted / lifted.sum(axis=1, keepdims=True))
