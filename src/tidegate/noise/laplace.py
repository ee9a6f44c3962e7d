"""Discrete Laplace noise and its quantiles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from tidegate.arrays import Ints
from tidegate.noise import inversion
from tidegate.noise.bernoulli import exp_minus_fraction, geometric
from tidegate.noise.bits import Bits, SecureBits, SeededBits, below

LARGEST = 2**52  # limit of a scale's numerator and denominator: U + t V fits into 64 bits for every V below 1024


def discrete_laplace(scale: Fraction, *, size: int, bits: Bits) -> Ints:
    """Draw integers Z with P(Z = z) proportional to exp(-|z| / scale).

    Guarantee:
        Added to integers that one person changes by at most s in total (L1), the result has pure loss
        s / scale. Exact: no floating point is used. (A draw beyond 2**62 or beyond 512 scales, of probability below
        e**-500, raises OverflowError instead of returning a wrong value.)

    Needs:
        scale > 0, numerator and denominator at most 2**52; `scale_for` returns such a scale.

    How:
        By inversion (`inversion.py`), which is 60 times as fast as the published algorithm. The published algorithm below
        has the same distribution and serves sources that are neither secure nor seeded: tests prepare their words.

    Reference:
        Canonne, Kamath, Steinke 2020, arXiv:2004.00010, Algorithm 2 (their t / s is our scale).
    """
    t, s = scale.numerator, scale.denominator
    if not (0 < t <= LARGEST and s <= LARGEST):
        raise ValueError("The scale must be positive, with a numerator and a denominator of at most 2**52.")
    if isinstance(bits, SecureBits | SeededBits):
        return inversion.laplace(scale, size=size, bits=bits)
    out = np.empty(size, np.int64)
    pending = np.arange(size)
    while pending.size:
        magnitude = _magnitudes(t, s, size=pending.size, bits=bits)
        negative = below(2, size=pending.size, bits=bits) == 1
        accepted = ~(negative & (magnitude == 0))
        out[pending[accepted]] = np.where(negative, -magnitude, magnitude)[accepted]
        pending = pending[~accepted]
    return out


def _magnitudes(t: int, s: int, *, size: int, bits: Bits) -> Ints:
    """Draw integers Y >= 0 with P(Y = y) proportional to exp(-y s / t)."""
    parts = np.empty(size, np.int64)
    pending = np.arange(size)
    while pending.size:
        drawn = below(t, size=pending.size, bits=bits)
        accepted = exp_minus_fraction(drawn, t, bits=bits)
        parts[pending[accepted]] = drawn[accepted]
        pending = pending[~accepted]
    whole = geometric(size, bits=bits)
    if size and int(whole.max()) > 2**62 // t - 1:
        raise OverflowError("A draw exceeds 2**62.")
    return (parts + t * whole) // s


def scale_for(sensitivity: Fraction, epsilon: Fraction) -> Fraction:
    """Return a scale that costs at most `epsilon`: sensitivity / epsilon, rounded up if it does not fit."""
    return round_up(sensitivity / epsilon)


def round_up(scale: Fraction) -> Fraction:
    """Return the scale itself if the sampler accepts it, otherwise the next larger one on a grid.

    Rounding is always up, so that the noise never costs more than its price.
    """
    if scale.numerator <= LARGEST and scale.denominator <= LARGEST:
        return scale
    grid = LARGEST
    while grid > 1 and scale * grid > LARGEST - 1:
        grid //= 2
    rounded = Fraction(math.ceil(scale * grid), grid)
    if rounded.numerator > LARGEST:
        raise ValueError("This epsilon is too small: its noise does not fit into 64-bit integers.")
    return rounded


def noise_quantile(scale: Fraction, probability: float) -> int:
    """Return the smallest q with P(|Z| <= q) >= probability: the half-width of an interval of the noise."""
    # P(|Z| > q) = 2 r**(q+1) / (1 + r) with r = exp(-1 / scale)
    inverse = float(1 / scale)
    tail = (1 - probability) * (1 + math.exp(-inverse)) / 2
    return max(0, math.ceil(-math.log(tail) / inverse - 1 - 1e-12))


def difference_tail(scale: Fraction, least: int) -> float:
    """Return P(Z - Z' >= least) for two independent draws of the same scale and a positive `least`.

    With r = exp(-1 / scale), P(Z - Z' = k) = ((1 - r) / (1 + r))^2 r^|k| (|k| + (1 + r^2) / (1 - r^2)), summed over k >= least.
    """
    inverse = float(1 / scale)
    r, gap = math.exp(-inverse), -math.expm1(-inverse)  # gap = 1 - r, exact where r is near 1
    inner = least + r / gap + (1 + r * r) / (gap * (1 + r))
    return math.exp(-least * inverse) * gap / (1 + r) ** 2 * inner


def difference_quantile(scale: Fraction, tail: float) -> int:
    """Return the smallest q with P(Z - Z' > q) <= tail, rounded up if floating point cannot decide."""
    low, high = 0, 1
    while difference_tail(scale, high + 1) > tail * (1 - 1e-12):
        low, high = high, 2 * high
    if difference_tail(scale, 1) <= tail * (1 - 1e-12):
        return 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if difference_tail(scale, middle + 1) > tail * (1 - 1e-12) else (low, middle)
    return high


@lru_cache(maxsize=10_000)
def sum_quantile(scale: Fraction, count: int, probability: float) -> int:
    """Return a bound on the sum of `count` independent noises with that probability (Chernoff; exact for one)."""
    if count <= 1:
        return noise_quantile(scale, probability) if count else 0
    log_r, log_odds = -1 / float(scale), math.log(2 / (1 - probability))
    best = math.inf
    for step in range(1, 200):
        theta = -log_r * step / 200
        log_mgf = (
            2 * math.log1p(-math.exp(log_r))
            - math.log1p(-math.exp(log_r + theta))
            - math.log1p(-math.exp(log_r - theta))
        )
        best = min(best, (count * log_mgf + log_odds) / theta)
    return math.ceil(best)


@dataclass(frozen=True)
class Laplace:
    """Discrete Laplace noise as a distribution: draws, and the quantiles that intervals need."""

    scale: Fraction

    def draw(self, size: int, *, bits: Bits) -> Ints:
        return discrete_laplace(self.scale, size=size, bits=bits)

    @property
    def variance(self) -> float:
        ratio = math.exp(-1 / float(self.scale))
        return 2 * ratio / math.expm1(-1 / float(self.scale)) ** 2

    def quantile(self, probability: float) -> int:
        """Return the smallest q with P(|Z| <= q) >= probability."""
        return noise_quantile(self.scale, probability)

    def sum_quantile(self, count: int, probability: float) -> int:
        """Return a q with P(|Z_1 + ... + Z_count| <= q) >= probability; the smallest one for a single draw."""
        return sum_quantile(self.scale, count, probability)

    def difference_quantile(self, tail: float) -> int:
        """Return the smallest q with P(Z - Z' > q) <= tail for two independent draws."""
        return difference_quantile(self.scale, tail)
