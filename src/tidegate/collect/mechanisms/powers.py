"""e to a power, in whole numbers only: the same digits on every machine and in every language.

A fixed-point number here is an integer over 2**PLACES.
"""

from __future__ import annotations

from fractions import Fraction

PLACES = 128
ONE = 1 << PLACES


def exp_below(power: Fraction) -> int:
    """A fixed-point number at most e**power, and within 2**-100 of it in proportion.

    Guarantee  Never above e**power: the terms of the series are positive, and each is rounded down.
    Needs      0 <= power <= 100.
    """
    if not 0 <= power <= 100:
        raise ValueError("a power from 0 to 100 is needed")
    total = term = ONE
    step = 1
    while term:
        term = term * power.numerator // (power.denominator * step)
        total += term
        step += 1
    return total


def exp_minus(power: Fraction) -> int:
    """e**-power as a fixed-point number, rounded down from the inverse of `exp_below`; 0 for powers above 100."""
    return ONE * ONE // exp_below(power) if power <= 100 else 0
