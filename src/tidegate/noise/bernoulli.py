"""Exact coins of probability exp(-n/d) in integer arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Bools, Ints
from tidegate.noise.bits import Bits, below


def exp_minus_fraction(numerators: Ints, denominator: int, *, bits: Bits) -> Bools:
    """Throw one coin of probability exp(-numerator / denominator) for each numerator.

    Guarantee:
        Exact: no floating point is used.

    Needs:
        0 <= numerator <= denominator <= 2**62.

    Reference:
        Canonne, Kamath, Steinke 2020, arXiv:2004.00010, Algorithm 1, with the coin of probability
        n / (d k) thrown as two: one of n / d and one of 1 / k.
    """
    heads = np.zeros(numerators.size, np.bool_)
    pending = np.arange(numerators.size)
    step = 1
    while pending.size:
        first = below(denominator, size=pending.size, bits=bits) < numerators[pending]
        second = below(step, size=pending.size, bits=bits) == 0
        stays = first & second
        heads[pending[~stays]] = step % 2 == 1
        pending = pending[stays]
        step += 1
    return heads


def exp_minus_ratio(steps: NDArray[Any], rate: Fraction, *, bits: Bits) -> Bools:
    """Throw one coin of probability exp(-rate * steps) for each number of steps >= 0.

    The whole part of rate * steps is thrown as that number of coins of probability exp(-1).

    Needs:
        The rate's denominator is at most 2**62. Products that do not fit into 64 bits use Python's integers.
        (A whole part beyond 2**62 counts as 2**62: that many heads in a row cannot occur in practice.)
    """
    largest = int(steps.max()) if steps.size else 0
    exact = steps if largest * rate.numerator < 2**62 else steps.astype(object)
    product = exact * rate.numerator
    heads = exp_minus_fraction((product % rate.denominator).astype(np.int64), rate.denominator, bits=bits)
    remaining = np.minimum(product // rate.denominator, 2**62).astype(np.int64)
    pending = np.flatnonzero(heads & (remaining > 0))
    remaining = remaining[pending]
    while pending.size:
        stays = exp_minus_fraction(np.ones(pending.size, np.int64), 1, bits=bits)
        heads[pending[~stays]] = False
        pending, remaining = pending[stays], remaining[stays] - 1
        pending, remaining = pending[remaining > 0], remaining[remaining > 0]
    return heads


def geometric(size: int, *, bits: Bits) -> Ints:
    """Draw `size` integers V with P(V = v) proportional to exp(-v), exactly."""
    count = np.zeros(size, np.int64)
    pending = np.arange(size)
    while pending.size:
        pending = pending[exp_minus_fraction(np.ones(pending.size, np.int64), 1, bits=bits)]
        count[pending] += 1
    return count
