"""The estimated distribution of one column: noisy counts, smoothed, and updated by every measured pair.

Smoothing of noisy counts of long columns is post-processing. Ordered columns are averaged over all piecewise constant
densities; lists are shrunk to a gamma prior whose shape the counts choose. Measured on census columns and on generated ones
(smooth, heaped, skewed, Zipf): compared with the best single segmentation, the mean error of a cell falls by 5% to 30%;
compared with projection alone, that of long lists falls by up to 30%. Neither is worse where there is little noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Bools, Floats, Ints
from tidegate.extras import extra
from tidegate.synthesize.facts import Column
from tidegate.synthesize.mechanisms.forest._kernels import average_density

with extra("synthesize", "Making synthetic tables"):
    from scipy.special import gammainc, gammaln  # type: ignore[import-untyped]

ODD = 4.0  # standard deviations: a total this far from the number of rows shows that rows were left out


@dataclass(frozen=True, eq=False)
class Margin:
    """Estimated counts of one column's cells, scaled to all rows, with the variance of each.

    `listed` is the share of rows with a listed value in this column (1 unless the noisy counts clearly contradict it).
    `allowed`: which cells may contain rows; None means all.
    """

    column: Column
    rows: int
    estimate: Floats
    variance: Floats
    listed: float = 1.0
    allowed: Bools | None = None

    @classmethod
    def from_counts(cls, column: Column, rows: int, noisy: Floats, scale: float) -> Margin:
        return cls.from_estimate(column, rows, noisy, np.full(noisy.size, 2 * scale**2))

    @classmethod
    def from_estimate(
        cls, column: Column, rows: int, counts: Floats, variance: Floats, allowed: Bools | None = None
    ) -> Margin:
        listed = believed_share(float(counts.sum()), rows, float(variance.sum()))
        return cls(column, rows, counts / listed, variance / listed**2, listed, allowed)

    def shares(self) -> Floats:
        """Return a distribution over the cells."""
        total = max(self.rows, 1)
        if self.allowed is None or self.allowed.all():
            counts = smooth(self.estimate, self.variance, self.column, self.rows)
            return onto_simplex(counts, total) / total
        counts = smooth(self.estimate, self.variance, self.column, self.rows, self.allowed)
        out = np.zeros(counts.size)
        out[self.allowed] = onto_simplex(counts[self.allowed], total) / total
        return out

    def update(self, groups: Ints, sums: Floats, variance: float) -> Margin:
        """Return the margin after another measurement of sums over groups of cells, by weighted least squares."""
        v_group = np.bincount(groups, self.variance)
        gain = v_group / (v_group + variance)
        step = gain * (sums - np.bincount(groups, self.estimate)) / v_group
        estimate = self.estimate + self.variance * step[groups]
        variances = self.variance * (1 - self.variance * (gain / v_group)[groups])
        return replace(self, estimate=estimate, variance=variances)


def believed_share(total: float, rows: int, variance: float) -> float:
    """Return the share of rows that the counts contain: 1, unless their noisy total clearly contradicts it."""
    if rows <= 0 or abs(total - rows) <= ODD * variance**0.5:
        return 1.0
    return min(max(total / rows, 0.05), 1.0)


def onto_simplex(values: Floats, total: float) -> Floats:
    """Return the nearest non-negative numbers with a fixed sum (least squares)."""
    falling = -np.sort(-values)
    over = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    level = over[np.flatnonzero(falling > over)[-1]]
    out: NDArray[np.float64] = np.maximum(values - level, 0)
    return out


LONG, LONGEST = 20, 2000  # cells of the columns that are smoothed; longer ones would take too long
SEGMENT = 4.0  # penalty of a segment, in variances of a cell
SHAPES = (0.03, 0.1, 0.3, 1.0, 3.0)  # of the prior of a list's counts: from a few large ones to all similar
FINE = 1e-5  # smallest width and noise, relative to the largest: keeps differences of sums accurate
CLEAR = 6.0  # standard deviations above which a count needs no prior


def smooth(values: Floats, variance: Floats, column: Column, rows: int, allowed: Bools | None = None) -> Floats:
    """Return smoothed counts of a column's allowed cells. Short columns and the cell for missing stay as they are."""
    inner = len(column.starts)
    if not LONG < inner <= LONGEST:
        return values
    if not column.ordered:
        return shrink(values, variance, float(max(rows, 1)))
    widths = np.diff([*column.starts, column.size]).astype(np.float64) if column.even else np.ones(inner)
    inside = np.arange(inner) if allowed is None else np.flatnonzero(allowed[:inner])
    widths = np.maximum(widths[inside], FINE * widths[inside].max())
    least = (FINE * np.abs(values).max()) ** 2 + FINE**2
    precision = 1 / np.maximum(variance[inside], least)
    out = values.copy()
    out[inside] = average_density(values[inside], widths, precision, SEGMENT)
    return out


def shrink(values: Floats, variance: Floats, total: float) -> Floats:
    """Return the posterior means of counts from a gamma distribution, given noisy values; the evidence chooses the shape."""
    deviation = np.sqrt(variance)
    unclear = np.flatnonzero(values < CLEAR * deviation)
    if unclear.size == 0:
        return values
    edges = _edges(float(np.median(deviation)))
    middles = (edges[1:] + edges[:-1]) / 2
    off = (values[unclear, None] - middles) / deviation[unclear, None]
    likely = np.exp(-0.5 * off**2)  # (cells, steps)
    posteriors = [_posterior(values, unclear, likely, edges, middles, shape, total) for shape in SHAPES]
    return max(posteriors, key=lambda posterior: posterior[0])[1]


def _posterior(
    values: Floats,
    unclear: NDArray[np.intp],
    likely: Floats,
    edges: Floats,
    middles: Floats,
    shape: float,
    total: float,
) -> tuple[float, Floats]:
    """Return the log evidence of a shape, up to a constant, and the posterior means."""
    rate = shape * values.size / total
    prior = np.diff(gammainc(shape, edges * rate))
    evidence = likely @ prior + 1e-300
    clear = np.delete(values, unclear) * rate
    log_evidence = np.log(evidence).sum() + ((shape - 1) * np.log(clear) - clear - gammaln(shape) + np.log(rate)).sum()
    out = values.copy()
    out[unclear] = (likely * prior) @ middles / evidence
    return float(log_evidence), out


def _edges(deviation: float) -> Floats:
    """Return steps from 0 to where counts are clear: fine near 0, an eleventh of a deviation after that."""
    near = np.geomspace(deviation / 90, deviation / 1.4, 23, endpoint=False)
    return np.concatenate([[0.0], near, np.arange(deviation / 1.4, 12 * deviation, deviation / 11)])
