"""The content of reference tables: public rows with a unique key, the same in all neighboring data sets.

A reference column is a function of the code of the foreign key, so no join is executed. The content is part of the
policy: its fingerprint covers a SHA-256 of the codes, in an order of their own, not of the file's bytes.
"""

from __future__ import annotations

import csv
import datetime as dt
import math
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from tidegate.errors import PolicyUnreadable, did_you_mean
from tidegate.policy.attributes import Attribute, Integer, Numeric
from tidegate.policy.calendar import Date, Moment
from tidegate.policy.categories import Category, Text
from tidegate.policy.fingerprint import fingerprint_of

MOST_ROWS = 2**21  # of a reference table, and of the values of a foreign key
WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
Codes = tuple[int | None, ...]  # of one row, in the order of the countable columns
Content = Mapping[str, Codes]  # by the text of the key


def content_digest(columns: Iterable[str], content: Content) -> str:
    """Return the SHA-256 of the content: the codes by key, whatever the order of the rows."""
    return fingerprint_of({"columns": list(columns), "rows": {key: list(codes) for key, codes in content.items()}})


def countable_columns(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """Return the columns of a reference table that have codes."""
    return {name: attribute for name, attribute in attributes.items() if attribute.countable}


def can_be_foreign_key(attribute: Attribute | None) -> bool:
    """Return whether a column has few enough values, each with a text of its own."""
    return isinstance(attribute, Category | Integer | Date) and attribute.size <= MOST_ROWS


def key_texts(foreign: Attribute) -> list[str | None]:
    """Return the text of every value of a foreign key, by code; None for "(other)", which stands for many values."""
    if isinstance(foreign, Category):
        listed: list[str | None] = [_scalar_text(value) for value in foreign.listed]
        return [*listed, *[None] * (foreign.size - len(listed))]
    return [_scalar_text(label) for label in foreign.labels()]


def read_content(table: str, path: Path, attributes: Mapping[str, Attribute], key: str, foreign: Attribute) -> Content:
    """Return the content of a reference table in a CSV or Parquet file."""
    readers = {".csv": _csv_records, ".tsv": _csv_records, ".txt": _csv_records}
    readers |= {".parquet": _parquet_records, ".pq": _parquet_records}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise PolicyUnreadable(
            f'The reference table "{table}" cannot be read from "{path.name}".', "Use a CSV or a Parquet file."
        )
    records, problem = [], ""
    try:
        records = reader(path, list(attributes))
    except FileNotFoundError:
        problem = "there is no such file"
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text"
    except (OSError, csv.Error, KeyError, ValueError) as error:
        problem = str(error.args[0]) if isinstance(error, KeyError) else type(error).__name__
    if problem:
        raise PolicyUnreadable(
            f'The reference table "{table}" cannot be read from "{path}": {problem}.',
            "Correct its source in [tables]. Relative paths start from the policy file's folder.",
        )
    return content_of(table, records, attributes, key, foreign)


def content_of(
    table: str, records: Iterable[Mapping[str, Any]], attributes: Mapping[str, Attribute], key: str, foreign: Attribute
) -> Content:
    """Return the codes of public records by their key. Duplicate keys are refused: the table would be no function."""
    content: dict[str, Codes] = {}
    coders = {
        name: _category_codes(attribute) if isinstance(attribute, Category) else partial(_code, attribute=attribute)
        for name, attribute in countable_columns(attributes).items()
    }
    for record in records:
        text = _key_text(record.get(key), foreign)
        if not text:
            raise PolicyUnreadable(
                f'The reference table "{table}" has a row whose key "{key}" is missing or has another type than the foreign key.',
                f"Give every row a value of {key} that {foreign.describe()} can contain.",
            )
        if text in content:
            raise PolicyUnreadable(
                f'The key "{key}" of the reference table "{table}" is not unique: "{text}" occurs twice.',
                "Remove the duplicate rows, or relate the foreign key to a column that names each row once.",
            )
        content[text] = tuple(coder(record.get(name)) for name, coder in coders.items())
        if len(content) > MOST_ROWS:
            raise PolicyUnreadable(
                f'The reference table "{table}" has more than {MOST_ROWS:,} rows.', "Keep the rows that are needed."
            )
    return content


def _csv_records(path: Path, names: list[str]) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        file.seek(0)
        rows = csv.reader(file, delimiter=max(",;\t|", key=first.count), strict=True)
        header = next(rows, [])
        _check_header(names, header)
        records = []
        for row in rows:
            if row and len(row) != len(header):
                raise KeyError(f"line {rows.line_num} has {len(row)} fields instead of {len(header)}")
            if row:
                records.append({name: value or None for name, value in zip(header, row, strict=True)})
    return records


def _parquet_records(path: Path, names: list[str]) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq  # here: a policy without reference tables needs no arrays

    _check_header(names, pq.read_schema(path).names)
    records: list[dict[str, Any]] = pq.read_table(path, columns=names).to_pylist()
    return records


def _check_header(names: list[str], header: list[str]) -> None:
    if len(set(header)) != len(header):
        raise KeyError("its first line names a column twice")
    for name in names:
        if name not in header:
            raise KeyError(f'it has no column "{name}". {did_you_mean(name, header)}'.rstrip("."))


def _scalar_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def _key_text(value: Any, foreign: Attribute) -> str | None:
    """Return a key as text, the same for every file type; None if it has another type than the foreign key."""
    if isinstance(foreign, Date):
        position = _position(value, foreign)
        whole = position is not None and position.denominator == 1
        return _scalar_text(_date_of(value)) if whole else None
    kind = foreign.value_type if isinstance(foreign, Category) else int
    if kind is int and isinstance(value, str) and WHOLE.fullmatch(value):
        return str(int(value))
    if kind is bool and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower()
    return _scalar_text(value) if type(value) is kind else None


def _date_of(value: Any) -> dt.date:
    moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment.date() if isinstance(moment, dt.datetime) else moment


def _category_codes(attribute: Category) -> Callable[[Any], int | None]:
    codes = {_scalar_text(value): code for code, value in enumerate(attribute.listed)}
    other = attribute.size - 1 if attribute.outside == "other" else None
    return lambda value: None if value is None else codes.get(_key_text(value, attribute) or "", other)


def _code(value: Any, attribute: Attribute) -> int | None:
    """Return the code of a public value; None if it is missing, or outside where the policy does not say otherwise."""
    if isinstance(attribute, Text):
        return attribute.bucket(value) if isinstance(value, str) else None
    if not isinstance(attribute, Numeric):
        raise PolicyUnreadable(f"A column of a reference table cannot be of the kind {attribute.kind}.")
    position = _position(value, attribute)
    last = attribute.size - 1
    end = last + 1 if isinstance(attribute, Moment) else last  # a moment is anywhere in its cell
    beyond = position is not None and not (0 <= position <= last or 0 <= position < end)
    if position is None or (beyond and getattr(attribute, "outside", "clamp") == "missing"):
        return 0 if getattr(attribute, "missing", "") == "lowest" else None
    nearest = position if isinstance(attribute, Moment) else position + Fraction(1, 2)
    return min(max(math.floor(nearest), 0), last)


def _position(value: Any, attribute: Numeric) -> Fraction | None:
    """Return where a value of a file is between codes; None if it is missing or has another type."""
    if not isinstance(attribute, Moment):
        return attribute.position(_number(value))
    has_time = isinstance(attribute, Date) and isinstance(value, dt.datetime)
    return attribute.position(value.isoformat() if has_time else value)


def _number(value: Any) -> Fraction | None:
    if value is None or isinstance(value, bool):
        return None
    try:
        number = Decimal(value.strip() if isinstance(value, str) else str(value))
    except InvalidOperation:
        return None
    if number.is_infinite():
        return Fraction(10) ** 400 * (1 if number > 0 else -1)
    return None if number.is_nan() or abs(number.adjusted()) > 400 else Fraction(number)
