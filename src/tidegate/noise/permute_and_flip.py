"""Choosing one of a public list by permute-and-flip: never worse than the exponential mechanism at the same loss."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tidegate.arrays import Ints
from tidegate.noise.bernoulli import exp_minus_ratio
from tidegate.noise.bits import Bits, below
from tidegate.noise.exponential import _gaps

FINEST = 2**62  # of a rate's denominator


def permute_and_flip(scores: Ints, rate: Fraction, *, bits: Bits) -> int:
    """The index that permute-and-flip chooses: in random order, each is taken with probability exp(-rate * (best - score)).

    All coins are thrown at once: the first head in a random order is a head drawn evenly from all heads.

    Guarantee  Pure loss 2 * rate * s where one unit moves every score by at most s (rate * s where it can move them only
               in one direction). Exact for integer scores and a rational rate: no floating point is used.
    Needs      at least one integer score; 0 <= rate, its denominator at most 2**62; `rate_for` gives such a one.
    Reference  McKenna, Sheldon 2020, arXiv:2010.12603, Algorithm 1; the coin: Canonne, Kamath, Steinke 2020.
    """
    gaps = _gaps(scores)
    if rate < 0 or rate.denominator > FINEST:
        raise ValueError("a rate of at least 0 with a denominator up to 2**62 is needed")
    heads = np.flatnonzero(exp_minus_ratio(gaps, rate, bits=bits))
    return int(heads[below(heads.size, size=1, bits=bits)[0]])


def rate_for(sensitivity: int, epsilon: Fraction) -> Fraction:
    """A rate that costs at most `epsilon`: epsilon / (2 sensitivity), rounded down where it does not fit."""
    rate = epsilon / (2 * sensitivity)
    return rate if rate.denominator <= FINEST else Fraction(math.floor(rate * FINEST), FINEST)
