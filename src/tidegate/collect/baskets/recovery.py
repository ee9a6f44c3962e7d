"""Supports of randomized baskets as a source for `mine`: estimates, standard errors and covariances.

Reports of baskets that followed one plan are counted together: `counters` has one for every size that was sent. A
counter returns in how many of its reports all items of an itemset are seen (an AND of bitsets). The counts of all parts
of an itemset give those of reports that show exactly 0 .. k of its items, and these give the true support.

True supports from randomized reports: unbiased, with their variances, over baskets of several sizes.

Reports are counted by how many items of the itemset they show (`seen`, 0 .. k), one array for each group of baskets that
followed one plan. Several itemsets are handled at once: counts are arrays (..., k + 1). `partial_counts` computes them
from counts of ANDs of bitsets.

Guarantee:
    Given the true baskets, the expectation of `estimate` is the true support and that of `variance` its variance. Baskets
    smaller than the itemset cannot hold it: they add exactly 0 to the support, and count in the total.
    Baskets that were cut to `fixed` items count with their remaining items: see `Cut` in rules.py.

Needs:
    Plans that keep some information about k items together; others are refused (`transitions.singular`).

Reference:
    Evfimievski, Srikant, Agrawal, Gehrke 2002, Statements 3 and 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from tidegate.arrays import Floats, Ints
from tidegate.collect.baskets import transitions
from tidegate.errors import Unsupported
from tidegate.operators.basket_plans import SetOperator

MANY_PAIRS = 5_000  # above this number, all pairs are counted at once if the counter can


class Counter(Protocol):
    """Reports that can be counted by itemset."""

    @property
    def reports(self) -> int:
        """The number of reports."""

    def counts(self, itemsets: Ints) -> Ints:
        """Return the number of reports that show all items of each row."""


@runtime_checkable
class PairCounter(Counter, Protocol):
    """A counter with a faster way to count all pairs at once."""

    def pair_counts(self) -> Ints:
        """Return the number of reports with any two items: (items, items), symmetric."""


class RandomizedSupports:
    """Estimated supports over all baskets, from reports counted by the size of the basket.

    Guarantee:
        Given the true baskets, every estimate is unbiased (recovery.py), unless baskets were cut (`Cut` in rules.py).
    """

    def __init__(self, operator: SetOperator, counters: Mapping[int, Counter]) -> None:
        self.operator = operator
        self.counters = {size: counter for size, counter in counters.items() if counter.reports}
        self.transactions = sum(counter.reports for counter in self.counters.values())
        self.vocabulary_size = operator.vocabulary_size
        if not self.transactions:
            raise Unsupported("There is no report to mine.", "Collect reports first.")

    def count(self, itemsets: Ints) -> tuple[Floats, Floats]:
        """Return the estimated support of every row of item codes, and its standard error."""
        sums = {size: _subset_sums(counter, itemsets) for size, counter in self._holding(itemsets.shape[1])}
        if not sums:
            return np.zeros(itemsets.shape[0]), np.zeros(itemsets.shape[0])
        supports = recover_subsets(self.operator, sums, total=self.transactions)
        return supports.estimate, supports.standard_error

    def covariance(self, parts: Ints, wholes: Ints) -> Floats:
        """Return Cov of two estimated supports given the baskets, row by row, of an itemset and one that contains it.

        One report that shows a items of the part and b of the rest adds w_part[a] to the one estimate and w_whole[a + b] to
        the other; the mean of their product, less that of w_whole (whose baskets are among the other's), is unbiased.
        """
        total = np.zeros(parts.shape[0])
        for size, counter in self._holding(wholes.shape[1]):
            part, whole = (self._weights(size, itemsets.shape[1]) for itemsets in (parts, wholes))
            seen = _joint_counts(counter, parts, _rest(parts, wholes))  # (rows, a, b)
            both = whole[np.add.outer(np.arange(seen.shape[1]), np.arange(seen.shape[2]))]
            total += (seen * (both * (part[:, None] - 1))).sum(axis=(1, 2))
        return total / self.transactions**2

    def _holding(self, items: int) -> Iterator[tuple[int, Counter]]:
        """Yield the sizes whose baskets can contain this many items; others add exactly 0."""
        for size, counter in self.counters.items():
            planned = size if self.operator.fixed is None else self.operator.fixed
            if self.operator.flip is not None or planned >= items:
                yield size, counter

    def _weights(self, size: int, items: int) -> Floats:
        weights = transitions.support_weights(*channel(self.operator, size, items), items)
        return np.array([float(weight) for weight in weights])


def _subset_sums(counter: Counter, itemsets: Ints) -> Floats:
    """(rows, k + 1): all reports, then the counts of all 1-, 2-, .. k-subsets added up."""
    rows, items = itemsets.shape
    sums = np.zeros((rows, items + 1))
    sums[:, 0] = counter.reports
    for size in range(1, items + 1):
        for chosen in combinations(range(items), size):
            sums[:, size] += _once(counter, itemsets[:, chosen])
    return sums


def _once(counter: Counter, itemsets: Ints) -> Ints:
    """Return the counts of rows; repeated rows are counted once."""
    different, index = np.unique(itemsets, axis=0, return_inverse=True)
    if different.shape[1] == 2 and different.shape[0] > MANY_PAIRS and isinstance(counter, PairCounter):
        pairs: Ints = counter.pair_counts()[itemsets[:, 0], itemsets[:, 1]]
        return pairs
    counted: Ints = counter.counts(np.ascontiguousarray(different))[index.ravel()]
    return counted


def _rest(parts: Ints, wholes: Ints) -> Ints:
    inside = (wholes[:, :, None] == parts[:, None, :]).any(axis=2)
    return np.asarray(wholes[~inside].reshape(wholes.shape[0], -1))


def _joint_counts(counter: Counter, parts: Ints, rest: Ints) -> Floats:
    """(rows, a, b): reports that show exactly a items of the part and b of the rest."""
    sums = np.zeros((parts.shape[0], parts.shape[1] + 1, rest.shape[1] + 1))
    for a in range(parts.shape[1] + 1):
        for b in range(rest.shape[1] + 1):
            for from_part in combinations(range(parts.shape[1]), a):
                for from_rest in combinations(range(rest.shape[1]), b):
                    chosen = np.sort(np.hstack([parts[:, from_part], rest[:, from_rest]]), axis=1)
                    sums[:, a, b] += _once(counter, chosen) if a + b else counter.reports
    return partial_counts(np.swapaxes(partial_counts(sums), 1, 2)).swapaxes(1, 2)


@dataclass(frozen=True)
class Supports:
    """Estimated shares of baskets that contain an itemset. They are unbiased, so they can be below 0 or above 1."""

    estimate: Floats
    variance: Floats

    @property
    def standard_error(self) -> Floats:
        """The square root of the variance; 0 if the estimated variance is below 0."""
        return np.asarray(np.sqrt(np.maximum(self.variance, 0)))

    @property
    def shown(self) -> Floats:
        """The estimates as shares from 0 to 1: for display only, no longer unbiased."""
        return np.clip(self.estimate, 0, 1)


@dataclass(frozen=True)
class Partials:
    """Shares of baskets that contain exactly 0 .. k of the items, with the covariance of their estimates."""

    estimate: Floats  # (k + 1,)
    covariance: Floats  # (k + 1, k + 1)


def channel(operator: SetOperator, size: int, items: int) -> tuple[tuple[Any, ...], Fraction]:
    """Return the exact moments, up to this many items, and the insertion rate of the plan for baskets of this size."""
    if operator.flip is not None:  # the same for every size, also where the size is not known
        return transitions.flip_moments(operator.flip[0], items), operator.flip[1]
    plan = operator.plan(size)
    return transitions.moments(plan.keep, items), plan.insert


def partial_counts(subsets: ArrayLike) -> Floats:
    """Return counts of reports that show exactly 0 .. k of the items, from counts of reports that show subsets.

    `subsets` (..., k + 1): the number of reports, then for i = 1 .. k the counts of all i-subsets added up.
    """
    sums = np.asarray(subsets, dtype=np.float64)
    return sums @ _exactly(sums.shape[-1] - 1).T


def _exactly(items: int) -> Floats:
    """Inclusion and exclusion: row j holds the (-1)^(i - j) C(i, j)."""
    return np.array([[(-1.0) ** (i - j) * comb(i, j) for i in range(items + 1)] for j in range(items + 1)])


def recover(operator: SetOperator, counts: Mapping[int, ArrayLike], *, total: int | None = None) -> Supports:
    """Return the supports of itemsets of k items over all baskets, from counts (..., k + 1) by basket size.

    `total` is the number of all baskets, if some sizes were not counted because they cannot contain k items. A flip
    sends no size: pass all its reports under any single size.
    """
    arrays = {size: np.asarray(array, dtype=np.float64) for size, array in counts.items()}
    items = _itemset_size(arrays)
    whole = _whole(arrays) if total is None else total
    shape = next(iter(arrays.values())).shape[:-1]
    estimate, variance = np.zeros(shape), np.zeros(shape)
    for size, array in arrays.items():
        if operator.flip is None and _planned(operator, size) < items:
            continue  # exactly zero: nothing to estimate, nothing to invert
        weights = _weights(operator, size, items)
        estimate += array @ weights
        variance += array @ (weights**2 - weights)
    return Supports(estimate / whole, variance / whole**2)


def recover_subsets(operator: SetOperator, subsets: Mapping[int, ArrayLike], *, total: int | None = None) -> Supports:
    """Return the same as `recover`, from counts of subsets (see `partial_counts`) by basket size."""
    return recover(operator, {size: partial_counts(array) for size, array in subsets.items()}, total=total)


def _planned(operator: SetOperator, size: int) -> int:
    return size if operator.fixed is None else operator.fixed


def _weights(operator: SetOperator, size: int, items: int) -> Floats:
    phi, insert = channel(operator, size, items)
    return np.array([float(weight) for weight in transitions.support_weights(phi, insert, items)])


def _itemset_size(arrays: Mapping[int, Floats]) -> int:
    lengths = {array.shape[-1] for array in arrays.values()}
    if len(lengths) != 1 or min(lengths) < 2:
        raise Unsupported(
            "An itemset of k items needs k + 1 counts for every size: of reports that show 0 .. k of its items."
        )
    return int(lengths.pop()) - 1


def _whole(arrays: Mapping[int, Floats]) -> float:
    whole = sum(np.max(array.sum(axis=-1)) for array in arrays.values())
    if whole <= 0:
        raise Unsupported("No report was counted. A support needs at least one report.")
    return float(whole)


def recover_partials(operator: SetOperator, size: int, counts: ArrayLike) -> Partials:
    """Return all partial supports of one itemset in baskets of one size, and an unbiased estimate of their covariance."""
    array = np.asarray(counts, dtype=np.float64)
    phi, insert = channel(operator, size, array.size - 1)
    inverse = np.array([[float(value) for value in row] for row in transitions.inverse(phi, insert, array.size - 1)])
    estimate = inverse @ (array / array.sum())
    return Partials(estimate, covariance(phi, insert, estimate) / array.sum())


def covariance(phi: Sequence[Any], insert: Any, partials: ArrayLike) -> Floats:
    """Return N times the covariance of the estimated partial supports: sum over l of s_l Q (diag(P_l) - P_l P_l') Q'."""
    shares = np.asarray(partials, dtype=np.float64)
    items = shares.size - 1
    seen = transitions.matrix(phi, insert, items)
    inverse = np.array([[float(value) for value in row] for row in transitions.inverse(phi, insert, items)])
    spread = np.diag(seen @ shares) - (seen * shares) @ seen.T
    return np.asarray(inverse @ spread @ inverse.T)


def support_variance(phi: Sequence[Any], insert: Any, partials: Sequence[Any]) -> Any:
    """Return N times the variance of an estimated support, given the true partial supports: exact if they are.

    sum over l of s_l v^(k - l) d_l / c_k^2 - s_k, where v = insert (1 - insert) is what an item that is not there adds and
    d_l = E prod (y_a - insert)^2 over l items that are.
    """
    items = len(partials) - 1
    left = transitions.visible_contrast(phi, insert, items)
    second = sum(
        share * (insert * (1 - insert)) ** (items - present) * squares(phi, insert, present)
        for present, share in enumerate(partials)
    )
    return second / left**2 - partials[-1]


def squares(phi: Sequence[Any], insert: Any, present: int) -> Any:
    """d_l: the expected product of (y_a - insert)^2 over `present` items of the basket."""
    return sum(
        comb(present, i) * phi[i] * (1 - 2 * insert) ** i * insert ** (2 * (present - i)) for i in range(present + 1)
    )


def project(supports: Mapping[tuple[int, ...], float]) -> dict[tuple[int, ...], float]:
    """Return estimates for display: from 0 to 1, and no itemset above one of its subsets.

    Each is the middle between the highest of its supersets and the lowest of its subsets, itself included, which is an isotonic
    regression in the largest deviation: no monotone values are closer to the estimates in the worst case.
    """
    clipped = {items: min(1.0, max(0.0, value)) for items, value in supports.items()}
    above, below = dict(clipped), dict(clipped)
    for items in sorted(clipped, key=len, reverse=True):
        for subset in _known_subsets(items, clipped):
            above[subset] = max(above[subset], above[items])
    for items in sorted(clipped, key=len):
        below[items] = min([below[items], *(below[subset] for subset in _known_subsets(items, clipped))])
    return {items: (above[items] + below[items]) / 2 for items in supports}


def _known_subsets(items: tuple[int, ...], known: Mapping[tuple[int, ...], float]) -> list[tuple[int, ...]]:
    """Return all estimated smaller subsets; some can be missing."""
    return [part for size in range(1, len(items)) for part in combinations(items, size) if part in known]
