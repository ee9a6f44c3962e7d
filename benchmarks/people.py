"""Generated people as Parquet in a temporary folder: the same rows every time, for any size."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from tidegate.policy import Attribute, Category, Dataset, EachRow, Grid, Integer, Key, Policy, Unit

FILE_ROWS = 10_000_000
KNOWN: dict[str, Attribute] = {
    "region": Category(tuple(f"region {n}" for n in range(5))),
    "town": Category(tuple(f"town {n:04d}" for n in range(1000))),
    "age": Integer(0, 99),
    "grade": Integer(0, 99),
    "weight": Grid(0, 99, "0.5"),
    "person": Key(),
}

# hash() of the row's number: five regions, a thousand towns, ages 0 .. 99, five rows a person on average; grades and
# weights are not as clean as ages: one in a hundred is missing, two in a thousand are outside the bounds
MESSY = "CASE hash(i, {n}) % 1000 WHEN 0 THEN -5 WHEN 1 THEN 110 ELSE {value} END"
ROWS = f"""
    SELECT 'region ' || (hash(i, 1) % 5) AS region, 'town ' || printf('%04d', (hash(i, 2) % 1000)::INTEGER) AS town,
           (hash(i, 3) % 100)::INTEGER AS age, (hash(i, 4) % {{persons}})::BIGINT AS person,
           CASE WHEN hash(i, 5) % 100 > 0 THEN {MESSY.format(n=6, value="(hash(i, 7) % 100)::INTEGER")} END AS grade,
           CASE WHEN hash(i, 8) % 100 > 0 THEN {MESSY.format(n=9, value="(hash(i, 10) % 200)::DOUBLE / 2")} END AS weight
    FROM range({{start}}, {{stop}}) AS numbers(i)
"""


@contextmanager
def people(rows: int, columns: str) -> Iterator[Path]:
    """Yield a folder of Parquet files with the named columns."""
    with tempfile.TemporaryDirectory(prefix="tgbench") as folder, duckdb.connect() as connection:
        prepare(connection)
        for start in range(0, rows, FILE_ROWS):
            chosen = ROWS.format(persons=max(1, rows // 5), start=start, stop=min(rows, start + FILE_ROWS))
            target = Path(folder, f"people{start // FILE_ROWS:04d}.parquet")
            connection.execute(f"COPY (SELECT {columns} FROM ({chosen})) TO '{target}' (FORMAT parquet)")
        connection.close()
        yield Path(folder)


def prepare(connection: duckdb.DuckDBPyConnection, folder: Path | None = None) -> None:
    """Apply the settings of a table; with a folder, create the view `people` over its files."""
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET enable_progress_bar = false")
    if folder:
        connection.execute(f"CREATE VIEW people AS FROM read_parquet('{folder}/*.parquet')")


def policy(columns: str, unit: Unit | None = None) -> Policy:
    """Return a policy over the columns."""
    return Policy(Dataset("people", unit=unit or EachRow()), {name: KNOWN[name] for name in columns.split(", ")})
