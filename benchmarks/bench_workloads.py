"""What is the error of many counts at once, and how long does the plan take, beside one by one and OpenDP?

    python -m benchmarks workloads --full

The tables of the workload specification by the product's own planner: root mean squared error of each query at rho 0.05 with
the whole budget, under both guarantees. OpenDP answers the same ranges with Gaussian noise at the same zCDP (equal epsilon
at delta 1e-6): one by one, and from its own tree with consistency. `draw` writes the chart of docs/guides/which-guarantee.md.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp

import tidegate as tg
from benchmarks.measure import SEED, Runs, peak_memory, take_turns, write_record
from benchmarks.peers import Peer, PeerUnavailable
from tidegate.accounting import Target, budget_of, epsilon_at_delta
from tidegate.answer.spending import RequestedLoss
from tidegate.answer.workloads import one_by_one_variance, plan_workload
from tidegate.answer.workloads.dense import dense_strategies
from tidegate.answer.workloads.marginals import marginal_strategies
from tidegate.charts.chart import Axis, Chart, Line, numbers
from tidegate.noise import SecureBits

QUESTION = "How far are many counts off, and how long does it take to plan them?"
PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "guarantees.svg"
GUARANTEES = ("worst-case", "average")
RHO, ROWS = Fraction(1, 20), 10_000
MARGINALS = {"a": 73, "b": 16, "c": 7, "d": 5, "e": 2}
ANSWERS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    for guarantee in GUARANTEES:
        for size in (73, 1024) if full else (73,):
            for name, queries in {"100 ranges": ranges(size), "prefixes": prefixes(size)}.items():
                yield measure_plan(f"{name}, {size:,} values, {guarantee}", queries, line_policy(size, guarantee), size)
        yield measure_plan(f"marginals of five columns, {guarantee}", tables(), table_policy(guarantee), 0)
    yield compare_with_opendp()
    yield compare_with_peers(("SmartNoise", "Tumult") if full else ("SmartNoise",))
    draw(PICTURE)


def ranges(size: int) -> list[tg.Query]:
    random = np.random.default_rng(SEED)
    ends = [sorted(random.integers(0, size, 2).tolist()) for _ in range(100)]
    return [tg.count().where((tg.col("x") >= low) & (tg.col("x") <= high)) for low, high in ends]


def prefixes(size: int) -> list[tg.Query]:
    return [tg.count().where(tg.col("x") <= last) for last in range(size)]


def tables() -> list[tg.Query]:
    return [tg.count().by(name) for name in MARGINALS] + [tg.count().by(*pair) for pair in combinations(MARGINALS, 2)]


def line_policy(size: int, guarantee: Any) -> tg.Policy:
    promise = tg.Identification(RHO, protect=("x",), guarantee=guarantee, within={"x": 0})
    return tg.Policy(tg.Dataset("line", rows=ROWS), {"x": tg.Integer(0, size - 1, missing="lowest")}, promise)


def table_policy(guarantee: Any) -> tg.Policy:
    columns = {name: tg.Integer(0, size - 1, missing="lowest") for name, size in MARGINALS.items()}
    return tg.Policy(
        tg.Dataset("tables", rows=ROWS), columns, tg.Identification(RHO, protect=("a",), guarantee=guarantee)
    )


def whole_budget(policy: tg.Policy, size: int) -> RequestedLoss:
    """Return the whole budget; for other sizes than 73 the one of 99 values, as in the specification."""
    budget = budget_of(policy)
    limit = budget.ceiling if size == 73 else Target("x", Fraction(99), RHO, budget.guarantee).limit
    return RequestedLoss(limit.value, budget.unit)


def measure_plan(case: str, queries: list[tg.Query], policy: tg.Policy, size: int) -> dict[str, Any]:
    loss = whole_budget(policy, size)
    strategies = [*dense_strategies(queries, policy, loss), *marginal_strategies(queries, policy, loss)]
    errors = {"one by one": math.sqrt(one_by_one_variance(queries, policy, loss))}
    errors |= {strategy.name: math.sqrt(strategy.variance()) for strategy in strategies}
    best = min(errors, key=lambda name: errors[name])
    runs = take_turns({"tidegate": lambda: plan_workload(queries, policy, loss)})
    summary = f"error {errors[best]:.2f} ({best}), one by one {errors['one by one']:.2f}"
    sizes = {"size": len(queries), "runs": runs, "peak_mb": peak_memory()}
    return write_record("workloads", QUESTION, case, **sizes, errors=errors, found=summary)


def compare_with_opendp() -> dict[str, Any]:
    """Compare 100 ranges over 73 values, at the zCDP that our plan costs: errors of one run on the same table, and times."""
    dp.enable_features("contrib", "floating-point", "honest-but-curious")
    policy, queries = line_policy(73, "average"), ranges(73)
    loss = whole_budget(policy, 73)
    strategy = plan_workload(queries, policy, loss)
    if strategy is None:
        raise RuntimeError("The ranges are planned together.")
    zcdp = float(strategy.event.price.zcdp)
    cells = np.random.default_rng(SEED).multinomial(ROWS, np.full(73, 1 / 73))
    matrix = np.array([[low <= value <= high for value in range(73)] for low, high in _bounds(queries)], float)
    truth = matrix @ cells
    bits = SecureBits()

    def ours() -> Any:
        exact = [strategy.sums @ cells]  # type: ignore[attr-defined]
        return np.array([float(part.values) for part in strategy.estimate(strategy.perturb(exact, bits=bits))])

    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    one_by_one = dp.m.make_gaussian(*space, scale=math.sqrt(len(queries) / (2 * zcdp)))  # each range moves by at most 1
    histogram = dp.m.make_gaussian(*space, scale=math.sqrt(2 / (2 * zcdp)))  # a replaced row moves two cells

    def opendp_one_by_one() -> Any:
        return np.array(one_by_one(truth.astype(int).tolist()), float)

    def opendp_histogram() -> Any:
        return matrix @ np.array(histogram(cells.tolist()), float)

    tasks = {"tidegate": ours, "OpenDP, one by one": opendp_one_by_one, "OpenDP, histogram": opendp_histogram}
    runs = take_turns(tasks)
    errors = {
        name: math.sqrt(np.mean([np.mean((task() - truth) ** 2) for _ in range(200)])) for name, task in tasks.items()
    }
    shown = ", ".join(f"{name} {error:.2f}" for name, error in errors.items())
    summary = f"error at epsilon {epsilon_at_delta(strategy.event.price.zcdp):.2f}, delta 1e-6: {shown}"
    return write_record(
        "workloads",
        QUESTION,
        "100 ranges beside OpenDP, same zCDP",
        size=100,
        runs=runs,
        peak_mb=peak_memory(),
        found=summary,
    )


def compare_with_peers(names: tuple[str, ...]) -> dict[str, Any]:
    """Compare 100 ranges with libraries that answer them one by one, at the same zCDP or (epsilon, delta) as our plan."""
    policy, queries = line_policy(73, "average"), ranges(73)
    strategy = plan_workload(queries, policy, whole_budget(policy, 73))
    if strategy is None:
        raise RuntimeError("The ranges are planned together.")
    price = strategy.event.price
    losses = {"SmartNoise": epsilon_at_delta(price.zcdp), "Tumult": float(price.zcdp)}
    values = np.random.default_rng(SEED).integers(0, 73, ROWS)
    true = np.array([((values >= low) & (values <= high)).sum() for low, high in _bounds(queries)])
    cells = np.bincount(values, minlength=73)
    runs: Runs = {}
    errors, missing = {}, {}

    def ours() -> None:
        exact = [strategy.sums @ cells]  # type: ignore[attr-defined]
        estimates = strategy.estimate(strategy.perturb(exact, bits=SecureBits()))
        errors["tidegate"] = math.sqrt(np.mean((np.array([float(part.values) for part in estimates]) - true) ** 2))

    runs["tidegate"] = take_turns({"tidegate": ours})["tidegate"][:1]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "workload.json"
        file.write_text(json.dumps({"values": values.tolist(), "ranges": list(_bounds(queries))}))
        for name in names:
            try:
                peer = Peer(name, file, ROWS, losses[name], topic="workload")
                peer.run_task("one by one")
                errors[name], runs[name] = peer.values["one by one"], peer.runs["one by one"]
                peer.close()
            except PeerUnavailable as problem:
                missing[name] = str(problem)
    summary = "error of one run: " + ", ".join(f"{name} {error:.2f}" for name, error in errors.items())
    summary += "".join(f"; {name}: {reason}" for name, reason in missing.items())
    case = "100 ranges beside libraries that answer one by one"
    return write_record("workloads", QUESTION, case, size=100, runs=runs, peak_mb=peak_memory(), found=summary)


def _bounds(queries: list[tg.Query]) -> Iterator[tuple[int, int]]:
    for query in queries:
        low, high = query.condition.parts  # type: ignore[union-attr]
        yield int(low.value), int(high.value)


def draw(path: Path) -> None:
    """Write the chart of errors against the number of answers."""
    lines = []
    for guarantee, text, tone in (("worst-case", "for every response", "quiet"), ("average", "on average", "accent")):
        policy = line_policy(73, guarantee)
        loss, batches = whole_budget(policy, 73), [(ranges(73) * 10)[:count] for count in ANSWERS]
        alone = [math.sqrt(one_by_one_variance(queries, policy, loss)) for queries in batches]
        plans = [plan_workload(queries, policy, loss) for queries in batches]
        together = [math.sqrt(plan.variance()) if plan else error for plan, error in zip(plans, alone, strict=True)]
        lines.append(Line(f"{text}, one by one", numbers(ANSWERS), numbers(alone), tone, dots=True))
        lines.append(Line(f"{text}, planned together", numbers(ANSWERS), numbers(together), tone, "dashed", dots=True))
    chart = Chart(
        "Standard deviation of each answer: ranges of 73 ages, rho 0.05",
        tuple(lines),
        Axis("number of answers that share the budget", "log"),
        Axis("standard deviation, in rows", "log"),
    )
    chart.save(path)
