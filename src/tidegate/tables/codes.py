"""Columns as codes of their public universe, as Ibis expressions that mean the same on every engine.

A number becomes its place on the grid: below the bounds 0, above them size - 1, in between the nearest place
(halves go up). NaN is missing. Sums do not need codes: `moments.py` has a faster form for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ibis

from tidegate.errors import SourceUnreadable, did_you_mean
from tidegate.policy import Attribute, Category, Key, Numeric


def code(column: Any, attribute: Numeric) -> Any:
    """The code 0 .. size-1 of a number; NULL where it is missing, unless missing counts as the lowest."""
    whole = column.type().is_integer() and attribute.width == 1
    found = _whole_code(column, attribute) if whole else _nearest_code(column.cast("float64"), attribute)
    return found.fill_null(0) if getattr(attribute, "missing", "") == "lowest" else found


def listed(column: Any, attribute: Category) -> Any:
    """A category as it is listed; NULL where it is not."""
    return ibis.cases((column.isin(list(attribute.values)), column), else_=ibis.null(column.type()))


def in_cells(found: Any, starts: Sequence[int], names: Sequence[int]) -> Any:
    """The name of the cell that a code lies in, by halving: a few comparisons a row, on every engine alike. NULL stays."""
    if len(starts) == 1:
        return ibis.cases((found.isnull(), ibis.null("int64")), else_=ibis.literal(names[0], "int64"))
    half = len(starts) // 2
    low, high = in_cells(found, starts[:half], names[:half]), in_cells(found, starts[half:], names[half:])
    return ibis.cases((found < starts[half], low), else_=high)


def _nearest_code(value: Any, attribute: Numeric) -> Any:
    low, step, last = float(attribute.low), float(attribute.width), attribute.size - 1
    place = ((value - low) / step + 0.5).floor().cast("int64")
    return ibis.cases(
        (value.isnull() | value.isnan(), ibis.null("int64")),
        (value <= low, ibis.literal(0, "int64")),
        (value >= float(attribute.high), ibis.literal(last, "int64")),
        (place >= last, ibis.literal(last, "int64")),
        else_=place,
    )


def _whole_code(column: Any, attribute: Numeric) -> Any:
    low, high = int(attribute.low), int(attribute.high)
    lowest, highest = column.type().bounds  # a comparison that can never be true is left out
    place = column.cast("int64") - low if low else column.cast("int64")
    branches = []
    if high < highest:
        branches.append((column > high, ibis.literal(attribute.size - 1, "int64")))
    if low > lowest:
        branches.append((column < low, ibis.literal(0, "int64")))
    return ibis.cases(*branches, else_=place) if branches else place


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


def check_columns(table: Any, attributes: dict[str, Attribute]) -> None:
    """Refuse a source that lacks a declared column or holds it in a type that does not fit. Reads no row."""
    for name, attribute in attributes.items():
        if name not in table.columns:
            raise SourceUnreadable(
                f'the source has no column "{name}".',
                f"{did_you_mean(name, table.columns)} Add it to the source, or take it out of [attributes].",
                column=name,
            )
        if not fits(table[name], attribute):
            raise SourceUnreadable(
                f'column "{name}" is declared as {attribute.kind} ({attribute.describe()}), but the source holds {table[name].type()}.',
                "Correct the kind in the policy, or the column's type at the source.",
                column=name,
            )
