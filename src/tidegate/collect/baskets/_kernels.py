"""Hot loops of counting: reports as rows of 64-bit words, and turned on their side, one bitset for every item.

Columns are (items, words): report r of a chunk is bit r % 64 of word r // 64. Unused bits are zero.

Eight words of 64 bits at a time, on whatever machine numba compiles for: coins thrown side by side, bits counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

_ONE = np.uint64(1)
SPAN = 512  # words of a column that are counted while they are in the nearest cache
PLANES = 8  # binary digits of the counters beside the rows: they are emptied before 2**PLANES rows


@njit(cache=True, nogil=True)
def count_rows(rows: Any, out: Any) -> None:
    """Add to `out` how many rows have each bit. Counters lie on their side: word p of `planes` holds digit p of 64 of them."""
    words = rows.shape[1]
    planes = np.zeros((PLANES, words), np.uint64)
    held = 0
    for i in range(0, rows.shape[0] - 7, 8):
        if held + 8 >= 2**PLANES:
            _empty(planes, out)
            held = 0
        _add_eight(planes, rows[i : i + 8])
        held += 8
    _empty(planes, out)
    for i in range(rows.shape[0] - rows.shape[0] % 8, rows.shape[0]):
        for word in range(words):
            for bit in range(64):
                out[word * 64 + bit] += np.int64((rows[i, word] >> np.uint64(bit)) & _ONE)


@njit(inline="always")
def _sum(a: Any, b: Any, c: Any) -> Any:
    """The sum of three bits, in each of 64 places: its low and its high digit."""
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


@njit(cache=True, nogil=True)
def _add_eight(planes: Any, rows: Any) -> None:
    for word in range(planes.shape[1]):
        one, two_a = _sum(planes[0, word], rows[0, word], rows[1, word])
        one, two_b = _sum(one, rows[2, word], rows[3, word])
        one, two_c = _sum(one, rows[4, word], rows[5, word])
        one, two_d = _sum(one, rows[6, word], rows[7, word])
        two, four_a = _sum(planes[1, word], two_a, two_b)
        two, four_b = _sum(two, two_c, two_d)
        four, carry = _sum(planes[2, word], four_a, four_b)
        planes[0, word], planes[1, word], planes[2, word] = one, two, four
        for plane in range(3, PLANES):
            old = planes[plane, word]
            planes[plane, word] = old ^ carry
            carry &= old


@njit(cache=True, nogil=True)
def _empty(planes: Any, out: Any) -> None:
    for word in range(planes.shape[1]):
        for plane in range(PLANES):
            held = planes[plane, word]
            for bit in range(64):
                out[word * 64 + bit] += np.int64((held >> np.uint64(bit)) & _ONE) << plane
            planes[plane, word] = 0


@njit(cache=True, nogil=True)
def transpose(rows: Any, columns: Any) -> None:
    """Turn rows (reports, words) into columns (items, words), 64 reports at a time, all words side by side."""
    words = rows.shape[1]
    square = np.zeros((64, words), np.uint64)
    for block in range((rows.shape[0] + 63) // 64):
        first = block * 64
        many = min(64, rows.shape[0] - first)
        square[:many] = rows[first : first + many]
        square[many:] = 0
        _turn(square)
        for word in range(words):
            for bit in range(min(64, columns.shape[0] - 64 * word)):
                columns[word * 64 + bit, block] = square[bit, word]


@njit(cache=True, nogil=True)
def _turn(square: Any) -> None:
    """Transpose 64 x 64 bits in place, in every column of words: blocks of 32, 16, 8, 4, 2, 1 change places."""
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

    Needs  a number of columns that four divides.
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
        many = min(last, start + SPAN) - start
        for place in range(itemsets.shape[0]):
            both[:many] = columns[itemsets[place, 0], start : start + many]
            for item in range(1, itemsets.shape[1] - 1):
                other = columns[itemsets[place, item], start : start + many]
                for word in range(many):
                    both[word] &= other[word]
            other = columns[itemsets[place, itemsets.shape[1] - 1], start : start + many]
            total = np.uint64(0)
            for word in range(many):
                total += bits_in(both[word] & other[word])
            out[place] += np.int64(total)


EIGHT = 8
_VECTOR = ir.VectorType(ir.IntType(64), EIGHT)


def _at(context: Any, build: Any, kind: Any, array: Any, place: Any) -> Any:
    """Where eight words of an array begin."""
    data = context.make_array(kind)(context, build, array).data
    return build.bitcast(build.gep(data, [place]), _VECTOR.as_pointer())


def _throw(context: Any, build: Any, signature: Any, args: Any) -> Any:
    stream, place, digit, coins = args
    zero, eight = (ir.Constant(ir.IntType(64), number) for number in (0, EIGHT))
    random = build.load(_at(context, build, signature.args[0], stream, place), align=8)
    open_at, heads_at = (_at(context, build, signature.args[3], coins, start) for start in (zero, eight))
    undecided, heads = build.load(open_at, align=8), build.load(heads_at, align=8)
    one = build.insert_element(ir.Constant(_VECTOR, ir.Undefined), digit, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), EIGHT), [0] * EIGHT)
    digits = build.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), mask)
    less = build.and_(build.not_(random), digits)
    left = build.and_(undecided, build.not_(build.xor(random, digits)))
    build.store(build.or_(heads, build.and_(undecided, less)), heads_at, align=8)
    build.store(left, open_at, align=8)
    some = build.icmp_unsigned("!=", left, ir.Constant(_VECTOR, [0] * EIGHT))
    return build.zext(build.bitcast(some, ir.IntType(EIGHT)), ir.IntType(64))


def throw(typing: Any, stream: Any, place: Any, digit: Any, coins: Any) -> Any:
    """Compare one more random digit of 512 coins with theirs: `coins` holds eight words of undecided, eight of heads.

    `digit` is all ones or all zeros: the digit of the probability. Returns 0 where every coin is decided.
    """
    return types.int64(stream, types.int64, types.uint64, coins), _throw


def popcount(typing: Any, word: Any) -> Any:
    """How many bits of a word are set."""

    def made(context: Any, build: Any, signature: Any, args: Any) -> Any:
        return build.ctpop(args[0])

    return types.uint64(types.uint64), made


throw_digit: Any = intrinsic(throw)
bits_in: Any = intrinsic(popcount)
