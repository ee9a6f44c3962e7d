"""Many baskets at once: the same exact distributions as on the client, from ChaCha20 with a system key.

For simulations and trusted curators; a report is a row of 64-bit words (see `report_bits`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tidegate.arrays import Array, Ints, Ints32, Words
from tidegate.collect.baskets.bitsets import report_bits
from tidegate.errors import Unsupported
from tidegate.operators.basket_plans import SetOperator
from tidegate.operators.exact_draws import WHOLE
from tidegate_papers.simulation import _basket_kernels
from tidegate_papers.simulation.values import BulkBits

DIGITS = 48


@dataclass(frozen=True)
class Baskets:
    """Baskets one after the other: basket i has items[starts[i] : starts[i + 1]], each once."""

    starts: Ints
    items: Ints32

    @classmethod
    def of(cls, baskets: Iterable[Sequence[int] | Array]) -> Baskets:
        """Build baskets from lists of item codes."""
        listed = [np.asarray(basket, np.int32) for basket in baskets]
        lengths = np.array([0, *map(len, listed)], np.int64)
        return cls(np.cumsum(lengths), np.concatenate([np.zeros(0, np.int32), *listed]))

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def sizes(self) -> Ints:
        return np.diff(self.starts)

    def rows(self, words: int) -> Words:
        """Return the true baskets as rows of 64-bit words, for plain mining and for comparison."""
        rows = np.zeros((len(self), words), np.uint64)
        bits = np.left_shift(np.uint64(1), (self.items % 64).astype(np.uint64))
        np.bitwise_or.at(rows, (np.repeat(np.arange(len(self)), self.sizes), self.items // 64), bits)
        return rows


def randomize_baskets(operator: SetOperator, baskets: Baskets, bits: BulkBits) -> Words:
    """Return a randomized report of every basket: (baskets, words)."""
    _check(operator, baskets)
    out = np.empty((len(baskets), (report_bits(operator) + 63) // 64), np.uint64)
    if operator.flip:
        stay, come = (int(chance * WHOLE) for chance in operator.flip)
        parameters: tuple[Any, ...] = (operator.vocabulary_size, np.uint64(stay), *_coin(come))
        return bits.run_baskets(_basket_kernels.flip, baskets.starts, baskets.items, out, *parameters)
    return bits.run_baskets(_basket_kernels.select, baskets.starts, baskets.items, out, *_tables(operator, baskets))


def _check(operator: SetOperator, baskets: Baskets) -> None:
    items, sizes = baskets.items, baskets.sizes
    if items.size and not (int(items.min()) >= 0 and int(items.max()) < operator.vocabulary_size):
        raise Unsupported(f"Item codes must be from 0 to {operator.vocabulary_size - 1:,}.")
    if _basket_kernels.has_repeats(baskets.starts, items, operator.vocabulary_size):
        raise Unsupported("A basket contains an item twice.", "A basket is a set: list each item once.")
    for size in np.unique(sizes).tolist():
        operator.planned(size)


def _tables(operator: SetOperator, baskets: Baskets) -> tuple[Any, ...]:
    """Return what the kernel needs of all plans, as arrays."""
    sizes = operator.sizes
    most = max(operator.largest, int(baskets.sizes.max(initial=0)))
    plan_of, size_bit = np.full(most + 1, -1, np.int64), np.full(most + 1, -1, np.int64)
    keeps = np.full((len(sizes), operator.largest + 1), WHOLE, np.uint64)
    coins = [_coin(_whole(operator.plans[size].insert)) for size in sizes]
    for index, size in enumerate(sizes):
        plan_of[size] = index
        size_bit[size] = operator.vocabulary_size + index if operator.needs_size else -1
        keeps[index, : size + 1] = np.cumsum([_whole(chance) for chance in operator.plans[size].keep])
    digits, counts, begin = (np.array([coin[part] for coin in coins]) for part in range(3))
    least = np.array([0, *(2**32 % bound for bound in range(1, most + 1))], np.uint64)
    fixed = -1 if operator.fixed is None else operator.fixed
    return operator.vocabulary_size, fixed, plan_of, keeps, digits, counts, begin, size_bit, least


def _whole(chance: Fraction) -> int:
    if WHOLE % chance.denominator:
        raise Unsupported("A probability is not an integer over 2**48.", "Create the plan with SizePlan.rounded().")
    return int(chance * WHOLE)


def _coin(heads: int) -> tuple[Words, int, np.uint64]:
    """Return the digits of heads / 2**48 as words of ones or zeros, their number, and what an undecided coin shows."""
    full = ~np.uint64(0)
    if heads == WHOLE:
        return np.zeros(DIGITS, np.uint64), 0, full
    digits = np.array([full if heads >> (DIGITS - 1 - index) & 1 else 0 for index in range(DIGITS)], np.uint64)
    return digits, int(digits.nonzero()[0].max(initial=-1)) + 1, np.uint64(0)
