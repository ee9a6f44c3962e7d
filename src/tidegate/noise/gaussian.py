"""Discrete Gaussian noise and its quantiles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from tidegate.arrays import Bools, Floats, Ints
from tidegate.noise import inversion
from tidegate.noise.bernoulli import exp_minus_fraction
from tidegate.noise.bits import Bits, SecureBits, SeededBits, below
from tidegate.noise.laplace import LARGEST, discrete_laplace

FINEST = 2**20  # denominator of the sigmas that `sigma_for` returns
SMOOTH = 64  # from this sigma on, a sum over integers equals its integral to far more digits than a float has
NORMAL = NormalDist()


def discrete_gaussian(sigma: Fraction, *, size: int, bits: Bits) -> Ints:
    """Draw integers Z with P(Z = z) proportional to exp(-z**2 / (2 sigma**2)).

    Guarantee:
        Added to integers that lie, for all possible rows of one unit, in a ball of radius r, the result has an average
        loss of r**2 / (2 sigma**2). Exact: no floating point is used. (A draw beyond 2**62 or beyond 16 sigmas, of
        probability below e**-128, raises OverflowError instead of returning a wrong value.)

    Needs:
        sigma > 0, numerator and denominator at most 2**52; `sigma_for` returns such a sigma.

    How:
        By inversion (`inversion.py`), which is 100 times as fast as rejection. From sources that are neither secure nor
        seeded (tests prepare their words) by rejection: propose y from discrete Laplace noise of scale sigma and keep it with probability
        exp(-(|y| - sigma)**2 / (2 sigma**2)). With sigma = s / d and |y| d = a s + b, b < s, the exponent is
        (a - 1)**2 / 2 + (a - 1) b / s + (b / s)**2 / 2 for a >= 1, and ((s - b) / s)**2 / 2 for a = 0: coins of these
        parts, none of which needs a product above |y| d.

    Reference:
        Canonne, Kamath, Steinke 2020, arXiv:2004.00010, Algorithm 3, with another scale of the proposals.
    """
    if isinstance(bits, SecureBits | SeededBits) and 0 < sigma.numerator <= LARGEST and sigma.denominator <= LARGEST:
        return inversion.gaussian(sigma, size=size, bits=bits)
    out = np.empty(size, np.int64)
    pending = np.arange(size)
    while pending.size:
        proposals = discrete_laplace(sigma, size=pending.size, bits=bits)
        accepted = _accept(np.abs(proposals), sigma, bits)
        out[pending[accepted]] = proposals[accepted]
        pending = pending[~accepted]
    return out


def _accept(magnitudes: Ints, sigma: Fraction, bits: Bits) -> Bools:
    """Throw the coin of every proposal."""
    s, d = sigma.numerator, sigma.denominator
    if magnitudes.size and int(magnitudes.max()) > 2**62 // d:
        raise OverflowError("A draw exceeds 2**62.")
    whole, rest = np.divmod(magnitudes * d, s)
    heads = _exp_minus_half_square(np.where(whole == 0, s - rest, rest), s, bits)
    over = np.maximum(whole - 1, 0)
    heads = _throw(heads, over, rest, s, bits)
    return _throw(heads, over * over, np.ones_like(rest), 2, bits)


def _throw(heads: Bools, times: Ints, numerators: Ints, denominator: int, bits: Bits) -> Bools:
    """Throw `times` coins of probability exp(-numerator / denominator) wherever all coins so far are heads."""
    pending = np.flatnonzero(heads & (times > 0))
    left = times[pending]
    while pending.size:
        stays = exp_minus_fraction(numerators[pending], denominator, bits=bits)
        heads[pending[~stays]] = False
        pending, left = pending[stays], left[stays] - 1
        pending, left = pending[left > 0], left[left > 0]
    return heads


def _exp_minus_half_square(numerators: Ints, denominator: int, bits: Bits) -> Bools:
    """Throw one coin of probability exp(-(n / d)**2 / 2) for each n: the k-th of a series is of (n / d)**2 / (2 k)."""
    heads = np.zeros(numerators.size, np.bool_)
    pending = np.arange(numerators.size)
    step = 1
    while pending.size:
        stays = below(2 * step, size=pending.size, bits=bits) == 0
        for _ in range(2):
            stays &= below(denominator, size=pending.size, bits=bits) < numerators[pending]
        heads[pending[~stays]] = step % 2 == 1
        pending = pending[stays]
        step += 1
    return heads


def sigma_for(squared_radius: Fraction, z: Fraction) -> Fraction:
    """Return the smallest sigma on a grid with squared_radius / (2 sigma**2) <= z."""
    variance = squared_radius / (2 * z)
    grid = FINEST
    while True:
        square = variance * grid * grid
        root = math.isqrt(math.ceil(square))
        root += root * root < square
        if root <= LARGEST or grid == 1:
            break
        grid //= 2
    if root > LARGEST:
        raise ValueError("This loss is too small: its noise does not fit into 64-bit integers.")
    return Fraction(max(root, 1), grid)


@dataclass(frozen=True)
class Gaussian:
    """Discrete Gaussian noise as a distribution: draws, and the quantiles that intervals need."""

    sigma: Fraction

    def draw(self, size: int, *, bits: Bits) -> Ints:
        return discrete_gaussian(self.sigma, size=size, bits=bits)

    @property
    def variance(self) -> float:
        return gaussian_variance(self.sigma)

    def quantile(self, probability: float) -> int:
        """Return the smallest q with P(|Z| <= q) >= probability; from sigma 64 on it can be one more."""
        return self.sum_quantile(1, probability)

    def sum_quantile(self, count: int, probability: float) -> int:
        """Return a q with P(|Z_1 + ... + Z_count| <= q) >= probability; the smallest one for a single draw."""
        return _quantile(self.sigma, count, probability)

    def difference_quantile(self, tail: float) -> int:
        """Return the smallest q with P(Z - Z' > q) <= tail for two independent draws."""
        return _difference_quantile(self.sigma, tail)


@lru_cache(maxsize=4096)
def gaussian_variance(sigma: Fraction) -> float:
    """Return the variance: sigma**2 up to rounding from sigma 3 on, and less below."""
    if sigma >= 3:
        return float(sigma) ** 2
    values, weights = _weights(float(sigma))
    return float((values**2 * weights).sum() / weights.sum())


def _weights(sigma: float) -> tuple[Floats, Floats]:
    """Return integers as far as a float sees them, and their weights."""
    reach = math.ceil(40 * sigma) + 2
    values = np.arange(-reach, reach + 1, dtype=np.float64)
    return values, np.exp(-(values**2) / (2 * sigma**2))


@lru_cache(maxsize=16384)
def _quantile(sigma: Fraction, count: int, probability: float) -> int:
    if count == 0:
        return 0
    deviation = float(sigma) * math.sqrt(count)
    allowed = (1 - probability) * (1 - 1e-12)
    if count > 1 and (sigma < 1 or 2 * _unlike_normal(sigma, count) > allowed):
        # a bound for every sum (sub-Gaussian with variance sigma**2 each)
        return math.ceil(deviation * math.sqrt(2 * math.log(2 / allowed)))
    width = max(0, math.floor(-deviation * NORMAL.inv_cdf(allowed / 2)) - 3) if allowed < 1 else 0
    while _two_sided_tail(sigma, count, width) > allowed:
        width += 1
    return width


def _two_sided_tail(sigma: Fraction, count: int, width: int) -> float:
    """Return P(|sum| > width): a sum over the integers if it is short, otherwise its integral, which is not below it."""
    if count == 1 and sigma < SMOOTH:
        values, weights = _weights(float(sigma))
        return float(weights[np.abs(values) > width].sum() / weights.sum())
    return math.erfc((width + 0.5) / (float(sigma) * math.sqrt(2 * count))) + _unlike_normal(sigma, count)


def _unlike_normal(sigma: Fraction, count: int) -> float:
    """Return how far the probabilities of a sum are from normal ones at most, for a sigma of at least 1."""
    return 1e-8 * count if sigma < 4 else 0.0


@lru_cache(maxsize=16384)
def _difference_quantile(sigma: Fraction, tail: float) -> int:
    """Of P(Z - Z' = k), proportional to exp(-k**2 / (4 sigma**2)) times a sum that depends on whether k is odd."""
    allowed = tail * (1 - 1e-12)
    start = -float(sigma) * math.sqrt(2) * NORMAL.inv_cdf(min(allowed, 0.5))
    width = max(0, math.floor(start) - 3)
    while _difference_tail(float(sigma), width) > allowed:
        width += 1
    return width


def _difference_tail(sigma: float, width: int) -> float:
    """Return P(Z - Z' > width)."""
    if sigma >= SMOOTH:
        return math.erfc((width + 0.5) / (2 * sigma)) / 2
    values, weights = _weights(sigma)
    total = weights.sum()
    reach = math.ceil(60 * sigma) + 4
    steps = np.arange(width + 1, width + 1 + reach, dtype=np.float64)
    inner = [float(np.exp(-((values + shift) ** 2) / sigma**2).sum()) for shift in (0.0, 0.5)]
    return float((np.exp(-(steps**2) / (4 * sigma**2)) * np.where(steps % 2 == 0, *inner)).sum() / total**2)
