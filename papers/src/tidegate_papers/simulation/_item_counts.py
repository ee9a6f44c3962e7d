"""Hot loops of true support counts: baskets as rows (`items` from `starts[i]` to `starts[i + 1]`), itemsets in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic


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
