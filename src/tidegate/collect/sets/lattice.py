"""Kept itemsets, level by level, and the next ones to look at: those all of whose parts were kept.

Every kept itemset has one number: the place of all but its last item among the kept ones a size below, and that item.
Numbers ascend with the itemsets, so looking one up is a search for each of its items, whatever its size.
"""

from __future__ import annotations

import numpy as np

from tidegate.arrays import Ints


class Lattice:
    """Itemsets of 1, 2, ... items, each size as an array of rows in lexicographic order."""

    def __init__(self, vocabulary_size: int) -> None:
        self.vocabulary_size = vocabulary_size
        self.levels: list[Ints] = []
        self._numbers: list[Ints] = []

    def add(self, itemsets: Ints) -> None:
        """The kept itemsets of the next size."""
        prefix = self.find(itemsets[:, :-1])
        self._numbers.append(prefix * self.vocabulary_size + itemsets[:, -1])
        self.levels.append(itemsets)

    def find(self, itemsets: Ints) -> Ints:
        """The place of every itemset among the kept ones of its size; -1 where it is not one."""
        place = np.zeros(itemsets.shape[0], np.int64)
        for depth in range(itemsets.shape[1]):
            numbers = self._numbers[depth]
            if not numbers.size:
                return np.full(itemsets.shape[0], -1, np.int64)
            wanted = place * self.vocabulary_size + itemsets[:, depth]
            found = np.minimum(np.searchsorted(numbers, wanted), numbers.size - 1)
            place = np.where((place >= 0) & (numbers[found] == wanted), found, -1)
        return place

    def following(self, most: int) -> Ints | None:
        """The itemsets of the next size all of whose parts were kept; None where more than `most` would be tried."""
        if not self.levels:
            return np.arange(self.vocabulary_size)[:, None]
        kept = self.levels[-1]
        after = _after(kept)
        if int(after.sum()) > most:
            return None
        first = np.repeat(np.arange(after.size), after)
        second = first + 1 + np.arange(first.size) - np.repeat(np.cumsum(after) - after, after)
        joined = np.column_stack([kept[first], kept[second, -1]])
        for left_out in range(joined.shape[1] - 2):  # the two that were joined are kept ones
            joined = joined[self.find(np.delete(joined, left_out, axis=1)) >= 0]
        return joined


def _after(itemsets: Ints) -> Ints:
    """How many of the following itemsets differ from each in the last item alone."""
    many = itemsets.shape[0]
    if not many:
        return np.zeros(0, np.int64)
    new = np.append(True, (itemsets[1:, :-1] != itemsets[:-1, :-1]).any(axis=1))
    ends = np.append(np.flatnonzero(new)[1:], many)[np.cumsum(new) - 1]
    return np.asarray(ends - np.arange(many) - 1)
