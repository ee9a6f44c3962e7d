"""One table on three engines."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.policy import Attribute, Category, Dataset, EachPerson, EachRow, Grid, Integer, Key, Policy
from tidegate.tables import Table, open_table

ROWS = 400
ATTRIBUTES: dict[str, Attribute] = {
    "person": Key(),
    "age": Integer(18, 65, (30, 50), "value"),
    "pay": Grid("-0.5", "3", "0.25"),
    "big": Integer(0, 10**9),
    "town": Category(("Aby", "Berg", "Ö|st", "empty town"), "value"),
    "sex": Category((1, 2)),
    "member": Category((False, True)),
}
EACH_ROW = "each row"
POLICIES = {
    EACH_ROW: Policy(Dataset("people", unit=EachRow()), ATTRIBUTES),
    "each person": Policy(Dataset("people", unit=EachPerson("person", 2)), ATTRIBUTES),
}


def rows() -> list[dict[str, Any]]:
    """Ordinary rows and every kind of odd one: outside, between, missing, unlisted, not a number, infinite."""
    draw = random.Random(11)
    odd_pay = [None, float("nan"), float("inf"), float("-inf"), 0.125, -0.375, 2.875, 1e300, -7.0]
    return [
        {
            "person": draw.choice([None, *(f"p{n}" for n in range(150))]),
            "age": draw.choice([None, -5, 17, 18, 65, 66, 10**12, *range(18, 66)]),
            "pay": draw.choice([*odd_pay, *(draw.uniform(-1, 4) for _ in range(9))]),
            "big": draw.choice([None, 0, 10**9, draw.randrange(10**9), 10**15]),
            "town": draw.choice([None, "Aby", "Berg", "Ö|st", "elsewhere", "aby", "", "Aby "]),
            "sex": draw.choice([None, 1, 2, 3]),
            "member": draw.choice([None, True, False]),
        }
        for _ in range(ROWS)
    ]


SCHEMA = pa.schema(
    {
        "person": pa.string(),
        "age": pa.int64(),
        "pay": pa.float64(),
        "big": pa.int64(),
        "town": pa.string(),
        "sex": pa.int32(),
        "member": pa.bool_(),
    }
)


def arrow(table: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(table, schema=SCHEMA)


@pytest.fixture(scope="session")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("people") / "people.parquet"
    pq.write_table(arrow(rows()), path)
    return path


def load_postgres(url: str, table: pa.Table, name: str = "people") -> None:
    """Load a table with COPY."""
    import psycopg

    kinds = {"string": "text", "int64": "bigint", "double": "double precision", "int32": "integer", "bool": "boolean"}
    columns = ", ".join(f'"{field.name}" {kinds[str(field.type)]}' for field in table.schema)
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name} ({columns})")
        with cursor.copy(f"COPY {name} FROM STDIN") as copy:
            for row in table.to_pylist():
                copy.write_row(list(row.values()))


@pytest.fixture(scope="session")
def people_in_postgres(postgres_server: Any) -> str:
    name = f"t{uuid.uuid4().hex[:12]}"
    postgres_server.psql(f"CREATE DATABASE {name};")
    url = str(postgres_server.get_uri()).replace("/postgres?", f"/{name}?")
    load_postgres(url, arrow(rows()))
    return f"{url}&table=people"


@pytest.fixture(params=["duckdb", "postgres", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def on_engine(engine: str, request: pytest.FixtureRequest, parquet: Path) -> Callable[[Policy], Table]:
    """How to open the people on the engine of this test."""
    if engine == "duckdb":
        return lambda policy: open_table(policy, parquet)
    if engine == "postgres":
        url = request.getfixturevalue("people_in_postgres")
        return lambda policy: open_table(policy, url)
    request.getfixturevalue("spark")
    return lambda policy: open_table(policy, f"spark://local[2]?parquet={parquet}")
