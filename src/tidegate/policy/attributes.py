"""Public descriptions of columns. The universe of a column comes from here, never from the data.

A value is represented by its *code*: its position 0 .. size-1 in the public universe. Numbers outside the bounds are
clamped to them; a category outside the list is missing. Missing is a value of its own (code = size), or the row is left
out, or (for numbers) it counts as the lowest value, so that every row has one. The choice is part of the public description.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

from tidegate.errors import PolicyUnreadable
from tidegate.exact import LONGEST, Number, exact, plain, say

Missing = Literal["dropped", "value", "lowest"]
Scalar = str | int | bool
MOST_VALUES = (
    2**53
)  # values of a number: codes are whole numbers that floating point represents exactly on every engine
LARGEST, SMALLEST = 10**100, Fraction(1, 10**100)


@dataclass(frozen=True)
class Attribute:
    """The public description of one column."""

    kind: ClassVar[str]

    @property
    def size(self) -> int:
        """The number of values a person could have, without missing (an adversary can know that a value is present)."""
        raise NotImplementedError

    @property
    def countable(self) -> bool:
        """Whether tables can be grouped by the column."""
        return True

    @property
    def cells(self) -> int:
        """The number of groups: its bins, or its values if it has none, plus missing if that is a value."""
        return self._groups + (getattr(self, "missing", "dropped") == "value")

    @property
    def _groups(self) -> int:
        return self.size

    def describe(self) -> str:
        """Return the universe as text: ``45 whole numbers from 16 to 60``."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return the attribute as its line in the policy file."""
        raise NotImplementedError


@dataclass(frozen=True)
class Numeric(Attribute):
    """Numbers on a public grid. `bins` are inner cut points, each the first value of its bin."""

    @property
    def low(self) -> Fraction:
        raise NotImplementedError

    @property
    def high(self) -> Fraction:
        raise NotImplementedError

    @property
    def width(self) -> Fraction:
        """The distance between neighboring values."""
        raise NotImplementedError

    @property
    def cuts(self) -> tuple[Fraction, ...]:
        raise NotImplementedError

    @property
    def size(self) -> int:
        return int((self.high - self.low) / self.width) + 1

    @property
    def _groups(self) -> int:
        return len(self.bin_starts()) if self.cuts else self.size

    @property
    def fits_floats(self) -> bool:
        """Whether bounds, step and their squares fit into floating point."""
        return max(abs(self.low), abs(self.high)) <= LARGEST and self.width >= SMALLEST

    @property
    def too_large(self) -> str:
        """The reason why no engine can compute with these values, to follow the column's name; empty if engines can."""
        if self.size > MOST_VALUES:
            return f"has {say(Fraction(self.size))} possible values, more than the {MOST_VALUES:,} that engines can distinguish"
        return "" if self.fits_floats else "has bounds above 1e100 or a step below 1e-100"

    def value(self, code: int) -> Fraction:
        """Return the value of a code."""
        return self.low + code * self.width

    def bin_starts(self) -> tuple[int, ...]:
        """Return the first code of each bin; without bins every value is a bin."""
        if not self.cuts:
            return tuple(range(self.size))
        return (0, *(math.ceil((cut - self.low) / self.width) for cut in self.cuts))

    def _check(self, name: str) -> None:
        if self.high < self.low:
            raise PolicyUnreadable(f"{name} needs from <= to; it has from {self.low} and to {self.high}.")
        starts = self.bin_starts() if self.cuts else (0,)
        if list(starts) != sorted(set(starts)) or starts[-1] >= self.size:
            raise PolicyUnreadable(
                f"The bins of a column from {say(self.low)} to {say(self.high)} must rise strictly inside its bounds.",
                "List the first value of every bin except the lowest, e.g. bins = [20, 30, 40].",
            )


@dataclass(frozen=True)
class Integer(Numeric):
    """Whole numbers from `lowest` to `highest`, both included. Other numbers go to the nearest of them."""

    lowest: int
    highest: int
    bins: tuple[int, ...] = ()
    missing: Missing = "dropped"
    kind: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", tuple(self.bins))
        for bound in (self.lowest, self.highest, *self.bins):
            if not isinstance(bound, int) or isinstance(bound, bool) or bound.bit_length() > LONGEST:
                raise PolicyUnreadable(
                    f"The bounds and bins of Integer must be whole numbers of at most {LONGEST:,} bits.",
                    "Write Integer(0, 120), or Grid(0, 1, 0.01) for other numbers.",
                )
        self._check("Integer")

    @property
    def low(self) -> Fraction:
        return Fraction(self.lowest)

    @property
    def high(self) -> Fraction:
        return Fraction(self.highest)

    @property
    def width(self) -> Fraction:
        return Fraction(1)

    @property
    def cuts(self) -> tuple[Fraction, ...]:
        return tuple(Fraction(cut) for cut in self.bins)

    def describe(self) -> str:
        return f"{self.size:,} whole numbers from {self.lowest:,} to {self.highest:,}"

    def to_dict(self) -> dict[str, Any]:
        bins = {"bins": list(self.bins)} if self.bins else {}
        return {"kind": self.kind, "from": self.lowest, "to": self.highest, **bins, "missing": self.missing}


@dataclass(frozen=True)
class Grid(Numeric):
    """Numbers `low`, `low + step`, ... up to `high`. Other numbers are rounded to the nearest of them."""

    lowest: Fraction
    highest: Fraction
    step: Fraction
    bins: tuple[Fraction, ...] = ()
    missing: Missing = "dropped"
    kind: ClassVar[str] = "grid"

    def __init__(
        self,
        lowest: Number,
        highest: Number,
        step: Number,
        bins: tuple[Number, ...] = (),
        missing: Missing = "dropped",
    ) -> None:
        for name, value in (("lowest", lowest), ("highest", highest), ("step", step)):
            object.__setattr__(self, name, exact(value))
        object.__setattr__(self, "bins", tuple(exact(cut) for cut in bins))
        object.__setattr__(self, "missing", missing)
        if self.step <= 0:
            raise PolicyUnreadable("A grid requires a step above 0.", "Write Grid(0, 1, 0.01).")
        if (self.highest - self.lowest) % self.step:
            raise PolicyUnreadable(
                f"A grid from {say(self.lowest)} in steps of {say(self.step)} does not reach {say(self.highest)}.",
                "Choose a step that divides the range.",
            )
        self._check("Grid")

    @property
    def low(self) -> Fraction:
        return self.lowest

    @property
    def high(self) -> Fraction:
        return self.highest

    @property
    def width(self) -> Fraction:
        return self.step

    @property
    def cuts(self) -> tuple[Fraction, ...]:
        return self.bins

    def describe(self) -> str:
        return f"{self.size:,} numbers from {say(self.lowest)} to {say(self.highest)} in steps of {say(self.step)}"

    def to_dict(self) -> dict[str, Any]:
        bins = {"bins": [plain(cut) for cut in self.bins]} if self.bins else {}
        ends = {"from": plain(self.lowest), "to": plain(self.highest), "step": plain(self.step)}
        return {"kind": self.kind, **ends, **bins, "missing": self.missing}


@dataclass(frozen=True)
class Category(Attribute):
    """One of a public list of values: all text, all whole numbers, or all true/false."""

    values: tuple[Scalar, ...]
    missing: Missing = "dropped"
    kind: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        kinds = {type(value) for value in self.values}
        if self.missing == "lowest":
            raise PolicyUnreadable("A category has no lowest value.", 'Write missing = "dropped" or missing = "value".')
        if not self.values or len(kinds) != 1 or not kinds <= {str, int, bool}:
            raise PolicyUnreadable(
                "A category requires a list of values that are all text, all whole numbers, or all true/false."
            )
        if len(set(self.values)) != len(self.values):
            raise PolicyUnreadable("A category lists one of its values twice.", "List each value once.")

    @property
    def size(self) -> int:
        return len(self.values)

    @property
    def value_type(self) -> type:
        return type(self.values[0])

    @cached_property
    def codes(self) -> dict[Scalar, int]:
        """The position of each value in the list."""
        return {value: code for code, value in enumerate(self.values)}

    def describe(self) -> str:
        return f"{self.size:,} listed values" if self.size != 1 else "1 listed value"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "values": list(self.values), "missing": self.missing}


@dataclass(frozen=True)
class Items(Attribute):
    """A set of items from a public vocabulary (a basket). For collections only; tables cannot be grouped by it."""

    vocabulary: tuple[str, ...]
    missing: Missing = "dropped"
    kind: ClassVar[str] = "items"

    def __post_init__(self) -> None:
        object.__setattr__(self, "vocabulary", tuple(self.vocabulary))
        if not self.vocabulary or len(set(self.vocabulary)) != len(self.vocabulary):
            raise PolicyUnreadable("Items require a vocabulary that names each item once.")

    @property
    def size(self) -> int:
        return int(2 ** len(self.vocabulary))

    @property
    def countable(self) -> bool:
        return False

    def describe(self) -> str:
        return f"any set of {len(self.vocabulary):,} items"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "vocabulary": list(self.vocabulary), "missing": self.missing}


@dataclass(frozen=True)
class Key(Attribute):
    """The name of the person or the record. It has no universe, and no query can use it."""

    kind: ClassVar[str] = "key"

    @property
    def size(self) -> int:
        return 0

    @property
    def countable(self) -> bool:
        return False

    def describe(self) -> str:
        return "names the person or the record"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}
