"""Integer noise."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tidegate.arrays import Ints
from tidegate.noise.bernoulli import exp_minus_fraction, geometric
from tidegate.noise.bits import Bits, below

LARGEST = 2**52  # of numerator and denominator of a scale: U + t V stays within 64 bits for every V below 1024


def discrete_laplace(scale: Fraction, *, size: int, bits: Bits) -> Ints:
    """Draw integers Z with P(Z = z) proportional to exp(-|z| / scale).

    Guarantee  Added to integers that one person moves by at most s in total (L1), the result has pure loss
               s / scale. Exact: no floating point is used. (A draw beyond 2**62, of probability below e**-1000,
               raises OverflowError instead of being wrong.)
    Needs      scale > 0, numerator and denominator at most 2**52; `scale_for` gives such a one.
    Reference  Canonne, Kamath, Steinke 2020, arXiv:2004.00010, Algorithm 2 (their t / s is our scale).
    """
    t, s = scale.numerator, scale.denominator
    if not (0 < t <= LARGEST and s <= LARGEST):
        raise ValueError("a positive scale with numerator and denominator up to 2**52 is needed")
    out = np.empty(size, np.int64)
    going = np.arange(size)
    while going.size:
        magnitude = _magnitudes(t, s, size=going.size, bits=bits)
        negative = below(2, size=going.size, bits=bits) == 1
        kept = ~(negative & (magnitude == 0))
        out[going[kept]] = np.where(negative, -magnitude, magnitude)[kept]
        going = going[~kept]
    return out


def _magnitudes(t: int, s: int, *, size: int, bits: Bits) -> Ints:
    """Integers Y >= 0 with P(Y = y) proportional to exp(-y s / t)."""
    parts = np.empty(size, np.int64)
    going = np.arange(size)
    while going.size:
        drawn = below(t, size=going.size, bits=bits)
        kept = exp_minus_fraction(drawn, t, bits=bits)
        parts[going[kept]] = drawn[kept]
        going = going[~kept]
    whole = geometric(size, bits=bits)
    if size and int(whole.max()) > 2**62 // t - 1:
        raise OverflowError("a draw beyond 2**62")
    return (parts + t * whole) // s


def scale_for(sensitivity: Fraction, epsilon: Fraction) -> Fraction:
    """A scale that costs at most `epsilon`: sensitivity / epsilon, rounded up where it does not fit."""
    return round_up(sensitivity / epsilon)


def round_up(scale: Fraction) -> Fraction:
    """The scale itself where the sampler takes it, else the next above it on a grid.

    Rounded up, never down, so that the price of the noise is never below what the noise really costs.
    """
    if scale.numerator <= LARGEST and scale.denominator <= LARGEST:
        return scale
    grid = LARGEST
    while grid > 1 and scale * grid > LARGEST - 1:
        grid //= 2
    rounded = Fraction(math.ceil(scale * grid), grid)
    if rounded.numerator > LARGEST:
        raise ValueError("so small an epsilon needs more noise than 64-bit integers hold")
    return rounded


def noise_quantile(scale: Fraction, probability: float) -> int:
    """The smallest q with P(|Z| <= q) >= probability: the half-width of an interval of the noise."""
    # P(|Z| > q) = 2 r**(q+1) / (1 + r) with r = exp(-1 / scale)
    inverse = float(1 / scale)
    tail = (1 - probability) * (1 + math.exp(-inverse)) / 2
    return max(0, math.ceil(-math.log(tail) / inverse - 1 - 1e-12))


def difference_tail(scale: Fraction, least: int) -> float:
    """Return P(Z - Z' >= least) for two independent draws of the same scale and a positive `least`.

    With r = exp(-1 / scale), P(Z - Z' = k) = ((1 - r) / (1 + r))^2 r^|k| (|k| + (1 + r^2) / (1 - r^2)), summed from `least` on.
    """
    inverse = float(1 / scale)
    r, gap = math.exp(-inverse), -math.expm1(-inverse)  # gap = 1 - r, exact where r is near 1
    inner = least + r / gap + (1 + r * r) / (gap * (1 + r))
    return math.exp(-least * inverse) * gap / (1 + r) ** 2 * inner


def difference_quantile(scale: Fraction, tail: float) -> int:
    """Return the smallest q with P(Z - Z' > q) <= tail, rounded up where floating point cannot decide."""
    low, high = 0, 1
    while difference_tail(scale, high + 1) > tail * (1 - 1e-12):
        low, high = high, 2 * high
    if difference_tail(scale, 1) <= tail * (1 - 1e-12):
        return 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if difference_tail(scale, middle + 1) > tail * (1 - 1e-12) else (low, middle)
    return high
