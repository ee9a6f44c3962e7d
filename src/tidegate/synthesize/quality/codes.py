"""Rows as codes of the policy's public values: tables are compared at the resolution of the policy.

A number is clamped to its bounds and rounded to the nearest value of its grid, as in `tidegate.tables`; a category that is
not listed is missing. The code of missing is `size` if the policy makes it a value, 0 if it counts as the lowest, and
ABSENT if the policy leaves such rows out.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.arrays import Ints
from tidegate.errors import SourceUnreadable, Unsupported
from tidegate.policy import Attribute, Category, Date, Moment, Numeric, Text
from tidegate.tables import Table

ABSENT = -1


@dataclass(frozen=True)
class CodedTable:
    """A table as codes, (rows, columns), with the attributes that define their meaning."""

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
        """Return the share of rows that the policy leaves out or counts as missing."""
        codes, attribute = self.column(name), self.attributes[name]
        return float(((codes == ABSENT) | (codes == attribute.size)).mean()) if self.rows else 0.0

    def present(self, name: str) -> Ints:
        """Return the codes of a column in the rows that have a value."""
        codes = self.column(name)
        return codes[(codes >= 0) & (codes < self.attributes[name].size)]

    def only(self, names: tuple[str, ...], rows: Any = None) -> CodedTable:
        """Return some columns, and some rows if `rows` is set (indexes, or true and false)."""
        codes = self.codes[:, [self.names.index(name) for name in names]]
        return CodedTable({name: self.attributes[name] for name in names}, codes if rows is None else codes[rows])

    def complete(self) -> NDArray[np.bool_]:
        """Return which rows have a value in every column."""
        return np.asarray((self.codes != ABSENT).all(axis=1))


def comparable(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """Return the columns that can be compared: neither keys nor text nor sets."""
    columns = attributes.items()
    return {name: attribute for name, attribute in columns if attribute.countable and not isinstance(attribute, Text)}


def columns_of(source: Any) -> tuple[str, ...]:
    """Return the names of a table's columns."""
    if isinstance(source, Table):
        return tuple(source.policy.attributes)
    return tuple(_arrow(source).column_names)


def encode(source: Any, attributes: Mapping[str, Attribute]) -> CodedTable:
    """Return some columns of a table as codes. A table of the engine is read in batches; others are Arrow, pandas or polars."""
    if isinstance(source, Table):
        batches = source.batches(list(attributes))
        parts = [_matrix(pa.Table.from_batches([batch]), attributes) for batch in batches]
        empty = np.zeros((0, len(attributes)), np.int64)
        return CodedTable(dict(attributes), np.concatenate(parts) if parts else empty)
    return CodedTable(dict(attributes), _matrix(_arrow(source), attributes))


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
    for index, (name, attribute) in enumerate(attributes.items()):
        codes[:, index] = _codes(table[name], name, attribute)
    return codes


def _codes(column: Any, name: str, attribute: Attribute) -> Ints:
    """Return the codes of a column. Arrow's error messages are not shown: they can quote a value."""
    codes = None
    try:
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if isinstance(attribute, Moment):
            codes = _moments(whole, attribute)
        else:
            codes = _numbers(whole, attribute) if isinstance(attribute, Numeric) else _category_codes(whole, attribute)
    except (pa.ArrowException, ValueError, TypeError):
        pass
    if codes is None:
        raise SourceUnreadable(
            f'Column "{name}" is declared as {attribute.kind} ({attribute.describe()}), but a table contains {column.type}.',
            "Store numbers as numbers and categories as listed in the policy.",
            column=name,
        )
    return codes


def _numbers(column: Any, attribute: Numeric) -> Ints:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_boolean(column.type):
        raise TypeError("Text is not a number")
    values = np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    missing = np.isnan(values)
    inside = np.clip(np.where(missing, float(attribute.low), values), float(attribute.low), float(attribute.high))
    codes = np.floor((inside - float(attribute.low)) / float(attribute.width) + 0.5).astype(np.int64)
    if getattr(attribute, "outside", "clamp") == "missing":
        missing = missing | (values < float(attribute.low)) | (values > float(attribute.high))
    return np.where(missing, missing_code(attribute), np.minimum(codes, attribute.size - 1))


def _moments(column: Any, attribute: Moment) -> Ints:
    """Return the cells of dates and times, or of their texts in ISO 8601. The engine's tables contain cells already."""
    if pa.types.is_integer(column.type):
        cells = np.asarray(pc.fill_null(column, ABSENT).to_numpy(zero_copy_only=False), np.int64)
        return np.where((cells >= 0) & (cells < attribute.size), cells, missing_code(attribute))
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    encoded = column.dictionary_encode()
    absent = missing_code(attribute)
    listed = [_cell(attribute, value, absent) for value in encoded.dictionary.to_pylist()]
    indexes = np.asarray(pc.fill_null(encoded.indices, len(listed)).to_numpy(zero_copy_only=False), np.int64)
    return np.array([*listed, absent], np.int64)[indexes]


def _cell(attribute: Moment, value: Any, absent: int) -> int:
    if isinstance(attribute, Date) and isinstance(value, dt.datetime):
        value = value.date()
    position = attribute.position(value)
    if position is None:
        return absent
    if getattr(attribute, "outside", "missing") == "clamp":
        return min(max(math.floor(position), 0), attribute.size - 1)
    return math.floor(position) if 0 <= position < attribute.size else absent


def _category_codes(column: Any, attribute: Attribute) -> Ints:
    if not isinstance(attribute, Category):
        raise TypeError("Keys and sets are not compared")
    kind = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}[attribute.value_type]
    values = column.cast(kind)
    indexes = pc.index_in(values, value_set=pa.array(list(attribute.listed), kind))
    codes = np.asarray(pc.fill_null(indexes, -1).to_numpy(zero_copy_only=False), np.int64)
    if attribute.outside == "other":
        is_other = (codes < 0) & np.asarray(pc.is_valid(values).to_numpy(zero_copy_only=False), bool)
        codes = np.where(is_other, attribute.size - 1, codes)
    return np.where(codes < 0, missing_code(attribute), codes)


def missing_code(attribute: Attribute) -> int:
    """Return the code of a missing value."""
    return {"value": attribute.size, "lowest": 0}.get(getattr(attribute, "missing", "dropped"), ABSENT)
