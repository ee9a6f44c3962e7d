"""Sums of products of columns, exact: what a regression needs."""

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
