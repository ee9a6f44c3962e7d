"""The records of CSV files, as text, and the value of a text in each kind of column.

Reading is total: every file has records, and every text has a value or is missing.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidegate.policy import Attribute
from tidegate.tables.header import quoted

ROWS_AT_ONCE = 50_000
MOST_LINES, MOST_CHARACTERS = 1_000, 2**20  # of one record; beyond them its quote counts as not closed


@dataclass
class Malformed:
    """What did not fit when a file was read: exact numbers, for the owner only."""

    lines: int = 0  # too few or too many fields, or a quote that is not closed
    characters: int = 0  # lines with bytes that are not UTF-8
    values: dict[str, int] = field(default_factory=dict)  # by column: text that does not have the declared type

    def to_dict(self) -> dict[str, Any]:
        return {"lines": self.lines, "characters": self.characters, "values": self.values}


class Unfit(Exception):
    """The strict reader does not accept the file."""


def read_strictly(
    path: Path, header: tuple[str, list[str]], names: list[str], malformed: Malformed, connect: Callable[[], Any]
) -> Iterator[pa.Table]:
    """Yield the rows of a file without quotes in which every record is well formed. It is several times faster.

    Raises:
        Unfit: The file has quotes or different ends of lines, or a record is not well formed or not UTF-8.
    """
    if not _is_plain(path):
        raise Unfit
    delimiter, columns = header
    query = f"""
        SELECT {", ".join(map(quoted, names))} FROM read_csv(?, columns = ?, delim = ?, quote = '"', escape = '"',
        header = true, auto_detect = false, strict_mode = true)"""  # noqa: S608 - declared columns
    try:
        rows = connect().con.execute(query, [str(path), dict.fromkeys(columns, "VARCHAR"), delimiter])
        reader = rows.to_arrow_reader(ROWS_AT_ONCE)
        for batch in reader:
            yield pa.Table.from_batches([batch])
        return
    except Exception:  # noqa: S110 - its message quotes a record; the other reader accepts every file
        pass
    raise Unfit


def _is_plain(path: Path) -> bool:
    """Return whether a file has no quote and one kind of line end: every reader then finds the same fields."""
    ends, returns, pairs, last = 0, 0, 0, b""
    with path.open("rb") as file:
        while block := file.read(2**24):
            if b'"' in block:
                return False
            ends, returns = ends + block.count(b"\n"), returns + block.count(b"\r")
            pairs += (last + block[:1]).count(b"\r\n") + block.count(b"\r\n")
            last = block[-1:]
    return returns == 0 or ends == returns == pairs


def read_tolerantly(
    path: Path, header: tuple[str, list[str]], names: list[str], malformed: Malformed, connect: Callable[[], Any]
) -> Iterator[pa.Table]:
    """Yield the rows of any file, and count the records that are not well formed."""
    delimiter, columns = header
    positions = [columns.index(name) for name in names]
    width, rows = len(columns), list[list[str]]()

    def table() -> pa.Table:
        by_column = list(zip(*rows, strict=True)) or [()] * width
        return pa.table({columns[n]: pa.array(by_column[n], pa.string()) for n in positions})

    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        file.readline()
        for fields in _records(file, delimiter, width, malformed):
            if len(fields) != width:
                malformed.lines += 1
                fields = (fields + [""] * width)[:width]
            rows.append(fields)
            if len(rows) == ROWS_AT_ONCE:
                yield table()
                rows.clear()
        yield table()


def _records(file: Any, delimiter: str, width: int, malformed: Malformed) -> Iterator[list[str]]:
    """Yield the fields of each record. An open quote that no later line closes into a whole record is an ordinary character."""
    csv.field_size_limit(max(csv.field_size_limit(), 2 * MOST_CHARACTERS))
    ahead: deque[str] = deque()

    def take() -> str:
        return ahead.popleft() if ahead else next(file, "")

    while line := take():
        malformed.characters += "\ufffd" in line
        if '"' not in line:
            text = line.rstrip("\r\n")
            if text or width == 1:  # an empty line is a record only where there is one column
                yield text.split(delimiter)
            continue
        lines, quotes, length = [line], line.count('"'), len(line)
        while quotes % 2 and len(lines) <= MOST_LINES and length <= MOST_CHARACTERS and (following := take()):
            lines.append(following)
            quotes, length = quotes + following.count('"'), length + len(following)
        fields = _fields("".join(lines), delimiter) if quotes % 2 == 0 else []
        if not fields or (len(lines) > 1 and len(fields) != width):
            ahead.extendleft(reversed(lines[1:]))
            fields = line.rstrip("\r\n").split(delimiter)
            malformed.lines += len(fields) == width  # others are counted for their number of fields
        else:
            malformed.characters += sum("\ufffd" in part for part in lines[1:])
        yield fields


def _fields(record: str, delimiter: str) -> list[str]:
    """Return the fields of a record with balanced quotes; empty if a line ends outside of them."""
    try:
        return next(csv.reader([record], delimiter=delimiter))
    except csv.Error:
        return []


def value_sql(attribute: Attribute) -> str:
    """Return the SQL expression of a value from its text {}; a kind that is not listed in VALUES is text."""
    expression = VALUES.get(attribute.kind, "{}")
    return expression if isinstance(expression, str) else expression(attribute)


def _number(attribute: Any) -> str:
    whole = attribute.width == 1 and max(abs(attribute.low), abs(attribute.high)) > 2**53
    return _clamped("BIGINT", -(2**63), 2**63 - 1) if whole else "TRY_CAST({} AS DOUBLE)"


def _decimal(attribute: Any) -> str:
    """Return an exact number with more digits than the grid, so that values between its points go to the nearer one."""
    digits = next((n for n in range(18) if (attribute.width * 10**n).denominator == 1), 18)
    return _clamped(f"DECIMAL(38, {digits + 6})", -(10**18), 10**18 if digits <= 14 else 10**13)


def _clamped(kind: str, low: int, high: int) -> str:
    """Return a number of an exact type; a larger one than the type can hold becomes one of the ends."""
    real = "TRY_CAST({} AS DOUBLE)"
    ends = f"CASE WHEN {real} > 0 THEN {high} WHEN {real} < 0 THEN {low} END"
    return f"COALESCE(TRY_CAST({{}} AS {kind}), CAST({ends} AS {kind}))"


def _category(attribute: Any) -> str:
    listed = "CASE WHEN regexp_full_match({}, '\\s*[+-]?[0-9]+(\\.0*)?\\s*') THEN TRY_CAST({} AS BIGINT) END"
    return {str: "{}", int: listed, bool: "TRY_CAST({} AS BOOLEAN)"}[attribute.value_type]


def _instant(attribute: Any) -> str:
    return f"TRY_CAST({{}} AS {'TIMESTAMPTZ' if getattr(attribute, 'zone', '') else 'TIMESTAMP'})"


# The value of each kind of column: SQL for its text {}, or a function that returns it. Every expression must be total.
VALUES: dict[str, str | Callable[[Any], str]] = {
    "integer": _number,
    "grid": _number,
    "decimal": _decimal,
    "category": _category,
    "boolean": "TRY_CAST({} AS BOOLEAN)",
    "date": "TRY_CAST({} AS DATE)",
    "timestamp": _instant,
    "time": "TRY_CAST({} AS TIME)",
}
