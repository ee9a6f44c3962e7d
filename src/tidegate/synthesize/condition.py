"""Conditions of a draw, `{"sex": "f", "age": (30, 39)}`: as codes for the model, and as a filter of finished rows.

The codes restrict what the model draws. They suffice for a learned column whose codes are its values. Everything else is decided
on finished rows: columns that follow another one, sums, ends after a start, days inside months, and ranges of millions of codes.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.arrays import Ints
from tidegate.errors import UnknownColumn, Unsupported, did_you_mean
from tidegate.exact import exact, say
from tidegate.policy import Attribute, Category, Date, Moment, Numeric, Timestamp
from tidegate.synthesize.columns import Columns, values_of
from tidegate.synthesize.model import Condition

Where = Mapping[str, Any]
MOST_CODES = 2**22  # of a range that the model gets as codes


@dataclass(frozen=True)
class ColumnTest:
    """The finished values of one column that fit: from the first to the last end, or one of a list (None: missing)."""

    column: str
    ends: tuple[pa.Scalar, pa.Scalar] | None = None
    values: tuple[Any, ...] = ()

    def fits(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return for each value whether it fits."""
        if self.ends is not None:
            low, high = self.ends
            between = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
            return pc.fill_null(between, fill_value=False)
        present = pa.array([value for value in self.values if value is not None], values.type)
        listed = pc.is_in(values, value_set=present)
        return pc.or_(listed, pc.is_null(values)) if None in self.values else listed


@dataclass(frozen=True)
class Conditions:
    """All conditions of a draw. `codes` is necessary for them; `tests` are what it does not decide."""

    codes: Condition
    tests: tuple[ColumnTest, ...]
    says: str

    def filter(self, table: pa.Table) -> pa.Table:
        """Return the rows that fit."""
        for test in self.tests:
            table = table.filter(test.fits(table[test.column]))
        return table


def read_conditions(where: Where, columns: Columns) -> Conditions:
    """Return the conditions, or refuse a column that the table lacks or a value that the policy does not list."""
    positions = {column.name: index for index, column in enumerate(columns.learnt)}
    codes: dict[int, Ints] = {}
    tests: list[ColumnTest] = []
    for name, stated in where.items():
        if name not in columns.names or name in columns.numbered:
            known = [column for column in columns.names if column not in columns.numbered]
            raise UnknownColumn(
                f'The synthetic table has no column "{name}" with values to choose from.',
                did_you_mean(str(name), known),
                column=str(name),
            )
        attribute = columns.policy.attributes[name]
        test, matching = _read(name, attribute, stated)
        at = positions.get(name)  # an end after a start is learned as a gap, under another name
        if at is None or matching is None:
            tests.append(test)
            continue
        if not columns.learnt[at].missing:
            matching = matching[matching < attribute.size]
        if not matching.size:
            raise _refused(name, "is never missing in the synthetic table", "Leave out the condition.")
        codes[at] = matching
        if isinstance(attribute, Date) and attribute.grid != "day":
            tests.append(test)
    return Conditions(codes, tuple(tests), ", ".join(where))


def _read(name: str, attribute: Attribute, stated: Any) -> tuple[ColumnTest, Ints | None]:
    """Return the test of a column, and the matching codes (`size`: missing); None if they are too many."""
    if isinstance(stated, tuple):
        return _range(name, attribute, stated)
    values = list(stated) if isinstance(stated, list | set | frozenset | range) else [stated]
    if not values:
        raise _refused(name, "has an empty list of values", "List at least one value.")
    matching = sorted({_code(name, attribute, value) for value in values})
    if isinstance(attribute, Date) and attribute.grid != "day":  # each code has several days
        days = [None if value is None else _day(value) for value in values]
        return ColumnTest(name, values=tuple(days)), np.array(matching)
    return ColumnTest(name, values=tuple(_finished(attribute, matching))), np.array(matching)


def _range(name: str, attribute: Attribute, ends: tuple[Any, ...]) -> tuple[ColumnTest, Ints | None]:
    if isinstance(attribute, Category):
        raise _refused(name, "is a category, which has no ranges", f"List the values: {{{name!r}: [...]}}.")
    if len(ends) != 2:
        raise _refused(name, f"has a range of {len(ends)} numbers", "Write (lowest, highest), or a list for values.")
    low, high = _position(name, attribute, ends[0]), _position(name, attribute, ends[1])
    if isinstance(attribute, Timestamp) and _is_day(ends[1]):  # to the end of the day
        high = max(high, Fraction(math.ceil(_position(name, attribute, _day(ends[1]) + dt.timedelta(1))) - 1))
    by_day = isinstance(attribute, Date)
    first = max(0, math.floor(low) if by_day else math.ceil(low))
    last = min(attribute.size - 1, math.floor(high))
    if first > last or low > high:
        raise _refused(
            name, "has no value in the range", f"The column has {attribute.describe()}; write (lowest, highest)."
        )
    pair = _finished(attribute, [first, last])
    finished = (pa.scalar(_day(ends[0])), pa.scalar(_day(ends[1]))) if by_day else (pair[0], pair[1])
    codes = np.arange(first, last + 1) if last - first < MOST_CODES else None
    return ColumnTest(name, ends=finished), codes


def _code(name: str, attribute: Attribute, value: Any) -> int:
    """Return the code of one value; `size` for a missing one."""
    if value is None:
        return attribute.size
    if isinstance(attribute, Category):
        listed = _listed(attribute)
        if value not in listed:
            raise _refused(name, "does not list this value", did_you_mean(str(value), map(str, listed)))
        return listed.index(value)
    position = _position(name, attribute, value)
    code = math.floor(position)
    on_grid = position == code or isinstance(attribute, Date)
    if not on_grid or not 0 <= code < attribute.size:
        raise _refused(name, "does not have this value", f"The column has {attribute.describe()}.")
    return code


def _position(name: str, attribute: Attribute, value: Any) -> Fraction:
    """Return where a value lies, in steps from the lowest one."""
    position = None
    try:
        if isinstance(attribute, Moment):
            position = attribute.position(value)
        elif isinstance(attribute, Numeric) and not isinstance(value, bool):
            position = (exact(value) - attribute.low) / attribute.width
    except (TypeError, ValueError, OverflowError):
        position = None
    if position is None:
        expected = attribute.comparable if isinstance(attribute, Moment) else "a number"
        raise _refused(name, f"can be compared only with {expected}", f"The column has {attribute.describe()}.")
    return position


def _listed(attribute: Category) -> list[Any]:
    """Return the finished values of a category, in the order of their codes."""
    return values_of(attribute, np.arange(attribute.size)).to_pylist()  # type: ignore[no-any-return]


def _finished(attribute: Attribute, codes: Iterable[int]) -> list[Any]:
    """Return the finished values of codes; None for missing."""
    values = values_of(attribute, np.array(list(codes), np.int64))
    return [value if value.is_valid else None for value in values]


def _day(value: Any) -> dt.date:
    day = dt.date.fromisoformat(value[:10]) if isinstance(value, str) else value
    return day.date() if isinstance(day, dt.datetime) else day


def _is_day(value: Any) -> bool:
    return (isinstance(value, dt.date) and not isinstance(value, dt.datetime)) or (
        isinstance(value, str) and len(value) == 10
    )


def _refused(name: str, what: str, do: str) -> Unsupported:
    return Unsupported(f'The condition on "{name}" is not possible: the column {what}.', do)


def refuse_rare(conditions: Conditions, share: float, least: float) -> None:
    """Refuse conditions that too few rows of the model fit."""
    if share < least:
        shown = f"about {say(100 * share)}%" if share else "less than 0.001%"
        raise Unsupported(
            f"Only {shown} of the model's rows fit the conditions on {conditions.says}; at least {say(100 * least)}% must fit.",
            "Use wider conditions, or fewer of them.",
        )
