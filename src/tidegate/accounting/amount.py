"""Amounts of loss that add up exactly: whole numbers of grains of 1e-30 each, and prices in three units.

Floats can lose a small charge (0.1 + 1e-20 == 0.1); whole numbers cannot. Charges are rounded up to a grain and limits are
rounded down, so that rounding never weakens a promise, and the smallest charge is one grain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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
            raise ValueError("An amount of loss cannot be negative.")

    @classmethod
    def up(cls, value: Number) -> Amount:
        """Return the smallest amount not below `value`: for charges."""
        return cls(math.ceil(exact(value) * GRAINS))

    @classmethod
    def down(cls, value: Number) -> Amount:
        """Return the largest amount not above `value`: for limits."""
        return cls(math.floor(exact(value) * GRAINS))

    @classmethod
    def parse(cls, text: str) -> Amount:
        """Return the amount that `str` wrote. Any other form is refused."""
        whole, _, part = text.partition(".")
        if not (whole + part).isdecimal() or len(part) > PLACES:
            raise ValueError("The text is not an amount in its exact form.")
        amount = cls(int(whole or "0") * GRAINS + int(part.ljust(PLACES, "0")))
        if str(amount) != text:
            raise ValueError("The text is not an amount in its exact form.")
        return amount

    @property
    def value(self) -> Fraction:
        return Fraction(self.grains, GRAINS)

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.grains + other.grains)

    def minus(self, other: Amount) -> Amount:
        """Return the difference, at least zero."""
        return Amount(max(0, self.grains - other.grains))

    def __lt__(self, other: Amount) -> bool:
        return self.grains < other.grains

    def __bool__(self) -> bool:
        return self.grains > 0

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        """Return the exact decimal in its shortest form: ``0.2``."""
        whole, part = divmod(self.grains, GRAINS)
        digits = f"{part:0{PLACES}d}".rstrip("0")
        return f"{whole}.{digits}" if digits else str(whole)

    def say(self) -> str:
        """Return the amount as text for a sentence: ``2.39``."""
        return say(self.value)

    def say_below(self) -> str:
        """Return the amount as text for advice, rounded down so that the advised amount fits."""
        digits = max(0, 2 - math.floor(math.log10(self.value))) if self.grains else 0
        return str(Amount.down(Fraction(math.floor(self.value * 10**digits), 10**digits)))


ZERO = Amount(0)


@dataclass(frozen=True)
class Price:
    """The cost of an event, or a sum of costs, in three units that each add up.

    pure: The largest logarithm of a ratio of probabilities (epsilon). None: unbounded.
    zcdp: The largest Renyi divergence of any order alpha between two neighboring data sets, divided by alpha:
        zero-concentrated differential privacy.
    z: The same between each possible data set and one fixed reference distribution: the average loss, at most zcdp.
    """

    pure: Amount | None
    zcdp: Amount
    z: Amount

    @classmethod
    def up(cls, pure: Fraction | None, zcdp: Fraction, z: Fraction) -> Price:
        """Return the smallest price not below the exact losses."""
        return cls(Amount.up(pure) if pure is not None else None, Amount.up(zcdp), Amount.up(z))

    def __add__(self, other: Price) -> Price:
        pure = None if self.pure is None or other.pure is None else self.pure + other.pure
        return Price(pure, self.zcdp + other.zcdp, self.z + other.z)

    def minus(self, other: Price) -> Price:
        """Return the difference, at least zero; an unbounded loss stays unbounded."""
        pure = None if self.pure is None or other.pure is None else self.pure.minus(other.pure)
        return Price(pure, self.zcdp.minus(other.zcdp), self.z.minus(other.z))

    def __bool__(self) -> bool:
        return self.pure is None or bool(self.pure) or bool(self.zcdp) or bool(self.z)

    def to_dict(self) -> dict[str, str | None]:
        """Return the exact amounts as text; null means unbounded."""
        return {"pure": None if self.pure is None else str(self.pure), "zcdp": str(self.zcdp), "z": str(self.z)}

    @classmethod
    def from_dict(cls, content: Mapping[str, str | None]) -> Price:
        """Return the price that `to_dict` wrote."""
        pure = content["pure"]
        parsed = None if pure is None else Amount.parse(pure)
        return cls(parsed, Amount.parse(content["zcdp"] or ""), Amount.parse(content["z"] or ""))


FREE = Price(ZERO, ZERO, ZERO)
