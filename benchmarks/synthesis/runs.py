"""Synthetic tables of the peers: created once and stored in results/synthesis with their seconds and memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

import pandas as pd

from benchmarks.measure import RESULTS, commit, machine
from benchmarks.peers import Peer, PeerUnavailable
from benchmarks.synthesis.exchange import Case, write

STORED = RESULTS / "synthesis"
LIMIT = 75 * 60.0


class Work(NamedTuple):
    """One synthetic table of a peer: library, model, cells, epsilon and seed."""

    peer: str
    model: str
    cells: str
    epsilon: float
    seed: int = 1

    @property
    def name(self) -> str:
        return f"{self.model}-{self.cells}-{self.epsilon:g}-{self.seed}"


def make_table(case: Case, work: Work, *, limit: float = LIMIT) -> dict[str, Any]:
    """Return the line of a table; create both if they do not exist. A run that timed out has a line too."""
    for line in lines(case.name):
        if line["work"] == work.name:
            return line
    folder = STORED / case.name
    write(case, folder)
    line = {
        "work": work.name,
        **work._asdict(),
        **_synthesize(folder, work, limit),
        "machine": machine(),
        "commit": commit(),
    }
    if "seconds" in line:  # a failure is reported and tried again
        with (folder / "runs.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    return line


def _synthesize(folder: Path, work: Work, limit: float) -> dict[str, Any]:
    out = folder / f"{work.name}.parquet"
    try:
        peer = Peer(work.peer, folder, work.model, work.cells, work.epsilon, work.seed, out, topic="synthesis")
    except PeerUnavailable as problem:
        return {"problem": str(problem)}
    timer = Timer(limit, peer.process.kill)
    timer.start()
    try:
        peer.run_task("synthesize")
        run = peer.runs["synthesize"][-1]
        return {"seconds": run.clock, "cpu": run.cpu, "peak_mb": peer.peak_mb, "versions": peer.about["versions"]}
    except PeerUnavailable as problem:
        stopped = {"problem": f"not finished in {limit:.0f} s: stopped", "seconds": limit}
        return {"problem": str(problem)} if timer.is_alive() else stopped
    finally:
        timer.cancel()
        peer.close()


def lines(case: str) -> Iterator[dict[str, Any]]:
    """Yield every stored run of a case."""
    file = STORED / case / "runs.jsonl"
    if file.exists():
        yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())


def stored_tables(case: str, epsilon: float) -> Iterator[tuple[dict[str, Any], pd.DataFrame | None]]:
    """Yield the runs of a case at one epsilon, each with its synthetic table if it finished."""
    for line in lines(case):
        if line["epsilon"] == epsilon:
            file = STORED / case / f"{line['work']}.parquet"
            yield line, None if "problem" in line else pd.read_parquet(file)
