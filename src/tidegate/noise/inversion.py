"""Exact noise by inversion: one fair number per draw is looked up in a table of exact cumulative probabilities.

A draw is the first integer whose cumulative probability exceeds a uniform number in [0, 1). The first 31 binary digits
of that number decide almost always. Where they equal the first 31 digits of a cumulative probability, more digits of both
are computed until they differ. Every probability is an integer interval that contains it, so no rounding decides.

Wide noise is drawn in cells of 2**unit integers: a cell from the table, a uniform integer within the cell, and a coin of
probability exp(-x) for the difference between the integer's weight and that of the cell's first integer.

What must not change: the words that are read say nothing about the data, only about the noise; nothing is stored
between draws but tables, which depend on the scale alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Bools, Ints
from tidegate.noise.bits import Bits, below

WIDTH = 31  # binary digits that are looked up; the last bit of a 32-bit number is the sign
GUIDE = 13  # leading digits that select an entry of the guide
SPARE = 64  # more digits of a table's probabilities than WIDTH
CELLS = 10  # binary digits of a cell of uncertain integers; larger cells have a probability below e**-128
COIN = 16  # first digits of a coin
TABLES = 128  # cached tables, of up to 20 kB each
Coin = Callable[[Ints, Ints], Bools]


class Cells(Protocol):
    """A distribution on 0, 1, 2, ... whose cumulative probabilities can be computed to any number of digits."""

    def bounds(self, digits: int) -> Iterator[tuple[int, int]]:
        """Yield low <= 2**digits P(cell <= i) <= high for i = 0, 1, 2, ..., with high <= 2**digits."""
        ...


@dataclass(frozen=True)
class LaplaceCells:
    """P(i) proportional to exp(-rate i); if `folded`, every i > 0 stands for itself and its negative."""

    rate: Fraction
    folded: bool

    def bounds(self, digits: int) -> Iterator[tuple[int, int]]:
        # P(cell > i) is r**(i + 1) with r = exp(-rate); folded, 2 r**(i + 1) / (1 + r)
        full = 1 << digits
        ratio, error = exp_minus(self.rate, digits)
        weight, slack = ratio, error
        if self.folded:
            weight = (ratio << digits + 1) // (full + ratio)  # 2 r / (1 + r) grows with r, by less than 2
            slack = 2 * error + 1
        while True:
            yield full - weight - slack, full - weight
            weight, slack = weight * ratio >> digits, slack + error + 1


@dataclass(frozen=True)
class GaussianCells:
    """P(i) proportional to exp(-rate i**2); if `folded`, every i > 0 stands for itself and its negative."""

    rate: Fraction
    folded: bool

    def bounds(self, digits: int) -> Iterator[tuple[int, int]]:
        full = 1 << digits
        weights, slacks, rest = self._weights(digits)
        least, most = sum(weights), sum(weights) + sum(slacks) + rest  # of the sum of all weights
        low, high = 0, 0
        for weight, slack in zip(weights, slacks, strict=True):
            low, high = low + weight, high + weight + slack
            yield (low << digits) // most, min(full, (high << digits) // least + 1)
        while True:
            yield (low << digits) // most, full

    def _weights(self, digits: int) -> tuple[list[int], list[int], int]:
        """Return all weights above 2**-digits, how far each may be too small, and a bound on the sum of the others."""
        # weight i + 1 is weight i times step i, step i is exp(-rate (2 i + 1)), and step i + 1 is step i times `turn`
        times = 2 if self.folded else 1
        step, step_error = exp_minus(self.rate, digits)
        turn, turn_error = exp_minus(2 * self.rate, digits)
        weight, slack = 1 << digits, 0
        weights, slacks = [weight], [slack]
        while True:
            weight, slack = weight * step >> digits, slack + step_error + 1
            step, step_error = step * turn >> digits, step_error + turn_error + 1
            if weight == 0:  # the rest is below a geometric series, because steps only become smaller
                return weights, slacks, times * ((slack << digits) // ((1 << digits) - step - step_error) + 1)
            weights.append(times * weight)
            slacks.append(times * slack)


def exp_minus(exponent: Fraction, digits: int) -> tuple[int, int]:
    """Return integers v and e with v <= 2**digits exp(-exponent) <= v + e <= 2**digits and an e of at most 3.

    How:
        exp(-x) is the m-th square of 1 / exp(y), y = x / 2**m below 1 / 128. The series of exp(y) has positive terms, each
        below half of the one before; a term that rounds down to 0 bounds the sum of all that follow it. Every step rounds
        down for the lower end and up for the upper one.

    Needs:
        exponent >= 0.
    """
    if exponent >= digits:
        return 0, 1
    squarings = max(0, exponent.numerator.bit_length() - exponent.denominator.bit_length() + 8)
    inner = digits + squarings + 16
    full = 1 << inner
    n, d = exponent.numerator, exponent.denominator << squarings
    term, total, index = full, full, 1
    while term:
        term = term * n // (d * index)
        total, index = total + term, index + 1
    low, high = (full << inner) // (total + 2 * index), -(-(full << inner) // total)
    for _ in range(squarings):
        low, high = low * low >> inner, -(-high * high >> inner)
    low, high = low >> inner - digits, -(-high >> inner - digits)
    return low, min(high, 1 << digits) - low


class Table:
    """Cumulative probabilities of cells, to WIDTH digits, and more digits on demand."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._floors = _floors(cells)
        # of a number's leading digits: its cell, or -1 where a cumulative probability begins with the same digits
        shift = np.uint32(WIDTH - GUIDE)
        starts = np.arange(1 << GUIDE, dtype=np.uint32) << shift
        self._guide = np.searchsorted(self._floors, starts).astype(np.int16)
        self._guide[self._floors >> shift] = -1

    def invert(self, numbers: NDArray[np.uint32], bits: Bits) -> Ints:
        """Return the cells of uniform numbers, of which each has WIDTH digits; `bits` are read for further digits."""
        cells = self._guide.take(numbers >> np.uint32(WIDTH - GUIDE)).astype(np.int64)
        unclear = np.flatnonzero(cells < 0)
        if unclear.size:
            uncertain = numbers[unclear]
            indexes = np.searchsorted(self._floors, uncertain)
            cells[unclear] = indexes
            for position in unclear[self._floors[indexes] == uncertain].tolist():
                cells[position] = self._decide(int(numbers[position]), bits)
        return cells

    def _decide(self, number: int, bits: Bits) -> int:
        """Return the cell of a number whose first WIDTH digits do not decide: draw more of them until they do."""
        first, width = int(np.searchsorted(self._floors, number)), WIDTH
        while True:
            number, width = number << 64 | int(bits.words(1)[0]), width + 64
            for cell, (low, high) in enumerate(self._cells.bounds(width + SPARE)):
                if cell < first or number << SPARE >= high:
                    continue
                if number + 1 << SPARE <= low:
                    return cell
                break


def _floors(cells: Cells) -> NDArray[np.uint32]:
    """Return the first WIDTH digits of cumulative probabilities, up to the first that has only ones."""
    last, spare = (1 << WIDTH) - 1, SPARE
    while True:
        floors: list[int] = []
        for low, high in cells.bounds(WIDTH + spare):
            floor = low >> spare
            floors.append(floor)
            if floor == last:
                return np.array(floors, np.uint32)
            if high >> spare != floor:
                break  # more digits are needed to know the floor
        spare *= 2


def laplace(scale: Fraction, *, size: int, bits: Bits) -> Ints:
    """Draw integers Z with P(Z = z) proportional to exp(-|z| / scale).

    How:
        With cells of w = 2**unit integers, w / scale at most 1 / 16, the integer a of cell b has weight
        exp(-b w / scale) exp(-a / scale). The coin's exponent a / scale is (64 a / 1024 w) (16 w / scale).

    Needs:
        scale > 0, numerator and denominator at most 2**52.
    """
    unit, t, s = unit_of(scale, 16), scale.numerator, scale.denominator

    def second(offsets: Ints, cells: Ints) -> Bools:
        return below(t, size=cells.size, bits=bits) < (16 * s << unit)

    return _draw(laplace_table(scale), unit, lambda cells: _SIX, second, most=1 << 14, size=size, bits=bits)


def gaussian(sigma: Fraction, *, size: int, bits: Bits) -> Ints:
    """Draw integers Z with P(Z = z) proportional to exp(-z**2 / (2 sigma**2)).

    How:
        With cells of w = 2**unit integers, w / sigma at most 1 / 32, the integer a of cell b has weight
        exp(-(b w)**2 / (2 sigma**2)) exp(-x), x = a (a + 2 w b) / (2 sigma**2). With 2**e > b, x is the product of
        2**e a / 1024 w, of (32 w / sigma)**2 and of (a + 2 w b) / (2 w 2**e), each at most 1.

    Needs:
        sigma > 0, numerator and denominator at most 2**52.
    """
    unit, s, d = unit_of(sigma, 32), sigma.numerator, sigma.denominator

    def second(offsets: Ints, cells: Ints) -> Bools:
        passes = below(s, size=cells.size, bits=bits) < (32 * d << unit)
        passes &= below(s, size=cells.size, bits=bits) < (32 * d << unit)
        digits = (63 - unit - _lengths(cells)).astype(np.uint64)
        return passes & ((bits.words(cells.size) >> digits).astype(np.int64) < offsets + (cells << unit + 1))

    return _draw(gaussian_table(sigma), unit, _lengths, second, most=1 << CELLS, size=size, bits=bits)


def unit_of(spread: Fraction, least: int) -> int:
    """Return the largest unit with spread / 2**unit >= least, or 0."""
    return max(0, (spread.numerator // (least * spread.denominator)).bit_length() - 1)


@lru_cache(maxsize=TABLES)
def laplace_table(scale: Fraction) -> Table:
    unit = unit_of(scale, 16)
    return Table(LaplaceCells((1 << unit) / scale, folded=unit == 0))


@lru_cache(maxsize=TABLES)
def gaussian_table(sigma: Fraction) -> Table:
    unit = unit_of(sigma, 32)
    return Table(GaussianCells(((1 << unit) / sigma) ** 2 / 2, folded=unit == 0))


def _lengths(cells: Ints) -> Ints:
    """Return the number of binary digits of each cell."""
    return _LENGTHS.take(cells)


_SIX = np.array(6)
_LENGTHS = np.array([cell.bit_length() for cell in range(1 << CELLS)])


def _draw(
    table: Table, unit: int, exponents: Callable[[Ints], Ints], second: Coin, *, most: int, size: int, bits: Bits
) -> Ints:
    """Draw signed integers; for units above 0, propose them until enough are accepted."""
    if unit == 0:
        return _sign(*_propose(table, size, bits))
    parts, missing = [], size
    while missing > 0:
        cells, negative = _propose(table, missing + missing // 16 + 8, bits)
        if int(cells.max()) >= most:
            raise OverflowError("A draw exceeds the limit of its noise.")
        offsets, accepted = _place(cells, unit, exponents(cells), second, bits)
        magnitudes = offsets + (cells << unit)
        accepted &= (magnitudes != 0) | ~negative  # zero has one sign
        parts.append(_sign(magnitudes, negative)[accepted][:missing])
        missing -= parts[-1].size
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _propose(table: Table, size: int, bits: Bits) -> tuple[Ints, Bools]:
    """Return cells, and which of them are on the negative side."""
    numbers = bits.words((size + 1) // 2).view(np.uint32)[:size]
    return table.invert(numbers >> np.uint32(1), bits), (numbers & np.uint32(1)).astype(np.bool_)


def _sign(magnitudes: Ints, negative: Bools) -> Ints:
    return magnitudes * (1 - 2 * negative.view(np.int8))


def _place(cells: Ints, unit: int, exponents: Ints, second: Coin, bits: Bits) -> tuple[Ints, Bools]:
    """Return a uniform integer within each cell, and its coin of probability exp(-x), x at most 1.

    The k-th of a series of coins is of x / k, and the first tail is at an odd k with probability exp(-x). Each is thrown
    as one of 2**exponent offset / 2**(unit + CELLS), which is almost always tails, the `second`, and one of 1 / k.
    """
    words: NDArray[np.unsignedinteger]
    if unit <= 32 - COIN:
        words = bits.words((cells.size + 1) // 2).view(np.uint32)[: cells.size]
        offsets = (words >> np.uint32(32 - unit)).astype(np.int64)
    else:
        words = bits.words(cells.size)
        offsets = (words >> np.uint64(64 - unit)).astype(np.int64)
    numerators = (offsets << exponents) << max(0, COIN - CELLS - unit)
    later = max(0, unit + CELLS - COIN)  # digits of a coin after its first
    survivors = np.flatnonzero(_less(words.astype(np.uint16), numerators, later, bits))
    heads, step = np.ones(cells.size, np.bool_), 1
    while True:
        survivors = survivors[second(offsets[survivors], cells[survivors])] if survivors.size else survivors
        heads[survivors] = step % 2 == 0  # the result if their next coin is tails
        if not survivors.size:
            break
        pending, step = survivors, step + 1
        stays = _less(bits.words(pending.size).astype(np.uint16), numerators[pending], later, bits)
        stays &= below(step, size=pending.size, bits=bits) == 0
        survivors = pending[stays]
    return offsets, heads


def _less(digits: NDArray[np.uint16], numerators: Ints, later: int, bits: Bits) -> Bools:
    """Return which uniform numbers of COIN + `later` digits are below their numerators; `digits` are the first ones."""
    leading = numerators >> later
    less = digits < leading
    equal = np.flatnonzero(digits == leading) if later else np.zeros(0, np.int64)
    if equal.size:
        drawn = (bits.words(equal.size) >> np.uint64(64 - later)).astype(np.int64)
        less[equal] = drawn < numerators[equal] & (1 << later) - 1
    return less
