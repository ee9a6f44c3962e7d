"""Compiled loops of randomizing baskets: items in, rows of 64-bit words out (item v is bit v % 64 of word v // 64).

`starts` and `items` hold the baskets one after the other. `stream` is the ChaCha20 buffer as 64-bit words (little endian),
from which everything is taken in order; a word is never used twice, and every kernel returns the next counter. For each
report:

    the cut           if a basket is too large: a partial shuffle
    the other items   512 at a time, digit by digit from the top, until every coin is decided or no digit is left
    how many stay     the upper 48 bits of a word (in a flip: of one word for each true item)
    which ones        a partial shuffle: the upper 32 bits of a word for each, by multiplication with rejection
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

from tidegate_papers.simulation._chacha import fill

_16, _32, _63 = np.uint64(16), np.uint64(32), np.int64(63)
_LOW, _ONE, _FULL = np.uint64(0xFFFFFFFF), np.uint64(1), ~np.uint64(0)
EIGHT = 8
_VECTOR = ir.VectorType(ir.IntType(64), EIGHT)


def _at(context: Any, build: Any, kind: Any, array: Any, index: Any) -> Any:
    """Return a pointer to eight words of an array."""
    data = context.make_array(kind)(context, build, array).data
    return build.bitcast(build.gep(data, [index]), _VECTOR.as_pointer())


def _throw(context: Any, build: Any, signature: Any, args: Any) -> Any:
    stream, index, digit, coins = args
    zero, eight = (ir.Constant(ir.IntType(64), number) for number in (0, EIGHT))
    random = build.load(_at(context, build, signature.args[0], stream, index), align=8)
    open_at, heads_at = (_at(context, build, signature.args[3], coins, start) for start in (zero, eight))
    undecided, heads = build.load(open_at, align=8), build.load(heads_at, align=8)
    first = build.insert_element(ir.Constant(_VECTOR, ir.Undefined), digit, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), EIGHT), [0] * EIGHT)
    digits = build.shuffle_vector(first, ir.Constant(_VECTOR, ir.Undefined), mask)
    less = build.and_(build.not_(random), digits)
    left = build.and_(undecided, build.not_(build.xor(random, digits)))
    build.store(build.or_(heads, build.and_(undecided, less)), heads_at, align=8)
    build.store(left, open_at, align=8)
    some = build.icmp_unsigned("!=", left, ir.Constant(_VECTOR, [0] * EIGHT))
    return build.zext(build.bitcast(some, ir.IntType(EIGHT)), ir.IntType(64))


def throw(typing: Any, stream: Any, index: Any, digit: Any, coins: Any) -> Any:
    """Compare one more random digit of 512 coins with theirs: `coins` holds eight words of undecided, eight of heads.

    `digit` is all ones or all zeros: the digit of the probability. Returns 0 if every coin is decided.
    """
    return types.int64(stream, types.int64, types.uint64, coins), _throw


throw_digit: Any = intrinsic(throw)


@njit(inline="always")
def _others(
    row: Any,
    words: Any,
    digits: Any,
    count: Any,
    start: Any,
    coins: Any,
    state: Any,
    counter: Any,
    buffer: Any,
    stream: Any,
    at: Any,
) -> Any:
    """Set every item by a coin of `count` digits; before the first digit all coins show `start`."""
    for block in range(0, words, EIGHT):
        for lane in range(EIGHT):
            coins[lane], coins[EIGHT + lane] = _FULL, start
        for index in range(count):
            if at + EIGHT > stream.size:
                counter, at = fill(state, counter, buffer), 0
            left = throw_digit(stream, at, digits[index], coins)
            at += EIGHT
            if left == 0:
                break
        for lane in range(min(EIGHT, words - block)):
            row[block + lane] = coins[EIGHT + lane]
    return counter, at


@njit(inline="always")
def _shuffle(
    basket: Any, first: Any, total: Any, least: Any, state: Any, counter: Any, buffer: Any, stream: Any, at: Any
) -> Any:
    """Move `first` uniformly chosen items of `total` to the front; `least[bound]` is 2**32 mod bound."""
    for index in range(first):
        bound = np.uint64(total - index)
        while True:
            if at >= stream.size:
                counter, at = fill(state, counter, buffer), 0
            product = (stream[at] >> _32) * bound
            at += 1
            if product & _LOW >= least[total - index]:
                break
        other = index + np.int64(product >> _32)
        basket[index], basket[other] = basket[other], basket[index]
    return counter, at


@njit(inline="always")
def _put(row: Any, item: Any, bit: Any) -> Any:
    """Set or clear the bit of an item; a blank (-1) has none."""
    if item >= 0:
        shift = np.uint64(item & _63)
        row[item >> 6] = (row[item >> 6] & ~(_ONE << shift)) | (np.uint64(bit) << shift)


@njit(inline="always")
def _take(basket: Any, items: Any, first: Any, size: Any, planned: Any) -> Any:
    for index in range(size):
        basket[index] = items[first + index]
    for index in range(size, planned):
        basket[index] = -1


@njit(inline="always")
def _trim(row: Any, values: Any) -> Any:
    if values % 64:
        row[values // 64] &= (_ONE << np.uint64(values % 64)) - _ONE


@njit(cache=True, nogil=True)
def select(
    starts: Any,
    items: Any,
    out: Any,
    state: Any,
    counter: Any,
    buffer: Any,
    values: Any,
    fixed: Any,
    plan_of: Any,
    keeps: Any,
    digits: Any,
    counts: Any,
    begin: Any,
    size_bit: Any,
    least: Any,
) -> Any:
    """Randomize by select-a-size.

    `plan_of[size]` is a plan, `keeps` its cumulated keep over 2**48; `fixed` is -1 for none.
    """
    stream, words = buffer.view(np.uint64), (values + 63) // 64
    basket, coins = np.empty(least.size, np.int64), np.empty(2 * EIGHT, np.uint64)
    at = stream.size
    for i in range(starts.size - 1):
        row, size = out[i], starts[i + 1] - starts[i]
        planned = size if fixed < 0 else fixed
        plan = plan_of[planned]
        _take(basket, items, starts[i], size, planned)
        if size > planned:
            counter, at = _shuffle(basket, planned, size, least, state, counter, buffer, stream, at)
        row[words:] = 0
        counter, at = _others(
            row, words, digits[plan], counts[plan], begin[plan], coins, state, counter, buffer, stream, at
        )
        _trim(row, values)
        if at >= stream.size:
            counter, at = fill(state, counter, buffer), 0
        drawn, stay = stream[at] >> _16, 0
        while drawn >= keeps[plan, stay]:
            stay += 1
        counter, at = _shuffle(basket, stay, planned, least, state, counter, buffer, stream, at + 1)
        for index in range(planned):
            _put(row, basket[index], index < stay)
        _put(row, size_bit[planned], 1)
    return counter


@njit(cache=True, nogil=True)
def flip(
    starts: Any,
    items: Any,
    out: Any,
    state: Any,
    counter: Any,
    buffer: Any,
    values: Any,
    stay: Any,
    digits: Any,
    count: Any,
    begin: Any,
) -> Any:
    """Randomize by item flips: a true item stays if the upper 48 bits of its word are below `stay`."""
    stream, words = buffer.view(np.uint64), (values + 63) // 64
    coins = np.empty(2 * EIGHT, np.uint64)
    at = stream.size
    for i in range(starts.size - 1):
        counter, at = _others(out[i], words, digits, count, begin, coins, state, counter, buffer, stream, at)
        _trim(out[i], values)
        for index in range(starts[i], starts[i + 1]):
            if at >= stream.size:
                counter, at = fill(state, counter, buffer), 0
            _put(out[i], np.int64(items[index]), stream[at] >> _16 < stay)
            at += 1
    return counter


@njit(cache=True, nogil=True)
def has_repeats(starts: Any, items: Any, values: Any) -> Any:
    """Return whether some basket contains an item twice."""
    seen = np.full(values, -1, np.int64)
    for i in range(starts.size - 1):
        for index in range(starts[i], starts[i + 1]):
            if seen[items[index]] == i:
                return True
            seen[items[index]] = i
    return False
