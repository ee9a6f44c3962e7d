"""How many values are randomized, and how many reports counted, in a second on one core?

    python -m benchmarks randomizing --full

Ours draw exact whole-number distributions from ChaCha20. Numbers: 100 values, beside NumPy's float noise, which is neither
exact nor secure. Categories: 64 and 512 of them, epsilon 1, beside pure-ldp and multi-freq-ldpy, which take their turns in
environments of their own, at fewer reports (scaled up); what their reports show is compared with our probabilities first,
so that the loss is the same. Counting: codes of one byte and of two, beside reading and copying the same memory.
All of it on one core; rates are by its seconds (`cpu`), since other work may share it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from tidegate_papers.simulation.values import BulkBits, count_many, sample_many

from benchmarks.measure import RUNS, SEED, Run, Runs, peak_memory, take_turns, tell
from benchmarks.peers import NotThere, Peer
from tidegate.operators import (
    GaussianNoise,
    LaplaceNoise,
    Operator,
    Pure,
    RandomizedResponse,
    SquareWave,
    SubsetSelection,
    Unary,
    UniformNoise,
)

RANDOMIZING = "How many values are randomized in a second, on one core?"
COUNTING = "How many reports are counted in a second, on one core, and how near is that to reading them?"
NUMBERS: tuple[Operator, ...] = (
    UniformNoise(100, half_width=50),
    GaussianNoise(100, sigma=Fraction(25)),
    LaplaceNoise(100, epsilon=Fraction(2)),
    SquareWave(100, epsilon=Fraction(2)),
)
EPSILON, PURE = Fraction(1), (RandomizedResponse, Unary, SubsetSelection)
CATEGORIES = {64: 20_000, 512: 5_000}  # of so many a peer makes so many reports
PEERS = ("pureldp", "multifreqldpy")
SHOWN = {"randomized-response": 100_000, "unary": 10_000, "subset": 10_000}  # reports that a peer shows what it does by
ROUNDED = 0.01  # a set of 138 where ours has 137
SURE = 6  # standard errors, from above: chance alone is further off once in 500 million times
Task = Callable[[], Any]


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    if hasattr(os, "sched_setaffinity"):  # peers started from here stay on it too
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    many = 20_000_000 if full else 2_000_000
    for number in NUMBERS:
        yield randomized(number, many)
    for categories in CATEGORIES:
        yield from compared(categories, 16 * many // categories)
    for operator, kind in (
        (SquareWave(100, epsilon=EPSILON), np.uint8),
        (SquareWave(1000, epsilon=EPSILON), np.uint16),
    ):
        yield counted(operator, kind, 5 * many)


def some_codes(values: int, many: int) -> Any:
    return np.random.default_rng(SEED).integers(0, values, many, np.int32)


# ---- numbers


def randomized(operator: Operator, many: int) -> dict[str, Any]:
    codes, bits, random = some_codes(operator.values, many), BulkBits(), np.random.default_rng(SEED)
    floats: dict[str, Any] = {
        "uniform-noise": random.uniform,
        "gaussian-noise": random.normal,
        "laplace-noise": random.laplace,
    }
    tasks: dict[str, Task] = {"tidegate": lambda: sample_many(operator, codes, bits)}
    if operator.name in floats:
        tasks["NumPy floats"] = lambda: codes + floats[operator.name](-50, 50, codes.size)
    runs = take_turns(tasks)
    rates = {who: many / busy(found) for who, found in runs.items()}
    found = ", ".join(f"{who} {rate / 1e6:,.0f} million a second" for who, rate in rates.items())
    return told(RANDOMIZING, operator.name, many, runs, reports_a_second=rates, found=found)


# ---- categories


def compared(categories: int, many: int) -> Iterator[dict[str, Any]]:
    missing: dict[str, str] = {}
    with ExitStack() as stack:
        peers = []
        for name in PEERS:
            try:
                peers.append(Peer(name, categories, float(EPSILON), CATEGORIES[categories], does="randomizing"))
                stack.callback(peers[-1].close)
            except NotThere as problem:
                missing[name] = str(problem)
        for operator in [kind(categories, epsilon=EPSILON) for kind in PURE]:
            yield beside_peers(operator, [peer for peer in peers if operator.name in peer.tasks], many, missing)


def beside_peers(operator: Pure, peers: list[Peer], many: int, missing: dict[str, str]) -> dict[str, Any]:
    for peer in peers:
        shown, ours = peer.about["shown"][operator.name], shown_by(operator)
        chance = SURE * math.sqrt(ours / SHOWN[operator.name])
        assert abs(shown - ours) <= ROUNDED * ours + chance, (peer.name, operator.name, shown)
    codes, bits, name = some_codes(operator.values, many), BulkBits(), operator.name
    theirs = CATEGORIES[operator.values]
    runs = take_turns(
        {
            "tidegate": lambda: sample_many(operator, codes, bits),
            **{peer.name: partial(peer.ask, name) for peer in peers},
        }
    )
    runs.update({peer.name: scaled(peer.runs[name][-RUNS:], many / theirs) for peer in peers})
    rates = {who: many / busy(found) for who, found in runs.items()}
    times = {who: rates["tidegate"] / rate for who, rate in rates.items() if who != "tidegate"}
    beside = "".join(f"; {who} {rates[who]:,.0f} ({times[who]:,.0f} times)" for who in times)
    more = {
        "reports_a_second": rates,
        "times_as_many": times,
        "peer_reports": theirs,
        "versions": {peer.name: peer.about["versions"] for peer in peers},
        "missing": missing,
        "found": f"{rates['tidegate'] / 1e6:,.1f} million a second{beside}",
    }
    return told(RANDOMIZING, f"{name}, {operator.values} categories, epsilon {EPSILON}", many, runs, **more)


def shown_by(operator: Pure) -> float:
    """How often the truth is reported; of sets their size."""
    others = (operator.values - 1) * float(operator.q)
    return float(operator.p) + (others if operator.form == "set" else 0.0)


def busy(runs: list[Run]) -> float:
    """The median by the processor."""
    return median(run.cpu for run in runs)


def scaled(runs: list[Run], by: float) -> list[Run]:
    """As if a peer had made as many reports as we."""
    return [Run(by * run.clock, by * run.cpu) for run in runs]


# ---- counting


def counted(operator: Operator, kind: Any, many: int) -> dict[str, Any]:
    made = sample_many(operator, some_codes(operator.values, many), BulkBits()).astype(kind)
    words, other = made[: many // 8 * 8].view(np.uint64), np.empty_like(made)
    assert (count_many(operator, made) == np.bincount(made, minlength=operator.report_size)).all()
    tasks: dict[str, Task] = {
        "tidegate": lambda: count_many(operator, made),
        "read (sum of its words)": words.sum,
        "copy": lambda: np.copyto(other, made),
        "numpy.bincount": lambda: np.bincount(made, minlength=operator.report_size),
    }
    runs = take_turns(tasks)
    rates = {who: many / busy(found) for who, found in runs.items()}
    bandwidth = {who: rate * made.itemsize / 1e9 for who, rate in rates.items()}
    each = ", ".join(f"{who} {speed:.1f}" for who, speed in bandwidth.items())
    found = f"{rates['tidegate'] / 1e6:,.0f} million a second; GB a second: {each}"
    more = {"reports_a_second": rates, "gigabytes_a_second": bandwidth, "found": found}
    return told(COUNTING, f"count codes of {made.itemsize} byte{'s'[: made.itemsize - 1]}", many, runs, **more)


def told(question: str, case: str, many: int, runs: Runs, **more: Any) -> dict[str, Any]:
    return tell("randomizing", question, case, size=many, runs=runs, peak_mb=peak_memory(), **more)
