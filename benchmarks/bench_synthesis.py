"""How similar are our synthetic tables to the true rows, compared with the peers'?

    python -m benchmarks synthesis --full

At a small size: 45 generated columns at epsilon 1, two runs. With --full: every table whose file exists, at epsilon 1/4, 1 and 4,
three runs. The peers' tables take minutes to hours; `python -m benchmarks.synthesis peers` creates and measures them, and
`benchmarks/synthesis/results.json` stores the results, ours too (`python -m benchmarks.synthesis evaluate`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.measure import Run, run_in_child, write_record
from benchmarks.synthesis import ours, results
from benchmarks.synthesis.evaluation import evaluate
from benchmarks.synthesis.sources import DataMissing
from benchmarks.synthesis.tables import HELD_OUT, TABLES, Table

QUESTION = "How similar are synthetic tables to the true rows?"


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    for name in [name for name in TABLES if name != HELD_OUT] if full else ["columns45"]:
        try:
            table = TABLES[name]()
        except DataMissing as problem:
            yield write_record("synthesis", QUESTION, name, size=0, runs={}, peak_mb=0, found=str(problem))
            continue
        for epsilon in (0.25, 1.0, 4.0) if full else (1.0,):
            for mode in ours.modes():
                yield measure(table, epsilon, mode, seeds=3 if full else 2)


def measure(table: Table, epsilon: float, mode: str, *, seeds: int) -> dict[str, Any]:
    """Create and measure fresh tables, each in its own process; write and return the record."""
    children = [run_in_child(ours.synthesize, table.name, epsilon, mode, seed) for seed in range(1, seeds + 1)]
    runs = [evaluate(table, child["value"].pop("codes"), seed=n) for n, child in enumerate(children)]
    shown = ", ".join(f"{name} {results.text(results.mean(runs, name), name)}" for name in runs[0])
    return write_record(
        "synthesis",
        QUESTION,
        f"{table.name}, epsilon {epsilon:g}, {mode}",
        size=len(table.train),
        runs={"tidegate": [Run(child["run"].clock, child["value"]["seconds"]) for child in children]},
        peak_mb=max(child["value"]["MB"] for child in children),
        found=shown,
        measures=runs,
    )
