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
import numpy as np

from tidegate.errors import SourceUnreadable, Unsupported
from tidegate.policy import Attribute, Boolean, Category, Gap, Key, Moment, Numeric, Policy, Text, Time, Timestamp
from tidegate.tables.boundary import CODE, FEW_LABELS, LABEL, Boundary, possible_labels
from tidegate.tables.header import check_names
from tidegate.tables.mappings import DROPPED, Ints, Mapped, regular_cells, runs_of
from tidegate.tables.positions import is_coded, nearest_code

OUTSIDE = -1  # code of a row without a listed value, if NULL cannot be used
NO_GAP = -2  # code of a row without a gap: it is left out, even if missing is a value


def code(column: Any, attribute: Numeric, boundary: Boundary) -> Any:
    """Return the code 0 .. size-1 of a number; NULL if it is missing, unless missing counts as the lowest."""
    if attribute.too_large:
        raise Unsupported(f'"{column.get_name()}" {attribute.too_large}.', "Declare a coarser step or narrower bounds.")
    if is_coded(attribute):
        number = column
    elif column.type().is_integer() and attribute.width == 1:
        number = _whole_code(column, attribute)
    else:
        number = nearest_code(column, attribute, boundary)
    return number.fill_null(0) if getattr(attribute, "missing", "") == "lowest" else number


def number_code(table: Any, name: str, attribute: Numeric, boundary: Boundary) -> Any:
    """Return the code of a numeric column, or of the gap between two of them: NULL if it is missing, NO_GAP without one."""
    if not isinstance(attribute, Gap):
        return code(table[name], attribute, boundary)
    start = code(table[attribute.start], attribute.lower, boundary)
    end = code(table[attribute.end], attribute.upper, boundary)
    gap, none = end - start + attribute.shift, ibis.literal(NO_GAP, "int64")
    return ibis.cases(
        (end.isnull(), ibis.null("int64")),
        (start.isnull(), ibis.null("int64") if attribute.keeps_missing_start else none),
        (gap < 0, ibis.literal(0, "int64") if attribute.clips else none),
        else_=gap,
    )


def has_few_labels(attribute: Category, boundary: Boundary) -> bool:
    """Return whether a category is coded by comparisons; a longer list is joined (see `with_codes`)."""
    return attribute.size <= FEW_LABELS and (boundary.encodes or attribute.value_type is not str)


def category_code(column: Any, attribute: Category, boundary: Boundary) -> Any:
    """Return the position of a value in a short list; if it is not listed, that of "(other)" or NULL."""
    branches = [
        (
            column == (boundary.literal(value) if isinstance(value, str) else ibis.literal(value, column.type())),
            position,
        )
        for value, position in possible_labels(attribute, column.type())
    ]
    numbers = [(test, ibis.literal(position, "int64")) for test, position in branches]
    if attribute.outside == "other":
        numbers.append((column.notnull(), ibis.literal(attribute.size - 1, "int64")))
    return ibis.cases(*numbers, else_=ibis.null("int64")) if numbers else ibis.null("int64")


def text_code(column: Any, attribute: Text, boundary: Boundary) -> Any:
    """Return the bucket of a text, or 0 if the policy declares no buckets; NULL if it is missing."""
    if not attribute.buckets:
        return ibis.cases((column.isnull(), ibis.null("int64")), else_=ibis.literal(0, "int64"))
    digest, digits = boundary.digest(column), ibis.literal("0123456789abcdef")
    bucket: Any = 0
    for n in range(8):  # the first 32 bits, in numbers that fit into 32 bits on every engine
        bucket = (bucket * 16 + digits.find(digest.substr(n, 1))) % attribute.buckets
    return bucket.cast("int64")


def with_codes(table: Any, columns: Mapping[str, tuple[str, Attribute]], boundary: Boundary) -> Any:
    """Return the table with code columns added: new name -> (column, attribute); NULL for missing values."""
    direct = {}
    for name, (source, attribute) in columns.items():
        if isinstance(attribute, Numeric):
            direct[name] = number_code(table, source, attribute, boundary)
        elif isinstance(attribute, Text):
            direct[name] = text_code(table[source], attribute, boundary)
        elif not isinstance(attribute, Category):
            raise TypeError("A key or a set has no codes.")
        elif has_few_labels(attribute, boundary):
            direct[name] = category_code(table[source], attribute, boundary)
    coded = table.mutate(**direct) if direct else table
    for name, (source, attribute) in columns.items():
        if isinstance(attribute, Category) and name not in direct:
            labels = boundary.labels(attribute, table[source].type()).rename({f"{LABEL}_{name}": LABEL, name: CODE})
            coded = coded.left_join(labels, coded[source] == labels[f"{LABEL}_{name}"]).drop(f"{LABEL}_{name}")
            if attribute.outside == "other":
                other = ibis.cases((coded[source].notnull(), attribute.size - 1), else_=ibis.null("int64"))
                coded = coded.mutate(**{name: coded[name].fill_null(other)})
    return coded


def with_products(
    table: Any, columns: Mapping[str, Mapped], policy: Policy, boundary: Boundary, *, final: bool = False
) -> Any:
    """Return the table with a column for each mapping of combinations: the number of the row's combination.

    If that is cheaper, the combination itself is returned, to be looked up afterwards; with `final`, it is looked up in
    the engine, in a list of all combinations, or of intervals of them, whose number is not the usual one.
    """
    if not columns:
        return table
    factors = sorted({column for mapped in columns.values() for column in mapped.columns})
    coded_names = {name: f"tidegate_factor_{index}" for index, name in enumerate(factors)}
    coded = with_codes(table, {coded_names[name]: (name, policy.countable(name)) for name in factors}, boundary)
    products = {}
    for new_name, mapped in columns.items():
        combination: Any = ibis.literal(0, "int64")
        for index, (name, size) in enumerate(zip(mapped.shortest.columns, mapped.shortest.sizes, strict=True)):
            factor = coded[coded_names[name]]
            if mapped.classes:
                factor = _class_of(factor, mapped.shortest.classes[index][:-1])
            combination = combination * size + factor.fill_null(size - 1)
        starts, numbers = mapped.shortest.runs
        later = not mapped.shortest.has_few_runs if final else mapped.shortest.is_looked_up_later
        products[new_name] = combination if later else in_cells(combination, starts.tolist(), numbers.tolist())
    coded = coded.mutate(**products).drop(*coded_names.values())
    for new_name, mapped in columns.items():
        if final and not mapped.shortest.has_few_runs:
            coded = _look_up(coded, new_name, mapped.shortest, boundary)
    return coded


def _look_up(table: Any, name: str, mapped: Mapped, boundary: Boundary) -> Any:
    """Return the table with the number of each combination instead of the combination.

    Guarantee:
        Every row has at most one match, because the combinations or intervals are disjoint.
    """
    of, is_number, first, last = (f"{name}_{part}" for part in ("of", "is", "first", "last"))
    intervals = mapped.intervals
    if intervals is None:
        positions = np.flatnonzero(mapped.codes != mapped.usual)
        listed = boundary.numbers(positions, mapped.codes[positions]).rename({of: LABEL, is_number: CODE})
        joined = table.left_join(listed, table[name] == listed[of])
    else:
        packed = boundary.numbers(intervals.prefixes, intervals.packed).rename({of: LABEL, is_number: CODE})
        ends = packed[is_number] // intervals.factor
        listed = packed.mutate(
            **{first: ends // intervals.width, last: ends % intervals.width},
            **{is_number: packed[is_number] % intervals.factor + DROPPED},
        )
        in_prefix = table[name] % intervals.width
        is_inside = [
            table[name] // intervals.width == listed[of],
            in_prefix >= listed[first],
            in_prefix <= listed[last],
        ]
        joined = table.left_join(listed, is_inside).drop(first, last)
    numbered = joined.mutate(**{name: joined[is_number].fill_null(mapped.usual)})
    return numbered.drop(of, is_number)


def _class_of(code: Any, classes: Ints) -> Any:
    """Return the class of a code; NULL stays NULL."""
    cells = regular_cells(classes)
    if cells is None:
        starts, numbers = runs_of(classes)
        return in_cells(code, starts.tolist(), numbers.tolist())
    offset, width = cells
    return (code + offset) // width


def in_cells(code: Any, starts: Sequence[int], names: Sequence[int]) -> Any:
    """Return the name of the cell that contains a code, by bisection: a few comparisons per row. NULL stays NULL."""
    if len(starts) == 1:
        return ibis.cases((code.isnull(), ibis.null("int64")), else_=ibis.literal(names[0], "int64"))
    half = len(starts) // 2
    low, high = in_cells(code, starts[:half], names[:half]), in_cells(code, starts[half:], names[half:])
    return ibis.cases((code < starts[half], low), else_=high)


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
    missing = column.isnull()
    if getattr(attribute, "outside", "") == "missing":
        missing = missing | _beyond(column, low, high)
    return ibis.cases((missing, ibis.null("int64")), else_=position.cast("int64"))


def _beyond(column: Any, low: int, high: int) -> Any:
    """Return whether a whole number is outside of bounds, comparing it with values of its own type only."""
    kind = column.type()
    lowest, highest = kind.bounds
    if low > highest or high < lowest:
        return ibis.literal(True)
    below = column < ibis.literal(low, kind) if low > lowest else ibis.literal(False)
    return below | (column > ibis.literal(high, kind) if high < highest else ibis.literal(False))


def fits(column: Any, attribute: Attribute) -> bool:
    """Return whether the attribute can read the type of a source column."""
    kind = column.type()
    if isinstance(attribute, Key):
        return bool(kind.is_string() or kind.is_integer() or kind.is_uuid())
    if isinstance(attribute, Moment):
        in_text = kind.is_string() or column.get_backend().name == "sqlite"  # which has no type for dates and times
        on_spark = kind.is_timestamp() and column.get_backend().name == "pyspark"  # the boundary knows more of the type
        return bool(in_text or on_spark or _fits_moment(kind, attribute))
    if kind.is_string() and (isinstance(attribute, Category) and attribute.value_type is str):
        return True
    if kind.is_string() and isinstance(attribute, Numeric | Category):
        return bool(column.get_backend().name == "duckdb")  # reads numbers and truth values in text without an error
    if isinstance(attribute, Numeric):
        return bool(kind.is_numeric() and not kind.is_boolean())
    if isinstance(attribute, Boolean):
        return bool(kind.is_boolean() or kind.is_integer())
    if isinstance(attribute, Category):
        return bool({str: kind.is_string(), int: kind.is_integer(), bool: kind.is_boolean()}[attribute.value_type])
    return bool(kind.is_string() or not isinstance(attribute, Text))  # sets of items: read by collections only


def _fits_moment(kind: Any, attribute: Moment) -> bool:
    if isinstance(attribute, Timestamp):
        return bool(kind.is_timestamp() and bool(attribute.zone) == (kind.timezone is not None))
    return bool(kind.is_time() if isinstance(attribute, Time) else kind.is_date() or kind.is_timestamp())


def check_columns(table: Any, attributes: Mapping[str, Attribute]) -> None:
    """Refuse a source that lacks a declared column or stores it in an unsuitable type, without reading a row."""
    check_names(table.columns, attributes)
    for name, attribute in attributes.items():
        if not fits(table[name], attribute):
            raise SourceUnreadable(
                f'Column "{name}" is declared as {attribute.kind} ({attribute.describe()}), but its type in the source is {table[name].type()}.',
                "Correct the kind in the policy, or the column's type at the source.",
                column=name,
            )
