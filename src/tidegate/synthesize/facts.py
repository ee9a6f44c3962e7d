"""What a model knows before it reads a row: the columns' public cells, the number of rows, the rows of one unit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tidegate.arrays import Ints


@dataclass(frozen=True)
class Column:
    """One column as codes 0 .. size - 1 of its public values, divided into public cells of neighboring codes.

    Attributes:
        starts: The first code of every cell, from 0 upwards.
        missing: Whether there is one more cell, the last, with the code `size`. Otherwise rows without a listed value
            are left out of every count of this column.
        ordered: Whether neighboring codes mean neighboring values.
        even: Whether the widths of the cells are meaningful (false for logarithmic cells).
        heaped: Whether single codes inside a cell can be frequent, so that a search for them pays.
        whole: Whether the values are integers (false if they stand for real numbers).
    """

    name: str
    size: int
    starts: tuple[int, ...]
    ordered: bool = True
    even: bool = True
    missing: bool = False
    heaped: bool = False
    whole: bool = True
    adaptive: bool = False  # cells are found from the rows

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in zip(self.starts, self.starts[1:], strict=False))
        if not self.starts or self.starts[0] != 0 or not rising or self.starts[-1] >= self.size:
            raise ValueError("The cells of a column must start at 0 and increase within its universe")

    @property
    def cells(self) -> int:
        """The number of cells, including the one for missing."""
        return len(self.starts) + self.missing

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """One past the last code of every cell (the cell for missing contains the code `size`)."""
        last = (self.size, self.size + 1) if self.missing else (self.size,)
        return (*self.starts[1:], *last)

    def cell_of(self, codes: Ints) -> Ints:
        """Return the cell of each code; -1 stays -1 (left out)."""
        cells = np.searchsorted(np.asarray(self.firsts), codes, side="right") - 1
        return np.where(codes < 0, -1, cells)

    @property
    def firsts(self) -> tuple[int, ...]:
        """The first code of every cell, including the one for missing."""
        return (*self.starts, self.size) if self.missing else self.starts

    def cut_at(self, codes: Iterable[int]) -> Column:
        """Return the same column with a separate cell for each of some codes."""
        starts = {start for code in codes for start in (code, code + 1) if start < self.size}
        return replace(self, starts=tuple(sorted({*self.starts, *starts})))


@dataclass(frozen=True)
class Facts:
    """Everything public about a table. `reach` is the largest number of rows of one protected unit (1 if it is a row)."""

    columns: tuple[Column, ...]
    rows: int
    reach: int = 1
    target: str = ""
    search_maps: bool = True  # whether to search for columns that another one determines
    copies: tuple[str, ...] = ()  # columns whose relations to each other are known from another table

    def place(self, name: str) -> int:
        """Return the index of a column."""
        return next(n for n, column in enumerate(self.columns) if column.name == name)
