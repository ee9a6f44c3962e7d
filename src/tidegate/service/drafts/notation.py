"""How a CSV file is written: decimal commas and dates such as 31.12.2024, spaces around values, repeated column names.

A chosen notation is rewritten once, when a file is uploaded: `1.234,50 EUR` becomes `1234.50`, and `31.12.2024` becomes
`2024-12-31`. Everything else stays as it is. The policy then needs no notation, and every engine reads the same values.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from tidegate.tables.csv_reader import MOST_CHARACTERS
from tidegate.tables.header import read_header, split_header

COMMA_NUMBER = re.compile(r"([+-]?)(\d{1,3}(?:\.\d{3})+|\d+)(?:,(\d+))?\s*(?:€|EUR|CHF|%)?")
POINT_DATE = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})((?: \d{1,2}:\d{2}(?::\d{2})?)?)")


def rewrite(path: Path, *, comma: bool, trim: bool, rename: bool = False, lower: bool = False) -> None:
    """Rewrite a CSV file in place.

    Args:
        comma: Numbers with a decimal comma, and dates with points.
        trim: Spaces around values and names.
        rename: Names that are missing or repeated.
        lower: Capital letters in values.
    """
    delimiter, header = split_header(path) if rename else read_header(path)
    header = [name.strip() for name in header] if trim else header
    header = unique_names(header) if rename else header
    convert = _converter(comma=comma, trim=trim, lower=lower)
    temporary = path.with_name(f"{path.name}.part")
    csv.field_size_limit(max(csv.field_size_limit(), 2 * MOST_CHARACTERS))
    try:
        temporary.touch(mode=0o600)
        with (
            path.open(encoding="utf-8-sig", errors="replace", newline="") as source,
            temporary.open("w", encoding="utf-8", newline="") as target,
        ):
            writer = csv.writer(target, delimiter=delimiter, lineterminator="\n")
            source.readline()
            writer.writerow(header)
            writer.writerows([convert(text) for text in record] for record in csv.reader(source, delimiter=delimiter))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def unique_names(names: Sequence[str]) -> list[str]:
    """Return names that are all different: the second "age" becomes "age_2", a third column without a name "column_3"."""
    result: list[str] = []
    for position, name in enumerate(names, 1):
        base = name or f"column_{position}"
        number, candidate = 1, base
        while candidate in result or (number > 1 and candidate in names):
            number += 1
            candidate = f"{base}_{number}"
        result.append(candidate)
    return result


def _converter(*, comma: bool, trim: bool, lower: bool) -> Callable[[str], str]:
    def convert(text: str) -> str:
        short = text.strip()
        if comma and short[:1] in "+-0123456789" and len(short) < 60:
            return point_notation(short)
        shown = short if trim else text
        return shown.lower() if lower else shown

    return convert


def point_notation(text: str) -> str:
    """Return a number with a decimal point, or a date as year-month-day; other texts as they are."""
    if date := POINT_DATE.fullmatch(text):
        day, month, year, time = date.groups()
        return f"{year}-{int(month):02d}-{int(day):02d}{time}"
    if number := COMMA_NUMBER.fullmatch(text):
        sign, whole, part = number.groups()
        has_point = "." in whole
        if has_point or part or not text[-1].isdigit():
            return f"{sign}{whole.replace('.', '')}{f'.{part}' if part else ''}"
    return text
