"""CSV downloads that are safe to open in a spreadsheet: no cell is executed as a formula.

A spreadsheet executes a cell that starts with = + - @, a tab or a carriage return. Such text is prefixed with an apostrophe.
Numbers, including negative ones, are unchanged. Parquet and JSON downloads, and files written by the command line (but for the
results of polls), contain every value unchanged.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tidegate.frames import safe_cell


def safe_table(table: pa.Table) -> pa.Table:
    """Return the table with safe text and safe column names."""
    columns = [_safe_column(table.column(index)) for index in range(table.num_columns)]
    return pa.table(columns, names=[safe_cell(name) for name in table.column_names])


def _safe_column(column: Any) -> Any:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    return pa.array([safe_cell(value) for value in column.to_pylist()], column.type)
