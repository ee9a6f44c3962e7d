"""How many randomized reports a second does a collection accept, and how are 100 million of them counted below 1 GB?

    python -m benchmarks collect_reports --full

Counting: Parquet segments of a million reports (a square wave on 100 values; sets of 64 categories), each run in a new
process that opens and counts them, compared with a bare DuckDB query in such a process; libraries are part of its memory
(`idle_mb`). Submitting: batches of 100,000 reports of both questions as values from JSON, into
a new SQLite ledger and a folder, compared with the same work by hand without a record (the reference check, one array each).
"""

from __future__ import annotations

import json
import random
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np

import tidegate as tg
from benchmarks.measure import FEW, RUNS, SEED, median_seconds, peak_memory, run_in_child, take_turns, write_record
from tidegate.collect.request import refusal
from tidegate.policy import Category, Collection, Dataset, Integer, Policy, Question
from tidegate.policy.collection import operator_for
from tidegate.tables.segments import Column, Segments

COUNTING = "How much memory and time does it take to count randomized reports from Parquet?"
SUBMITTING = "How many randomized reports a second are checked, stored, counted and recorded?"
CASES = {"age": "count numbers", "town": "count sets of 64"}
LIMIT_MB, ROWS, BATCH = 1024, 1_000_000, 100_000
AGE, TOWN = Integer(0, 99), Category(tuple(f"town {n}" for n in range(64)))
SHOPPERS = Collection(
    "shoppers",
    {"age": Question("age", AGE, "square-wave", epsilon=2), "town": Question("town", TOWN, "subset", epsilon=2)},
)
OPERATORS = {name: operator_for(question) for name, question in SHOPPERS.questions.items()}
COLUMNS = {name: Column(operator.form, operator.report_size) for name, operator in OPERATORS.items()}


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    for question in COLUMNS:
        yield measure_counting(question, 100_000_000 if full else ROWS, runs=RUNS if full else FEW)
    yield measure_submission(BATCH if full else BATCH // 10)


def measure_counting(question: str, reports: int, *, runs: int) -> dict[str, Any]:
    with segments_of(reports, question) as (folder, names):
        turns = [
            (
                run_in_child(count, folder, names, question, prepare=load),
                run_in_child(bare, folder, names, question, prepare=load),
            )
            for _ in range(runs)
        ]
    ours, theirs = zip(*turns, strict=True)
    times = {"tidegate": [child["run"] for child in ours], "by hand": [child["run"] for child in theirs]}
    peak, hand = (max(child["peak_mb"] for child in side) for side in (ours, theirs))
    assert len({child["value"] for child in (*ours, *theirs)}) == 1
    more = {
        "limit_mb": LIMIT_MB,
        "below_limit": peak < LIMIT_MB,
        "idle_mb": median(child["idle_mb"] for child in ours),
        "peak_mb_by_hand": hand,
        "found": f"{peak:,.0f} MB at most (limit {LIMIT_MB:,}); {reports / median_seconds(times['tidegate']) / 1e6:,.1f} million reports a second",
    }
    return write_record("collect_reports", COUNTING, CASES[question], size=reports, runs=times, peak_mb=peak, **more)


@contextmanager
def segments_of(reports: int, question: str) -> Iterator[tuple[str, list[str]]]:
    """Yield a temporary folder of segments with one question, and their names."""
    generator = np.random.default_rng(SEED)
    with tempfile.TemporaryDirectory() as folder:
        segments, rows = Segments(folder, {question: COLUMNS[question]}), min(ROWS, reports)
        parts = ({question: draw_reports(generator, rows, question)} for _ in range(-(-reports // ROWS)))
        yield folder, [segments.write(part, batch=str(number)).name for number, part in enumerate(parts)]


def draw_reports(generator: Any, rows: int, question: str) -> Any:
    if question == "town":
        return generator.integers(0, 256, (rows, COLUMNS["town"].width), dtype=np.uint8)
    return np.clip(generator.normal(60, 20, rows), 0, COLUMNS["age"].size - 1).astype(np.int32)


def load() -> None:
    """Load the engines, which are imported at their first use."""
    with segments_of(1, "town") as (folder, names):
        count(folder, names, "town")


def count(folder: str, names: list[str], question: str) -> int:
    counts = Segments(folder, {question: COLUMNS[question]}).count(names)[question]
    return int(counts.sum())


def bare(folder: str, names: list[str], question: str) -> int:
    """Count numbers by GROUP BY; for sets, sum all bits, which is the least that any program must read."""
    files = [f"{folder}/{name}" for name in names]
    what = "count(age)" if question == "age" else "sum(bit_count(town::BIT))"
    by = ", age" if question == "age" else ""
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    rows = connection.sql(f"SELECT {what}{by} FROM read_parquet({files}) {'GROUP BY age' if by else ''}").fetchall()
    return sum(int(row[0]) for row in rows)


def measure_submission(reports: int) -> dict[str, Any]:
    runs = take_turns({"tidegate": lambda: submit(reports), "check one by one": lambda: by_hand(reports)})
    summary = f"{reports / median_seconds(runs['tidegate']):,.0f} reports a second"
    return write_record(
        "collect_reports", SUBMITTING, "submit", size=reports, runs=runs, peak_mb=peak_memory(), found=summary
    )


@cache
def make_batch(reports: int) -> list[dict[str, Any]]:
    generator, size = random.Random(SEED), getattr(OPERATORS["town"], "size", 1)
    about = {"collection": SHOPPERS.name, "fingerprint": SHOPPERS.fingerprint, "version": SHOPPERS.version}
    reports_as_dicts = [
        {
            **about,
            "answers": {
                "age": generator.randrange(OPERATORS["age"].report_size),
                "town": sorted(generator.sample(range(64), size)),
            },
            "id": secrets.token_hex(16),
        }
        for _ in range(reports)
    ]
    return [json.loads(json.dumps(report)) for report in reports_as_dicts]


def submit(reports: int) -> None:
    policy = Policy(Dataset("people"), {"age": AGE, "town": TOWN}, collections={"shoppers": SHOPPERS})
    with tempfile.TemporaryDirectory() as folder, tg.open(policy, ledger=str(Path(folder, "people.ledger"))) as session:
        assert session.collect().submit(make_batch(reports)).accepted == reports


def by_hand(reports: int) -> None:
    assert not any(refusal(report, SHOPPERS, OPERATORS) for report in make_batch(reports))
    np.array([report["answers"]["age"] for report in make_batch(reports)])
