"""Kernels for counting transposed reports, one bitset for every item.

Columns are (items, words): report r of a chunk is bit r % 64 of word r // 64. Unused bits are zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.extras import extra

with extra("collect", "Estimating from randomized reports"):
    from numba import njit, types
    from numba.extending import intrinsic

SPAN = 512  # words of a column that fit into the nearest cache


@njit(cache=True, nogil=True)
def transpose(rows: Any, columns: Any) -> None:
    """Turn rows (reports, words) into columns (items, words), 64 reports at a time, in all words at once."""
    words = rows.shape[1]
    square = np.zeros((64, words), np.uint64)
    for block in range((rows.shape[0] + 63) // 64):
        first = block * 64
        count = min(64, rows.shape[0] - first)
        square[:count] = rows[first : first + count]
        square[count:] = 0
        _turn(square)
        for word in range(words):
            for bit in range(min(64, columns.shape[0] - 64 * word)):
                columns[word * 64 + bit, block] = square[bit, word]


@njit(cache=True, nogil=True)
def _turn(square: Any) -> None:
    """Transpose 64 x 64 bits in place, in every column of words: blocks of 32, 16, 8, 4, 2, 1 are swapped."""
    mask, width = np.uint64(0x00000000FFFFFFFF), 32
    while width:
        shift = np.uint64(width)
        for low in range(64):
            if low & width == 0:
                for word in range(square.shape[1]):
                    a, b = square[low, word], square[low + width, word]
                    swap = ((a >> shift) ^ b) & mask
                    square[low + width, word] = b ^ swap
                    square[low, word] = a ^ (swap << shift)
        width //= 2
        mask ^= mask << np.uint64(width)


@njit(cache=True, nogil=True)
def count_columns(columns: Any, out: Any) -> None:
    """Add the number of reports with each item."""
    for item in range(columns.shape[0]):
        total = np.uint64(0)
        for word in range(columns.shape[1]):
            total += bits_in(columns[item, word])
        out[item] += np.int64(total)


@njit(cache=True, nogil=True)
def count_pairs(columns: Any, first: Any, last: Any, out: Any) -> None:
    """Add to out[i, j], i <= j (in tiles of four), the number of reports with both, over the words first .. last-1.

    Needs:
        A number of columns that four divides.
    """
    for start in range(first, last, SPAN):
        stop = min(last, start + SPAN)
        for i in range(0, columns.shape[0], 4):
            for j in range(i, columns.shape[0], 4):
                _tile(columns[i : i + 4, start:stop], columns[j : j + 4, start:stop], out[i : i + 4, j : j + 4])


@njit(cache=True, nogil=True)
def _tile(ours: Any, others: Any, out: Any) -> None:
    """Four columns with four others: each word is loaded once for four uses."""
    a0, a1, a2, a3 = ours[0], ours[1], ours[2], ours[3]
    b0, b1, b2, b3 = others[0], others[1], others[2], others[3]
    n00 = n01 = n02 = n03 = n10 = n11 = n12 = n13 = np.uint64(0)
    n20 = n21 = n22 = n23 = n30 = n31 = n32 = n33 = np.uint64(0)
    for word in range(a0.size):
        p, q, r, s = a0[word], a1[word], a2[word], a3[word]
        w, x, y, z = b0[word], b1[word], b2[word], b3[word]
        n00 += bits_in(p & w)
        n01 += bits_in(p & x)
        n02 += bits_in(p & y)
        n03 += bits_in(p & z)
        n10 += bits_in(q & w)
        n11 += bits_in(q & x)
        n12 += bits_in(q & y)
        n13 += bits_in(q & z)
        n20 += bits_in(r & w)
        n21 += bits_in(r & x)
        n22 += bits_in(r & y)
        n23 += bits_in(r & z)
        n30 += bits_in(s & w)
        n31 += bits_in(s & x)
        n32 += bits_in(s & y)
        n33 += bits_in(s & z)
    out[0, 0] += np.int64(n00)
    out[0, 1] += np.int64(n01)
    out[0, 2] += np.int64(n02)
    out[0, 3] += np.int64(n03)
    out[1, 0] += np.int64(n10)
    out[1, 1] += np.int64(n11)
    out[1, 2] += np.int64(n12)
    out[1, 3] += np.int64(n13)
    out[2, 0] += np.int64(n20)
    out[2, 1] += np.int64(n21)
    out[2, 2] += np.int64(n22)
    out[2, 3] += np.int64(n23)
    out[3, 0] += np.int64(n30)
    out[3, 1] += np.int64(n31)
    out[3, 2] += np.int64(n32)
    out[3, 3] += np.int64(n33)


@njit(cache=True, nogil=True)
def count_itemsets(columns: Any, itemsets: Any, first: Any, last: Any, out: Any) -> None:
    """Add the number of reports with all items of each itemset (a row of codes), over the words first .. last-1."""
    both = np.empty(SPAN, np.uint64)
    for start in range(first, last, SPAN):
        count = min(last, start + SPAN) - start
        for row in range(itemsets.shape[0]):
            both[:count] = columns[itemsets[row, 0], start : start + count]
            for item in range(1, itemsets.shape[1] - 1):
                other = columns[itemsets[row, item], start : start + count]
                for word in range(count):
                    both[word] &= other[word]
            other = columns[itemsets[row, itemsets.shape[1] - 1], start : start + count]
            total = np.uint64(0)
            for word in range(count):
                total += bits_in(both[word] & other[word])
            out[row] += np.int64(total)


def popcount(typing: Any, word: Any) -> Any:
    """Return the number of set bits of a word."""

    def generate(context: Any, build: Any, signature: Any, args: Any) -> Any:
        return build.ctpop(args[0])

    return types.uint64(types.uint64), generate


bits_in: Any = intrinsic(popcount)
