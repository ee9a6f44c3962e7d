"""Supports of randomized baskets as a source for `mine`: estimates, standard errors and covariances.

Reports of baskets that followed one plan are counted together: `counters` has one for every size that was told. A
counter says in how many of its reports all items of an itemset are seen (an AND of bitsets); from the counts of all parts
of an itemset follow those of reports that show exactly 0 .. k of its items, and from these the true support.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Protocol, runtime_checkable

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.collect.sets import transitions
from tidegate.collect.sets.recovery import channel, partial_counts, recover_subsets
from tidegate.errors import Unsupported
from tidegate.policy.setplans import SetOperator

MANY_PAIRS = 5_000  # from here on all pairs are counted at once, if the counter can


class Counter(Protocol):
    """Reports that can be counted by itemset."""

    @property
    def reports(self) -> int:
        """How many there are."""

    def counts(self, itemsets: Ints) -> Ints:
        """In how many of them all items of each row are seen."""


@runtime_checkable
class PairCounter(Counter, Protocol):
    """A counter that knows a faster way to count all pairs at once than one after the other."""

    def pair_counts(self) -> Ints:
        """In how many reports any two items are: (items, items), symmetric."""


class RandomizedSupports:
    """Estimated supports over all baskets, from reports counted by the size of the basket.

    Guarantee  Given the true baskets, every estimate is unbiased (recovery.py), unless baskets were cut (brackets.py).
    """

    def __init__(self, operator: SetOperator, counters: Mapping[int, Counter]) -> None:
        self.operator = operator
        self.counters = {size: counter for size, counter in counters.items() if counter.reports}
        self.transactions = sum(counter.reports for counter in self.counters.values())
        self.vocabulary_size = operator.vocabulary_size
        if not self.transactions:
            raise Unsupported("there is no report to mine.", "Collect some first.")

    def count(self, itemsets: Ints) -> tuple[Floats, Floats]:
        """The estimated support of every row of item codes, and its standard error."""
        sums = {size: _subset_sums(counter, itemsets) for size, counter in self._holding(itemsets.shape[1])}
        if not sums:
            return np.zeros(itemsets.shape[0]), np.zeros(itemsets.shape[0])
        found = recover_subsets(self.operator, sums, total=self.transactions)
        return found.estimate, found.standard_error

    def covariance(self, parts: Ints, wholes: Ints) -> Floats:
        """Cov of two estimated supports given the baskets, row by row, of an itemset and one that contains it.

        One report that shows a items of the part and b of the rest adds w_part[a] to the one estimate and w_whole[a + b] to
        the other; the mean of their product, less that of w_whole (whose truth lies inside the other's), is unbiased.
        """
        total = np.zeros(parts.shape[0])
        for size, counter in self._holding(wholes.shape[1]):
            part, whole = (self._weights(size, one.shape[1]) for one in (parts, wholes))
            seen = _joint_counts(counter, parts, _rest(parts, wholes))  # (rows, a, b)
            both = whole[np.add.outer(np.arange(seen.shape[1]), np.arange(seen.shape[2]))]
            total += (seen * (both * (part[:, None] - 1))).sum(axis=(1, 2))
        return total / self.transactions**2

    def _holding(self, items: int) -> Iterator[tuple[int, Counter]]:
        """The sizes whose baskets can hold so many items; others add exactly nothing."""
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
    """Counts of rows, each different one counted once."""
    different, place = np.unique(itemsets, axis=0, return_inverse=True)
    if different.shape[1] == 2 and different.shape[0] > MANY_PAIRS and isinstance(counter, PairCounter):
        found: Ints = counter.pair_counts()[itemsets[:, 0], itemsets[:, 1]]
        return found
    counted: Ints = counter.counts(np.ascontiguousarray(different))[place.ravel()]
    return counted


def _rest(parts: Ints, wholes: Ints) -> Ints:
    inside = (wholes[:, :, None] == parts[:, None, :]).any(axis=2)
    return np.asarray(wholes[~inside].reshape(wholes.shape[0], -1))


def _joint_counts(counter: Counter, parts: Ints, rest: Ints) -> Floats:
    """(rows, a, b): reports that show exactly a items of the part and b of the rest."""
    sums = np.zeros((parts.shape[0], parts.shape[1] + 1, rest.shape[1] + 1))
    for a in range(parts.shape[1] + 1):
        for b in range(rest.shape[1] + 1):
            for one in combinations(range(parts.shape[1]), a):
                for other in combinations(range(rest.shape[1]), b):
                    chosen = np.sort(np.hstack([parts[:, one], rest[:, other]]), axis=1)
                    sums[:, a, b] += _once(counter, chosen) if a + b else counter.reports
    return partial_counts(np.swapaxes(partial_counts(sums), 1, 2)).swapaxes(1, 2)
