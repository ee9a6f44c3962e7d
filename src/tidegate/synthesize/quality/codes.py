"""Rows as codes of the policy's public universe: what is compared is what the policy can tell apart.

A number is clamped to its bounds and goes to the nearest place of its grid, as in `tidegate.tables`; a category that is
not listed is missing. Missing is the code `size` where the policy makes it a value, 0 where it counts as the lowest, and
ABSENT where the policy leaves such rows out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.arrays import Ints
from tidegate.errors import SourceUnreadable, Unsupported
from tidegate.policy import Attribute, Category, Numeric
from tidegate.tables import Table

ABSENT = -1


@dataclass(frozen=True)
class Coded:
    """A table as codes, (rows, columns), beside the attributes that say what they mean."""

    attributes: Mapping[str, Attribute]
    codes: Ints

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.attributes)

    @property
    def rows(self) -> int:
        return len(self.codes)

    def column(self, name: str) -> Ints:
        return self.codes[:, self.names.index(name)]

    def absent(self, name: str) -> float:
        """The share of rows that the policy leaves out, or holds as missing."""
        codes, attribute = self.column(name), self.attributes[name]
        return float(((codes == ABSENT) | (codes == attribute.size)).mean()) if self.rows else 0.0

    def only(self, names: tuple[str, ...], rows: Any = None) -> Coded:
        """Some columns, and some rows where they are given (places, or true and false)."""
        codes = self.codes[:, [self.names.index(name) for name in names]]
        return Coded({name: self.attributes[name] for name in names}, codes if rows is None else codes[rows])

    def complete(self) -> NDArray[np.bool_]:
        """Which rows have a value everywhere."""
        return np.asarray((self.codes != ABSENT).all(axis=1))


def comparable(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """The columns that can be compared: neither keys nor sets."""
    return {name: attribute for name, attribute in attributes.items() if attribute.countable}


def columns_of(source: Any) -> tuple[str, ...]:
    """The names of a table's columns."""
    if isinstance(source, Table):
        return tuple(source.policy.attributes)
    return tuple(_arrow(source).column_names)


def coded(source: Any, attributes: Mapping[str, Attribute]) -> Coded:
    """Some columns of a table as codes. A table of the engine is read in batches; others are Arrow, pandas or polars."""
    if isinstance(source, Table):
        batches = source.batches(list(attributes))
        parts = [_matrix(pa.Table.from_batches([batch]), attributes) for batch in batches]
        empty = np.zeros((0, len(attributes)), np.int64)
        return Coded(dict(attributes), np.concatenate(parts) if parts else empty)
    return Coded(dict(attributes), _matrix(_arrow(source), attributes))


def _arrow(source: Any) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    try:
        return pa.table(source)
    except (TypeError, ValueError, pa.ArrowException):
        pass
    raise Unsupported(
        f"A table cannot be made from {type(source).__name__}.",
        "Pass an Arrow, pandas, polars or tidegate table.",
    )


def _matrix(table: pa.Table, attributes: Mapping[str, Attribute]) -> Ints:
    codes = np.empty((table.num_rows, len(attributes)), np.int64, order="F")
    for place, (name, attribute) in enumerate(attributes.items()):
        codes[:, place] = _codes(table[name], name, attribute)
    return codes


def _codes(column: Any, name: str, attribute: Attribute) -> Ints:
    """The codes of a column; what Arrow says of values that do not fit stays here, it may quote one."""
    found = None
    try:
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        found = _numbers(whole, attribute) if isinstance(attribute, Numeric) else _listed(whole, attribute)
    except (pa.ArrowException, ValueError, TypeError):
        pass
    if found is None:
        raise SourceUnreadable(
            f'Column "{name}" is declared as {attribute.kind} ({attribute.describe()}), but a table contains {column.type}.',
            "Store numbers as numbers and categories as listed in the policy.",
            column=name,
        )
    return found


def _numbers(column: Any, attribute: Numeric) -> Ints:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_boolean(column.type):
        raise TypeError("Text is not a number")
    values = np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    missing = np.isnan(values)
    inside = np.clip(np.where(missing, float(attribute.low), values), float(attribute.low), float(attribute.high))
    places = np.floor((inside - float(attribute.low)) / float(attribute.width) + 0.5).astype(np.int64)
    return np.where(missing, missing_code(attribute), np.minimum(places, attribute.size - 1))


def _listed(column: Any, attribute: Attribute) -> Ints:
    if not isinstance(attribute, Category):
        raise TypeError("Keys and sets are not compared")
    kind = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}[attribute.value_type]
    places = pc.index_in(column.cast(kind), value_set=pa.array(list(attribute.values), kind))
    found = np.asarray(pc.fill_null(places, -1).to_numpy(zero_copy_only=False), np.int64)
    return np.where(found < 0, missing_code(attribute), found)


def missing_code(attribute: Attribute) -> int:
    """Where a missing value goes."""
    return {"value": attribute.size, "lowest": 0}.get(getattr(attribute, "missing", "dropped"), ABSENT)
