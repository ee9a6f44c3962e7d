"""How long does it take to mine true baskets, compared with other libraries?

    TIDEGATE_DATA=... python -m benchmarks mining --full

T10I4D100K and retail of the FIMI repository, found in the folder that TIDEGATE_DATA names. All libraries have the baskets in memory
in their own form; mlxtend's table contains the frequent items only. All must find as many itemsets as we do. One
thread. Peers have fewer runs: some take a minute for what takes us a tenth of a second.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from tidegate_papers.simulation.true_supports import TrueSupports, read_baskets

from benchmarks.measure import median_seconds, run_in_child, take_turns, write_record
from benchmarks.peers import Peer, PeerUnavailable
from tidegate.collect.baskets.mining import mine

QUESTION = "How long does it take to find all frequent itemsets of true baskets?"
CASES = (("T10I4D100K", 0.01), ("T10I4D100K", 0.005), ("retail", 0.01), ("retail", 0.002))
PEER_RUNS = 3


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    folder = os.environ.get("TIDEGATE_DATA", "")
    for name, least in CASES if full else CASES[2:3]:
        path = Path(folder, f"{name}.dat")
        if not folder or not path.exists():
            summary = f"{name}.dat is missing: TIDEGATE_DATA must name a folder with it"
            yield write_record(
                "mining", QUESTION, f"{name}, {100 * least:g}%", size=0, runs={}, peak_mb=0, found=summary
            )
        else:
            yield measure_case(path, least)


def measure_case(path: Path, least: float) -> dict[str, Any]:
    baskets = read_baskets(path).baskets
    missing: dict[str, str] = {}
    with ExitStack() as stack:
        peers = []
        for name in ("mlxtend", "efficientapriori"):
            try:
                peers.append(Peer(name, path, least, topic="mining"))
                stack.callback(peers[-1].close)
            except PeerUnavailable as problem:
                missing[name] = str(problem)
        of_peers = {f"{peer.name} {task}": (peer, task) for peer in peers for task in peer.tasks}
        tasks = {"tidegate": lambda: mine(TrueSupports(baskets), min_support=least)}
        runs = take_turns(
            {**tasks, **{label: partial(peer.run_task, task) for label, (peer, task) in of_peers.items()}},
            runs=PEER_RUNS,
        )
        runs.update({label: peer.runs[task][-PEER_RUNS:] for label, (peer, task) in of_peers.items()})
    ours = mine(TrueSupports(baskets), min_support=least)
    counts = {label: round(peer.values[task]) for label, (peer, task) in of_peers.items()}
    alone = run_in_child(mine_alone, path, least)
    each = ", ".join(f"{label} {median_seconds(task_runs):.2f} s" for label, task_runs in list(runs.items())[1:])
    return write_record(
        "mining",
        QUESTION,
        f"{path.stem}, {100 * least:g}%",
        size=len(baskets),
        runs=runs,
        peak_mb=alone["peak_mb"],
        found=f"{sum(ours.by_size):,} itemsets in {1000 * median_seconds(runs['tidegate']):.0f} ms; {each}"
        + _missing_text(missing),
        idle_mb=round(alone["idle_mb"]),
        itemsets={"tidegate": sum(ours.by_size), **counts},
        versions={peer.name: peer.about["versions"] for peer in peers},
        peak_mb_of={peer.name: round(peer.peak_mb) for peer in peers},
        missing=missing,
    )


def mine_alone(path: Path, least: float) -> int:
    """Read and mine baskets in a process that does nothing else, to measure its peak memory."""
    return sum(mine(TrueSupports(read_baskets(path).baskets), min_support=least).by_size)


def _missing_text(missing: dict[str, str]) -> str:
    return "; missing: " + ", ".join(f"{name} ({why})" for name, why in missing.items()) if missing else ""
