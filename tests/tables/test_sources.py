"""Every kind of source gives the same counts; errors are plain sentences without a value."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from tables.conftest import POLICIES, arrow, load_postgres, rows

from tidegate.errors import SourceGone, SourceMissing, SourceUnreadable, TableError
from tidegate.policy import Category, Dataset, Integer, Key, Policy
from tidegate.tables import open_table

POLICY = POLICIES["each row"]
PLAIN = Policy(Dataset("people"), {"person": Key(), "age": Integer(18, 65), "town": Category(("Aby", "Berg"))})
SECRET = "HIV-positive"


def as_csv(path: Path) -> Path:
    import pyarrow.csv

    pyarrow.csv.write_csv(arrow(rows()), path)
    return path


def as_parquet_folder(path: Path) -> Path:
    (path / "part").mkdir(parents=True)
    half = len(rows()) // 2
    pq.write_table(arrow(rows()[:half]), path / "a.parquet")
    pq.write_table(arrow(rows()[half:]), path / "part" / "b.parquet")
    return path


def as_arrow(path: Path) -> Path:
    feather.write_feather(arrow(rows()), str(path), compression="uncompressed")
    return path


SOURCES: dict[str, Callable[[Path], Any]] = {
    "a CSV file": lambda folder: as_csv(folder / "people.csv"),
    "a folder of Parquet files": lambda folder: as_parquet_folder(folder / "people"),
    "an Arrow file": lambda folder: as_arrow(folder / "people.arrow"),
    "a pandas data frame": lambda folder: arrow(rows()).to_pandas(types_mapper=_pandas_type),
    "a polars data frame": lambda folder: pl.from_arrow(arrow(rows())),
    "a lazy polars frame": lambda folder: pl.LazyFrame(pl.from_arrow(arrow(rows()))),
    "an Arrow table": lambda folder: arrow(rows()),
}


def _pandas_type(kind: pa.DataType) -> Any:
    import pandas as pd

    return {pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype(), pa.bool_(): pd.BooleanDtype()}.get(kind)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_has_the_same_counts(kind: str, tmp_path: Path) -> None:
    expected = open_table(POLICY, arrow(rows())).count(["town", "age"])
    assert (open_table(POLICY, SOURCES[kind](tmp_path)).count(["town", "age"]) == expected).all()


def write(folder: Path, text: str) -> Path:
    (folder / "people.csv").write_text(text, "utf-8")
    return folder / "people.csv"


BAD_HEADERS = {
    "no header": "",
    "an unnamed column": "person,,town\n",
    "a column named twice": "person,age,age\n",
    "a declared column missing": f"person,years,town\np1,30,{SECRET}\n",
}


@pytest.mark.parametrize("case", BAD_HEADERS)
def test_malformed_header_is_refused_without_quoting_a_row(case: str, tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable) as raised:
        open_table(PLAIN, write(tmp_path, BAD_HEADERS[case]))
    everything = "".join(traceback.format_exception(raised.value)) + repr(raised.value.__dict__)
    assert SECRET not in everything
    assert raised.value.__context__ is None


MISSING = {
    "no such file": ("nowhere.csv", "There is no file"),
    "an unknown ending": ("people.xyz", "Unknown file type"),
    "an empty folder": ("empty", "contains no .parquet file"),
    "a server that is not there": (
        "postgresql://me:hunter2@127.0.0.1:1/db?table=t",
        "does not respond at 127.0.0.1/db",
    ),
    "no table named": ("postgresql://127.0.0.1:1/db", "names no table"),
    "no Spark table named": ("spark://local[2]", "must name either a table or a folder"),
}


@pytest.mark.parametrize("case", MISSING)
def test_missing_source_is_reported(case: str, tmp_path: Path) -> None:
    source, says = MISSING[case]
    (tmp_path / "people.xyz").write_text("")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableError) as raised:
        open_table(PLAIN, source, folder=tmp_path)
    assert says in str(raised.value)
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_policy_without_a_source_is_reported() -> None:
    with pytest.raises(SourceMissing, match="does not name a source"):
        open_table(PLAIN)
    with pytest.raises(SourceMissing, match="int cannot be opened"):
        open_table(PLAIN, 5)


TYPES = {
    "a date for a number": {"age": [date(2024, 1, 1)]},
    "a number for text": {"town": [7]},
    "truth for a number": {"age": [True]},
    "a time for a key": {"person": [pa.scalar(0, pa.timestamp("s"))]},
}


@pytest.mark.parametrize("case", TYPES)
def test_column_of_another_type_is_refused_before_a_row_is_read(case: str) -> None:
    good = {"person": ["p1"], "age": [30], "town": ["Aby"]}
    with pytest.raises(SourceUnreadable, match="is declared as"):
        open_table(PLAIN, pa.table({**good, **TYPES[case]}))


def test_missing_postgres_table_is_reported(postgres_url: str) -> None:
    with pytest.raises(SourceMissing, match='no table "people"'):
        open_table(PLAIN, f"{postgres_url}&table=people")


def test_server_that_disconnects_is_reported(postgres_url: str) -> None:
    import psycopg

    people = arrow(rows()).select(["person", "age", "town"])
    load_postgres(postgres_url, people)
    table = open_table(PLAIN, f"{postgres_url}&table=people")
    assert table.count().item() == len(rows())
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    with pytest.raises(SourceGone, match="stopped responding while counting") as raised:
        table.count(["town"])
    assert raised.value.__context__ is None
    assert open_table(PLAIN, f"{postgres_url}&table=people").count().item() == len(rows())
