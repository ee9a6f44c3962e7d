"""Noisy counts of long columns, made plausible: all of it is post-processing.

Ordered columns are averaged over all piecewise constant densities, lists are shrunk to a gamma prior whose shape the
counts choose themselves. Tried on census columns and on generated ones (smooth, heaped, skewed, Zipf): against the best
single segmentation the mean error of a cell falls by 5 to 30 in 100, against projection alone that of long lists
by up to 30 in 100, and neither is worse where there is little noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats
from tidegate.extras import extra
from tidegate.synthesize.facts import Column
from tidegate.synthesize.mechanisms.forest._kernels import averaged_density

with extra("synthesize", "Making synthetic tables"):
    from scipy.special import gammainc, gammaln  # type: ignore[import-untyped]

LONG, LONGEST = 20, 2000  # cells of the columns that are smoothed; beyond, it would take too long
SEGMENT = 4.0  # what a segment costs, in variances of a cell
SHAPES = (0.03, 0.1, 0.3, 1.0, 3.0)  # of the prior of a list's counts: few large ones .. all alike
FINE = 1e-5  # widths and noise below this part of the largest are taken for it: differences of sums stay exact enough
CLEAR = 6.0  # standard deviations above which a count needs no prior


def smoothed(values: Floats, variance: Floats, column: Column, rows: int) -> Floats:
    """Plausible counts of a column's cells. Short columns stay as they are, and so does the cell for missing."""
    inner = len(column.starts)
    if not LONG < inner <= LONGEST:
        return values
    if not column.ordered:
        return shrunk(values, variance, float(max(rows, 1)))
    widths = np.diff([*column.starts, column.size]).astype(np.float64) if column.even else np.ones(inner)
    widths = np.maximum(widths, FINE * widths.max())
    least = (FINE * np.abs(values).max()) ** 2 + FINE**2
    precision = 1 / np.maximum(variance[:inner], least)
    return np.append(averaged_density(values[:inner], widths, precision, SEGMENT), values[inner:])


def shrunk(values: Floats, variance: Floats, total: float) -> Floats:
    """The counts' means given noisy values, if they are drawn from a gamma distribution, its shape by the evidence."""
    deviation = np.sqrt(variance)
    unclear = np.flatnonzero(values < CLEAR * deviation)
    if unclear.size == 0:
        return values
    edges = _edges(float(np.median(deviation)))
    middles = (edges[1:] + edges[:-1]) / 2
    off = (values[unclear, None] - middles) / deviation[unclear, None]
    likely = np.exp(-0.5 * off**2)  # (cells, steps)
    found = [_posterior(values, unclear, likely, edges, middles, shape, total) for shape in SHAPES]
    return max(found, key=lambda one: one[0])[1]


def _posterior(
    values: Floats,
    unclear: NDArray[np.intp],
    likely: Floats,
    edges: Floats,
    middles: Floats,
    shape: float,
    total: float,
) -> tuple[float, Floats]:
    """The log evidence of a shape, but for a constant, and the counts' means."""
    rate = shape * values.size / total
    prior = np.diff(gammainc(shape, edges * rate))
    evidence = likely @ prior + 1e-300
    clear = np.delete(values, unclear) * rate
    told = np.log(evidence).sum() + ((shape - 1) * np.log(clear) - clear - gammaln(shape) + np.log(rate)).sum()
    out = values.copy()
    out[unclear] = (likely * prior) @ middles / evidence
    return float(told), out


def _edges(deviation: float) -> Floats:
    """Steps from 0 to where counts are clear: fine near 0, an eleventh of a deviation after."""
    near = np.geomspace(deviation / 90, deviation / 1.4, 23, endpoint=False)
    return np.concatenate([[0.0], near, np.arange(deviation / 1.4, 12 * deviation, deviation / 11)])
