"""The columns of a file and their types, for a first policy: DuckDB alone, because Ibis takes longer to load than to answer.

Values are read for their types only.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate.errors import SourceMissing, did_you_mean
from tidegate.extras import late
from tidegate.policy.draft import ColumnType
from tidegate.tables.guard import ask_engine
from tidegate.tables.header import ARROW, CSV, PARQUET, check_kind, find_parquet, quoted, read_header

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
else:
    duckdb, pa = late("duckdb"), late("pyarrow")

KINDS: dict[str, ColumnType] = {
    "BOOLEAN": "yes-no",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), "whole"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"), "whole"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "decimal"),
    **dict.fromkeys(("DECIMAL", "HUGEINT", "UHUGEINT"), "exact"),
    "DATE": "date",
    **dict.fromkeys(("TIME", "TIME WITH TIME ZONE", "TIME_NS"), "time"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), "timestamp"),
    "TIMESTAMP WITH TIME ZONE": "instant",
    "UUID": "uuid",
    "VARCHAR": "text",
}


# Forms of dates that a spreadsheet writes and that are not read, and words for missing numbers.
DATES = tuple(f"%{day}{mark}%{month}{mark}%Y" for mark in "./-" for day, month in ("dm", "md"))
TIMES = tuple(f"{date} {time}" for date in DATES for time in ("%H:%M", "%H:%M:%S"))
DATED = "^[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]"  # what all of them begin with
MARKERS = ("NA", "N/A", "n/a", "null", "NULL", "None", "-", "?")
HINTED_ROWS, FORMS = 20_000, 7


def unreadable_forms(path: Path) -> dict[str, tuple[ColumnType, str]]:
    """Return the columns of a CSV file whose first values hide their type: the type, and what to change in the data, if anything."""
    if path.suffix.lower() not in CSV:
        return {}
    names = read_header(path)[1]
    source = _csv_source(path, types="all_varchar = true")
    counts = ", ".join(_counts(quoted(name)) for name in names)
    query = f"SELECT {counts} FROM (FROM {source} LIMIT {HINTED_ROWS})"  # noqa: S608 - quoted by _text
    row = ask_engine(lambda: _first_row(query), what=f"reading the types of {path.name}")
    forms = {name: _form(*row[FORMS * index : FORMS * (index + 1)]) for index, name in enumerate(names)}
    return {name: form for name, form in forms.items() if form}


def _counts(column: str) -> str:
    """Return, as SQL, the number of values, missing markers, dates, times, whole numbers, numbers, and decimal commas."""
    text = f"trim({column})"
    value = f"CASE WHEN {text} NOT IN ('', {', '.join(map(_text, MARKERS))}) THEN {text} END"
    marked = f"count(*) FILTER ({text} IN ({', '.join(map(_text, MARKERS))}))"
    dated = f"CASE WHEN regexp_matches({value}, {_text(DATED)}) THEN {value} END"  # 20 times faster than attempts
    dates, times = (f"count(try_strptime({dated}, [{', '.join(map(_text, forms))}]))" for forms in (DATES, TIMES))
    comma = (
        f"count(*) FILTER (regexp_full_match({value}, '[+-]?[0-9]{{1,3}}(\\.?[0-9]{{3}})*,[0-9]+|[+-]?[0-9]+,[0-9]+'))"
    )
    whole = f"count(*) FILTER (regexp_full_match({value}, '[+-]?[0-9]+'))"
    return f"count({value}), {marked}, {dates}, {times}, {whole}, count(TRY_CAST({value} AS DOUBLE)), {comma}"


def _form(
    values: int, markers: int, dates: int, times: int, whole: int, numbers: int, commas: int
) -> tuple[ColumnType, str] | None:
    if not values:
        return None
    if values == dates:
        return "date", "dates must be written as 2024-12-31; those in other forms count as missing"
    if values == times:
        return "timestamp", "times must be written as 2024-12-31 18:30; those in other forms count as missing"
    if commas and values == numbers + commas:
        return "decimal", "numbers must have a decimal point (12.50); those with a comma count as missing"
    if markers and values == numbers:  # the markers count as missing, as they should
        return "whole" if values == whole else "decimal", ""
    return None


def _first_row(query: str) -> tuple[Any, ...]:
    with duckdb.connect(":memory:") as connection:
        return tuple(connection.execute(query).fetchone() or ())


def column_types(path: Path) -> dict[str, ColumnType]:
    """Return each column with its type in the source, for `draft_policy`."""
    if not path.exists():
        raise SourceMissing(f'There is no file "{path}".', _suggest_file(path))
    what = f"reading the types of {path.name}" if path.suffix.lower() in CSV else f"opening {path.name}"
    if path.is_dir():
        files = find_parquet(path)
        return ask_engine(lambda: _describe(f"read_parquet([{', '.join(map(_text, files))}])"), what=what)
    check_kind(path)
    if path.suffix.lower() in CSV:
        source = _csv_source(path)
        return ask_engine(lambda: _describe(source), what=what)
    if path.suffix.lower() in PARQUET:
        return ask_engine(lambda: _describe(f"read_parquet({_text(path)})"), what=what)
    return ask_engine(lambda: _describe("people", pa.ipc.open_file(pa.memory_map(str(path))).read_all()), what=what)


def table_types(table: Any) -> dict[str, ColumnType]:
    """Return each column of an open table with its type."""
    return {name: _kind(kind) for name, kind in table.schema().items()}


def _kind(kind: Any) -> ColumnType:
    tests: dict[ColumnType, bool] = {
        "yes-no": kind.is_boolean(),
        "whole": kind.is_integer(),
        "decimal": kind.is_floating(),
        "exact": kind.is_decimal(),
        "date": kind.is_date(),
        "time": kind.is_time(),
        "timestamp": kind.is_timestamp() and not kind.timezone,
        "instant": kind.is_timestamp(),
        "uuid": kind.is_uuid(),
        "text": kind.is_string(),
    }
    return next((name for name, matches in tests.items() if matches), "other")


def _csv_source(path: Path, *, types: str = "sample_size = 20480") -> str:
    """Return a CSV file, by default with the types that fit its first rows. Records that are not well formed are left out."""
    delimiter, names = read_header(path)
    options = f"header = false, skip = 1, names = [{', '.join(map(_text, names))}], delim = {_text(delimiter)}"
    tolerant = (
        "ignore_errors = true, null_padding = true, strict_mode = false, parallel = false, dateformat = '%Y-%m-%d'"
    )
    return f"read_csv({_text(path)}, {options}, quote = '\"', {types}, {tolerant})"


def _describe(source: str, people: Any = None) -> dict[str, ColumnType]:
    with duckdb.connect(":memory:") as connection:
        if people is not None:
            connection.register("people", people)
        rows = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()  # noqa: S608 - quoted by _text
    return {str(name): KINDS.get(str(kind).partition("(")[0], "other") for name, kind, *_ in rows}


def _text(value: object) -> str:
    """Return a text in SQL."""
    quoted = str(value).replace("'", "''")
    return f"'{quoted}'"


def _suggest_file(path: Path) -> str:
    """Return a file of that folder with a similar name, or the supported types."""
    names = [file.name for file in path.parent.glob("*") if file.suffix.lower() in (*CSV, *PARQUET, *ARROW)]
    suggestion = did_you_mean(path.name, names)
    supported = "Name a CSV, Parquet or Arrow file, or a folder of Parquet files."
    return suggestion if suggestion.startswith("Did") else supported
