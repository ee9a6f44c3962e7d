"""How many randomized reports a second does a collection take, and how are 100 million of them counted below 1 GB?

    python -m benchmarks collect_reports --full

Counting: Parquet segments of a million reports (a square wave on 100 values; sets of 64 categories), each run in a process
of its own that opens and counts them, beside a bare DuckDB query in such a process; libraries are part of its memory
(`idle_mb`). Taking: batches of 100,000 reports of both questions as values from JSON, into
a new SQLite ledger and a folder, beside the same work by hand with no record of it (the slow check, one array each).
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
from benchmarks.measure import FEW, RUNS, SEED, in_child, peak_memory, take_turns, tell, typical
from tidegate.collect.request import refusal
from tidegate.policy import Category, Collection, Dataset, Integer, Policy, Question
from tidegate.policy.collection import operator_for
from tidegate.tables.segments import Column, Segments

COUNTING = "How much memory and time does it take to count randomized reports from Parquet?"
TAKING = "How many randomized reports a second are checked, kept, counted and recorded?"
CASES = {"age": "count numbers", "town": "count sets of 64"}
LIMIT_MB, ROWS, BATCH = 1024, 1_000_000, 100_000
AGE, TOWN = Integer(0, 99), Category(tuple(f"town {n}" for n in range(64)))
ASKED = Collection(
    "shoppers",
    {"age": Question("age", AGE, "square-wave", epsilon=2), "town": Question("town", TOWN, "subset", epsilon=2)},
)
OPERATORS = {name: operator_for(question) for name, question in ASKED.questions.items()}
COLUMNS = {name: Column(operator.form, operator.report_size) for name, operator in OPERATORS.items()}


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    for question in COLUMNS:
        yield counted(question, 100_000_000 if full else ROWS, runs=RUNS if full else FEW)
    yield taken(BATCH if full else BATCH // 10)


def counted(question: str, reports: int, *, runs: int) -> dict[str, Any]:
    with segments_of(reports, question) as (place, names):
        turns = [
            (
                in_child(count, place, names, question, prepare=load),
                in_child(bare, place, names, question, prepare=load),
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
        "found": f"{peak:,.0f} MB at most (limit {LIMIT_MB:,}); {reports / typical(times['tidegate']) / 1e6:,.1f} million reports a second",
    }
    return tell("collect_reports", COUNTING, CASES[question], size=reports, runs=times, peak_mb=peak, **more)


@contextmanager
def segments_of(reports: int, question: str) -> Iterator[tuple[str, list[str]]]:
    """A folder of segments with one question."""
    chance = np.random.default_rng(SEED)
    with tempfile.TemporaryDirectory() as folder:
        segments, rows = Segments(folder, {question: COLUMNS[question]}), min(ROWS, reports)
        parts = ({question: drawn(chance, rows, question)} for _ in range(-(-reports // ROWS)))
        yield folder, [segments.write(part, batch=str(number)).name for number, part in enumerate(parts)]


def drawn(chance: Any, rows: int, question: str) -> Any:
    if question == "town":
        return chance.integers(0, 256, (rows, COLUMNS["town"].width), dtype=np.uint8)
    return np.clip(chance.normal(60, 20, rows), 0, COLUMNS["age"].size - 1).astype(np.int32)


def load() -> None:
    """Engines load at their first use."""
    with segments_of(1, "town") as (place, names):
        count(place, names, "town")


def count(place: str, names: list[str], question: str) -> int:
    found = Segments(place, {question: COLUMNS[question]}).count(names)[question]
    return int(found.sum())


def bare(place: str, names: list[str], question: str) -> int:
    """Of numbers a GROUP BY; of sets the sum of their bits, without saying which (the least that must be looked at)."""
    files = [f"{place}/{name}" for name in names]
    what = "count(age)" if question == "age" else "sum(bit_count(town::BIT))"
    by = ", age" if question == "age" else ""
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    rows = connection.sql(f"SELECT {what}{by} FROM read_parquet({files}) {'GROUP BY age' if by else ''}").fetchall()
    return sum(int(row[0]) for row in rows)


def taken(reports: int) -> dict[str, Any]:
    runs = take_turns({"tidegate": lambda: submit(reports), "check one by one": lambda: by_hand(reports)})
    found = f"{reports / typical(runs['tidegate']):,.0f} reports a second"
    return tell("collect_reports", TAKING, "submit", size=reports, runs=runs, peak_mb=peak_memory(), found=found)


@cache
def batch(reports: int) -> list[dict[str, Any]]:
    chance, size = random.Random(SEED), getattr(OPERATORS["town"], "size", 1)
    about = {"collection": ASKED.name, "fingerprint": ASKED.fingerprint, "version": ASKED.version}
    made = [
        {
            **about,
            "answers": {
                "age": chance.randrange(OPERATORS["age"].report_size),
                "town": sorted(chance.sample(range(64), size)),
            },
            "id": secrets.token_hex(16),
        }
        for _ in range(reports)
    ]
    return [json.loads(json.dumps(report)) for report in made]


def submit(reports: int) -> None:
    policy = Policy(Dataset("people"), {"age": AGE, "town": TOWN}, collections={"shoppers": ASKED})
    with tempfile.TemporaryDirectory() as folder, tg.open(policy, ledger=str(Path(folder, "people.ledger"))) as session:
        assert session.collect().submit(batch(reports)).accepted == reports


def by_hand(reports: int) -> None:
    assert not any(refusal(report, ASKED, OPERATORS) for report in batch(reports))
    np.array([report["answers"]["age"] for report in batch(reports)])
