"""Supports of true baskets: the plain source that a miner of randomized ones is compared with.

Single items are counted by one pass, pairs in one pass over the baskets, larger itemsets by intersections of bitsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.errors import SourceMissing, SourceUnreadable, Unsupported
from tidegate_papers.simulation import _item_counts
from tidegate_papers.simulation.baskets import Baskets

PAIR_TABLE = 12_000  # places, whose table of pairs takes 576 MB; more are counted by bitsets


@dataclass(frozen=True)
class Named:
    """Baskets of item codes, and the name that every code stands for in its file."""

    baskets: Baskets
    names: Ints


def read_baskets(path: str | Path) -> Named:
    """Baskets of a text file: one a line, items as whole numbers with spaces between (the FIMI form)."""
    if not Path(path).is_file():
        raise SourceMissing(f"there is no file {path}.", "Name a file with one basket a line.")
    data = np.fromfile(path, np.uint8)
    gaps = data < 48
    many = int((data == 10).sum()) + int(data.size > 0 and data[-1] != 10)
    numbers = int((~gaps[:-1] & gaps[1:]).sum()) + int(data.size > 0 and not gaps[-1])
    starts, items, plain = _item_counts.parsed(data, many, numbers + 1)
    if not plain:
        raise SourceUnreadable(f"{path} holds more than whole numbers and spaces.", "Write one basket a line: 3 17 42")
    names, codes = np.unique(items[:numbers], return_inverse=True)
    return Named(Baskets(*_item_counts.sorted_baskets(starts, codes.astype(np.int32))), names)


class TrueSupports:
    """Exact supports, with standard errors of zero: a source for `mine`."""

    def __init__(self, baskets: Baskets, *, vocabulary_size: int | None = None) -> None:
        largest = int(baskets.items.max(initial=-1)) + 1
        self.vocabulary_size = largest if vocabulary_size is None else vocabulary_size
        if self.vocabulary_size < largest or int(baskets.items.min(initial=0)) < 0:
            raise Unsupported(f"items are codes from 0 to {self.vocabulary_size - 1:,}.", "Name a larger vocabulary.")
        self.baskets = baskets
        self.transactions = len(baskets)
        self._place = np.full(0, -1, np.int64)
        self._bits = np.zeros((0, 0), np.uint64)

    def count(self, itemsets: Ints) -> tuple[Floats, Floats]:
        """The support of every row of item codes as a share of all baskets, and zeros."""
        counts = self.counts(itemsets)
        return counts / max(1, self.transactions), np.zeros(counts.size)

    def counts(self, itemsets: Ints) -> Ints:
        """In how many baskets each itemset is."""
        if itemsets.shape[1] == 1:
            return np.bincount(self.baskets.items, minlength=self.vocabulary_size)[itemsets[:, 0]]
        used = np.unique(itemsets)
        if itemsets.shape[1] == 2 and used.size <= PAIR_TABLE and itemsets.shape[0] >= used.size:
            return self._pairs(itemsets, used)
        self._prepare(used)
        out = np.empty(itemsets.shape[0], np.int64)
        _item_counts.common_counts(self._bits, self._place[itemsets], out)
        return out

    def _pairs(self, itemsets: Ints, used: Ints) -> Ints:
        place = self._places(used)
        table = _item_counts.pair_counts(self.baskets.starts, self.baskets.items, place, used.size)
        return np.asarray(table[place[itemsets[:, 0]], place[itemsets[:, 1]]], np.int64)

    def _prepare(self, used: Ints) -> None:
        """Bitsets of the items that are asked for; those of an earlier question serve again."""
        if self._place.size and (self._place[used] >= 0).all():
            return
        self._place = self._places(used)
        self._bits = _item_counts.columns(self.baskets.starts, self.baskets.items, self._place, used.size)

    def _places(self, used: Ints) -> Ints:
        place = np.full(self.vocabulary_size, -1, np.int64)
        place[used] = np.arange(used.size)
        return place
