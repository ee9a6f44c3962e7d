"""Sums of codes and of their squares, in the form that engines are fastest at, made exact afterwards.

Engines add up clamped values as they are; centring them happens after the sums, in Python's integers. A whole-number
column is clamped by LEAST and GREATEST, which DuckDB 1.5 runs at the speed of the bare sum (a CASE costs 3 to 4 times
that over several files). Both ignore NULL on all engines, so a missing value counts as the lowest: that is taken off
again by the number of missing rows.

Sums of products of two columns follow the same way: a regression needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

import ibis
import numpy as np
from numpy.typing import NDArray

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


def product_measures(columns: Mapping[str, Numeric], boundary: Boundary) -> dict[str, Callable[[Any], Any]]:
    """What is asked of the engine: rows in which all columns are there, sums of their codes and of products of two."""
    names = list(columns)
    wanted: dict[str, Callable[[Any], Any]] = {
        "g0_0": lambda table: ibis.cases((_there(table, columns, boundary), 1), else_=0).cast("int64").sum()
    }
    for place, name in enumerate(names, 1):
        wanted[f"g0_{place}"] = _summed(columns, boundary, [name])
    for i, j in combinations_with_replacement(range(len(names)), 2):
        wanted[f"g{i + 1}_{j + 1}"] = _summed(columns, boundary, [names[i], names[j]])
    return wanted


def _there(table: Any, columns: Mapping[str, Numeric], boundary: Boundary) -> Any:
    found = [code(table[name], attribute, boundary).notnull() for name, attribute in columns.items()]
    return ibis.and_(*found)


def _summed(columns: Mapping[str, Numeric], boundary: Boundary, names: Sequence[str]) -> Callable[[Any], Any]:
    largest = int(np.prod([columns[name].size for name in names], dtype=object))
    kind = boundary.sum_type(largest)

    def build(table: Any) -> Any:
        product: Any = ibis.literal(1, kind)
        for name in names:
            product = (product * code(table[name], columns[name], boundary).cast(kind)).cast(kind)
        return ibis.cases((_there(table, columns, boundary), product), else_=ibis.literal(0, kind)).sum()

    return build


def gram(found: Mapping[str, Any], columns: Sequence[Numeric], centers: Sequence[int]) -> NDArray[Any]:
    """Sums of (1, x1 - c1, x2 - c2, ...) times itself, in Python's integers."""
    size = len(columns) + 1
    raw = np.zeros((size, size), object)
    for i, j in combinations_with_replacement(range(size), 2):
        raw[i, j] = raw[j, i] = int(found[f"g{i}_{j}"].item())
    middle = [0, *centers]
    exact = np.zeros((size, size), object)
    for i in range(size):
        for j in range(size):
            exact[i, j] = raw[i, j] - middle[i] * raw[0, j] - middle[j] * raw[i, 0] + middle[i] * middle[j] * raw[0, 0]
    return exact
