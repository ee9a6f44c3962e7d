"""Files and in-memory tables, streamed by an embedded DuckDB."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa

from tidegate.errors import SourceMissing, SourceUnreadable
from tidegate.policy import Attribute, Category, Numeric
from tidegate.tables.guard import ask_engine

CSV, PARQUET, ARROW = (".csv", ".tsv", ".txt"), (".parquet", ".pq"), (".arrow", ".feather", ".ipc")
DELIMITERS = ",;\t|"


def connect() -> Any:
    """Return a new in-memory DuckDB. Rows can arrive in any order, so that it streams with little memory."""
    connection = ibis.duckdb.connect()
    connection.raw_sql("SET preserve_insertion_order = false")
    hide_progress(connection.con)
    return connection


def hide_progress(connection: Any) -> None:
    """Turn off the progress bar if there is one. A notebook without ipywidgets cannot change the setting."""
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchone()[0]:
        connection.execute("SET enable_progress_bar = false")


def open_file(path: Path, attributes: Mapping[str, Attribute]) -> Any:
    """Return the table in a file or a folder of Parquet files."""
    if not path.exists():
        raise SourceMissing(
            f'There is no file "{path}".',
            "Correct `source` in the policy. Relative paths start from the policy file's folder.",
        )
    if path.is_dir():
        return _parquet(sorted(path.rglob("*.parquet")), path)
    if path.suffix.lower() in CSV:
        return _csv(path, attributes)
    if path.suffix.lower() in PARQUET:
        return _parquet([path], path)
    if path.suffix.lower() in ARROW:
        read = ask_engine(lambda: pa.ipc.open_file(pa.memory_map(str(path))).read_all(), what=f"opening {path.name}")
        return open_object(read, attributes)
    known = ", ".join((*CSV, *PARQUET, *ARROW))
    raise SourceMissing(
        f'Unknown file type: "{path.name}".', f"Supported types: {known}, or a folder of Parquet files."
    )


def open_object(table: Any, attributes: Mapping[str, Attribute]) -> Any:
    """Return a pandas or polars data frame, or an Arrow table, without a copy if the engine allows.

    A pandas column of mixed types, or with text that is not Unicode, is refused here: the engine would fail in the middle
    of an answer.
    """
    if hasattr(table, "collect_schema") and hasattr(table, "collect"):  # a polars LazyFrame
        table = table.collect()
    connection = connect()

    def register() -> Any:
        arrow = table.to_arrow() if hasattr(table, "to_arrow") else table
        if not hasattr(arrow, "schema"):
            names = [name for name in arrow.columns if name in attributes]
            arrow = pa.Table.from_pandas(arrow[names], preserve_index=False)
        connection.con.register("people", arrow)
        return connection.table("people")

    return ask_engine(register, what="reading the table in memory")


def _parquet(paths: list[Path], shown: Path) -> Any:
    if not paths:
        raise SourceMissing(
            f'The folder "{shown}" contains no .parquet file.', "Correct `source` in the policy, or add the files."
        )
    return ask_engine(lambda: connect().read_parquet([str(path) for path in paths]), what=f"opening {shown.name}")


def _csv(path: Path, attributes: Mapping[str, Attribute]) -> Any:
    """Return a CSV file with the declared types, after one scan.

    A row that does not fit must be found before anything is charged, not in the middle of an answer.
    """
    delimiter, header = read_header(path)
    types = {name: _csv_type(attributes.get(name)) for name in header}
    table = ask_engine(
        lambda: connect().read_csv(
            str(path), columns=types, auto_detect=False, delim=delimiter, quote='"', escape='"', header=True
        ),
        what=f"opening {path.name}",
    )
    _look_through(table, path, attributes)
    return table


def _look_through(table: Any, path: Path, attributes: Mapping[str, Attribute]) -> None:
    declared = [name for name in table.columns if name in attributes]
    try:
        table.aggregate(**{f"c{n}": table[name].count() for n, name in enumerate(table.columns)}).to_pyarrow()
        return
    except Exception as error:  # DuckDB's message names line and column, and quotes the value: use the first two only
        where = _where(str(error), table.columns)
    columns = ", ".join(declared)
    raise SourceUnreadable(
        f'"{path.name}" has a row that does not fit{where}.',
        f"Every row needs {len(table.columns)} fields, and numbers in the columns that the policy declares as such ({columns}).",
    )


def _where(message: str, columns: Sequence[str]) -> str:
    import re

    line = re.search(r"Line: (\d+)", message)
    column = re.search(r'converting column "([^"]+)"', message)
    parts = [f"line {line[1]}"] if line else []
    parts += [f'column "{column[1]}"'] if column and column[1] in columns else []
    return f" ({', '.join(parts)})" if parts else ""


def read_header(path: Path) -> tuple[str, list[str]]:
    """Return the delimiter and the names in the first line. The delimiter is the most frequent candidate there."""
    problem = ""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text"
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise SourceUnreadable(
            f'Cannot read "{path.name}": {problem}.', "Check its permissions, and save it as UTF-8 text."
        )
    delimiter = max(DELIMITERS, key=first.count)
    names = next(csv.reader([first], delimiter=delimiter), [])
    if not first.strip() or any(not name for name in names) or len(set(names)) != len(names):
        raise SourceUnreadable(
            f'The first line of "{path.name}" must name every column exactly once.',
            "Add a header line, for example: age,sex,town",
        )
    return delimiter, names


def _csv_type(attribute: Attribute | None) -> str:
    if isinstance(attribute, Numeric):
        whole = attribute.width == 1 and max(abs(attribute.low), abs(attribute.high)) > 2**53
        return "BIGINT" if whole else "DOUBLE"
    if isinstance(attribute, Category):
        return {str: "VARCHAR", int: "BIGINT", bool: "BOOLEAN"}[attribute.value_type]
    return "VARCHAR"
