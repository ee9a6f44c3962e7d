"""Does a private answer about 100 million rows stay below 1 GB, and what does one cost on Spark?

    python -m benchmarks answer_scale --full

On DuckDB each run is a new process that opens the Parquet files, answers one query, and is compared with the bare query
in such a process; libraries are part of its memory (`idle_mb`) and not of its seconds. On Spark (local[2], needs Java
17) runs are warm and take turns with Spark SQL on the same folder and session; processor time is the JVM's, not ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import tidegate as tg
from benchmarks.bench_answer import by_hand, fresh_epsilon, rows_of, session_of
from benchmarks.measure import FEW, RUNS, median_seconds, peak_memory, run_in_child, take_turns, time_task, write_record

MEMORY = "How much memory does a process need for a private answer about Parquet files?"
SPARK = "How much longer does a private mean on Spark take than Spark SQL on the same folder?"
LIMIT_MB = 1024
WARM_UPS = 4
CASES = {
    "mean": (tg.mean("x"), "SELECT avg(x) FROM people"),
    "count by group": (tg.count().by("g"), "SELECT g, count(*) FROM people GROUP BY g"),
}


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    rows, on_spark = (100_000_000, 10_000_000) if full else (1_000_000, 200_000)
    with rows_of(rows, "x, g") as folder:
        for case in CASES:
            yield memory(case, folder, rows, runs=RUNS if full else FEW)
    with rows_of(on_spark, "x") as folder:
        yield spark(folder, on_spark)


def memory(case: str, folder: Path, rows: int, *, runs: int) -> dict[str, Any]:
    turns = [
        (run_in_child(answer_once, case, folder, rows, prepare=load), run_in_child(bare, case, folder, prepare=load))
        for _ in range(runs)
    ]
    ours, theirs = zip(*turns, strict=True)
    times = {"tidegate": [child["run"] for child in ours], "by hand": [child["run"] for child in theirs]}
    peak, hand = (max(child["peak_mb"] for child in side) for side in (ours, theirs))
    more = {
        "limit_mb": LIMIT_MB,
        "below_limit": peak < LIMIT_MB,
        "idle_mb": median(child["idle_mb"] for child in ours),
        "peak_mb_by_hand": hand,
        "found": f"{peak:,.0f} MB at most (by hand {hand:,.0f}; limit {LIMIT_MB:,})",
    }
    return write_record("answer_scale", MEMORY, case, size=rows, runs=times, peak_mb=peak, **more)


def load() -> None:
    """Load the engines, which Ibis and SQLAlchemy import at the first query."""
    with rows_of(1, "x, g") as folder:
        answer_once("mean", folder, 1)


def answer_once(case: str, folder: Path, rows: int) -> Any:
    with session_of(folder, rows, "x, g") as session:
        return session.answer(CASES[case][0], epsilon=1, anyway=True).to_dict()["cost"]


def bare(case: str, folder: Path) -> int:
    with by_hand(folder) as query:
        return len(query(CASES[case][1]))


def spark(folder: Path, rows: int) -> dict[str, Any]:
    with session_of(f"spark://local[2]?parquet={folder}", rows, "x") as session:
        problem, first = time_task(lambda: refusal(session))
        if problem:
            runs, summary = {"to find that out": [first]}, f"not measured: {problem}"
            return write_record(
                "answer_scale", SPARK, "mean on Spark", size=rows, runs=runs, peak_mb=peak_memory(), found=summary
            )
        from pyspark.sql import SparkSession

        engine = SparkSession.getActiveSession()
        engine.read.parquet(str(folder)).createOrReplaceTempView("people")
        tasks = {
            "tidegate": lambda: session.answer(tg.mean("x"), epsilon=fresh_epsilon(), anyway=True),
            "SELECT avg": lambda: engine.sql("SELECT avg(x) FROM people").collect(),
            "SELECT sum, count": lambda: engine.sql("SELECT sum(x), count(x) FROM people").collect(),
            "its table alone": lambda: session.table.moments("x", center=50, powers=(1,)),
        }
        take_turns(tasks, runs=WARM_UPS)
        runs = take_turns(tasks)
        engine.stop()
    summary = f"{rows / median_seconds(runs['tidegate']) / 1e6:,.1f} million rows a second"
    return write_record(
        "answer_scale", SPARK, "mean on Spark", size=rows, runs=runs, peak_mb=peak_memory(), found=summary
    )


def refusal(session: tg.Session) -> str:
    """Return why Spark does not answer; empty if it does."""
    try:
        session.answer(tg.mean("x"), epsilon=fresh_epsilon(), anyway=True)
    except tg.TidegateError as problem:
        return str(problem)
    return ""
