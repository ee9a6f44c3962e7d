"""Columns as codes of their public universe, as Ibis expressions that mean the same on every engine.

A number becomes its place on the grid: below the bounds 0, above them size - 1, in between the nearest place
(halves go up). NaN is missing. A category becomes its place in the list. Whatever a column can store has a code or is
missing: values are clamped before they are converted, and no branch relies on another one being skipped. Sums do not need
codes: `moments.py` has a faster form for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ibis

from tidegate.errors import SourceUnreadable, Unsupported, did_you_mean
from tidegate.policy import Attribute, Category, Key, Numeric
from tidegate.tables.boundary import CODE, FEW_LABELS, LABEL, Boundary, possible_labels

OUTSIDE = -1  # the code of a row without a listed value, where NULL is not wanted


def code(column: Any, attribute: Numeric, boundary: Boundary) -> Any:
    """The code 0 .. size-1 of a number; NULL where it is missing, unless missing counts as the lowest."""
    if attribute.too_large:
        raise Unsupported(f'"{column.get_name()}" {attribute.too_large}.', "Declare a coarser step or closer bounds.")
    whole = column.type().is_integer() and attribute.width == 1
    found = _whole_code(column, attribute) if whole else _nearest_code(boundary, column, attribute)
    return found.fill_null(0) if getattr(attribute, "missing", "") == "lowest" else found


def has_few_labels(attribute: Category, boundary: Boundary) -> bool:
    """Whether a category is coded by comparing; a longer list is joined (see `with_codes`)."""
    return attribute.size <= FEW_LABELS and (boundary.encodes or attribute.value_type is not str)


def category_code(column: Any, attribute: Category, boundary: Boundary) -> Any:
    """The place of a value in a short list; NULL where it is not listed."""
    branches = [
        (column == (boundary.literal(value) if isinstance(value, str) else ibis.literal(value, column.type())), place)
        for value, place in possible_labels(attribute, column.type())
    ]
    numbers = [(test, ibis.literal(place, "int64")) for test, place in branches]
    return ibis.cases(*numbers, else_=ibis.null("int64")) if numbers else ibis.null("int64")


def with_codes(table: Any, columns: Mapping[str, tuple[str, Attribute]], boundary: Boundary) -> Any:
    """The table with more columns: by its name, the code of a column (its name, its attribute); NULL where it is missing."""
    direct = {}
    for name, (source, attribute) in columns.items():
        if isinstance(attribute, Numeric):
            direct[name] = code(table[source], attribute, boundary)
        elif not isinstance(attribute, Category):
            raise TypeError("a key or a set has no codes")
        elif has_few_labels(attribute, boundary):
            direct[name] = category_code(table[source], attribute, boundary)
    coded = table.mutate(**direct) if direct else table
    for name, (source, attribute) in columns.items():
        if isinstance(attribute, Category) and name not in direct:
            labels = boundary.labels(attribute, table[source].type()).rename({f"{LABEL}_{name}": LABEL, name: CODE})
            coded = coded.left_join(labels, coded[source] == labels[f"{LABEL}_{name}"]).drop(f"{LABEL}_{name}")
    return coded


def in_cells(found: Any, starts: Sequence[int], names: Sequence[int]) -> Any:
    """The name of the cell that a code lies in, by halving: a few comparisons a row, on every engine alike. NULL stays."""
    if len(starts) == 1:
        return ibis.cases((found.isnull(), ibis.null("int64")), else_=ibis.literal(names[0], "int64"))
    half = len(starts) // 2
    low, high = in_cells(found, starts[:half], names[:half]), in_cells(found, starts[half:], names[half:])
    return ibis.cases((found < starts[half], low), else_=high)


def _nearest_code(boundary: Boundary, column: Any, attribute: Numeric) -> Any:
    value = boundary.real(column)
    low, high, step = float(attribute.low), float(attribute.high), float(attribute.width)
    inside = ibis.least(ibis.greatest(value, ibis.literal(low, "float64")), ibis.literal(high, "float64"))
    place = ibis.least(((inside - low) / step + 0.5).floor().cast("int64"), ibis.literal(attribute.size - 1, "int64"))
    return ibis.cases((value.isnull() | boundary.is_nan(value), ibis.null("int64")), else_=place)


def _whole_code(column: Any, attribute: Numeric) -> Any:
    """Clamp within the column's own type, subtract, convert: in this order nothing can overflow."""
    kind = column.type()
    lowest, highest = kind.bounds
    low, high = int(attribute.low), int(attribute.high)
    if low > highest or high < lowest:  # the type holds no value of the universe
        place = ibis.literal(0 if low > highest else attribute.size - 1, "int64")
    else:
        first, last = max(low, lowest), min(high, highest)
        inside = ibis.greatest(column, ibis.literal(first, kind)) if first > lowest else column
        inside = ibis.least(inside, ibis.literal(last, kind)) if last < highest else inside
        if kind.is_unsigned_integer():
            place = (inside - ibis.literal(first, kind)).cast("int64") + (first - low)
        else:
            wide = inside.cast("int64" if low > -(2**63) else "decimal(38,0)")  # 2^63 itself is no 64-bit literal
            place = wide - low
    return ibis.cases((column.isnull(), ibis.null("int64")), else_=place.cast("int64"))


def fits(column: Any, attribute: Attribute) -> bool:
    """Whether a column of the source has a type that the attribute can read."""
    kind = column.type()
    if isinstance(attribute, Numeric):
        return bool(kind.is_numeric() and not kind.is_boolean())
    if isinstance(attribute, Category):
        wanted = {str: kind.is_string(), int: kind.is_integer(), bool: kind.is_boolean()}
        return bool(wanted[attribute.value_type])
    if isinstance(attribute, Key):
        return bool(kind.is_string() or kind.is_integer() or kind.is_uuid())
    return True  # sets of items: read by collections only


def check_names(table: Any, attributes: Mapping[str, Attribute]) -> None:
    """Refuse a source that lacks a declared column. Reads no row."""
    for name in attributes:
        if name not in table.columns:
            raise SourceUnreadable(
                f'the source has no column "{name}".',
                f"{did_you_mean(name, table.columns)} Add it to the source, or take it out of [attributes].",
                column=name,
            )


def check_columns(table: Any, attributes: Mapping[str, Attribute]) -> None:
    """Refuse a source that lacks a declared column or holds it in a type that does not fit. Reads no row."""
    check_names(table, attributes)
    for name, attribute in attributes.items():
        if not fits(table[name], attribute):
            raise SourceUnreadable(
                f'column "{name}" is declared as {attribute.kind} ({attribute.describe()}), but the source holds {table[name].type()}.',
                "Correct the kind in the policy, or the column's type at the source.",
                column=name,
            )
