"""Amounts of loss that add up exactly: whole numbers of grains, a grain being 1e-30 of an epsilon.

Floats can swallow a spend (0.1 + 1e-20 == 0.1); whole numbers cannot. What is asked is rounded up to a grain, what
is allowed is rounded down, so that rounding never gives anything away and the smallest spend is one grain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import total_ordering

from tidegate.exact import Number, exact, say

PLACES = 30
GRAINS = 10**PLACES


@total_ordering
@dataclass(frozen=True)
class Amount:
    """A non-negative loss, exact to a grain."""

    grains: int

    def __post_init__(self) -> None:
        if self.grains < 0:
            raise ValueError("an amount of loss is never negative")

    @classmethod
    def up(cls, value: Number) -> Amount:
        """The smallest amount not below `value`: for what is asked."""
        return cls(math.ceil(exact(value) * GRAINS))

    @classmethod
    def down(cls, value: Number) -> Amount:
        """The largest amount not above `value`: for what is allowed."""
        return cls(math.floor(exact(value) * GRAINS))

    @classmethod
    def parse(cls, text: str) -> Amount:
        """The amount that `str` wrote; refuses anything that is not its exact form."""
        whole, _, part = text.partition(".")
        if not (whole + part).isdecimal() or len(part) > PLACES:
            raise ValueError("not an amount in its exact form")
        amount = cls(int(whole or "0") * GRAINS + int(part.ljust(PLACES, "0")))
        if str(amount) != text:
            raise ValueError("not an amount in its exact form")
        return amount

    @property
    def value(self) -> Fraction:
        return Fraction(self.grains, GRAINS)

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.grains + other.grains)

    def minus(self, other: Amount) -> Amount:
        """What is left, never below zero."""
        return Amount(max(0, self.grains - other.grains))

    def __lt__(self, other: Amount) -> bool:
        return self.grains < other.grains

    def __bool__(self) -> bool:
        return self.grains > 0

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        """The exact decimal, shortest form: ``0.2``."""
        whole, part = divmod(self.grains, GRAINS)
        digits = f"{part:0{PLACES}d}".rstrip("0")
        return f"{whole}.{digits}" if digits else str(whole)

    def say(self) -> str:
        """The amount for a sentence: ``2.39``."""
        return say(self.value)

    def say_below(self) -> str:
        """The amount for advice, rounded down, so that what is advised also fits."""
        digits = max(0, 2 - math.floor(math.log10(self.value))) if self.grains else 0
        return str(Amount.down(Fraction(math.floor(self.value * 10**digits), 10**digits)))


ZERO = Amount(0)
