"""Columns as codes of their public universe: Ibis expressions with the same meaning on every engine.

A number becomes its position on the grid: 0 below the bounds, size - 1 above them, the nearest position in between (halves
round up). NaN is missing. A category becomes its position in the list. Every value that a column can store has a code or
is missing: values are clamped before they are converted, and no branch relies on another one being skipped. Sums do not
need codes: `moments.py` has a faster form for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ibis

from tidegate.errors import SourceUnreadable, Unsupported, did_you_mean
from tidegate.policy import Attribute, Category, Key, Numeric
from tidegate.tables.boundary import CODE, FEW_LABELS, LABEL, Boundary, possible_labels

OUTSIDE = -1  # code of a row without a listed value, if NULL cannot be used


def code(column: Any, attribute: Numeric, boundary: Boundary) -> Any:
    """Return the code 0 .. size-1 of a number; NULL if it is missing, unless missing counts as the lowest."""
    if attribute.too_large:
        raise Unsupported(f'"{column.get_name()}" {attribute.too_large}.', "Declare a coarser step or narrower bounds.")
    whole = column.type().is_integer() and attribute.width == 1
    number = _whole_code(column, attribute) if whole else _nearest_code(boundary, column, attribute)
    return number.fill_null(0) if getattr(attribute, "missing", "") == "lowest" else number


def has_few_labels(attribute: Category, boundary: Boundary) -> bool:
    """Return whether a category is coded by comparisons; a longer list is joined (see `with_codes`)."""
    return attribute.size <= FEW_LABELS and (boundary.encodes or attribute.value_type is not str)


def category_code(column: Any, attribute: Category, boundary: Boundary) -> Any:
    """Return the position of a value in a short list; NULL if it is not listed."""
    branches = [
        (
            column == (boundary.literal(value) if isinstance(value, str) else ibis.literal(value, column.type())),
            position,
        )
        for value, position in possible_labels(attribute, column.type())
    ]
    numbers = [(test, ibis.literal(position, "int64")) for test, position in branches]
    return ibis.cases(*numbers, else_=ibis.null("int64")) if numbers else ibis.null("int64")


def with_codes(table: Any, columns: Mapping[str, tuple[str, Attribute]], boundary: Boundary) -> Any:
    """Return the table with code columns added: new name -> (column, attribute); NULL for missing values."""
    direct = {}
    for name, (source, attribute) in columns.items():
        if isinstance(attribute, Numeric):
            direct[name] = code(table[source], attribute, boundary)
        elif not isinstance(attribute, Category):
            raise TypeError("A key or a set has no codes.")
        elif has_few_labels(attribute, boundary):
            direct[name] = category_code(table[source], attribute, boundary)
    coded = table.mutate(**direct) if direct else table
    for name, (source, attribute) in columns.items():
        if isinstance(attribute, Category) and name not in direct:
            labels = boundary.labels(attribute, table[source].type()).rename({f"{LABEL}_{name}": LABEL, name: CODE})
            coded = coded.left_join(labels, coded[source] == labels[f"{LABEL}_{name}"]).drop(f"{LABEL}_{name}")
    return coded


def in_cells(code: Any, starts: Sequence[int], names: Sequence[int]) -> Any:
    """Return the name of the cell that contains a code, by bisection: a few comparisons per row. NULL stays NULL."""
    if len(starts) == 1:
        return ibis.cases((code.isnull(), ibis.null("int64")), else_=ibis.literal(names[0], "int64"))
    half = len(starts) // 2
    low, high = in_cells(code, starts[:half], names[:half]), in_cells(code, starts[half:], names[half:])
    return ibis.cases((code < starts[half], low), else_=high)


def _nearest_code(boundary: Boundary, column: Any, attribute: Numeric) -> Any:
    value = boundary.real(column)
    low, high, step = float(attribute.low), float(attribute.high), float(attribute.width)
    inside = ibis.least(ibis.greatest(value, ibis.literal(low, "float64")), ibis.literal(high, "float64"))
    position = ibis.least(
        ((inside - low) / step + 0.5).floor().cast("int64"), ibis.literal(attribute.size - 1, "int64")
    )
    return ibis.cases((value.isnull() | boundary.is_nan(value), ibis.null("int64")), else_=position)


def _whole_code(column: Any, attribute: Numeric) -> Any:
    """Clamp within the column's own type, subtract, then convert: in this order nothing can overflow."""
    kind = column.type()
    lowest, highest = kind.bounds
    low, high = int(attribute.low), int(attribute.high)
    if low > highest or high < lowest:  # the type has no value of the universe
        position = ibis.literal(0 if low > highest else attribute.size - 1, "int64")
    else:
        first, last = max(low, lowest), min(high, highest)
        inside = ibis.greatest(column, ibis.literal(first, kind)) if first > lowest else column
        inside = ibis.least(inside, ibis.literal(last, kind)) if last < highest else inside
        if kind.is_unsigned_integer():
            position = (inside - ibis.literal(first, kind)).cast("int64") + (first - low)
        else:
            wide = inside.cast("int64" if low > -(2**63) else "decimal(38,0)")  # 2^63 itself is no 64-bit literal
            position = wide - low
    return ibis.cases((column.isnull(), ibis.null("int64")), else_=position.cast("int64"))


def fits(column: Any, attribute: Attribute) -> bool:
    """Return whether the attribute can read the type of a source column."""
    kind = column.type()
    if isinstance(attribute, Numeric):
        return bool(kind.is_numeric() and not kind.is_boolean())
    if isinstance(attribute, Category):
        matches = {str: kind.is_string(), int: kind.is_integer(), bool: kind.is_boolean()}
        return bool(matches[attribute.value_type])
    if isinstance(attribute, Key):
        return bool(kind.is_string() or kind.is_integer() or kind.is_uuid())
    return True  # sets of items: read by collections only


def check_names(table: Any, attributes: Mapping[str, Attribute]) -> None:
    """Refuse a source that lacks a declared column, without reading a row."""
    for name in attributes:
        if name not in table.columns:
            raise SourceUnreadable(
                f'The source has no column "{name}".',
                f"{did_you_mean(name, table.columns)} Add it to the source, or remove it from [attributes].",
                column=name,
            )


def check_columns(table: Any, attributes: Mapping[str, Attribute]) -> None:
    """Refuse a source that lacks a declared column or stores it in an unsuitable type, without reading a row."""
    check_names(table, attributes)
    for name, attribute in attributes.items():
        if not fits(table[name], attribute):
            raise SourceUnreadable(
                f'Column "{name}" is declared as {attribute.kind} ({attribute.describe()}), but its type in the source is {table[name].type()}.',
                "Correct the kind in the policy, or the column's type at the source.",
                column=name,
            )
