"""What a model may know before it sees a row: the columns' public cells, the number of rows, how far one unit reaches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tidegate.arrays import Ints


@dataclass(frozen=True)
class Column:
    """One column as codes 0 .. size - 1 of its public universe, cut into public cells of neighbouring codes.

    `starts` holds the first code of every cell, from 0 upwards. Where `missing`, one more cell comes last and its code is
    `size`; otherwise rows without a listed value are left out of every count of this column. `ordered`: neighbouring codes
    mean neighbouring values. `even`: the widths of the cells mean something (false for logarithmic cells). `heaped`: single
    codes inside a cell may be frequent, and are worth looking for. `whole`: False where the values stand for real numbers.
    """

    name: str
    size: int
    starts: tuple[int, ...]
    ordered: bool = True
    even: bool = True
    missing: bool = False
    heaped: bool = False
    whole: bool = True

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in zip(self.starts, self.starts[1:], strict=False))
        if not self.starts or self.starts[0] != 0 or not rising or self.starts[-1] >= self.size:
            raise ValueError("The cells of a column must start at 0 and increase within its universe")

    @property
    def cells(self) -> int:
        """How many cells there are, with the one for missing."""
        return len(self.starts) + self.missing

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """One past the last code of every cell (the cell for missing holds the code `size`)."""
        last = (self.size, self.size + 1) if self.missing else (self.size,)
        return (*self.starts[1:], *last)

    def cell_of(self, codes: Ints) -> Ints:
        """The cell of each code; -1 stays -1 (left out)."""
        places = np.searchsorted(np.asarray(self.firsts), codes, side="right") - 1
        return np.where(codes < 0, -1, places)

    @property
    def firsts(self) -> tuple[int, ...]:
        """The first code of every cell, the one for missing included."""
        return (*self.starts, self.size) if self.missing else self.starts

    def cut_at(self, codes: Iterable[int]) -> Column:
        """The same column with each of some codes in a cell of its own."""
        more = {place for code in codes for place in (code, code + 1) if place < self.size}
        return replace(self, starts=tuple(sorted({*self.starts, *more})))


@dataclass(frozen=True)
class Facts:
    """Everything public about a table. `reach`: how many rows one protected unit can change (1 where it is a row)."""

    columns: tuple[Column, ...]
    rows: int
    reach: int = 1
    target: str = ""

    def place(self, name: str) -> int:
        """Where a column stands."""
        return next(n for n, column in enumerate(self.columns) if column.name == name)
