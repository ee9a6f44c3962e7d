"""Every value that an engine can store has a code, and one row moves every exact vector by no more than its sensitivity."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.databases import create_database
from tables.hostile import DUCKDB, POSTGRES, SPARK, SQLITE, InPostgres, InSpark, in_duckdb, in_every_run, in_sqlite

from tidegate.testing import check_hostile_columns
from tidegate.testing.columns import HostileColumn

# Every run compares each table with one neighbor, and `make claims` with four: the same queries three more times.
# The faults that test_totality.py plants are detected with one neighbor as well.
NEIGHBORS = pytest.mark.parametrize("neighbors", [1, pytest.param(4, marks=pytest.mark.long)])


def titles(column: HostileColumn) -> str:
    return column.title


@NEIGHBORS
@pytest.mark.parametrize("column", in_every_run(DUCKDB, types=True), ids=titles)
def test_duckdb_columns_keep_the_contract(column: HostileColumn, neighbors: int) -> None:
    check_hostile_columns([column], in_duckdb, name="DuckDB", neighbors=neighbors).refuse()


@pytest.mark.one_in(2)  # all kinds of columns are tested in every run on DuckDB
@NEIGHBORS
@pytest.mark.parametrize("column", in_every_run(SQLITE, types=True), ids=titles)
def test_sqlite_columns_keep_the_contract(column: HostileColumn, neighbors: int) -> None:
    check_hostile_columns([column], in_sqlite, name="SQLite", neighbors=neighbors).refuse()


@pytest.fixture(scope="module")
def in_postgres(postgres_server: Any) -> Iterator[InPostgres]:
    loader = InPostgres(create_database(postgres_server, f"t{uuid.uuid4().hex[:12]}"))
    yield loader
    loader.connection.disconnect()


@pytest.mark.one_in(2)
@NEIGHBORS
@pytest.mark.parametrize("column", in_every_run(POSTGRES, types=True), ids=titles)
def test_postgres_columns_keep_the_contract(column: HostileColumn, in_postgres: InPostgres, neighbors: int) -> None:
    check_hostile_columns([column], in_postgres, name="Postgres", neighbors=neighbors).refuse()


@pytest.mark.spark
@pytest.mark.parametrize("column", SPARK, ids=titles)
def test_spark_columns_keep_the_contract(column: HostileColumn, spark: Any, tmp_path: Path) -> None:
    check_hostile_columns([column], InSpark(spark, tmp_path), name="Spark", neighbors=1).refuse()
