"""Frequent itemsets by Apriori, from true baskets or from estimates with errors.

A source returns the number of baskets and the support of each itemset with its standard error. True data has no error,
and the search is the usual one. With randomized data, an itemset is reported if its estimate reaches the minimum
support, and retained as a part of larger ones if it comes within `slack` standard errors of it. Raw estimates are used,
even below zero, because clipping would bias later results.

`Lattice` stores the retained itemsets by size. Each has one number: the index of all but its last item among the itemsets
one size below, combined with that item. Numbers ascend with the itemsets, so a lookup is one search for each item.

Reference:
    Agrawal, Srikant 1994 (Apriori); Evfimievski, Srikant, Agrawal, Gehrke 2002 (lowered thresholds).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.errors import Unsupported


class Lattice:
    """Itemsets of 1, 2, ... items, each size as an array of rows in lexicographic order."""

    def __init__(self, vocabulary_size: int) -> None:
        self.vocabulary_size = vocabulary_size
        self.levels: list[Ints] = []
        self._numbers: list[Ints] = []

    def add(self, itemsets: Ints) -> None:
        """Add the retained itemsets of the next size."""
        prefix = self.find(itemsets[:, :-1])
        self._numbers.append(prefix * self.vocabulary_size + itemsets[:, -1])
        self.levels.append(itemsets)

    def find(self, itemsets: Ints) -> Ints:
        """Return the index of every itemset among the retained ones of its size; -1 if it is not one."""
        index = np.zeros(itemsets.shape[0], np.int64)
        for depth in range(itemsets.shape[1]):
            numbers = self._numbers[depth]
            if not numbers.size:
                return np.full(itemsets.shape[0], -1, np.int64)
            numbers_to_find = index * self.vocabulary_size + itemsets[:, depth]
            candidates = np.minimum(np.searchsorted(numbers, numbers_to_find), numbers.size - 1)
            index = np.where((index >= 0) & (numbers[candidates] == numbers_to_find), candidates, -1)
        return index

    def following(self, most: int) -> Ints | None:
        """Return the itemsets of the next size whose parts were all retained; None if more than `most` would be tried."""
        if not self.levels:
            return np.arange(self.vocabulary_size)[:, None]
        itemsets = self.levels[-1]
        after = _after(itemsets)
        if int(after.sum()) > most:
            return None
        first = np.repeat(np.arange(after.size), after)
        second = first + 1 + np.arange(first.size) - np.repeat(np.cumsum(after) - after, after)
        joined = np.column_stack([itemsets[first], itemsets[second, -1]])
        for left_out in range(joined.shape[1] - 2):  # the two joined itemsets are retained ones
            joined = joined[self.find(np.delete(joined, left_out, axis=1)) >= 0]
        return joined


def _after(itemsets: Ints) -> Ints:
    """Return how many of the following itemsets differ from each only in the last item."""
    count = itemsets.shape[0]
    if not count:
        return np.zeros(0, np.int64)
    new = np.append(True, (itemsets[1:, :-1] != itemsets[:-1, :-1]).any(axis=1))
    ends = np.append(np.flatnonzero(new)[1:], count)[np.cumsum(new) - 1]
    return np.asarray(ends - np.arange(count) - 1)


PROBE = 64
MOST_CANDIDATES = 5_000_000


class Supports(Protocol):
    """A source of supports for `mine`."""

    @property
    def transactions(self) -> int:
        """The number of baskets."""

    @property
    def vocabulary_size(self) -> int:
        """The number of items; their codes start at 0."""

    def count(self, itemsets: Ints) -> tuple[Floats, Floats]:
        """Return the support of every row of ascending item codes as a share of all baskets, and its standard error."""


@dataclass(frozen=True)
class Frequent:
    """An itemset with its estimated support and standard error (0 for true data)."""

    items: tuple[int, ...]
    support: float
    error: float

    def to_dict(self) -> dict[str, Any]:
        return {"items": list(self.items), "support": self.support, "error": self.error}


@dataclass(frozen=True)
class Level:
    """The retained itemsets of one size in lexicographic order, and the number of candidates."""

    itemsets: Ints
    supports: Floats
    errors: Floats
    candidates: int

    @property
    def size(self) -> int:
        return int(self.itemsets.shape[1])

    def to_dict(self) -> dict[str, Any]:
        lists = {"itemsets": self.itemsets.tolist(), "supports": self.supports.tolist(), "errors": self.errors.tolist()}
        return {**lists, "candidates": self.candidates}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Level:
        """Return the level that `to_dict` wrote."""
        supports, errors = (np.array(data[name], np.float64) for name in ("supports", "errors"))
        return cls(np.array(data["itemsets"], np.int64), supports, errors, data["candidates"])

    @property
    def error(self) -> float:
        """The typical standard error: the median."""
        return float(np.median(self.errors)) if self.errors.size else 0.0


@dataclass(frozen=True)
class Mined:
    """The result of a search by level, and why it stopped early (None if it did not)."""

    transactions: int
    min_support: float
    slack: float
    levels: tuple[Level, ...]
    stopped: str | None = None

    def frequent(self, size: int | None = None) -> Iterator[Frequent]:
        """Yield the itemsets whose estimate reaches the minimum support, of one size or of all."""
        for level in self.levels:
            if size in (None, level.size):
                for row in np.flatnonzero(level.supports >= self.min_support):
                    items = tuple(level.itemsets[row].tolist())
                    yield Frequent(items, float(level.supports[row]), float(level.errors[row]))

    @property
    def by_size(self) -> tuple[int, ...]:
        """The numbers of frequent itemsets of 1, 2, ... items."""
        return tuple(int((level.supports >= self.min_support).sum()) for level in self.levels)

    def to_dict(self) -> dict[str, Any]:
        return {
            "transactions": self.transactions,
            "min_support": self.min_support,
            "slack": self.slack,
            "by_size": list(self.by_size),
            "candidates": [level.candidates for level in self.levels],
            "error": [level.error for level in self.levels],
            "itemsets": [itemset.to_dict() for itemset in self.frequent()],
            "stopped": self.stopped,
        }


def mine(
    source: Supports,
    *,
    min_support: float,
    slack: float = 1.0,
    largest: int | None = None,
    most_candidates: int = MOST_CANDIDATES,
) -> Mined:
    """Return all itemsets with a support of at least `min_support` (a share), as far as the errors allow.

    Needs:
        A search stops before a size whose standard error is above half the minimum support: there the lowered
        threshold accepts nearly every candidate, and the result is mostly chance.
    """
    if not 0 < min_support <= 1 or not 0 <= slack < math.inf or (largest is not None and largest < 1):
        raise Unsupported("`min_support` must be above 0 and at most 1, `slack` 0 or more, and `largest` 1 or more.")
    levels: list[Level] = []
    lattice, stopped = Lattice(source.vocabulary_size), None
    while largest is None or len(levels) < largest:
        candidates = lattice.following(most_candidates)
        if candidates is not None and not candidates.size:
            break
        stopped = _too_many(len(levels) + 1, most_candidates, candidates) or _swamped(source, candidates, min_support)
        if stopped or candidates is None:
            break
        level = _kept(source, candidates, min_support, slack)
        if not level.itemsets.size:
            break
        levels.append(level)
        lattice.add(level.itemsets)
    return Mined(source.transactions, min_support, slack, tuple(levels), stopped)


def _kept(source: Supports, candidates: Ints, min_support: float, slack: float) -> Level:
    supports, errors = source.count(candidates)
    keep = supports >= min_support - slack * errors
    return Level(candidates[keep], supports[keep], errors[keep], candidates.shape[0])


def _swamped(source: Supports, candidates: Ints | None, min_support: float) -> str | None:
    """Return why itemsets of this size cannot be distinguished from chance, judged by a sample of them."""
    if candidates is None:
        return None
    sample, size = (
        candidates[np.unique(np.linspace(0, candidates.shape[0] - 1, PROBE).astype(np.int64))],
        candidates.shape[1],
    )
    try:
        error = float(np.median(source.count(sample)[1]))
    except Unsupported as refused:  # this operator shows no itemsets of this size; smaller ones are still valid
        if size == 1:
            raise
        return f"Itemsets of {size} were not searched: {refused.what} {refused.do}"
    if error <= min_support / 2:
        return None
    return (
        f"Itemsets of {size} were not searched: their support has a standard error of {100 * error:.3g}%, more than half "
        f"of the minimum support of {100 * min_support:.3g}%, and nearly all of {candidates.shape[0]:,} candidates would pass. "
        "Use a larger minimum support, more reports, or less noise."
    )


def _too_many(size: int, most: int, candidates: Ints | None) -> str | None:
    if candidates is not None:
        return None
    return (
        f"Itemsets of {size} were not searched: there are more than {most:,} candidates. Use a larger minimum support."
    )
