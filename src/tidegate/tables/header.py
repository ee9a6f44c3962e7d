"""The names and types of a file's columns, for a first policy. No value is looked at beyond its type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tidegate.errors import SourceMissing, did_you_mean
from tidegate.policy.draft import ColumnType
from tidegate.tables.engines import duckdb
from tidegate.tables.guard import ask_engine


def column_types(path: Path) -> dict[str, ColumnType]:
    """Each column with its type: whole, decimal, text, yes-no, or other."""
    if not path.exists():
        raise SourceMissing(f"there is no file {path}.", _near(path))
    if path.suffix.lower() in duckdb.CSV:
        duckdb.read_header(path)  # a first line that does not name every column is refused here
        table = ask_engine(
            lambda: duckdb.connect().read_csv(str(path), header=True, sample_size=20_480),
            what=f"reading the types of {path.name}",
        )
    else:
        table = duckdb.open_file(path, {})
    return {name: _kind(kind) for name, kind in table.schema().items()}


def _near(path: Path) -> str:
    """A file of that folder whose name is like it, or what a name may be of."""
    read = (*duckdb.CSV, *duckdb.PARQUET, *duckdb.ARROW)
    names = [file.name for file in path.parent.glob("*") if file.suffix.lower() in read]
    told = did_you_mean(path.name, names)
    return told if told.startswith("Did") else "Name a CSV, Parquet or Arrow file, or a folder of Parquet files."


def _kind(kind: Any) -> ColumnType:
    if kind.is_boolean():
        return "yes-no"
    if kind.is_integer():
        return "whole"
    if kind.is_floating() or kind.is_decimal():
        return "decimal"
    return "text" if kind.is_string() else "other"
