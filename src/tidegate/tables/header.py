"""Files as sources, without an engine: their kinds, and the first line of a CSV file with the names of its columns."""

from __future__ import annotations

import csv
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from tidegate.errors import SourceMissing, SourceUnreadable, did_you_mean
from tidegate.policy import Attribute, Policy

CSV, PARQUET, ARROW = (".csv", ".tsv", ".txt"), (".parquet", ".pq"), (".arrow", ".feather", ".ipc")
DELIMITERS = ",;\t|"


def quoted(name: str) -> str:
    """Return a column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def check_header(policy: Policy, folder: Path) -> bool:
    """Refuse a CSV file that lacks a declared column, without an engine; return False for any other kind of source.

    The types of a CSV file's columns are those of the policy, so that the names are all there is to check.
    """
    source = policy.dataset.source
    if policy.tables or not isinstance(source, str) or "://" in source or not source.lower().endswith(CSV):
        return False
    path = folder / Path(source).expanduser()
    find_file(path)
    if path.is_dir():
        return False
    check_names(read_header(path)[1], policy.attributes)
    return True


def find_file(path: Path) -> None:
    """Refuse a source that does not exist or that the user of this process cannot read."""
    is_there = is_denied = True
    with suppress(PermissionError):  # of a folder above it
        is_there = path.exists()
        is_denied = is_there and not os.access(path, os.R_OK)
    if not is_there:
        raise SourceMissing(
            f'There is no file "{path}".',
            "Correct `source` in the policy. Relative paths start from the policy file's folder.",
        )
    if is_denied:
        raise SourceMissing(
            f'The file "{path}" cannot be read: Permission denied.',
            "Allow the user who runs Tidegate to read it and to enter its folders.",
        )


def check_kind(path: Path) -> None:
    """Refuse a file whose name does not end in a supported type."""
    supported = (*CSV, *PARQUET, *ARROW)
    if path.suffix.lower() not in supported:
        raise SourceMissing(
            f'Unknown file type: "{path.name}".',
            f"Supported types: {', '.join(supported)}, or a folder of Parquet files.",
        )


def find_parquet(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder and the folders in it."""
    paths = sorted(folder.rglob("*.parquet"))
    if not paths:
        raise SourceMissing(
            f'The folder "{folder}" contains no .parquet file.', "Correct `source` in the policy, or add the files."
        )
    return paths


def check_names(columns: Collection[str], attributes: Mapping[str, Attribute]) -> None:
    """Refuse a source that lacks a declared column, without reading a row."""
    for name in attributes:
        if name not in columns:
            raise SourceUnreadable(
                f'The source has no column "{name}".',
                f"{did_you_mean(name, columns)} Add it to the source, or remove it from [attributes].",
                column=name,
            )


def read_header(path: Path) -> tuple[str, list[str]]:
    """Return the delimiter and the names in the first line; refuse a name that is missing or repeated."""
    delimiter, names = split_header(path)
    if not names or "" in names or len(set(names)) != len(names):  # a name can be a private value: no header line
        raise SourceUnreadable(
            f'The first line of "{path.name}" must name every column exactly once: a name is missing or repeated.',
            "Give every column its own name, or add a header line, for example: age,sex,town",
        )
    return delimiter, names


def split_header(path: Path) -> tuple[str, list[str]]:
    """Return the delimiter and the names in the first line. The delimiter is the most frequent candidate there."""
    problem, names = "", list[str]()
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:  # later lines can be anything
            first = file.readline()
        problem = "its first line is not UTF-8 text" if "\ufffd" in first else ""
        delimiter = max(DELIMITERS, key=first.count)
        names = next(csv.reader([first], delimiter=delimiter), []) if first.strip() else []
    except OSError as error:
        problem = error.strerror or type(error).__name__
    except csv.Error:  # a field above the limit of the module csv
        problem = "a name in its first line is too long"
    if problem:
        raise SourceUnreadable(
            f'Cannot read "{path.name}": {problem}.', "Check its permissions, and save it as UTF-8 text."
        )
    return delimiter, names
