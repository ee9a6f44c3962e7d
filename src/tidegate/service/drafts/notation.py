"""How a CSV file is written: decimal commas and dates such as 31.12.2024, words for missing values, units, repeated names.

A chosen notation is rewritten once, when a file is uploaded: `1.234,50 EUR` becomes `1234.50`, `31.12.2024` becomes
`2024-12-31`, `NA` becomes an empty value, and `72 kg` becomes `72`. Everything else stays as it is. The policy then needs no notation, and every engine reads the same values.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from tidegate.tables.csv_reader import MOST_CHARACTERS
from tidegate.tables.header import read_header, split_header

COMMA_NUMBER = re.compile(r"([+-]?)(\d{1,3}(?:\.\d{3})+|\d+)(?:,(\d+))?\s*(?:€|EUR|CHF|%)?")
POINT_DATE = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})((?: \d{1,2}:\d{2}(?::\d{2})?)?)")
MISSING = frozenset(("na", "n/a", "#n/a", "nan", "null", "-", "--", "–", "—", "?", "."))  # in any case
UNITS = "kg|g|mg|µg|lb|km|m|cm|mm|l|dl|ml|°C|°F|mmHg|bpm|kcal|h|min|s|years|Jahre"
QUANTITY = re.compile(rf"([+-]?\d[\d.,]*)\s*({UNITS})")


@dataclass(frozen=True)
class Notation:
    """What to rewrite in a CSV file.

    Args:
        comma: Numbers with a decimal comma, and dates with points.
        trim: Spaces around values and names.
        lower: Capital letters in values.
        rename: Names that are missing or repeated.
        missing: Words for a missing value, such as NA.
        units: Units after numbers. The first unit of a column is removed; values with another one stay as they are, so that
            the check against the data reports them.
    """

    comma: bool = False
    trim: bool = False
    lower: bool = False
    rename: bool = False
    missing: bool = False
    units: bool = False

    def __bool__(self) -> bool:
        return any(astuple(self))


AS_WRITTEN = Notation()


def rewrite(path: Path, notation: Notation) -> None:
    """Rewrite a CSV file in place."""
    delimiter, header = split_header(path) if notation.rename else read_header(path)
    header = [name.strip() for name in header] if notation.trim else header
    header = unique_names(header) if notation.rename else header
    convert = _converter(notation)
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
            writer.writerows(
                [convert(text, position) for position, text in enumerate(record)]
                for record in csv.reader(source, delimiter=delimiter)
            )
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


def _converter(notation: Notation) -> Callable[[str, int], str]:
    units: dict[int, str] = {}  # the first unit of each column, by position

    def convert(text: str, position: int) -> str:
        short = text.strip()
        if notation.missing and short.lower() in MISSING:
            return ""
        quantity = QUANTITY.fullmatch(short) if notation.units else None
        if quantity and units.setdefault(position, quantity[2]) == quantity[2]:
            text = short = quantity[1]
        if notation.comma and short[:1] in "+-0123456789" and len(short) < 60:
            text = short = point_notation(short)
        shown = short if notation.trim else text
        return shown.lower() if notation.lower else shown

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
