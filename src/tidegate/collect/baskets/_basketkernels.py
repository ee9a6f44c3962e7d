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
from numba import njit

from tidegate.collect._chacha import fill
from tidegate.collect.baskets._kernels import EIGHT, throw_digit

_16, _32, _63 = np.uint64(16), np.uint64(32), np.int64(63)
_LOW, _ONE, _FULL = np.uint64(0xFFFFFFFF), np.uint64(1), ~np.uint64(0)


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
