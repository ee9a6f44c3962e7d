"""The axes of a grid of cells: every value (or bin) that the policy lists, empty ones too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.exact import plain
from tidegate.policy import Attribute, Category, Numeric

DROPPED = -1


@dataclass(frozen=True)
class Axis:
    """One attribute of a grouping. `binned` groups numbers by the policy's bins instead of single values; `starts`, the
    first code of every cell, groups by other cells."""

    name: str
    attribute: Attribute
    binned: bool = False
    starts: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        """The number of cells along the axis, with one more where missing is a value of its own."""
        return self._values + (self._missing_counts)

    @property
    def missing_place(self) -> int:
        """The cell of rows without a listed value; DROPPED where they are left out."""
        return self._values if self._missing_counts else DROPPED

    @property
    def _missing_counts(self) -> bool:
        return getattr(self.attribute, "missing", "dropped") == "value"

    @property
    def firsts(self) -> tuple[int, ...]:
        """The first code of every cell; empty where each value is a cell of its own."""
        if self.starts:
            return self.starts if len(self.starts) < self.attribute.size else ()
        if self.binned and isinstance(self.attribute, Numeric) and self.attribute.cuts:
            return self.attribute.bin_starts()
        return ()

    @property
    def _values(self) -> int:
        return len(self.firsts) or self.attribute.size

    def labels(self) -> list[Any]:
        """What each cell is called: the value, the first value of the bin, or None for missing."""
        found = self.attribute
        starts = self.firsts or range(found.size)
        if isinstance(found, Category):
            values: list[Any] = [found.values[start] for start in starts]
        elif isinstance(found, Numeric):
            values = [plain(found.value(start)) for start in starts]
        else:
            raise TypeError("a key or a set has no cells")
        return [*values, None] if self._missing_counts else values

    def places(self, codes: pa.ChunkedArray) -> NDArray[np.int64]:
        """The cell of each code that the engine returned; that of missing where there is none, or one beyond the universe."""
        whole = codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes
        found = np.asarray(pc.fill_null(whole, DROPPED).to_numpy(zero_copy_only=False), dtype=np.int64)
        listed = (found >= 0) & (found < self.attribute.size)
        places = np.searchsorted(np.asarray(self.firsts), found, side="right") - 1 if self.firsts else found
        return np.where(listed, places, self.missing_place)


def scatter(shape: tuple[int, ...], places: list[NDArray[np.int64]], amounts: Any) -> NDArray[Any]:
    """Add each group's amount to its cell; groups with a dropped value go nowhere."""
    kind = object if amounts.dtype == object else np.int64
    cells = np.zeros(shape, kind)
    if not places:
        cells[()] = amounts.sum() if amounts.size else 0
        return cells
    kept = np.all([place != DROPPED for place in places], axis=0)
    np.add.at(cells, tuple(place[kept] for place in places), amounts[kept])
    return cells
