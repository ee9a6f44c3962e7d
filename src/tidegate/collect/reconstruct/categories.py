"""Categories: unbiased shares from supports by inversion, their errors, and the nearest distribution.

A report supports a category if it equals it (randomized response), has its bit set (unary encoding) or contains it
(subset selection). Two probabilities of support and two of supporting a pair describe all three.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats
from tidegate.operators import Support


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of the categories: `raw` is unbiased and may be negative, `masses` is the nearest distribution."""

    raw: Floats
    masses: Floats
    total: float
    support: Support

    @property
    def errors(self) -> Floats:
        """Standard errors of `raw`, for a population of which the respondents are a sample."""
        s = self.support
        seen = np.clip(s.false + (s.true - s.false) * self.masses, 0, 1)
        return np.asarray(np.sqrt(seen * (1 - seen) / self.total) / (s.true - s.false))

    def covariance(self) -> Floats:
        """Return the covariance of `raw`, exact for shares equal to `masses`."""
        s, f = self.support, self.masses
        seen = s.false + (s.true - s.false) * f
        either = f[:, None] + f[None, :]
        both = either * s.pair_with_true + (1 - either) * s.pair_without
        np.fill_diagonal(both, seen)
        return np.asarray((both - np.outer(seen, seen)) / (self.total * (s.true - s.false) ** 2))


def shares(supports: Floats, *, total: float, support: Support) -> Shares:
    """Estimate shares from the number of reports that support each category, among `total` reports.

    Reference:
        Warner 1965; Wang et al. 2017, "Locally differentially private protocols for frequency estimation".
    """
    raw = (np.asarray(supports, np.float64) / total - support.false) / (support.true - support.false)
    return Shares(raw, nearest_distribution(raw), float(total), support)


@dataclass(frozen=True, eq=False)
class Inverse:
    """The general case: any channel of fewer values than reports. Weighted least squares, and its covariance."""

    raw: Floats
    masses: Floats
    covariance: Floats


def inverted(counts: Floats, matrix: Floats) -> Inverse:
    """Return p with Ap nearest to the shares of the reports; equal to them if A is square. It sums to one."""
    total = counts.sum()
    seen = counts / total
    weights = 1 / np.maximum(matrix @ nearest_distribution(np.linalg.lstsq(matrix, seen, rcond=None)[0]), 0.5 / total)
    solve = np.linalg.pinv(matrix * np.sqrt(weights)[:, None]) * np.sqrt(weights)
    raw = solve @ seen
    masses = nearest_distribution(raw)
    expected = matrix @ masses
    covariance = solve @ (np.diag(expected) - np.outer(expected, expected)) @ solve.T / total
    return Inverse(raw, masses, covariance)


def nearest_distribution(raw: Floats) -> Floats:
    """Return the nearest distribution by squares: subtract one amount from all shares and clip at zero.

    Reference:
        Duchi et al. 2008, "Efficient projections onto the l1-ball", Figure 1.
    """
    falling = np.sort(raw)[::-1]
    taken = (np.cumsum(falling) - 1) / np.arange(1, raw.size + 1)
    last = np.flatnonzero(falling > taken)[-1]
    clipped = np.maximum(raw - taken[last], 0)
    return np.asarray(clipped / clipped.sum())
