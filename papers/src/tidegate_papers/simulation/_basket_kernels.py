"""Hot loops of randomizing baskets: items in, rows of 64-bit words out (item v is bit v % 64 of word v // 64).

`starts` and `items` hold the baskets one behind the other. `stream` is the ChaCha20 buffer seen as 64-bit words (little
end first), from which everything is taken in order; a word that is used up to its need is never used again, and every
kernel returns the next counter. For each report:

    the cut           where a basket is too large: a partial shuffle
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


throw_digit: Any = intrinsic(throw)


@njit(inline="always")
def _others(
    row: Any,
    words: Any,
    digits: Any,
    many: Any,
    start: Any,
    coins: Any,
    state: Any,
    counter: Any,
    buffer: Any,
    stream: Any,
    at: Any,
) -> Any:
    """Every item by a coin of `many` digits; before the first digit all coins show `start`."""
    for block in range(0, words, EIGHT):
        for lane in range(EIGHT):
            coins[lane], coins[EIGHT + lane] = _FULL, start
        for place in range(many):
            if at + EIGHT > stream.size:
                counter, at = fill(state, counter, buffer), 0
            left = throw_digit(stream, at, digits[place], coins)
            at += EIGHT
            if left == 0:
                break
        for lane in range(min(EIGHT, words - block)):
            row[block + lane] = coins[EIGHT + lane]
    return counter, at


@njit(inline="always")
def _shuffled(
    held: Any, first: Any, total: Any, least: Any, state: Any, counter: Any, buffer: Any, stream: Any, at: Any
) -> Any:
    """Bring `first` uniformly chosen ones of `total` to the front; `least[bound]` is 2**32 mod bound."""
    for place in range(first):
        bound = np.uint64(total - place)
        while True:
            if at >= stream.size:
                counter, at = fill(state, counter, buffer), 0
            product = (stream[at] >> _32) * bound
            at += 1
            if product & _LOW >= least[total - place]:
                break
        other = place + np.int64(product >> _32)
        held[place], held[other] = held[other], held[place]
    return counter, at


@njit(inline="always")
def _put(row: Any, item: Any, bit: Any) -> Any:
    """Set or clear the bit of an item; a blank (-1) has none."""
    if item >= 0:
        place = np.uint64(item & _63)
        row[item >> 6] = (row[item >> 6] & ~(_ONE << place)) | (np.uint64(bit) << place)


@njit(inline="always")
def _take(held: Any, items: Any, first: Any, size: Any, planned: Any) -> Any:
    for place in range(size):
        held[place] = items[first + place]
    for place in range(size, planned):
        held[place] = -1


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
    many: Any,
    begin: Any,
    size_bit: Any,
    least: Any,
) -> Any:
    """Select-a-size. `plan_of[size]` names a plan, `keeps` are its sums of keep over 2**48; `fixed` is -1 for none."""
    stream, words = buffer.view(np.uint64), (values + 63) // 64
    held, coins = np.empty(least.size, np.int64), np.empty(2 * EIGHT, np.uint64)
    at = stream.size
    for i in range(starts.size - 1):
        row, size = out[i], starts[i + 1] - starts[i]
        planned = size if fixed < 0 else fixed
        plan = plan_of[planned]
        _take(held, items, starts[i], size, planned)
        if size > planned:
            counter, at = _shuffled(held, planned, size, least, state, counter, buffer, stream, at)
        row[words:] = 0
        counter, at = _others(
            row, words, digits[plan], many[plan], begin[plan], coins, state, counter, buffer, stream, at
        )
        _trim(row, values)
        if at >= stream.size:
            counter, at = fill(state, counter, buffer), 0
        drawn, stay = stream[at] >> _16, 0
        while drawn >= keeps[plan, stay]:
            stay += 1
        counter, at = _shuffled(held, stay, planned, least, state, counter, buffer, stream, at + 1)
        for place in range(planned):
            _put(row, held[place], place < stay)
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
    many: Any,
    begin: Any,
) -> Any:
    """Per-item flip: a true item stays where the upper 48 bits of its word are below `stay`."""
    stream, words = buffer.view(np.uint64), (values + 63) // 64
    coins = np.empty(2 * EIGHT, np.uint64)
    at = stream.size
    for i in range(starts.size - 1):
        counter, at = _others(out[i], words, digits, many, begin, coins, state, counter, buffer, stream, at)
        _trim(out[i], values)
        for place in range(starts[i], starts[i + 1]):
            if at >= stream.size:
                counter, at = fill(state, counter, buffer), 0
            _put(out[i], np.int64(items[place]), stream[at] >> _16 < stay)
            at += 1
    return counter


@njit(cache=True, nogil=True)
def twice(starts: Any, items: Any, values: Any) -> Any:
    """Whether some basket names an item twice."""
    seen = np.full(values, -1, np.int64)
    for i in range(starts.size - 1):
        for place in range(starts[i], starts[i + 1]):
            if seen[items[place]] == i:
                return True
            seen[items[place]] = i
    return False
