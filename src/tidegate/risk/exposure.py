"""Distances of the released counts of X, for each target Y, from the public baseline of X.

`counts` contains the records released so far (one row per value of X, one column per target); a `column` is one target's.
`baseline` contains the public probabilities of the values of X, floats or exact fractions; it never comes from the release.
A value of probability 0 that was released anyway is infinitely far away.

Reference:
    Bezzi et al. 2012, the longer version of "Protecting Privacy of Sensitive Value Distributions in Data
    Release" (STM 2010, doi:10.1007/978-3-642-22444-7_17), Sections 4 and 5; Figures 17 and 18.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats, Ints

Column = Sequence[int] | Ints
Baseline = Sequence[float] | Sequence[Fraction] | NDArray[np.float64] | NDArray[np.object_]
MergeRule = Literal["forward", "smaller-neighbour", "smallest-first"]
Bins = list[tuple[int, int]]  # first index of a bin, and its number of records

SAME = 1e-12
"""Distances that differ by at most this much count as equal."""


def mutual_information(counts: NDArray[np.int64], baseline: Baseline) -> float:
    """Return the bits that the released records reveal about the target of a record; 0 if nothing was released."""
    total = int(counts.sum())
    return math.fsum(_divergences(counts, baseline)) / (2 * total * math.log(2)) if total else 0.0


def kullback_leibler(counts: NDArray[np.int64], baseline: Baseline) -> Floats:
    """Return each target's distance from the baseline in bits; nan if a target has no record."""
    sizes = counts.sum(axis=0)
    scaled = np.where(sizes > 0, 2 * sizes * math.log(2), np.nan)
    return np.asarray(np.array(_divergences(counts, baseline)) / scaled, np.float64)


def divergence(column: Column, baseline: Baseline) -> float:
    """Return g = 2 sum c ln(c / (n b)): 2 n ln 2 times the distance in bits, asymptotically chi-square.

    Guarantee:
        Accurate to about 1e-15 sqrt(n) or a unit in the last place, whichever is larger: each ratio is computed
        exactly and rounded once, and the sum is `math.fsum`. Fast decisions that are near their critical value
        are settled by this function.
    """
    size = int(sum(int(count) for count in column))
    return 2 * math.fsum(
        _surprise(int(count), size, Fraction(share)) for count, share in zip(column, baseline, strict=True) if count
    )


def _surprise(count: int, size: int, share: Fraction) -> float:
    if not share:
        return math.inf
    expected = size * share
    excess = float(count / expected - 1)  # exact up to here: a small excess keeps all its digits
    return count * (math.log1p(excess) if excess < 1 else math.log(float(count / expected)))


def _divergences(counts: NDArray[np.int64], baseline: Baseline) -> list[float]:
    return [divergence(column, baseline) for column in counts.T]


# Pearson's statistic over bins with enough records


def merge_sparse_bins(column: Column, *, rule: MergeRule, least: int = 5) -> list[int]:
    """Return the first indexes of merged bins, so that each bin has at least `least` records (or one bin has all).

    - `forward`: from the left, close a bin as soon as it has enough. The remainder at the end joins the last closed bin.
    - `smaller-neighbour`: while some bin has too few records, the leftmost such bin joins the smaller of its neighbors.
    - `smallest-first`: the same, but the bin with the fewest records goes first (the leftmost of several).

    Between equal neighbors the one on the right is joined. Neighbors are values next to each other as declared. The paper
    says "merge with adjacent"; its worked examples do not distinguish the rules.
    """
    bins: Bins = [(index, int(count)) for index, count in enumerate(column)]
    return [start for start, _ in _RULES[rule](bins, least)]


def pearson(column: Column, baseline: Baseline, *, rule: MergeRule, least: int = 5) -> tuple[float, int]:
    """Return Pearson's cumulative statistic of one target over merge bins, and its degrees of freedom (bins - 1).

    With one bin there is nothing to compare: (0.0, 0), which is safe at every level.
    """
    starts = merge_sparse_bins(column, rule=rule, least=least)
    if len(starts) == 1:
        return 0.0, 0
    size = sum(int(count) for count in column)
    terms = []
    for start, stop in zip(starts, [*starts[1:], len(column)], strict=True):
        observed = sum(int(count) for count in column[start:stop])
        expected = size * sum((Fraction(share) for share in baseline[start:stop]), Fraction(0))
        terms.append(float((observed - expected) ** 2 / expected) if expected else math.inf)
    return math.fsum(terms), len(starts) - 1


def _forward(bins: Bins, least: int) -> Bins:
    closed: Bins = []
    start, total = 0, 0
    for index, count in bins:
        total += count
        if total >= least:
            closed.append((start, total))
            start, total = index + 1, 0
    return closed or [(0, total)]


def _one_at_a_time(first: Callable[[Bins, int], int]) -> Callable[[Bins, int], Bins]:
    def merge(bins: Bins, least: int) -> Bins:
        bins = list(bins)
        while len(bins) > 1 and min(count for _, count in bins) < least:
            sparse = first(bins, least)
            left = _left_of_pair(bins, sparse)
            bins[left : left + 2] = [(bins[left][0], bins[left][1] + bins[left + 1][1])]
        return bins

    return merge


def _left_of_pair(bins: Bins, sparse: int) -> int:
    """Return the left one of the two bins to join: the sparse bin and its smaller neighbor."""
    if sparse == 0:
        return 0
    if sparse == len(bins) - 1 or bins[sparse - 1][1] < bins[sparse + 1][1]:
        return sparse - 1
    return sparse


def _leftmost(bins: Bins, least: int) -> int:
    return next(index for index, (_, count) in enumerate(bins) if count < least)


def _smallest(bins: Bins, least: int) -> int:
    return min(range(len(bins)), key=lambda index: bins[index][1])


_RULES: dict[str, Callable[[Bins, int], Bins]] = {
    "forward": _forward,
    "smaller-neighbour": _one_at_a_time(_leftmost),
    "smallest-first": _one_at_a_time(_smallest),
}


# Outliers among the distances, and the intuitive alternative


def dixon_coefficient(distances: Sequence[float] | Floats) -> tuple[float, int]:
    """Return Dixon's Q of the largest distance, and the number of distinct distances (nan is left out).

    Q = (largest - second) / (largest - smallest); a tie at the top gives 0. Fewer than three distinct distances have
    no critical value: safe.
    """
    known = np.sort(np.asarray(distances, np.float64))
    known = known[~np.isnan(known)]
    if not known.size:
        return 0.0, 0
    distinct = 1 + int(np.count_nonzero(np.diff(known) > SAME))
    span = known[-1] - known[0]
    return (float((known[-1] - known[-2]) / span), distinct) if distinct > 1 else (0.0, distinct)


def fit_baseline(counts: NDArray[np.int64], baseline: Baseline) -> list[float]:
    """Return the number of records of each target that could be released if their values had to fit the baseline exactly.

    It is min c / b, not rounded: a release can contain its floor. Figure 18 prints the nearest whole number, and as total
    the rounded sum of the unrounded numbers.
    """
    return [_fit(column, baseline) for column in counts.T]


def _fit(column: Ints, baseline: Baseline) -> float:
    return float(min(int(count) / share for count, share in zip(column, baseline, strict=True) if share))
