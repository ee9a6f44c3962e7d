"""Coins of probability exp(-n/d), thrown exactly with whole numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Bools, Ints
from tidegate.noise.bits import Bits, below


def exp_minus_fraction(numerators: Ints, denominator: int, *, bits: Bits) -> Bools:
    """Throw one coin of probability exp(-numerator / denominator) for each numerator.

    Guarantee  Exact: no floating point is used.
    Needs      0 <= numerator <= denominator <= 2**62.
    Reference  Canonne, Kamath, Steinke 2020, arXiv:2004.00010, Algorithm 1, with the coin of probability
               n / (d k) thrown as two: one of n / d and one of 1 / k.
    """
    heads = np.zeros(numerators.size, np.bool_)
    going = np.arange(numerators.size)
    step = 1
    while going.size:
        first = below(denominator, size=going.size, bits=bits) < numerators[going]
        second = below(step, size=going.size, bits=bits) == 0
        stays = first & second
        heads[going[~stays]] = step % 2 == 1
        going = going[stays]
        step += 1
    return heads


def exp_minus_ratio(steps: NDArray[Any], rate: Fraction, *, bits: Bits) -> Bools:
    """Throw one coin of probability exp(-rate * steps) for each number of steps >= 0: whole parts coin by coin.

    Needs      the rate's denominator at most 2**62. Products that do not fit into 64 bits are made of Python's integers.
               (A whole part beyond 2**62 counts as 2**62: nobody throws that many heads.)
    """
    largest = int(steps.max()) if steps.size else 0
    exact = steps if largest * rate.numerator < 2**62 else steps.astype(object)
    product = exact * rate.numerator
    heads = exp_minus_fraction((product % rate.denominator).astype(np.int64), rate.denominator, bits=bits)
    left = np.minimum(product // rate.denominator, 2**62).astype(np.int64)
    going = np.flatnonzero(heads & (left > 0))
    left = left[going]
    while going.size:
        stays = exp_minus_fraction(np.ones(going.size, np.int64), 1, bits=bits)
        heads[going[~stays]] = False
        going, left = going[stays], left[stays] - 1
        going, left = going[left > 0], left[left > 0]
    return heads


def geometric(size: int, *, bits: Bits) -> Ints:
    """Draw `size` integers V with P(V = v) proportional to exp(-v), exactly."""
    count = np.zeros(size, np.int64)
    going = np.arange(size)
    while going.size:
        going = going[exp_minus_fraction(np.ones(going.size, np.int64), 1, bits=bits)]
        count[going] += 1
    return count
