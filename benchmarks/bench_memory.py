"""How much memory does a count of 100 million rows take, and of 10 million with at most 5 rows a person?

    python -m benchmarks memory --full

Each run is a new process that opens the Parquet files and counts once. Libraries are part of its memory
(`idle_mb`) and not of its seconds. By hand: the same query in a bare DuckDB, with a cheaper hash to choose the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import pyarrow as pa

from benchmarks.measure import FEW, RUNS, run_in_child, write_record
from benchmarks.people import people, policy, prepare
from tidegate.policy import EachPerson
from tidegate.tables import open_table

QUESTION = "How much memory does a process need to count the rows of Parquet files by cells?"
LIMIT_MB = 1024
PERSON = EachPerson("person", at_most=5)

ROWS_BY_HAND = "SELECT region, age, count(*) FROM people GROUP BY ALL"
# `- 1`, as Ibis numbers rows: without it DuckDB 1.5 makes lists of them, with three to four times the memory
PERSONS_BY_HAND = """
    SELECT region, age, count(*) FROM (
        SELECT region, age, row_number() OVER (PARTITION BY person ORDER BY hash(region, age, person)) - 1 AS position FROM people
    ) WHERE position < 5 GROUP BY ALL
"""


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    rows, of_persons = (100_000_000, 10_000_000) if full else (1_000_000, 100_000)
    runs = RUNS if full else FEW
    yield measure_case("a row each", rows, "region, age", ROWS_BY_HAND, runs)
    yield measure_case("at most 5 rows a person", of_persons, "person, region, age", PERSONS_BY_HAND, runs)


def measure_case(case: str, rows: int, columns: str, query: str, runs: int) -> dict[str, Any]:
    with people(rows, columns) as folder:
        turns = [
            (
                run_in_child(count_rows, folder, columns, prepare=load),
                run_in_child(by_hand, folder, query, prepare=load),
            )
            for _ in range(runs)
        ]
    ours, theirs = zip(*turns, strict=True)
    assert all(mine["value"] == other["value"] for mine, other in turns) or "person" in columns, "the counts differ"
    times = {"tidegate": [child["run"] for child in ours], "by hand": [child["run"] for child in theirs]}
    peak = max(child["peak_mb"] for child in ours)
    memory = {
        "limit_mb": LIMIT_MB,
        "below_limit": peak < LIMIT_MB,
        "idle_mb": median(child["idle_mb"] for child in ours),
    }
    hand = {"peak_mb_by_hand": max(child["peak_mb"] for child in theirs), "cells_total": ours[0]["value"]}
    summary = f"{peak:,.0f} MB at most (by hand {hand['peak_mb_by_hand']:,.0f}; limit {LIMIT_MB:,})"
    return write_record("memory", QUESTION, case, size=rows, runs=times, peak_mb=peak, **memory, **hand, found=summary)


def load() -> None:
    """Load engines and compilers, which Ibis imports at the first query."""
    rows = pa.table({"region": ["region 0"], "age": [1]})
    open_table(policy("region, age"), rows).count(["region", "age"])


def count_rows(folder: Path, columns: str) -> int:
    unit = PERSON if "person" in columns else None
    return int(open_table(policy(columns, unit), folder).count(["region", "age"]).sum())


def by_hand(folder: Path, query: str) -> int:
    with duckdb.connect() as connection:
        prepare(connection, folder)
        return sum(row[-1] for row in connection.execute(query).fetchall())
