"""Selection from a public list by permute-and-flip: never worse than the exponential mechanism at the same loss."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tidegate.arrays import Ints
from tidegate.noise.bernoulli import exp_minus_ratio
from tidegate.noise.bits import Bits, below
from tidegate.noise.exponential import _gaps

FINEST = 2**62  # limit of a rate's denominator


def permute_and_flip(scores: Ints, rate: Fraction, *, bits: Bits) -> int:
    """Return the index that permute-and-flip selects.

    In random order, each index is accepted with probability exp(-rate * (best - score)). All coins are thrown at once: the
    first head in a random order is distributed as a head drawn uniformly from all heads.

    Guarantee:
        Pure loss 2 * rate * s if one unit changes every score by at most s (rate * s if it can change them in one
        direction only). Exact for integer scores and a rational rate: no floating point is used.

    Needs:
        At least one integer score; 0 <= rate, its denominator at most 2**62; `rate_for` returns such a rate.

    Reference:
        McKenna, Sheldon 2020, arXiv:2010.12603, Algorithm 1; the coin: Canonne, Kamath, Steinke 2020.
    """
    gaps = _gaps(scores)
    if rate < 0 or rate.denominator > FINEST:
        raise ValueError("The rate must be at least 0, with a denominator of at most 2**62.")
    heads = np.flatnonzero(exp_minus_ratio(gaps, rate, bits=bits))
    return int(heads[below(heads.size, size=1, bits=bits)[0]])


def rate_for(sensitivity: int, epsilon: Fraction) -> Fraction:
    """Return a rate that costs at most `epsilon`: epsilon / (2 sensitivity), rounded down if it does not fit."""
    rate = epsilon / (2 * sensitivity)
    return rate if rate.denominator <= FINEST else Fraction(math.floor(rate * FINEST), FINEST)
