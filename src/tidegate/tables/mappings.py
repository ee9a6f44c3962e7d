"""What expressions over the universe become: numbers for combinations of codes, cells of a grouping, numbers on a grid."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import Unsupported
from tidegate.exact import say
from tidegate.policy.attributes import Attribute, Stepped

FEW_RUNS = 32  # up to this number, an engine compares; more are joined or added up afterwards
FEW_COMBINATIONS = 4096  # groups that an engine returns rather than mapping every row
MOST_LISTED = 2**17  # combinations or intervals that an engine joins with
MOST_OF_PREFIX = 16  # intervals, on average: an engine compares a row with each
MOST_PACKED = 2**52  # engines that divide in floating point are exact below this
MOST_CELLS = 1024  # cells of codes that an engine compares with
DROPPED = -1
Ints = NDArray[np.int64]


def runs_of(numbers: Ints) -> tuple[Ints, Ints]:
    """Return the first index of each run of equal numbers, and its number."""
    starts = np.concatenate([[0], np.flatnonzero(np.diff(numbers)) + 1]).astype(np.int64)
    return starts, numbers[starts]


def regular_cells(classes: Ints) -> tuple[int, int] | None:
    """Return offset and width if the class of every code is (code + offset) // width; None otherwise."""
    starts, _ = runs_of(classes)
    lengths = np.diff([*starts, len(classes)])
    width = int(lengths[1] if len(starts) > 2 else lengths.max())
    offset = width - int(starts[1]) if len(starts) > 1 else 0
    is_regular = offset >= 0 and np.array_equal((np.arange(len(classes)) + offset) // width, classes)
    return (offset, width) if is_regular else None


def has_few_cells(classes: Ints) -> bool:
    """Return whether an engine finds the class of a code by arithmetic or by comparisons."""
    return regular_cells(classes) is not None or len(runs_of(classes)[0]) <= MOST_CELLS


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals of a last column, by the combination of the columns before it (`prefixes`). Numbers start at 0."""

    prefixes: Ints
    firsts: Ints
    lasts: Ints
    numbers: Ints
    width: int  # values of the last column

    @property
    def factor(self) -> int:
        """The number of possible numbers."""
        return int(self.numbers.max(initial=0)) + 1

    @property
    def packed(self) -> Ints:
        """The first, the last and the number of each interval as one whole number."""
        return (self.firsts * self.width + self.lasts) * self.factor + self.numbers


@dataclass(frozen=True, eq=False)
class Mapped:
    """A number for every combination of codes, in the order of `columns`; missing is the last code of each.

    If there are `classes`, combinations are those of the classes of the columns' codes.
    """

    columns: tuple[str, ...]
    sizes: tuple[int, ...]  # with missing
    codes: Ints
    classes: tuple[Ints, ...] = ()

    @cached_property
    def runs(self) -> tuple[Ints, Ints]:
        """The first combination of each run of equal numbers, and its number."""
        return runs_of(self.codes)

    @property
    def has_few_runs(self) -> bool:
        """Whether an engine finds the number by a few comparisons."""
        return len(self.runs[0]) <= FEW_RUNS

    @property
    def is_looked_up_later(self) -> bool:
        """Whether a grouping is cheaper by combinations, which are looked up in the result: if there are few, or many runs."""
        return len(self.codes) <= FEW_COMBINATIONS or not self.has_few_runs

    @cached_property
    def usual(self) -> int:
        """The most frequent number."""
        numbers, counts = np.unique(self.codes, return_counts=True)
        return int(numbers[counts.argmax()])

    @cached_property
    def intervals(self) -> Intervals | None:
        """Intervals of the last column with one number each, if they are a shorter list than the combinations.

        For example "end - start > 7": for each start, one interval of ends.
        """
        width = self.sizes[-1]
        ends = np.arange(width, len(self.codes) + 1, width)
        starts = np.union1d(self.runs[0], ends - width)
        numbers, lasts = self.codes[starts], np.append(starts[1:], len(self.codes)) - 1
        unusual = numbers != self.usual
        listed = Intervals(
            starts[unusual] // width, starts[unusual] % width, lasts[unusual] % width, numbers[unusual] - DROPPED, width
        )
        is_short = 4 * len(listed.numbers) <= int((self.codes != self.usual).sum())
        is_cheap = len(listed.numbers) <= MOST_OF_PREFIX * len(ends) and len(ends) > 1
        return listed if is_short and is_cheap and listed.factor * (width**2 + 1) < MOST_PACKED else None

    @cached_property
    def listed(self) -> int:
        """The number of intervals or combinations that an engine joins with."""
        short = self.intervals
        return len(short.numbers) if short else int((self.codes != self.usual).sum())

    def check_listed(self, text: str) -> None:
        """Refuse a mapping that is too irregular for an engine: it can neither be compared nor joined with."""
        if not self.shortest.has_few_runs and self.shortest.listed > MOST_LISTED:
            raise Unsupported(
                f"{text[:80]} is too irregular: more than {MOST_LISTED:,} combinations of values would have to be listed.",
                "Compare columns with values, or declare a coarser grid in the policy.",
            )

    @cached_property
    def shortest(self) -> Mapped:
        """The same numbers with the columns in the order that has the fewest runs."""
        if len(self.columns) < 2:
            return self
        grid = self.codes.reshape(self.sizes)
        orders = [tuple(np.roll(range(len(self.columns)), turn)) for turn in range(len(self.columns))]
        turned = [
            Mapped(
                tuple(self.columns[i] for i in order),
                tuple(self.sizes[i] for i in order),
                np.ascontiguousarray(np.transpose(grid, order)).reshape(-1),
                tuple(self.classes[i] for i in order) if self.classes else (),
            )
            for order in orders
        ]
        return min(turned, key=lambda mapped: len(mapped.runs[0]))


@dataclass(frozen=True, eq=False)
class Grouping(Attribute):
    """The values of an expression as cells of a grouping."""

    text: str
    mapped: Mapped
    values: tuple[Any, ...]
    arrow_type: Any
    missing: str = "dropped"
    kind: ClassVar[str] = "expression"

    @property
    def size(self) -> int:
        return len(self.values)

    def label(self, code: int) -> Any:
        return self.values[code]

    def labels(self) -> list[Any]:
        return list(self.values)

    def describe(self) -> str:
        return f"{self.size:,} values of {self.text}"


@dataclass(frozen=True, eq=False)
class Measured(Stepped):
    """The values of an expression as numbers on a public grid.

    `sign` is 1 or -1 if the grid is that of a single column, in the same or the opposite order; 0 otherwise. `rounded` is
    True if the values do not lie on the grid themselves.
    """

    text: str
    mapped: Mapped
    lowest: Fraction
    highest: Fraction
    step: Fraction
    sign: int = 0
    rounded: bool = False
    missing: str = "dropped"
    bins: tuple[Fraction, ...] = field(default=(), init=False)
    kind: ClassVar[str] = "expression"

    def describe(self) -> str:
        return f"{self.text}, from {say(self.low)} to {say(self.high)}"
