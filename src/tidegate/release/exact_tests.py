"""Exact arithmetic for decisions that are too near to a critical value for floating point."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

DIGITS = 60
PRECISE = Context(prec=DIGITS)  # never the application's context: it may have few digits, or traps
Shares = Sequence[Fraction]


def divergence(column: Sequence[int], baseline: Shares) -> Decimal:
    """Return 2 sum c ln(c / (n b)) of one target's counts."""
    size, total = sum(column), Decimal(0)
    if all(count == size * share for count, share in zip(column, baseline, strict=True)):
        return total  # 0 only here, where the last digits of logarithms would decide about a critical value of 0
    for count, share in zip(column, baseline, strict=True):
        if count:
            surprise = PRECISE.subtract(_logarithm(Fraction(count)), _logarithm(share))
            total = PRECISE.add(total, PRECISE.multiply(count, surprise))
    total = PRECISE.subtract(total, PRECISE.multiply(size, _logarithm(Fraction(size))) if size else Decimal(0))
    return PRECISE.multiply(2, total)


@lru_cache(maxsize=1 << 16)
def _logarithm(number: Fraction) -> Decimal:
    """Return the logarithm; cached, because the same few counts and shares recur."""
    return PRECISE.ln(PRECISE.divide(number.numerator, number.denominator))


def pearson(counts: Sequence[int], shares: Shares) -> Fraction:
    """Return sum (O - E)^2 / E over merged bins."""
    size = sum(counts)
    return sum(
        (
            Fraction((count - size * share) ** 2, 1) / (size * share)
            for count, share in zip(counts, shares, strict=True)
        ),
        Fraction(0),
    )


def odds(column: Sequence[int], baseline: Shares, profiles: Sequence[tuple[Fraction, Shares]]) -> Fraction:
    """Return the odds of "sensitive" after a target's counts: sum of prior x likelihood ratio over the prior of "ordinary"."""
    ordinary = 1 - sum((prior for prior, _ in profiles), Fraction(0))
    return sum((prior * _ratio(column, baseline, values) for prior, values in profiles), Fraction(0)) / ordinary


def _ratio(column: Sequence[int], baseline: Shares, values: Shares) -> Fraction:
    ratio = Fraction(1)
    for count, share, value in zip(column, baseline, values, strict=True):
        ratio *= (value / share) ** count
    return ratio
