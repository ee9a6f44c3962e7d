"""How many baskets of 512 items are randomized and counted a second, and how long do all pairs of 2,000,000 take?

python -m benchmarks [--full] baskets

Compared with multi-freq-ldpy and pure-ldp in their own environments: one-hot reports of 512 categories, the same number of
random bits. Baskets have 1 to 10 items; cut-and-paste with cutoff 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import RUNS, SEED, median_seconds, peak_memory, take_turns, write_record
from benchmarks.peers import Peer, PeerUnavailable

QUESTION = "How many baskets of 512 items are randomized and counted a second?"
ITEMS, LARGEST, PEER_REPORTS = 512, 10, 2_000
PEERS = ("multifreqldpy", "pureldp")


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    baskets = random_baskets(200_000 if full else 20_000)
    for rho in ("0.05", "0.4"):
        yield measure_randomization(baskets, rho)
    yield measure_item_counts(2_000_000 if full else 50_000)
    yield from measure_itemset_counts(2_000_000 if full else 50_000)


def random_baskets(count: int) -> Any:
    from tidegate_papers.simulation.baskets import Baskets

    random = np.random.default_rng(SEED)
    sizes = random.integers(1, LARGEST + 1, count)
    return Baskets.of([random.choice(ITEMS, size, replace=False) for size in sizes])


def measure_randomization(baskets: Any, rho: str) -> dict[str, Any]:
    from tidegate_papers.simulation.baskets import randomize_baskets
    from tidegate_papers.simulation.values import BulkBits

    from tidegate.collect.baskets import cut_and_paste

    operator = cut_and_paste(3, rho, range(1, LARGEST + 1), vocabulary_size=ITEMS)
    bits, count = BulkBits(), len(baskets)
    runs = take_turns({"tidegate": lambda: randomize_baskets(operator, baskets, bits)})
    peers = {name: peer_rate(name) for name in PEERS}
    rate, busy = count / median_seconds(runs["tidegate"]), count / cpu_seconds(runs["tidegate"])
    more = {
        "found": f"{busy:,.0f} reports a second of one core; by the clock {rate:,.0f}; "
        + ", ".join(
            f"{name} {rate_or_reason if isinstance(rate_or_reason, str) else format(rate_or_reason, ',.0f')}"
            for name, rate_or_reason in peers.items()
        ),
        "reports_a_second": rate,
        "reports_a_cpu_second": busy,
        "ns_per_bit": 1e9 / busy / ITEMS,
        "peers_a_cpu_second": peers,
    }
    return write_record(
        "baskets", QUESTION, f"randomize, rho {rho}, one core", size=count, runs=runs, peak_mb=peak_memory(), **more
    )


def peer_rate(name: str) -> float | str:
    """Return a peer's reports per CPU second, or the reason why there is none."""
    try:
        peer = Peer(name, ITEMS, PEER_REPORTS, topic="baskets")
    except PeerUnavailable as missing:
        return str(missing)
    for _ in range(RUNS + 1):
        peer.run_task("UE")
    peer.close()
    return PEER_REPORTS / cpu_seconds(peer.runs["UE"][1:])


def cpu_seconds(runs: list[Any]) -> float:
    """Return the median of CPU seconds, which other programs on the machine disturb less."""
    return float(np.median([run.cpu for run in runs]))


def random_rows(count: int) -> Any:
    return np.random.default_rng(SEED).integers(0, 2**64, (count, ITEMS // 64), np.uint64)


def measure_item_counts(count: int) -> dict[str, Any]:
    from tidegate_papers.simulation._kernels import count_rows

    from tidegate.collect.baskets.bitsets import Bitsets

    rows, out = random_rows(count), np.zeros(ITEMS, np.int64)
    tasks = {
        "tidegate": lambda: count_rows(rows, out),
        "turn on their side": lambda: Bitsets.of(rows, vocabulary_size=ITEMS),
    }
    runs = take_turns(tasks)
    rates = {name: count / cpu_seconds(task_runs) for name, task_runs in runs.items()}
    return write_record(
        "baskets",
        QUESTION,
        "count single items, one core",
        size=count,
        runs=runs,
        peak_mb=peak_memory(),
        reports_a_cpu_second=rates,
        found=f"{rates['tidegate']:,.0f} reports a second of one core",
    )


def measure_itemset_counts(count: int) -> Iterator[dict[str, Any]]:
    from tidegate.collect.baskets.bitsets import Bitsets

    sets = Bitsets.of(random_rows(count), vocabulary_size=ITEMS)
    triples = np.random.default_rng(SEED).integers(0, ITEMS, (5_000, 3))
    tasks = {
        "all pairs": lambda threads: sets.pair_counts(threads=threads),
        "5,000 triples": lambda threads: sets.counts(triples, threads=threads),
    }
    for name, task in tasks.items():
        runs = take_turns({"two cores": partial(task, 2), "one core": partial(task, 1)})
        busy = {cores: cpu_seconds(task_runs) for cores, task_runs in runs.items()}
        summary = ", ".join(f"{cores} {seconds:.2f} s of processor time in all" for cores, seconds in busy.items())
        yield write_record(
            "baskets", QUESTION, name, size=count, runs=runs, peak_mb=peak_memory(), cpu_s=busy, found=summary
        )
