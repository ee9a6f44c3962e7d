"""How many baskets of 512 items are randomized and counted a second, and how long do all pairs of 2,000,000 take?

python -m benchmarks [--full] baskets

Beside it, in environments of their own, multi-freq-ldpy and pure-ldp: one-hot reports of 512 categories, the same number of
random bits. Baskets have 1 to 10 items; cut-and-paste with cutoff 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import RUNS, SEED, peak_memory, take_turns, tell, typical
from benchmarks.peers import NotThere, Peer

QUESTION = "How many baskets of 512 items are randomized and counted a second?"
ITEMS, LARGEST, PEER_REPORTS = 512, 10, 2_000
PEERS = ("multifreqldpy", "pureldp")


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    baskets = some_baskets(200_000 if full else 20_000)
    for rho in ("0.05", "0.4"):
        yield randomizing(baskets, rho)
    yield counting_items(2_000_000 if full else 50_000)
    yield from counting_itemsets(2_000_000 if full else 50_000)


def some_baskets(many: int) -> Any:
    from tidegate_papers.simulation.baskets import Baskets

    random = np.random.default_rng(SEED)
    sizes = random.integers(1, LARGEST + 1, many)
    return Baskets.of([random.choice(ITEMS, size, replace=False) for size in sizes])


def randomizing(baskets: Any, rho: str) -> dict[str, Any]:
    from tidegate_papers.simulation.baskets import randomize_baskets
    from tidegate_papers.simulation.values import BulkBits

    from tidegate.collect.baskets import cut_and_paste

    operator = cut_and_paste(3, rho, range(1, LARGEST + 1), vocabulary_size=ITEMS)
    bits, many = BulkBits(), len(baskets)
    runs = take_turns({"tidegate": lambda: randomize_baskets(operator, baskets, bits)})
    peers = {name: peer_rate(name) for name in PEERS}
    rate, busy = many / typical(runs["tidegate"]), many / of_cpu(runs["tidegate"])
    more = {
        "found": f"{busy:,.0f} reports a second of one core; by the clock {rate:,.0f}; "
        + ", ".join(
            f"{name} {told if isinstance(told, str) else format(told, ',.0f')}" for name, told in peers.items()
        ),
        "reports_a_second": rate,
        "reports_a_cpu_second": busy,
        "ns_per_bit": 1e9 / busy / ITEMS,
        "peers_a_cpu_second": peers,
    }
    return tell(
        "baskets", QUESTION, f"randomize, rho {rho}, one core", size=many, runs=runs, peak_mb=peak_memory(), **more
    )


def peer_rate(name: str) -> float | str:
    """Reports a processor second of a peer, or why there is none."""
    try:
        peer = Peer(name, ITEMS, PEER_REPORTS, does="baskets")
    except NotThere as missing:
        return str(missing)
    for _ in range(RUNS + 1):
        peer.ask("UE")
    peer.close()
    return PEER_REPORTS / of_cpu(peer.runs["UE"][1:])


def of_cpu(runs: list[Any]) -> float:
    """The median of processor seconds: what counts where others use the machine as well."""
    return float(np.median([run.cpu for run in runs]))


def random_rows(many: int) -> Any:
    return np.random.default_rng(SEED).integers(0, 2**64, (many, ITEMS // 64), np.uint64)


def counting_items(many: int) -> dict[str, Any]:
    from tidegate_papers.simulation._kernels import count_rows

    from tidegate.collect.baskets.bitsets import Bitsets

    rows, out = random_rows(many), np.zeros(ITEMS, np.int64)
    tasks = {
        "tidegate": lambda: count_rows(rows, out),
        "turn on their side": lambda: Bitsets.of(rows, vocabulary_size=ITEMS),
    }
    runs = take_turns(tasks)
    rates = {name: many / of_cpu(found) for name, found in runs.items()}
    return tell(
        "baskets",
        QUESTION,
        "count single items, one core",
        size=many,
        runs=runs,
        peak_mb=peak_memory(),
        reports_a_cpu_second=rates,
        found=f"{rates['tidegate']:,.0f} reports a second of one core",
    )


def counting_itemsets(many: int) -> Iterator[dict[str, Any]]:
    from tidegate.collect.baskets.bitsets import Bitsets

    sets = Bitsets.of(random_rows(many), vocabulary_size=ITEMS)
    triples = np.random.default_rng(SEED).integers(0, ITEMS, (5_000, 3))
    tasks = {
        "all pairs": lambda threads: sets.pair_counts(threads=threads),
        "5,000 triples": lambda threads: sets.counts(triples, threads=threads),
    }
    for name, task in tasks.items():
        runs = take_turns({"two cores": partial(task, 2), "one core": partial(task, 1)})
        busy = {cores: of_cpu(found) for cores, found in runs.items()}
        found = ", ".join(f"{cores} {seconds:.2f} s of processor time in all" for cores, seconds in busy.items())
        yield tell("baskets", QUESTION, name, size=many, runs=runs, peak_mb=peak_memory(), cpu_s=busy, found=found)
