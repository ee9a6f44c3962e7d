"""Stored dates, times and decimals as codes, by functions that no stored value can make fail.

An engine presents a date as days since 1970 and a point in time as seconds since 1970, in UTC (`Boundary.days`, `seconds`,
`time_seconds`). The rest is arithmetic on whole numbers, the same on every engine; an engine's time zone data is not used.
Text is read as ISO 8601: a text of another form is NULL before any part of it is converted.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ibis

from tidegate.exact import plain
from tidegate.policy import Attribute, Date, Decimal, Moment, Numeric, Time, Timestamp

DAY = 86_400
UNIX_DAY = 719_162  # days from 0001-01-01 to 1970-01-01
DATE, CLOCK = "dddd-dd-dd", "dd:dd"
ENDINGS = ("", ":dd", *(":dd." + "d" * digits for digits in range(1, 10)))
OFFSETS = ("Z", "sdd:dd")
CHARACTERS = {"d": "[0-9]", "t": "[ T]", "s": "[+-]", ".": "[.]"}  # for patterns and for GLOB
MONTH_STARTS = (306, 337, 0, 31, 61, 92, 122, 153, 184, 214, 245, 275)  # days since March 1


def is_coded(attribute: Attribute) -> bool:
    """Return whether the engine's boundary replaces a column by its codes."""
    return isinstance(attribute, Moment | Decimal)


def code_of(column: Any, attribute: Any, boundary: Any) -> Any:
    """Return the code of a stored date, time or decimal; NULL if it is missing, or outside and not clamped."""
    if isinstance(attribute, Decimal):
        return _decimal_code(column, attribute, boundary)
    index = (
        _text_index(column, attribute, boundary) if column.type().is_string() else _index(column, attribute, boundary)
    )
    return _bounded(index, attribute)


def _bounded(index: Any, attribute: Attribute) -> Any:
    last = attribute.size - 1
    if getattr(attribute, "outside", "") == "clamp":
        inside = ibis.least(ibis.greatest(index, ibis.literal(0, "int64")), ibis.literal(last, "int64"))
        return ibis.cases((index.isnull(), ibis.null("int64")), else_=inside)
    return ibis.cases((index.between(0, last), index), else_=ibis.null("int64"))


def _index(column: Any, attribute: Any, boundary: Any) -> Any:
    """Return the number of the grid cell, beyond 0 .. size-1 for values outside; NULL for NULL."""
    if isinstance(attribute, Date):
        days = boundary.days(column) if column.type().is_date() else boundary.seconds(column) // DAY
        cell = _cell_of_day(days, attribute, boundary)
    else:
        seconds = boundary.time_seconds(column) if isinstance(attribute, Time) else boundary.seconds(column)
        cell = seconds // attribute.step - attribute.origin
    return ibis.cases((column.isnull(), ibis.null("int64")), else_=cell.cast("int64"))


def _cell_of_day(days: Any, attribute: Date, boundary: Any) -> Any:
    first, last = attribute.first.toordinal() - 1 - UNIX_DAY, attribute.last.toordinal() - 1 - UNIX_DAY
    if attribute.grid == "day":
        return days - first
    if attribute.grid == "week":
        return (days - first) // 7
    near = ibis.least(ibis.greatest(days, ibis.literal(first - 1, "int64")), ibis.literal(last + 1, "int64"))
    date = boundary.date_of(near)
    return _cell_of_month(date.year().cast("int64"), date.month().cast("int64"), attribute)


def _cell_of_month(year: Any, month: Any, attribute: Date) -> Any:
    months = {"month": 1, "quarter": 3, "year": 12}[attribute.grid]
    return (12 * year + month - 1) // months - attribute.origin


def _text_index(text: Any, attribute: Any, boundary: Any) -> Any:
    """Return the cell of a text in a form of `shapes_of`; NULL for NULL, and for a day or an hour that does not exist."""

    def digits(start: int, count: int) -> Any:
        return text.substr(start, count).cast("int64")

    valid, seconds = ibis.literal(True), ibis.literal(0, "int64")
    if not isinstance(attribute, Date):
        clock = 0 if isinstance(attribute, Time) else 11
        hour, minute = digits(clock, 2), digits(clock + 3, 2)
        without_seconds = text.substr(clock + 5, 1) != ":"
        valid = (hour < 24) & (minute < 60) & (without_seconds | text.substr(clock + 6, 1).isin(list("012345")))
        seconds = hour * 3_600 + minute * 60
    if not isinstance(attribute, Time):
        year, month, day = digits(0, 4), digits(5, 2), digits(8, 2)
        leap = ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)
        length = ibis.cases((month.isin([4, 6, 9, 11]), 30), (month != 2, 31), (leap, 29), else_=28)
        valid = valid & (year >= 1) & month.between(1, 12) & (day >= 1) & (day <= length)
    if isinstance(attribute, Date):
        in_days = attribute.grid in ("day", "week")
        days = _days_of(year, month, day) if in_days else None
        cell = _cell_of_day(days, attribute, boundary) if in_days else _cell_of_month(year, month, attribute)
    else:
        if isinstance(attribute, Timestamp):
            seconds = _days_of(year, month, day) * DAY + seconds
        if isinstance(attribute, Timestamp) and attribute.zone:
            offset = _offset(text)
            valid, seconds = valid & (offset.abs() < DAY), seconds - offset
        cell = seconds // attribute.step - attribute.origin
    return ibis.cases((text.notnull() & valid, cell), else_=ibis.null("int64"))


def _days_of(year: Any, month: Any, day: Any) -> Any:
    """Return the days since 1970 of a date; years begin in March, so that a leap day is the last."""
    march = ibis.cases((month <= 2, year - 1), else_=year)
    starts = [(month == number, start) for number, start in enumerate(MONTH_STARTS, 1)]
    return march * 365 + march // 4 - march // 100 + march // 400 + ibis.cases(*starts, else_=0) + day - 719_469


def _offset(text: Any) -> Any:
    """Return the seconds from UTC at the end of a text, which is Z, +hh:mm or -hh:mm."""
    end = text.length()
    zulu = text.substr(end - 1, 1).isin(["Z"])
    shown = ibis.cases((zulu, "+00:00"), else_=text.substr(end - 6, 6))
    seconds = shown.substr(1, 2).cast("int64") * 3_600 + shown.substr(4, 2).cast("int64") * 60
    return ibis.cases((shown.substr(0, 1).isin(["-"]), -seconds), else_=seconds)


def shapes_of(attribute: Any) -> list[str]:
    """Return the accepted forms of a text as patterns."""
    if isinstance(attribute, Date):
        shapes = [DATE]
    elif isinstance(attribute, Time):
        shapes = [CLOCK + ending for ending in ENDINGS]
    else:
        offsets = OFFSETS if attribute.zone else ("",)
        shapes = [f"{DATE}t{CLOCK}{ending}{offset}" for ending in ENDINGS for offset in offsets]
    return ["".join(CHARACTERS.get(character, character) for character in shape) for shape in shapes]


def nearest_code(column: Any, attribute: Numeric, boundary: Any) -> Any:
    """Return the code of a number in floating point: the nearest position, halves up."""
    value = boundary.real(column)
    low, high, step = float(attribute.low), float(attribute.high), float(attribute.width)
    inside = ibis.least(ibis.greatest(value, ibis.literal(low, "float64")), ibis.literal(high, "float64"))
    position = ibis.least(
        ((inside - low) / step + 0.5).floor().cast("int64"), ibis.literal(attribute.size - 1, "int64")
    )
    missing = value.isnull() | boundary.is_nan(value)
    if getattr(attribute, "outside", "") == "missing":
        missing = missing | (value < low) | (value > high)
    return ibis.cases((missing, ibis.null("int64")), else_=position)


def _decimal_code(column: Any, attribute: Decimal, boundary: Any) -> Any:
    """Return the code of a number on a decimal grid, rounded exactly: halves go up.

    The number is cut to one digit more than the grid has. Points halfway between two values have no more digits, so the cut
    never crosses one.
    """
    if column.type().is_floating():
        return nearest_code(column, attribute, boundary)
    digits = attribute.places + 1
    low, high, step = (int(number * 10**digits) for number in (attribute.low, attribute.high, attribute.width))
    below, above = _cut(column, attribute, boundary, digits)
    index = (2 * (below - low) + step) // (2 * step)
    inside = ibis.least(ibis.greatest(index, ibis.literal(0, "int64")), ibis.literal(attribute.size - 1, "int64"))
    missing = boundary.real(column).isnull()  # NaN too
    if attribute.outside == "missing":
        missing = missing | (below < low) | (above > high)
    return ibis.cases((missing, ibis.null("int64")), else_=inside)


def _cut(column: Any, attribute: Decimal, boundary: Any, digits: int) -> tuple[Any, Any]:
    """Return a number with this number of digits after the point, as whole numbers: rounded down, and rounded up."""
    kind = column.type()
    lowest, highest = Fraction(math.floor(attribute.low) - 1), Fraction(math.ceil(attribute.high) + 1)
    if kind.is_integer() or kind.scale == 0:
        real = boundary.real(column)
        inside = ibis.least(ibis.greatest(real, ibis.literal(float(lowest))), ibis.literal(float(highest)))
        whole = inside.cast("int64") * 10**digits
        return whole, whole
    if kind.scale is not None:  # a literal must be a value of the column's own type
        limit = Fraction(10) ** int(kind.precision - kind.scale) - Fraction(1, 10 ** min(kind.scale, digits))
        lowest, highest = (min(max(end, -limit), limit) for end in (lowest, highest))
    ends = [ibis.literal(str(plain(end)), "string").cast(kind) for end in (lowest, highest)]
    inside = ibis.least(ibis.greatest(column, ends[0]), ends[1])
    rounded = inside if kind.scale is not None and kind.scale <= digits else boundary.rounded(inside, digits)
    near = (rounded.cast("float64") * float(10**digits)).round().cast("int64")
    return near - ibis.cases((rounded > inside, 1), else_=0), near + ibis.cases((rounded < inside, 1), else_=0)
