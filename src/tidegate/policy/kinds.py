"""The lines of [attributes] in a policy file: a reader for each kind of column.

Each reader reads all its keys (so that open decisions are collected) and returns a function that builds the attribute.
"""

from __future__ import annotations

import csv
import datetime as dt
import hashlib
import io
from pathlib import Path
from typing import Any

from tidegate.errors import PolicyUnreadable, did_you_mean
from tidegate.policy.attributes import Decimal, Grid, Integer, Items, Key
from tidegate.policy.calendar import MONTHS, SECONDS, Date, Time, Timestamp
from tidegate.policy.categories import Boolean, Category, Text
from tidegate.policy.section import Section, list_of, number, one_of, text, whole


def read_attribute(at: Section) -> Any:
    """Return a function that builds the attribute of one line."""
    kind = at.take("kind", one_of(*ATTRIBUTES))
    if kind is None:
        return lambda: None
    build = ATTRIBUTES[kind](at)
    at.done()
    return build


def _missing(at: Section) -> Any:
    return at.take("missing", one_of("dropped", "value", "lowest"), "dropped")


def _outside(at: Section, default: str) -> Any:
    return at.take("outside", one_of("clamp", "missing", "other"), default)


def _integer(at: Section) -> Any:
    low, high, bins = at.take("from", whole), at.take("to", whole), at.take("bins", list_of(whole), ())
    missing, outside = _missing(at), _outside(at, "clamp")
    return lambda: Integer(low, high, bins, missing, outside)


def _grid(kind: type[Grid]) -> Any:
    def read(at: Section) -> Any:
        low, high, step = at.take("from", number), at.take("to", number), at.take("step", number)
        bins, missing, outside = at.take("bins", list_of(number), ()), _missing(at), _outside(at, "clamp")
        return lambda: kind(low, high, step, bins, missing, outside)

    return read


def _category(at: Section) -> Any:
    listed = "values" in at.names()
    values = at.take("values", list_of(lambda item: item)) if listed or "values_from" not in at.names() else None
    path, column, sha256 = at.take("values_from", text, ""), at.take("column", text, ""), at.take("sha256", text, "")
    missing, outside = _missing(at), _outside(at, "missing")

    def build() -> Category:
        if not path:
            return Category(values or (), missing, outside)
        if listed and sha256:  # as `to_dict` writes it: the file is not needed
            return Category(values or (), missing, outside, path, column, sha256)
        if listed or sha256 or not column:
            raise PolicyUnreadable(
                f"{at.path} requires either `values`, or `values_from` and `column`.",
                'Write values_from = "FILE.csv", column = "NAME".',
            )
        read, digest = read_values(at.folder / path, column)
        return Category(read, missing, outside, path, column, digest)

    return build


def read_values(path: Path, column: str) -> tuple[tuple[str, ...], str]:
    """Return the distinct values of a column of a public CSV file, in its order, and the SHA-256 of the file.

    Empty fields are left out.
    """
    problem = ""
    try:
        content = path.read_bytes()
        lines = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        header = next(lines, [])
        position = header.index(column) if column in header else -1
        values = dict.fromkeys(line[position] for line in lines if len(line) > position) if position >= 0 else {}
    except FileNotFoundError:
        problem = "there is no such file"
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text"
    except csv.Error:
        problem = "it is not CSV"
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise PolicyUnreadable(f'Cannot read the values in "{path}": {problem}.', "Correct `values_from`.")
    if position < 0:
        raise PolicyUnreadable(f'"{path.name}" has no column "{column}".', did_you_mean(column, header))
    values.pop("", None)
    return tuple(values), hashlib.sha256(content).hexdigest()


def _items(at: Section) -> Any:
    words, missing = at.take("vocabulary", list_of(text)), _missing(at)
    return lambda: Items(words, missing)


def _boolean(at: Section) -> Any:
    missing = _missing(at)
    return lambda: Boolean(missing)


def _text(at: Section) -> Any:
    buckets, missing = at.take("buckets", whole, None), _missing(at)
    return lambda: Text(buckets, missing)


def _moment(value: Any) -> Any:
    if not isinstance(value, dt.date | dt.time | str):
        raise TypeError("a date or time is required")
    return value


def _ends(at: Section) -> tuple[Any, Any]:
    if "bins" in at.names():
        raise PolicyUnreadable(f"{at.where('bins')}: dates and times have no bins.", "Choose a coarser `grid` instead.")
    return at.take("from", _moment), at.take("to", _moment)


def _date(at: Section) -> Any:
    first, last = _ends(at)
    grid = at.take("grid", one_of("day", "week", *MONTHS), "day")
    missing, outside = _missing(at), _outside(at, "missing")
    return lambda: Date(first, last, grid, missing, outside)


def _timestamp(at: Section) -> Any:
    first, last = _ends(at)
    grid, zone = at.take("grid", one_of(*SECONDS)), at.take("zone", text, "")
    missing, outside = _missing(at), _outside(at, "missing")
    return lambda: Timestamp(first, last, grid, zone, missing, outside)


def _time(at: Section) -> Any:
    first, last = _ends(at)
    grid = at.take("grid", one_of(*SECONDS))
    missing, outside = _missing(at), _outside(at, "missing")
    return lambda: Time(first, last, grid, missing, outside)


ATTRIBUTES: dict[str, Any] = {
    "integer": _integer,
    "grid": _grid(Grid),
    "decimal": _grid(Decimal),
    "date": _date,
    "timestamp": _timestamp,
    "time": _time,
    "boolean": _boolean,
    "category": _category,
    "text": _text,
    "items": _items,
    "key": lambda at: Key,
}
