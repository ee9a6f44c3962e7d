"""The discrete Laplace distribution, slowly: one coin after the other, and its probabilities in many digits.

Written from Canonne, Kamath, Steinke 2020 (arXiv:2004.00010), Algorithms 1 and 2, not from our samplers.
`coin` is an iterator of fair bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import mpmath

DIGITS = 80


def coins(bits) -> Iterator[int]:
    """The bits of a source of words, one at a time."""
    while True:
        for word in bits.words(64).tolist():
            yield from (word >> shift & 1 for shift in range(64))


def bernoulli(p: Fraction, coin: Iterator[int]) -> bool:
    """Heads with probability p: are the flips, read as binary digits after the point, below those of p?"""
    while 0 < p < 1:
        digit, flip = 2 * p >= 1, next(coin)
        if flip != digit:
            return digit
        p = 2 * p - digit
    return p == 1


def uniform(n: int, coin: Iterator[int]) -> int:
    """One of 0 .. n-1, all equally likely: as many flips as n-1 has digits, again while they say n or more."""
    while True:
        drawn = 0
        for _ in range((n - 1).bit_length()):
            drawn = 2 * drawn + next(coin)
        if drawn < n:
            return drawn


def bernoulli_exp(gamma: Fraction, coin: Iterator[int]) -> bool:
    """Algorithm 1: heads with probability exp(-gamma)."""
    if gamma <= 1:
        k = 1
        while bernoulli(gamma / k, coin):
            k += 1
        return k % 2 == 1
    for _ in range(gamma.numerator // gamma.denominator):
        if not bernoulli_exp(Fraction(1), coin):
            return False
    return bernoulli_exp(gamma % 1, coin)


def draw(scale: Fraction, coin: Iterator[int]) -> int:
    """Algorithm 2: an integer z with probability proportional to exp(-|z| / scale); t / s is the scale."""
    t, s = scale.numerator, scale.denominator
    while True:
        u = uniform(t, coin)
        if not bernoulli_exp(Fraction(u, t), coin):
            continue
        v = 0
        while bernoulli_exp(Fraction(1), coin):
            v += 1
        y = (u + t * v) // s
        negative = next(coin)
        if negative and y == 0:
            continue
        return -y if negative else y


def ratio(scale: Fraction) -> mpmath.mpf:
    """How much less likely an integer is than the one before it, away from zero."""
    return mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)


def probability(scale: Fraction, z: int) -> mpmath.mpf:
    """P(Z = z)."""
    with mpmath.workdps(DIGITS):
        r = ratio(scale)
        return (1 - r) / (1 + r) * r ** abs(z)


def at_most(scale: Fraction, z: int) -> mpmath.mpf:
    """P(Z <= z): a geometric series on the side of z."""
    with mpmath.workdps(DIGITS):
        r = ratio(scale)
        return r**-z / (1 + r) if z < 0 else 1 - r ** (z + 1) / (1 + r)


def within(scale: Fraction, q: int) -> mpmath.mpf:
    """P(|Z| <= q)."""
    with mpmath.workdps(DIGITS):
        return at_most(scale, q) - at_most(scale, -q - 1) if q >= 0 else mpmath.mpf(0)


def quantile(scale: Fraction, p: float) -> int:
    """The smallest q with P(|Z| <= q) >= p, by halving."""
    low, high = -1, 1  # low is too small; high will do
    while within(scale, high) < p:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if within(scale, middle) >= p else (middle, high)
    return max(high, 0)
