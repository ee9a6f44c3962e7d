"""Supports of true baskets: the plain source that mining of randomized baskets is compared with.

Single items and pairs are counted in one pass over the baskets, larger itemsets by intersections of bitsets. The compiled
loops take baskets as rows (`items` from `starts[i]` to `starts[i + 1]`).
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

PAIR_TABLE = 12_000  # items, whose table of pairs takes 576 MB; more are counted by bitsets


@dataclass(frozen=True)
class Named:
    """Baskets of item codes, and the name of every code in its file."""

    baskets: Baskets
    names: Ints


def read_baskets(path: str | Path) -> Named:
    """Read baskets from a text file: one per line, items as integers separated by spaces (the FIMI format)."""
    if not Path(path).is_file():
        raise SourceMissing(f'The file "{path}" does not exist.', "Choose a file with one basket per line.")
    data = np.fromfile(path, np.uint8)
    gaps = data < 48
    lines = int((data == 10).sum()) + int(data.size > 0 and data[-1] != 10)
    numbers = int((~gaps[:-1] & gaps[1:]).sum()) + int(data.size > 0 and not gaps[-1])
    starts, items, plain = parse_baskets(data, lines, numbers + 1)
    if not plain:
        raise SourceUnreadable(
            f'The file "{path}" contains more than integers and spaces.', "Write one basket per line: 3 17 42"
        )
    names, codes = np.unique(items[:numbers], return_inverse=True)
    return Named(Baskets(*sort_baskets(starts, codes.astype(np.int32))), names)


class TrueSupports:
    """Exact supports, with standard errors of zero: a source for `mine`."""

    def __init__(self, baskets: Baskets, *, vocabulary_size: int | None = None) -> None:
        largest = int(baskets.items.max(initial=-1)) + 1
        self.vocabulary_size = largest if vocabulary_size is None else vocabulary_size
        if self.vocabulary_size < largest or int(baskets.items.min(initial=0)) < 0:
            raise Unsupported(
                f"Items must be codes from 0 to {self.vocabulary_size - 1:,}.", "Use a larger vocabulary."
            )
        self.baskets = baskets
        self.transactions = len(baskets)
        self._index_of = np.full(0, -1, np.int64)
        self._bits = np.zeros((0, 0), np.uint64)

    def count(self, itemsets: Ints) -> tuple[Floats, Floats]:
        """Return the support of every row of item codes as a share of all baskets, and zeros."""
        counts = self.counts(itemsets)
        return counts / max(1, self.transactions), np.zeros(counts.size)

    def counts(self, itemsets: Ints) -> Ints:
        """Count the baskets that contain each itemset."""
        if itemsets.shape[1] == 1:
            return np.bincount(self.baskets.items, minlength=self.vocabulary_size)[itemsets[:, 0]]
        used = np.unique(itemsets)
        if itemsets.shape[1] == 2 and used.size <= PAIR_TABLE and itemsets.shape[0] >= used.size:
            return self._pairs(itemsets, used)
        self._prepare(used)
        out = np.empty(itemsets.shape[0], np.int64)
        common_counts(self._bits, self._index_of[itemsets], out)
        return out

    def _pairs(self, itemsets: Ints, used: Ints) -> Ints:
        index_of = self._indexes(used)
        table = pair_counts(self.baskets.starts, self.baskets.items, index_of, used.size)
        return np.asarray(table[index_of[itemsets[:, 0]], index_of[itemsets[:, 1]]], np.int64)

    def _prepare(self, used: Ints) -> None:
        """Build bitsets of the requested items, unless those of an earlier request suffice."""
        if self._index_of.size and (self._index_of[used] >= 0).all():
            return
        self._index_of = self._indexes(used)
        self._bits = columns(self.baskets.starts, self.baskets.items, self._index_of, used.size)

    def _indexes(self, used: Ints) -> Ints:
        index_of = np.full(self.vocabulary_size, -1, np.int64)
        index_of[used] = np.arange(used.size)
        return index_of


@intrinsic
def _ones(_context: Any, word: Any) -> Any:
    """Count the set bits of a word, in one instruction."""

    def generated(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generated


@njit(cache=True)
def columns(starts: Any, items: Any, index_of: Any, count: Any) -> Any:
    """Return a bitset over baskets for every item with an index; -1 means none."""
    out = np.zeros((count, (starts.size - 1 + 63) >> 6), np.uint64)
    for basket in range(starts.size - 1):
        word, bit = basket >> 6, np.uint64(1) << np.uint64(basket & 63)
        for at in range(starts[basket], starts[basket + 1]):
            if index_of[items[at]] >= 0:
                out[index_of[items[at]], word] |= bit
    return out


@njit(cache=True)
def pair_counts(starts: Any, items: Any, index_of: Any, count: Any) -> Any:
    """Count the baskets with both of two indexed items, at [lower index, higher index]."""
    out = np.zeros((count, count), np.int32)
    longest = 0
    for basket in range(starts.size - 1):
        longest = max(longest, starts[basket + 1] - starts[basket])
    here = np.empty(longest, np.int64)
    for basket in range(starts.size - 1):
        length = 0
        for at in range(starts[basket], starts[basket + 1]):
            here[length] = index_of[items[at]]
            length += int(here[length] >= 0)
        for first in range(length):
            for second in range(first):
                out[min(here[first], here[second]), max(here[first], here[second])] += 1
    return out


@njit(cache=True)
def common_counts(bits: Any, itemsets: Any, out: Any) -> None:
    """Count the baskets with all items of each itemset (rows of at least two indexes; fastest in lexicographic order).

    Itemsets that share all but their last item share the intersection of the others; only its non-empty words are stored, so a
    rare prefix costs in proportion to its occurrences.
    """
    size = itemsets.shape[1]
    words, where, stored = np.empty(bits.shape[1], np.uint64), np.empty(bits.shape[1], np.int64), 0
    for row in range(itemsets.shape[0]):
        same = row > 0
        for k in range(size - 1):
            same = same and itemsets[row, k] == itemsets[row - 1, k]
        if not same:
            stored = 0
            for word in range(bits.shape[1]):
                common = bits[itemsets[row, 0], word]
                for k in range(1, size - 1):
                    common &= bits[itemsets[row, k], word]
                words[stored], where[stored] = common, word
                stored += int(common != np.uint64(0))
        total = np.uint64(0)
        last = bits[itemsets[row, size - 1]]
        for at in range(stored):
            total += _ones(words[at] & last[where[at]])  # type: ignore[call-arg]
        out[row] = total


@njit(cache=True)
def parse_baskets(data: Any, lines: Any, numbers: Any) -> Any:
    """Parse integers of a text, line by line; False if it contains anything else or a number of over 18 digits."""
    starts, items = np.zeros(lines + 1, np.int64), np.empty(numbers, np.int64)
    line, count, digits = 0, 0, 0
    for at in range(data.size):
        sign = data[at]
        if 48 <= sign <= 57:
            items[count] = (items[count] * 10 if digits else 0) + sign - 48
            digits += 1
        elif sign in (32, 9, 13, 10):
            count += int(digits > 0)
            digits = 0
        if digits > 18 or not (48 <= sign <= 57 or sign in (32, 9, 13, 10)):
            return starts, items, False
        if sign == 10:
            line += 1
            starts[line] = count
    starts[line + 1 :] = count + int(digits > 0)
    return starts, items, True


@njit(cache=True)
def sort_baskets(starts: Any, codes: Any) -> Any:
    """Return every basket in ascending order, without repeats."""
    out, ends, at = np.empty(codes.size, np.int32), np.zeros(starts.size, np.int64), 0
    for basket in range(starts.size - 1):
        row = np.sort(codes[starts[basket] : starts[basket + 1]])
        for k in range(row.size):
            out[at] = row[k]
            at += int(k == 0 or row[k] != row[k - 1])
        ends[basket + 1] = at
    return ends, out[:at].copy()
