"""Sums of codes and of their squares, in the form that engines are fastest at, made exact afterwards.

Engines add up clamped values as they are; centring them happens after the sums, in Python's integers. A whole-number
column is clamped by LEAST and GREATEST, which DuckDB 1.5 runs at the speed of the bare sum (a CASE costs 3 to 4 times
that over several files). Both ignore NULL on all engines, so a missing value counts as the lowest: that is taken off
again by the number of missing rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ibis

from tidegate.policy import Numeric
from tidegate.tables.boundary import Boundary
from tidegate.tables.codes import code


class MomentSums:
    """What is asked of the engine for the moments of one column, and what follows from its answer."""

    def __init__(self, column: str, attribute: Numeric, kind: Any, boundary: Boundary) -> None:
        self.column, self.attribute, self.boundary = column, attribute, boundary
        signed = kind.is_integer() and not kind.is_unsigned_integer()
        near = max(abs(attribute.low), abs(attribute.high)) < 2**62  # literals and clamped values have 64 bits
        self.whole = bool(signed and attribute.width == 1 and near and boundary.least_ignores_null)
        self.filled = getattr(attribute, "missing", "") == "lowest"
        self.lowest = int(attribute.low) if self.whole else 0
        self.highest = self.lowest + attribute.size - 1

    def measures(self, powers: Sequence[int]) -> dict[str, Callable[[Any], Any]]:
        """The aggregates to ask for."""
        wanted: dict[str, Callable[[Any], Any]] = {"all": lambda table: table.count()}
        if not self.filled:
            wanted["there"] = lambda table: self._value(table).count() if not self.whole else table[self.column].count()
        for power in range(1, max(powers) + 1):
            wanted[f"s{power}"] = self._sum(power)
        return wanted

    def _value(self, table: Any) -> Any:
        column = table[self.column]
        if self.whole:
            return ibis.least(ibis.greatest(column, self.lowest), self.highest)
        return code(column, self.attribute, self.boundary)

    def _sum(self, power: int) -> Callable[[Any], Any]:
        reach = max(abs(self.lowest), abs(self.highest))
        kind = self.boundary.sum_type(reach**power)

        def build(table: Any) -> Any:
            value = self._value(table).cast(kind)
            return (value if power == 1 else (value * value).cast(kind)).sum()

        return build

    def finish(self, found: Mapping[str, Any], *, center: int, powers: Sequence[int]) -> tuple[Any, ...]:
        """Sums of (code - center) ** power, for powers up to 2."""
        exact = {name: cells.astype(object) for name, cells in found.items()}  # Python's integers: no sum can overflow
        rows = exact["all"] if self.filled else exact["there"]
        missing = exact["all"] - rows if self.whole else 0 * rows
        origin = self.lowest + center
        raw = [rows, *(exact[f"s{power}"] - self.lowest**power * missing for power in range(1, max(powers) + 1))]
        sums = {
            0: lambda: rows,
            1: lambda: raw[1] - origin * rows,
            2: lambda: raw[2] - 2 * origin * raw[1] + origin**2 * rows,
        }
        return tuple(sums[power]() for power in powers)
