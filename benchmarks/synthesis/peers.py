"""Synthetic tables of the peers: each program in its own environment, with the same public knowledge as ours.

A peer gets codes (train.npy) and public facts (facts.json) and writes codes. It knows every list, all bounds, and with the cells
"public" also cells: the declared ones, one per value up to 512 values, else 150 even cells and the
growing start cells of forest/2 together (better for MST on diamonds and spending than either alone). Columns that the policy
computes from others are not part of its task. The number of rows is public.
"""

from __future__ import annotations

import json
from os import sysconf
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measure import RESULTS
from benchmarks.peers import Peer, PeerUnavailable
from benchmarks.synthesis.tables import Table
from tidegate.arrays import Ints
from tidegate.policy import Category
from tidegate.synthesize.facts import Column

FOLDER = RESULTS / "synthesis"
ONE_EACH, EVEN, GROWING = 512, 150, 16
PROMISES = {
    "dpmm": "(epsilon, 1e-5), one row added or removed, Gaussian noise (floating point)",
    "datasynthesizer": "epsilon for the network and again for margins, one row added or removed, Laplace noise; "
    "its largest occupied cell is taken from the rows without noise, so that no finite epsilon holds",
}


class Work(NamedTuple):
    """One synthetic table of a peer: library, model, cells, epsilon and seed."""

    peer: str
    model: str
    cells: str
    epsilon: float
    seed: int = 1

    @property
    def method(self) -> str:
        return f"{self.model}, public cells" if self.cells == "public" else self.model

    @property
    def name(self) -> str:
        return f"{self.model}-{self.cells}-{self.epsilon:g}-{self.seed}"


def synthesize(table: Table, work: Work, *, limit: float) -> dict[str, Any]:
    """Return the codes of a peer's table with its cost, or the problem if it failed or exceeded the limit (seconds)."""
    folder = FOLDER / table.name
    write(table, folder)
    out = folder / f"{work.name}.npy"
    try:
        peer = Peer(work.peer, folder, work.model, work.cells, work.epsilon, work.seed, out, topic="synthesis")
    except PeerUnavailable as problem:
        return {"problem": str(problem)}
    stopped: list[str] = []

    def stop() -> None:
        stopped.append(_stopped(peer, limit))
        peer.process.kill()

    timer = Timer(limit, stop)
    timer.start()
    try:
        peer.run_task("synthesize")
    except PeerUnavailable as problem:
        return {"problem": stopped[0] if stopped else str(problem)}
    finally:
        timer.cancel()
        peer.close()
    codes = table.with_followers(np.load(out))
    run = peer.runs["synthesize"][-1]
    return {"codes": codes, "seconds": run.cpu, "clock": run.clock, "MB": peer.peak_mb, **peer.about["versions"]}


def sdmetrics(table: Table, synthetic: Ints) -> dict[str, float]:
    """Return the two parts of SDV's quality score of a synthetic table, for the columns that were learned."""
    folder = FOLDER / table.name
    write(table, folder)
    out = folder / "scored.npy"
    np.save(out, synthetic[:, table.learnt()])
    peer = Peer("SDMetrics", folder, out, topic="quality")
    try:
        for task in peer.tasks:
            peer.run_task(task)
    finally:
        peer.close()
    return peer.values


def _stopped(peer: Peer, limit: float) -> str:
    """Return what is stored of a peer that is stopped. The CPU time says how much of the clock a busy machine gave it."""
    status = Path(f"/proc/{peer.process.pid}/stat")
    used = status.read_text().rsplit(")", 1)[1].split()[11:13] if status.exists() else []
    cpu = f" ({sum(map(int, used)) / sysconf('SC_CLK_TCK'):.0f} s of processor)" if used else ""
    return f"not finished after {limit / 60:.0f} minutes{cpu}: stopped"


def write(table: Table, folder: Path) -> None:
    """Write train.npy and facts.json; the code after the last value means missing, where a column can be missing."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "train.npy", table.train[:, table.learnt()])
    facts = [
        {
            "name": column.name,
            "kind": "category" if isinstance(table.known[column.name], Category) else "integer",
            "size": column.size + column.missing,
            "starts": [*public_cells(table, column), *[column.size] * column.missing],
        }
        for column in table.columns.learnt
    ]
    (folder / "facts.json").write_text(json.dumps(facts), "utf-8")


def public_cells(table: Table, column: Column) -> list[int]:
    """Return the first code of every cell that a peer knows."""
    if isinstance(table.known[column.name], Category) or column.name in table.shapes.columns:
        return list(column.starts)
    return list(range(column.size)) if column.size <= ONE_EACH else wide_cells(column.size)


def wide_cells(size: int) -> list[int]:
    """Return 150 even cells, cut again at growing codes, and the first and the last value alone."""
    growing = {round(size ** (n / GROWING)) for n in range(1, GROWING)}
    return sorted({size * n // EVEN for n in range(EVEN)} | growing | {0, 1, size - 1})
