"""The axes of a grid of cells: every value (or bin) that the policy lists, including empty ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidegate.extras import late
from tidegate.policy import Attribute, Gap, Numeric
from tidegate.tables.mappings import DROPPED, Grouping, Measured

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa, pc = late("pyarrow"), late("pyarrow.compute")

MOST_CELLS = 2**25
ROWS = 2**40  # largest expected number of rows: 64-bit sums are used if they cannot overflow with that many


@dataclass(frozen=True)
class Axis:
    """One attribute of a grouping.

    `binned` groups numbers by the policy's bins instead of single values. `starts`, the first code of every cell, groups
    by other cells.
    """

    name: str
    attribute: Attribute
    binned: bool = False
    starts: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        """The number of cells along the axis, plus one if missing is a value of its own."""
        return self._values + (self._missing_counts)

    @property
    def missing_cell(self) -> int:
        """The cell of rows without a listed value; DROPPED if they are left out."""
        return self._values if self._missing_counts else DROPPED

    @property
    def _missing_counts(self) -> bool:
        return getattr(self.attribute, "missing", "dropped") == "value"  # the cells of an expression include it

    @property
    def firsts(self) -> tuple[int, ...]:
        """The first code of every cell; empty if each value is a cell of its own."""
        if self.starts:
            return self.starts if len(self.starts) < self.attribute.size else ()
        if self.binned and isinstance(self.attribute, Numeric) and self.attribute.cuts:
            return self.attribute.bin_starts()
        return ()

    @property
    def _values(self) -> int:
        return len(self.firsts) or self.attribute.size

    def labels(self) -> list[Any]:
        """Return the label of each cell: the value, the first value of the bin, or None for missing."""
        firsts = self.firsts
        values = [self.attribute.label(first) for first in firsts] if firsts else self.attribute.labels()
        return [*values, None] if self._missing_counts else values

    def cells_of(self, codes: pa.ChunkedArray, *, final: bool = False) -> NDArray[np.int64]:
        """Return the cell of each code from the engine; the missing cell for no code or one outside the universe.

        `final` codes of an expression are its cells, otherwise they can be combinations of its columns.
        """
        whole = codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes
        numbers = np.asarray(pc.fill_null(whole, DROPPED).to_numpy(zero_copy_only=False), dtype=np.int64)
        if isinstance(self.attribute, Grouping | Measured):
            mapped = self.attribute.mapped.shortest
            known = (numbers >= 0) & (numbers < len(mapped.codes))
            cells = numbers
            if not final and mapped.is_looked_up_later:
                cells = np.where(known, mapped.codes[np.where(known, numbers, 0)], DROPPED)
            return np.where((cells >= 0) & (cells < self.attribute.size), cells, DROPPED)
        listed = (numbers >= 0) & (numbers < self.attribute.size)
        cells = np.searchsorted(np.asarray(self.firsts), numbers, side="right") - 1 if self.firsts else numbers
        cells = np.where(listed, cells, self.missing_cell)
        # a row without a gap is left out, even if missing is a value
        return np.where(numbers < DROPPED, DROPPED, cells) if isinstance(self.attribute, Gap) else cells


def scatter(shape: tuple[int, ...], axis_cells: list[NDArray[np.int64]], amounts: Any) -> NDArray[Any]:
    """Add each group's amount to its cell; groups with a dropped value are left out."""
    kind = object if amounts.dtype == object else np.int64
    cells = np.zeros(shape, kind)
    if not axis_cells:
        cells[()] = amounts.sum() if amounts.size else 0
        return cells
    complete = np.all([cells_on_axis != DROPPED for cells_on_axis in axis_cells], axis=0)
    np.add.at(cells, tuple(cells_on_axis[complete] for cells_on_axis in axis_cells), amounts[complete])
    return cells
