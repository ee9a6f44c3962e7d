"""Public descriptions of columns. The universe of a column comes from here, never from the data.

A value is represented by its *code*: its position 0 .. size-1 in the public universe. `outside` decides on values outside
of it: numbers are clamped to the bounds, all others are missing, unless the policy says otherwise (a category can have a
value "(other)" for them). Missing is a value of its own (code = size), or the row is left out, or (for numbers) it counts
as the lowest value, so that every row has one. The choices are part of the public description. Lists and text are in
`categories.py`, dates and times in `calendar.py`.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

from tidegate.errors import PolicyUnreadable
from tidegate.exact import LONGEST, Number, exact, plain, say

Missing = Literal["dropped", "value", "lowest"]
Outside = Literal["clamp", "missing", "other"]
Scalar = str | int | bool
MOST_VALUES = (
    2**53
)  # values of a number: codes are whole numbers that floating point represents exactly on every engine
MOST_PLACES = 14  # digits of a decimal: engines compute with one more in floating point without an error
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

    def label(self, code: int) -> Any:
        """Return the value of a code as Python shows it: text, a number, a truth value, a date or a time."""
        raise TypeError(f"A column of kind {self.kind} has no labels.")

    def labels(self) -> list[Any]:
        """Return the labels of all codes."""
        return [self.label(code) for code in range(self.size)]

    def describe(self) -> str:
        """Return the universe as text: ``45 whole numbers from 16 to 60``."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return the attribute as its line in the policy file."""
        raise NotImplementedError

    def _check_outside(self, *choices: Outside) -> None:
        outside = getattr(self, "outside", choices[0])
        if outside not in choices:
            raise PolicyUnreadable(
                f'`outside` of a column of kind {self.kind} cannot be "{outside}".',
                f'Write outside = "{choices[0]}" or outside = "{choices[1]}".',
            )


@dataclass(frozen=True)
class Numeric(Attribute):
    """Numbers on a public grid. `bins` are inner cut points, each the first value of its bin."""

    comparable: ClassVar[str] = "a number"

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

    def label(self, code: int) -> Any:
        return plain(self.value(code))

    def labels(self) -> list[Any]:
        unit = math.lcm(self.low.denominator, self.width.denominator)
        first, step = int(self.low * unit), int(self.width * unit)
        if unit == 1:
            return list(range(first, first + step * self.size, step))
        places = len(str(unit))
        if 10**places % unit or max(abs(self.low), abs(self.high)) * 10**places >= 10**28:
            return super().labels()
        scale = 10**places // unit
        digits = range(first * scale, (first + step * self.size) * scale, step * scale)
        whole = 10**places
        return [d // whole if d % whole == 0 else decimal.Decimal(d).scaleb(-places).normalize() for d in digits]

    def position(self, value: object) -> Fraction | None:
        """Return where a request's value is between codes: 2.5 is halfway from code 2 to 3; None if it cannot be compared."""
        return (value - self.low) / self.width if isinstance(value, Fraction) else None

    def shown(self, value: float | Fraction) -> Any:
        """Return how an answer shows a statistic in the column's unit; for dates and times the unit is a position."""
        return value

    def bin_starts(self) -> tuple[int, ...]:
        """Return the first code of each bin; without bins every value is a bin."""
        if not self.cuts:
            return tuple(range(self.size))
        return (0, *(math.ceil((cut - self.low) / self.width) for cut in self.cuts))

    def _check(self, name: str) -> None:
        self._check_outside("clamp", "missing")
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
    outside: Outside = "clamp"
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
        ends = {"from": self.lowest, "to": self.highest}
        return {"kind": self.kind, **ends, **bins, "missing": self.missing, **changed(outside=(self.outside, "clamp"))}


class Stepped(Numeric):
    """Numbers `lowest`, `lowest + step`, ... up to `highest`."""

    lowest: Fraction
    highest: Fraction
    step: Fraction
    bins: tuple[Fraction, ...]

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


@dataclass(frozen=True)
class Grid(Stepped):
    """Numbers `low`, `low + step`, ... up to `high`. Other numbers are rounded to the nearest of them."""

    lowest: Fraction
    highest: Fraction
    step: Fraction
    bins: tuple[Fraction, ...] = ()
    missing: Missing = "dropped"
    outside: Outside = "clamp"
    kind: ClassVar[str] = "grid"

    def __init__(
        self,
        lowest: Number,
        highest: Number,
        step: Number,
        bins: Sequence[Number] = (),
        missing: Missing = "dropped",
        outside: Outside = "clamp",
    ) -> None:
        for name, value in (("lowest", lowest), ("highest", highest), ("step", step)):
            object.__setattr__(self, name, exact(value))
        object.__setattr__(self, "bins", tuple(exact(cut) for cut in bins))
        object.__setattr__(self, "missing", missing)
        object.__setattr__(self, "outside", outside)
        if self.step <= 0:
            raise PolicyUnreadable("A grid requires a step above 0.", "Write Grid(0, 1, 0.01).")
        if (self.highest - self.lowest) % self.step:
            raise PolicyUnreadable(
                f"A grid from {say(self.lowest)} in steps of {say(self.step)} does not reach {say(self.highest)}.",
                "Choose a step that divides the range.",
            )
        self._check("Grid")

    def describe(self) -> str:
        return f"{self.size:,} numbers from {say(self.lowest)} to {say(self.highest)} in steps of {say(self.step)}"

    def to_dict(self) -> dict[str, Any]:
        bins = {"bins": [plain(cut) for cut in self.bins]} if self.bins else {}
        ends = {"from": plain(self.lowest), "to": plain(self.highest), "step": plain(self.step)}
        return {"kind": self.kind, **ends, **bins, "missing": self.missing, **changed(outside=(self.outside, "clamp"))}


class Decimal(Grid):
    """Decimal numbers, rounded exactly: the same grid as `Grid`, with bounds and a step of finitely many digits."""

    kind: ClassVar[str] = "decimal"

    @property
    def places(self) -> int:
        """The digits after the point."""
        unit = math.lcm(self.lowest.denominator, self.step.denominator)
        return next((places for places in range(MOST_PLACES + 1) if 10**places % unit == 0), MOST_PLACES + 1)

    def _check(self, name: str) -> None:
        super()._check("Decimal")
        largest = max(abs(self.lowest), abs(self.highest))
        if self.places > MOST_PLACES or 4 * (largest + 1) * 10 ** (self.places + 1) >= MOST_VALUES:
            raise PolicyUnreadable(
                f"A decimal has at most {MOST_PLACES} digits, before and after the point together.",
                'Declare a coarser step, or kind = "grid" for other numbers.',
            )


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


def changed(**settings: tuple[Any, Any]) -> dict[str, Any]:
    """Return the settings that differ from their default: name = (value, default)."""
    return {name: value for name, (value, default) in settings.items() if value != default}
