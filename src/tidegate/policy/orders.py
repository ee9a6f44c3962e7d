"""Columns of synthetic tables that are computed from others: ordered columns by a learned gap, and sums.

Every rule works on one row alone, so that a person still changes at most k rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from typing import Any, ClassVar, Literal

from tidegate.errors import PolicyUnreadable
from tidegate.exact import say
from tidegate.policy.attributes import MOST_VALUES, Attribute, Numeric
from tidegate.policy.calendar import Date, Moment, Time, Timestamp

Reversed = Literal["refuse", "clip"]
REVERSED: tuple[Reversed, ...] = ("refuse", "clip")


@dataclass(frozen=True)
class Order:
    """A column that is never below the column `after`: their gap is learned instead of the column.

    `missing` decides on rows in which it is below: "refuse" leaves them out of the counts of the gap, "clip" counts them
    with a gap of 0. Nothing is looked up in the data for it.
    """

    after: str
    missing: Reversed = "refuse"

    def to_dict(self) -> dict[str, Any]:
        """Return the order as its line in the policy file."""
        return {"after": self.after, "missing": self.missing}


@dataclass(frozen=True)
class Linked:
    """A table of events that is learned with copies of columns of the person table: at most 8 of its own names."""

    copies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "copies", tuple(self.copies))

    def to_dict(self) -> dict[str, Any]:
        """Return the link as its line in the policy file."""
        return {"copies": list(self.copies)}


@dataclass(frozen=True)
class Gap(Numeric):
    """The distance of a column (`end`) from the one that it is never below (`start`), in steps of their common grid.

    A row's gap is missing where `end` is missing, and where `start` is, if missing is a value of `start`. Otherwise a row
    without `start` has no gap, and so has a row in which `end` is below `start`, unless the order clips it to 0. Rows
    without a gap are left out of its counts. Everything is decided by the codes of the two columns in one row.
    """

    start: str
    end: str
    lower: Numeric
    upper: Numeric
    clips: bool = False
    kind: ClassVar[str] = "gap"

    @property
    def name(self) -> str:
        """The name of the learned column."""
        return f"{self.end} - {self.start}"

    @property
    def shift(self) -> int:
        """What is added to the difference of the codes to get the code of the gap."""
        return int(_position(self.upper) - _position(self.lower))

    @property
    def low(self) -> Fraction:
        return Fraction(0)

    @property
    def high(self) -> Fraction:
        return (self.shift + self.upper.size - 1) * self.width

    @property
    def width(self) -> Fraction:
        return self.upper.width

    @property
    def cuts(self) -> tuple[Fraction, ...]:
        return ()

    @property
    def missing(self) -> str:
        """Whether a missing gap is a value: it is if a missing `end` is."""
        return "value" if getattr(self.upper, "missing", "") == "value" else "dropped"

    @property
    def keeps_missing_start(self) -> bool:
        """Whether a missing `start` makes the gap missing, instead of leaving out the row."""
        return getattr(self.lower, "missing", "") == "value"

    def describe(self) -> str:
        return f"{self.size:,} steps from {self.start} to {self.end}"

    def check(self) -> None:
        """Refuse columns without a common grid, or whose bounds do not allow the order."""
        lower, upper = self.lower, self.upper
        if not _same_kind(lower, upper):
            raise _wrong(self.end, f'`orders` needs "{self.start}" to be of the same kind with the same step or grid')
        if (_position(upper) - _position(lower)).denominator != 1:
            raise _wrong(self.end, f'its grid does not meet the grid of "{self.start}"')
        if self.shift + upper.size < lower.size:
            raise _wrong(self.end, f'"{self.start}" can be above the highest value of "{self.end}"; raise its bound')
        if self.size > MOST_VALUES:
            raise _wrong(self.end, f'the gap to "{self.start}" has {self.size:,} values; choose a wider step')


def check_sum(name: str, parts: Sequence[str], attributes: Mapping[str, Attribute]) -> None:
    """Refuse a sum whose parts are not numbers, or which would not always be a value of its column."""
    total, terms = attributes[name], [attributes[part] for part in parts]
    if len(set(parts)) != len(parts) or len(parts) < 2:
        raise _wrong(name, "`sums` needs at least two different columns")
    if not all(isinstance(term, Numeric) and not isinstance(term, Moment) for term in (total, *terms)):
        raise _wrong(name, "`sums` is for numbers; all columns must be of kind integer, grid or decimal")
    numbers = [term for term in terms if isinstance(term, Numeric)]
    assert isinstance(total, Numeric)  # noqa: S101  (checked above)
    if total.size > MOST_VALUES:
        raise _wrong(name, f"it has {total.size:,} values, more than the limit of {MOST_VALUES:,}; choose a wider step")
    low, high = (sum(getattr(number, end) for number in numbers) for end in ("low", "high"))
    if low < total.low or high > total.high:
        raise _wrong(
            name,
            f"the sum of {', '.join(parts)} can be {say(Fraction(low))} to {say(Fraction(high))}, outside its bounds "
            f"({say(total.low)} to {say(total.high)}); widen them",
        )
    steps = [number.width for number in numbers if number.size > 1]
    if (low - total.low) % total.width or any(step % total.width for step in steps):
        raise _wrong(name, f"the sum of {', '.join(parts)} is not always on its grid; choose a finer step")


def in_order(sources: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the computed columns so that each comes after those it is computed from; refuse a cycle."""
    try:
        return [name for name in TopologicalSorter(sources).static_order() if name in sources]
    except CycleError as error:
        cycle = " <- ".join(reversed(error.args[1]))
    raise PolicyUnreadable(
        f"[synthesis] computes columns from each other in a cycle: {cycle}.",
        "Remove one of these lines, so that one of the columns is learned.",
    )


def _same_kind(lower: Attribute, upper: Attribute) -> bool:
    if type(lower) is not type(upper) or not isinstance(lower, Numeric) or not isinstance(upper, Numeric):
        return False
    if isinstance(lower, Moment):
        grids = [getattr(moment, "grid", "") for moment in (lower, upper)]
        zones = [bool(getattr(moment, "zone", "")) for moment in (lower, upper)]
        return len({*grids}) == len({*zones}) == 1
    return lower.width == upper.width


def _position(attribute: Numeric) -> Fraction:
    """Return where a column starts, in steps of its grid: of the calendar for dates and times."""
    if isinstance(attribute, Date | Time | Timestamp):
        return Fraction(attribute.origin)
    return attribute.low / attribute.width


def _wrong(name: str, problem: str) -> PolicyUnreadable:
    return PolicyUnreadable(f'[synthesis] "{name}": {problem}.')
