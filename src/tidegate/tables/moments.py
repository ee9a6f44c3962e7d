"""Exact sums of codes and of their squares, in the form that is fastest on engines.

Engines add up clamped values; they are centered after the sums, in Python's integers. A whole-number column is clamped by
LEAST and GREATEST, which DuckDB 1.5 runs at the speed of the bare sum (a CASE takes 3 to 4 times as long over several
files). Both ignore NULL on all engines, so a missing value counts as the lowest; the number of missing rows corrects this.

Sums of products of two columns, for regressions, are computed in the same way.
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
from tidegate.tables.positions import is_coded


class MomentSums:
    """The aggregates for the moments of one column, and the moments that follow from them."""

    def __init__(self, column: str, attribute: Numeric, kind: Any, boundary: Boundary) -> None:
        self.column, self.attribute, self.boundary = column, attribute, boundary
        signed = kind.is_integer() and not kind.is_unsigned_integer()
        near = max(abs(attribute.low), abs(attribute.high)) < 2**62  # literals and clamped values have 64 bits
        number = attribute.width == 1 and getattr(attribute, "outside", "") == "clamp"
        self.whole = bool(signed and (number or is_coded(attribute)) and near and boundary.least_ignores_null)
        self.filled = getattr(attribute, "missing", "") == "lowest"
        self.lowest = int(attribute.low) if self.whole and not is_coded(attribute) else 0
        self.highest = self.lowest + attribute.size - 1

    def measures(self, powers: Sequence[int]) -> dict[str, Callable[[Any], Any]]:
        """Return the aggregates to compute."""
        aggregates: dict[str, Callable[[Any], Any]] = {"all": lambda table: table.count()}
        if not self.filled:
            aggregates["there"] = lambda table: (
                self._value(table).count() if not self.whole else table[self.column].count()
            )
        for power in range(1, max(powers) + 1):
            aggregates[f"s{power}"] = self._sum(power)
        return aggregates

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

    def finish(self, results: Mapping[str, Any], *, center: int, powers: Sequence[int]) -> tuple[Any, ...]:
        """Return the sums of (code - center) ** power, for powers up to 2."""
        exact = {
            name: cells.astype(object) for name, cells in results.items()
        }  # Python's integers: no sum can overflow
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
    """Return the aggregates to compute: the rows with all columns present, sums of codes and of products of two."""
    names = list(columns)
    measures: dict[str, Callable[[Any], Any]] = {
        "g0_0": lambda table: ibis.cases((_all_present(table, columns, boundary), 1), else_=0).cast("int64").sum()
    }
    for index, name in enumerate(names, 1):
        measures[f"g0_{index}"] = _sum_products(columns, boundary, [name])
    for i, j in combinations_with_replacement(range(len(names)), 2):
        measures[f"g{i + 1}_{j + 1}"] = _sum_products(columns, boundary, [names[i], names[j]])
    return measures


def _all_present(table: Any, columns: Mapping[str, Numeric], boundary: Boundary) -> Any:
    present = [code(table[name], attribute, boundary).notnull() for name, attribute in columns.items()]
    return ibis.and_(*present)


def _sum_products(columns: Mapping[str, Numeric], boundary: Boundary, names: Sequence[str]) -> Callable[[Any], Any]:
    largest = int(np.prod([columns[name].size for name in names], dtype=object))
    kind = boundary.sum_type(largest)

    def build(table: Any) -> Any:
        product: Any = ibis.literal(1, kind)
        for name in names:
            product = (product * code(table[name], columns[name], boundary).cast(kind)).cast(kind)
        return ibis.cases((_all_present(table, columns, boundary), product), else_=ibis.literal(0, kind)).sum()

    return build


def gram(sums: Mapping[str, Any], columns: Sequence[Numeric], centers: Sequence[int]) -> NDArray[Any]:
    """Return the sums of (1, x1 - c1, x2 - c2, ...) times itself, in Python's integers."""
    size = len(columns) + 1
    raw = np.zeros((size, size), object)
    for i, j in combinations_with_replacement(range(size), 2):
        raw[i, j] = raw[j, i] = int(sums[f"g{i}_{j}"].item())
    middle = [0, *centers]
    exact = np.zeros((size, size), object)
    for i in range(size):
        for j in range(size):
            exact[i, j] = raw[i, j] - middle[i] * raw[0, j] - middle[j] * raw[i, 0] + middle[i] * middle[j] * raw[0, 0]
    return exact
