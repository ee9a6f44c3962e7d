"""How much slower is a count through Table than the same query written by hand in DuckDB?

    python -m benchmarks group_by --full

10 million generated rows in Parquet. By hand means: no unnecessary clamping, no folding of unlisted
values, no empty cells. Grades and weights need clamping: some are outside of the bounds, some are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb

from benchmarks.measure import median_seconds, peak_memory, take_turns, write_record
from benchmarks.people import people, policy, prepare
from tidegate.answer import count
from tidegate.tables import Table, open_table

QUESTION = "How much slower is a grouped count through Table than the same query by hand in DuckDB?"
COLUMNS = "region, town, age, grade, weight"

Case = tuple[Callable[[Table], Any], str]
CASES: dict[str, Case] = {
    "all rows": (lambda table: table.count(), "SELECT count(*) FROM people"),
    "5 regions": (lambda table: table.count(["region"]), "SELECT region, count(*) FROM people GROUP BY ALL"),
    "5 regions x 100 ages": (
        lambda table: table.count(["region", "age"]),
        "SELECT region, age, count(*) FROM people GROUP BY ALL",
    ),
    "100 ages": (lambda table: table.count(["age"]), "SELECT age, count(*) FROM people GROUP BY ALL"),
    "100 grades, clamped": (
        lambda table: table.count(["grade"]),
        "SELECT CASE WHEN grade IS NULL THEN NULL ELSE least(greatest(grade, 0), 99) END, count(*) FROM people GROUP BY ALL",
    ),
    "199 weights, clamped": (
        lambda table: table.count(["weight"]),
        "SELECT round(CASE WHEN weight IS NULL THEN NULL ELSE least(greatest(weight, 0), 99) END * 2), count(*) FROM people GROUP BY ALL",
    ),
    "1,000 towns": (lambda table: table.count(["town"]), "SELECT town, count(*) FROM people GROUP BY ALL"),
    "1,000 towns x 100 ages": (
        lambda table: table.count(["town", "age"]),
        "SELECT town, age, count(*) FROM people GROUP BY ALL",
    ),
    "decades of age, an expression": (
        lambda table: table.count(["age // 10"]),
        "SELECT age // 10, count(*) FROM people GROUP BY ALL",
    ),
    "a condition by an expression": (
        lambda table: table.count(where=count().where("age % 10 = 3").condition),
        "SELECT count(*) FROM people WHERE age % 10 = 3",
    ),
    "moments of age": (
        lambda table: table.moments("age"),
        "SELECT count(age), sum(age), sum(age * age) FROM people",
    ),
    "moments of grade, clamped": (
        lambda table: table.moments("grade"),
        "SELECT count(g), sum(g), sum(g * g) FROM "
        "(SELECT CASE WHEN grade IS NULL THEN NULL ELSE least(greatest(grade, 0), 99) END AS g FROM people)",
    ),
    "moments of age by 5 regions": (
        lambda table: table.moments("age", by=["region"]),
        "SELECT region, count(age), sum(age), sum(age * age) FROM people GROUP BY ALL",
    ),
}


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    size = 10_000_000 if full else 100_000
    with people(size, COLUMNS) as folder, duckdb.connect() as by_hand:
        table = open_table(policy(COLUMNS), folder)
        prepare(by_hand, folder)
        for case, (ours, query) in CASES.items():
            runs = take_turns({"tidegate": lambda: ours(table), "by hand": lambda: by_hand.execute(query).fetchall()})  # noqa: B023
            rate = size / median_seconds(runs["tidegate"])
            summary = f"{rate / 1e6:,.0f} million rows a second"
            yield write_record("group_by", QUESTION, case, size=size, runs=runs, peak_mb=peak_memory(), found=summary)
