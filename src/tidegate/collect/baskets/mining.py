"""Kept itemsets, level by level, and the next ones to look at: those all of whose parts were kept.

Every kept itemset has one number: the place of all but its last item among the kept ones a size below, and that item.
Numbers ascend with the itemsets, so looking one up is a search for each of its items, whatever its size.

Frequent itemsets by Apriori, from true baskets or from estimates with errors.

A source says how many baskets there are and what support each itemset has, with its standard error. True data has no
error and the search is the usual one. Of randomized data an itemset is reported where its estimate reaches the least
support, and kept as a part of larger ones where it comes within `slack` standard errors of it; the raw estimates are
used, below zero or not, since cutting them off would bias what is built on them.

Reference  Agrawal, Srikant 1994 (Apriori); Evfimievski, Srikant, Agrawal, Gehrke 2002 (lowered thresholds).
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


PROBE = 64
MOST_CANDIDATES = 5_000_000


class Supports(Protocol):
    """What a miner asks of its data."""

    @property
    def transactions(self) -> int:
        """How many baskets there are."""

    @property
    def vocabulary_size(self) -> int:
        """Items are codes from 0 to this less one."""

    def count(self, itemsets: Ints) -> tuple[Floats, Floats]:
        """The support of every row of item codes (ascending) as a share of all baskets, and its standard error."""


@dataclass(frozen=True)
class Frequent:
    """An itemset with its estimated support and standard error (0 where the data is true)."""

    items: tuple[int, ...]
    support: float
    error: float

    def to_dict(self) -> dict[str, Any]:
        return {"items": list(self.items), "support": self.support, "error": self.error}


@dataclass(frozen=True)
class Level:
    """The itemsets of one size that were kept, in lexicographic order, and how many were looked at."""

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
    """What was found, level by level, and why the search stopped before its end (None where it did not)."""

    transactions: int
    min_support: float
    slack: float
    levels: tuple[Level, ...]
    stopped: str | None = None

    def frequent(self, size: int | None = None) -> Iterator[Frequent]:
        """The itemsets whose estimate reaches the least support, of one size or of all."""
        for level in self.levels:
            if size in (None, level.size):
                for row in np.flatnonzero(level.supports >= self.min_support):
                    items = tuple(level.itemsets[row].tolist())
                    yield Frequent(items, float(level.supports[row]), float(level.errors[row]))

    @property
    def by_size(self) -> tuple[int, ...]:
        """How many frequent itemsets of 1, 2, ... items there are."""
        return tuple(int((level.supports >= self.min_support).sum()) for level in self.levels)

    def to_dict(self) -> dict[str, Any]:
        return {
            "transactions": self.transactions,
            "min_support": self.min_support,
            "slack": self.slack,
            "by_size": list(self.by_size),
            "candidates": [level.candidates for level in self.levels],
            "error": [level.error for level in self.levels],
            "itemsets": [one.to_dict() for one in self.frequent()],
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
    """All itemsets with a support of at least `min_support` (a share), as far as the errors let them be told.

    Needs      A search stops before a size whose standard error is above half the least support: there the lowered
               threshold lets nearly everything through and what is reported is mostly chance.
    """
    if not 0 < min_support <= 1 or not 0 <= slack < math.inf or (largest is not None and largest < 1):
        raise Unsupported("mining needs a least support above 0 and up to 1, a slack of 0 or more, sizes of 1 or more.")
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
    """Why itemsets of this size cannot be told from chance, judged by a few of them before all are counted."""
    if candidates is None:
        return None
    few, many = (
        candidates[np.unique(np.linspace(0, candidates.shape[0] - 1, PROBE).astype(np.int64))],
        candidates.shape[1],
    )
    try:
        error = float(np.median(source.count(few)[1]))
    except Unsupported as refused:  # the operator leaves nothing of so many items: smaller ones were found all the same
        if many == 1:
            raise
        return f"Itemsets of {many} were not looked for: {refused.what} {refused.do}"
    if error <= min_support / 2:
        return None
    return (
        f"Itemsets of {many} were not looked for: their support has a standard error of {100 * error:.3g}%, more than half "
        f"of the least support of {100 * min_support:.3g}%, and nearly all of {candidates.shape[0]:,} candidates would pass. "
        "Ask for a larger support, more reports, or less noise."
    )


def _too_many(size: int, most: int, candidates: Ints | None) -> str | None:
    if candidates is not None:
        return None
    return f"Itemsets of {size} were not looked for: more than {most:,} are candidates. Ask for a larger support."
