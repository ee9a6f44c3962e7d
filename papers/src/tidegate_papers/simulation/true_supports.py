"""Supports of true baskets: the plain source that a miner of randomized ones is compared with.

Single items are counted by one pass, pairs in one pass over the baskets, larger itemsets by intersections of bitsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from tidegate.arrays import Floats, Ints
from tidegate.errors import SourceMissing, SourceUnreadable, Unsupported
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
    starts, items, plain = parsed(data, many, numbers + 1)
    if not plain:
        raise SourceUnreadable(f"{path} holds more than whole numbers and spaces.", "Write one basket a line: 3 17 42")
    names, codes = np.unique(items[:numbers], return_inverse=True)
    return Named(Baskets(*sorted_baskets(starts, codes.astype(np.int32))), names)


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
        common_counts(self._bits, self._place[itemsets], out)
        return out

    def _pairs(self, itemsets: Ints, used: Ints) -> Ints:
        place = self._places(used)
        table = pair_counts(self.baskets.starts, self.baskets.items, place, used.size)
        return np.asarray(table[place[itemsets[:, 0]], place[itemsets[:, 1]]], np.int64)

    def _prepare(self, used: Ints) -> None:
        """Bitsets of the items that are asked for; those of an earlier question serve again."""
        if self._place.size and (self._place[used] >= 0).all():
            return
        self._place = self._places(used)
        self._bits = columns(self.baskets.starts, self.baskets.items, self._place, used.size)

    def _places(self, used: Ints) -> Ints:
        place = np.full(self.vocabulary_size, -1, np.int64)
        place[used] = np.arange(used.size)
        return place


@intrinsic
def _ones(_context: Any, word: Any) -> Any:
    """How many bits of a word are set: one instruction."""

    def generated(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generated


@njit(cache=True)
def columns(starts: Any, items: Any, place: Any, many: Any) -> Any:
    """A bitset over baskets for every item with a place; -1 stands for none."""
    out = np.zeros((many, (starts.size - 1 + 63) >> 6), np.uint64)
    for basket in range(starts.size - 1):
        word, bit = basket >> 6, np.uint64(1) << np.uint64(basket & 63)
        for at in range(starts[basket], starts[basket + 1]):
            if place[items[at]] >= 0:
                out[place[items[at]], word] |= bit
    return out


@njit(cache=True)
def pair_counts(starts: Any, items: Any, place: Any, many: Any) -> Any:
    """In how many baskets both of two placed items are, at [lower place, higher place]."""
    out = np.zeros((many, many), np.int32)
    longest = 0
    for basket in range(starts.size - 1):
        longest = max(longest, starts[basket + 1] - starts[basket])
    here = np.empty(longest, np.int64)
    for basket in range(starts.size - 1):
        found = 0
        for at in range(starts[basket], starts[basket + 1]):
            here[found] = place[items[at]]
            found += int(here[found] >= 0)
        for one in range(found):
            for other in range(one):
                out[min(here[one], here[other]), max(here[one], here[other])] += 1
    return out


@njit(cache=True)
def common_counts(bits: Any, itemsets: Any, out: Any) -> None:
    """In how many baskets all items of each itemset are (rows of places, at least two; fastest in lexicographic order).

    Itemsets that share all but their last item share the intersection of the others; of that only the words that are not
    empty are kept, so a rare prefix costs what it occurs.
    """
    size = itemsets.shape[1]
    words, where, kept = np.empty(bits.shape[1], np.uint64), np.empty(bits.shape[1], np.int64), 0
    for row in range(itemsets.shape[0]):
        same = row > 0
        for k in range(size - 1):
            same = same and itemsets[row, k] == itemsets[row - 1, k]
        if not same:
            kept = 0
            for word in range(bits.shape[1]):
                common = bits[itemsets[row, 0], word]
                for k in range(1, size - 1):
                    common &= bits[itemsets[row, k], word]
                words[kept], where[kept] = common, word
                kept += int(common != np.uint64(0))
        total = np.uint64(0)
        last = bits[itemsets[row, size - 1]]
        for at in range(kept):
            total += _ones(words[at] & last[where[at]])  # type: ignore[call-arg]
        out[row] = total


@njit(cache=True)
def parsed(data: Any, lines: Any, numbers: Any) -> Any:
    """Whole numbers of a text, line by line; -1 baskets where it holds anything else or a number of over 18 digits."""
    starts, items = np.zeros(lines + 1, np.int64), np.empty(numbers, np.int64)
    line, found, digits = 0, 0, 0
    for at in range(data.size):
        sign = data[at]
        if 48 <= sign <= 57:
            items[found] = (items[found] * 10 if digits else 0) + sign - 48
            digits += 1
        elif sign in (32, 9, 13, 10):
            found += int(digits > 0)
            digits = 0
        if digits > 18 or not (48 <= sign <= 57 or sign in (32, 9, 13, 10)):
            return starts, items, False
        if sign == 10:
            line += 1
            starts[line] = found
    starts[line + 1 :] = found + int(digits > 0)
    return starts, items, True


@njit(cache=True)
def sorted_baskets(starts: Any, codes: Any) -> Any:
    """Every basket ascending, without repeats."""
    out, ends, at = np.empty(codes.size, np.int32), np.zeros(starts.size, np.int64), 0
    for basket in range(starts.size - 1):
        row = np.sort(codes[starts[basket] : starts[basket + 1]])
        for k in range(row.size):
            out[at] = row[k]
            at += int(k == 0 or row[k] != row[k - 1])
        ends[basket + 1] = at
    return ends, out[:at].copy()
