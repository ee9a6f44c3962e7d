"""Synthetic tables of the peers: made once, kept in results/synthesis with their seconds and memory, read again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

import pandas as pd

from benchmarks.measure import RESULTS, commit, machine
from benchmarks.peers import NotThere, Peer
from benchmarks.synthesis.exchange import Case, write

KEPT = RESULTS / "synthesis"
LIMIT = 75 * 60.0


class Work(NamedTuple):
    """One synthetic table of a peer: which library, which model, whose cells, at which epsilon, from which seed."""

    peer: str
    model: str
    cells: str
    epsilon: float
    seed: int = 1

    @property
    def name(self) -> str:
        return f"{self.model}-{self.cells}-{self.epsilon:g}-{self.seed}"


def keep(case: Case, work: Work, *, limit: float = LIMIT) -> dict[str, Any]:
    """The table and its line, made now if they are not there. What did not finish is kept as a line as well."""
    for line in lines(case.name):
        if line["work"] == work.name:
            return line
    folder = KEPT / case.name
    write(case, folder)
    line = {"work": work.name, **work._asdict(), **_made(folder, work, limit), "machine": machine(), "commit": commit()}
    if "seconds" in line:  # a failure is told and tried again
        with (folder / "runs.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    return line


def _made(folder: Path, work: Work, limit: float) -> dict[str, Any]:
    out = folder / f"{work.name}.parquet"
    try:
        peer = Peer(work.peer, folder, work.model, work.cells, work.epsilon, work.seed, out, does="synthesis")
    except NotThere as problem:
        return {"problem": str(problem)}
    late = Timer(limit, peer.process.kill)
    late.start()
    try:
        peer.ask("synthesize")
        run = peer.runs["synthesize"][-1]
        return {"seconds": run.clock, "cpu": run.cpu, "peak_mb": peer.peak_mb, "versions": peer.about["versions"]}
    except NotThere as problem:
        stopped = {"problem": f"not finished in {limit:.0f} s: stopped", "seconds": limit}
        return {"problem": str(problem)} if late.is_alive() else stopped
    finally:
        late.cancel()
        peer.close()


def lines(case: str) -> Iterator[dict[str, Any]]:
    """Every run that is kept of a case."""
    file = KEPT / case / "runs.jsonl"
    if file.exists():
        yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())


def kept(case: str, epsilon: float) -> Iterator[tuple[dict[str, Any], pd.DataFrame | None]]:
    """The runs of a case at one epsilon, each with its synthetic table where it finished."""
    for line in lines(case):
        if line["epsilon"] == epsilon:
            file = KEPT / case / f"{line['work']}.parquet"
            yield line, None if "problem" in line else pd.read_parquet(file)
