"""How many requests for records are decided a second, with the queue, and how does that fall as the table grows?

python -m benchmarks [--full] release

Compared with a careful numpy program: stored counts and sums, statistics of the changed part recomputed with numpy at every
check, critical values from a table, the queue rescanned from the oldest after every release with cached denials.
One core each, in turns. `durable` decides through a desk on a SQLite ledger: one by one, from 16 requesters, and a thousand under one entry.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import RESULTS, SEED, peak_memory, take_turns, write_record
from benchmarks.peers.release_numpy import NumpyController

QUESTION = "How many requests for records are decided a second, with the queue?"
SETS = {
    "mutual-information": ("mutual-information",),
    "kullback-leibler": ("kullback-leibler",),
    "chi-square": ("chi-square",),
    "dixon": ("dixon",),
    "default": ("mutual-information", "kullback-leibler"),
}


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    yield from soldiers(full)
    yield from sparse(full)
    grown = list(growth(full))
    draw_growth(grown)
    yield from grown
    yield from durable(full)


def soldiers(full: bool) -> Iterator[dict[str, Any]]:
    """Measure the paper's table: 10 values, 5 groups, 10,000 requests in random order."""
    from tidegate.demo import soldiers as paper

    counts = np.array(paper.COUNTS)
    cells = np.repeat(np.arange(50), counts.ravel())
    cells_in_order = np.random.default_rng(SEED).permutation(cells)
    requests = (cells_in_order % 5) * 10 + cells_in_order // 5
    for name, tests in SETS.items():
        plan = plan_for(paper.BASELINE, paper.SHARES, tests)
        yield measure(f"10 x 5, {name}", plan, requests, peer=len(tests) == 1, slow=2_000 if full else 500)


def sparse(full: bool) -> Iterator[dict[str, Any]]:
    """Measure 100 values and 1,000 groups that all differ a little from the baseline, so that many requests wait."""
    random = np.random.default_rng(SEED)
    baseline = random.integers(20, 200, 100)
    tilt = np.exp(0.35 * random.standard_normal((100, 1000))) * baseline[:, None]
    cells_in_order = random.choice(tilt.size, 1_000_000 if full else 200_000, p=(tilt / tilt.sum()).ravel())
    requests = (cells_in_order % 1000) * 100 + cells_in_order // 1000
    for name in ("mutual-information", "kullback-leibler", "chi-square", "default"):
        plan = plan_for(baseline, [1] * 1000, SETS[name])
        yield measure(f"100 x 1000, {name}", plan, requests, peer=len(SETS[name]) == 1, slow=100 if full else 10)


def growth(full: bool) -> Iterator[dict[str, Any]]:
    """Measure growth with the number of values, groups and waiting requests."""
    random = np.random.default_rng(SEED)
    for values, groups in ((10, 5), (10, 50), (10, 500), (100, 5), (100, 50), *(((1000, 50),) if full else ())):
        baseline = random.integers(20, 200, values)
        tilt = np.exp(0.35 * random.standard_normal((values, groups))) * baseline[:, None]
        cells_in_order = random.choice(tilt.size, 100_000, p=(tilt / tilt.sum()).ravel())
        requests = (cells_in_order % groups) * values + cells_in_order // groups
        plan = plan_for(baseline, [1] * groups, SETS["default"])
        yield measure(f"growth {values} x {groups}, default", plan, requests, peer=False)
    for waiting in (1_000, 10_000, 100_000):
        plan = plan_for(random.integers(20, 200, 20), [1] * 20, SETS["default"])
        first = np.full(waiting, 3)  # one cell is requested again and again: nearly all requests wait
        later = random.integers(0, 400, 50_000)
        yield measure(f"growth, {waiting:,} wait in one cell", plan, later, before=first, peer=False)


def plan_for(baseline: Any, shares: Any, tests: tuple[str, ...]) -> Any:
    from tidegate.policy import Concealment
    from tidegate.release.plan import make_plan

    promise = Concealment(reveals="x", about="y", tests=tests)
    return make_plan(promise, [Fraction(int(b)) for b in baseline], [Fraction(int(s)) for s in shares])


def measure(case: str, plan: Any, requests: Any, *, peer: bool, before: Any = (), slow: int = 1_000) -> dict[str, Any]:
    from tidegate.release.gate import Gate

    last: list[Any] = []

    def ours() -> None:
        gate = Gate(plan)
        if len(before):
            gate.decide(np.asarray(before), np.arange(len(before)))
        gate.decide(requests, np.arange(len(before), len(before) + len(requests)))
        last[:] = [gate]

    runs = take_turns({"tidegate": ours})
    per_second = len(requests) / sorted(run.cpu for run in runs["tidegate"])[2]
    gate = last[0]
    summary = f"{per_second / 1e6:.2f}M requests/s of CPU; {gate.released:,} out, {gate.waiting:,} wait"
    more = [compare_numpy(plan, requests, slow)] if peer else []
    record = write_record(
        "release",
        QUESTION,
        case,
        size=len(requests),
        runs=runs,
        peak_mb=peak_memory(),
        found="; ".join([summary, *more]),
        per_second=per_second,
    )
    return {**record, "per_second": per_second}


def compare_numpy(plan: Any, requests: Any, slow: int) -> str:
    """Compare both on the last `slow` requests, from the state after all earlier ones."""
    from tidegate.release.gate import Gate

    early, late = requests[:-slow], requests[-slow:]
    first = Gate(plan)
    out = set(first.decide(early, np.arange(len(early))).released.tolist())
    queue = [(number, int(cell)) for number, cell in enumerate(early.tolist()) if number not in out]

    def loaded_gate() -> Any:
        gate = Gate(plan)
        gate.load(first.counts.T.ravel(), queue)
        return gate

    gates = [loaded_gate() for _ in range(5)]
    others = [NumpyController(plan).load(first.counts.T, queue) for _ in range(5)]
    numbers = np.arange(len(early), len(requests))
    runs = take_turns(
        {
            "tidegate": lambda: gates.pop().decide(late, numbers),
            "numpy": lambda: others.pop().decide(late, first=len(early)),
        },
        runs=3,
    )
    ours_cpu, numpy_cpu = (sorted(run.cpu for run in task_runs)[1] for task_runs in runs.values())
    return f"the last {slow:,}, {len(queue):,} waiting: {slow / ours_cpu:,.0f}/s, {numpy_cpu / ours_cpu:,.0f}x numpy's {slow / numpy_cpu:,.0f}/s"


def draw_growth(records: list[dict[str, Any]]) -> None:
    """Draw the growth as a chart next to the results."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), constrained_layout=True)
    shapes = [
        ([int(n) for n in r["case"].split(",")[0].split()[1::2]], r["per_second"])
        for r in records
        if " x " in r["case"]
    ]
    for values, marker in ((10, "o-"), (100, "s--")):
        points = [(groups, speed) for (size, groups), speed in shapes if size == values]
        left.loglog(*zip(*points, strict=True), marker, color="#1f6f8b", label=f"{values} values")
    left.legend(frameon=False)
    left.set(
        xlabel="groups",
        ylabel="requests a second of CPU",
        title="Ten times the groups cost a factor of three or less",
        ylim=(1e5, 1e7),
    )
    waits = [r for r in records if "wait in" in r["case"]]
    lengths = [int(r["case"].split(" wait")[0].split()[-1].replace(",", "")) for r in waits]
    right.loglog(lengths, [r["per_second"] for r in waits], "o-", color="#1f6f8b")
    right.set(
        xlabel="requests that wait in one cell",
        title="The queue's length does not matter (20 x 20)",
        ylim=(1e5, 1e7),
    )
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "release-growth.png", dpi=110)


def durable(full: bool) -> Iterator[dict[str, Any]]:
    """Measure decisions through a desk on a SQLite ledger with full synchronization."""
    import pyarrow as pa

    import tidegate as tg
    from tidegate.demo import soldiers as paper

    table = pa.table(paper.records())
    names = np.random.default_rng(SEED).permutation(paper.records()["name"]).tolist()
    cases = {
        "one by one": (100, serially),
        "16 requesters": (960, by_requesters),
        "1,000 under one entry": (10_000, at_once),
    }
    for case, (count, request) in cases.items():

        def ours(count: int = count, request: Callable[[Any, list[str]], None] = request) -> None:
            with (
                tempfile.TemporaryDirectory() as folder,
                tg.open(paper.policy(), table=table, ledger=str(Path(folder) / "s.ledger")) as session,
            ):
                request(session.release(), names[:count])

        runs = take_turns({"tidegate": ours}, runs=3)
        seconds = sorted(run.clock for run in runs["tidegate"])[1]
        yield write_record(
            "release",
            QUESTION,
            f"durable, {case}",
            size=count,
            runs=runs,
            peak_mb=peak_memory(),
            found=f"{count / seconds:,.0f} decisions/s by the clock, opening included",
        )


def serially(desk: Any, names: list[str]) -> None:
    for name in names:
        desk.request(name)


def at_once(desk: Any, names: list[str]) -> None:
    desk.request_many(names)


def by_requesters(desk: Any, names: list[str]) -> None:
    """Request each record by itself, from 16 threads: requests that arrive together share a commit."""
    with ThreadPoolExecutor(16) as requesters:
        list(requesters.map(desk.request, names))
