"""How many values are randomized, and how many reports are counted, in a second on one core?

    python -m benchmarks randomizing --full

Ours draw exact whole-number distributions from ChaCha20. Numbers: 100 values, comparison NumPy's float noise, which is neither
exact nor secure. Categories: 64 and 512 of them, epsilon 1, comparison pure-ldp and multi-freq-ldpy, which take their turns in
environments of their own, at fewer reports (scale_runs up); what their reports show is compare_categories with our probabilities first,
so that the loss is the same. Long lists: 10,000 categories and a million at epsilon 2, with the bytes of a report; the comparison at
10,000 is unary encoding, local hashing and RAPPOR of pure-ldp at the same epsilon. Counting: codes of one byte and of two, comparison reading and copying the same memory.
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

from benchmarks.measure import RUNS, SEED, Run, Runs, peak_memory, take_turns, write_record
from benchmarks.peers import Peer, PeerUnavailable
from tidegate.operators import (
    GaussianNoise,
    HashResponse,
    LaplaceNoise,
    Operator,
    Prefix,
    ProjectiveGeometry,
    Pure,
    RandomizedResponse,
    SquareWave,
    SubsetSelection,
    Unary,
    UniformNoise,
)
from tidegate.operators.exact_draws import SystemBytes

RANDOMIZING = "How many values are randomized in a second, on one core?"
COUNTING = "How many reports are counted in a second, on one core, and how near is that to reading them?"
NUMBERS: tuple[Operator, ...] = (
    UniformNoise(100, half_width=50),
    GaussianNoise(100, sigma=Fraction(25)),
    LaplaceNoise(100, epsilon=Fraction(2)),
    SquareWave(100, epsilon=Fraction(2)),
)
EPSILON, PURE = Fraction(1), (RandomizedResponse, Unary, SubsetSelection)
CATEGORIES = {64: 20_000, 512: 5_000}  # a peer makes this number of reports
PEERS = ("pureldp", "multifreqldpy")
SHOWN = {
    "randomized-response": 100_000,
    "unary": 10_000,
    "subset": 10_000,
}  # reports by which a peer shows its probabilities
ROUNDING = 0.01  # a set of 138 where ours has 137
LISTS = {10_000: 200, 1_000_000: 0}  # categories of a long list, and reports of a peer
LISTED_EPSILON, DRAWN, COUNTED = Fraction(2), 20_000, 1_000_000
STANDARD_ERRORS = 6  # standard errors, from above: tolerance alone is further off once in 500 million times
Task = Callable[[], Any]


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    if hasattr(os, "sched_setaffinity"):  # peers that are started from here use it too
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    count = 20_000_000 if full else 2_000_000
    for number in NUMBERS:
        yield measure_numbers(number, count)
    for categories in CATEGORIES:
        yield from compare_categories(categories, 16 * count // categories)
    for categories, peer_reports in LISTS.items():
        yield from measure_list(categories, peer_reports)
    for operator, kind in (
        (SquareWave(100, epsilon=EPSILON), np.uint8),
        (SquareWave(1000, epsilon=EPSILON), np.uint16),
    ):
        yield measure_counting(operator, kind, 5 * count)


def random_codes(values: int, count: int) -> Any:
    return np.random.default_rng(SEED).integers(0, values, count, np.int32)


# ---- numbers


def measure_numbers(operator: Operator, count: int) -> dict[str, Any]:
    codes, bits, random = random_codes(operator.values, count), BulkBits(), np.random.default_rng(SEED)
    floats: dict[str, Any] = {
        "uniform-noise": random.uniform,
        "gaussian-noise": random.normal,
        "laplace-noise": random.laplace,
    }
    tasks: dict[str, Task] = {"tidegate": lambda: sample_many(operator, codes, bits)}
    if operator.name in floats:
        tasks["NumPy floats"] = lambda: codes + floats[operator.name](-50, 50, codes.size)
    runs = take_turns(tasks)
    rates = {label: count / cpu_seconds(task_runs) for label, task_runs in runs.items()}
    summary = ", ".join(f"{label} {rate / 1e6:,.0f} million a second" for label, rate in rates.items())
    return report_rate(RANDOMIZING, operator.name, count, runs, reports_a_second=rates, found=summary)


# ---- categories


def compare_categories(categories: int, count: int) -> Iterator[dict[str, Any]]:
    missing: dict[str, str] = {}
    with ExitStack() as stack:
        peers = []
        for name in PEERS:
            try:
                peers.append(Peer(name, categories, float(EPSILON), CATEGORIES[categories], topic="randomizing"))
                stack.callback(peers[-1].close)
            except PeerUnavailable as problem:
                missing[name] = str(problem)
        for operator in [kind(categories, epsilon=EPSILON) for kind in PURE]:
            yield compare_peers(operator, [peer for peer in peers if operator.name in peer.tasks], count, missing)


def compare_peers(operator: Pure, peers: list[Peer], count: int, missing: dict[str, str]) -> dict[str, Any]:
    for peer in peers:
        shown, ours = peer.about["shown"][operator.name], expected_shown(operator)
        tolerance = STANDARD_ERRORS * math.sqrt(ours / SHOWN[operator.name])
        assert abs(shown - ours) <= ROUNDING * ours + tolerance, (peer.name, operator.name, shown)
    codes, bits, name = random_codes(operator.values, count), BulkBits(), operator.name
    theirs = CATEGORIES[operator.values]
    runs = take_turns(
        {
            "tidegate": lambda: sample_many(operator, codes, bits),
            **{peer.name: partial(peer.run_task, name) for peer in peers},
        }
    )
    runs.update({peer.name: scale_runs(peer.runs[name][-RUNS:], count / theirs) for peer in peers})
    rates = {label: count / cpu_seconds(task_runs) for label, task_runs in runs.items()}
    times = {label: rates["tidegate"] / rate for label, rate in rates.items() if label != "tidegate"}
    comparison = "".join(f"; {label} {rates[label]:,.0f} ({times[label]:,.0f} times)" for label in times)
    more = {
        "reports_a_second": rates,
        "times_as_many": times,
        "peer_reports": theirs,
        "versions": {peer.name: peer.about["versions"] for peer in peers},
        "missing": missing,
        "found": f"{rates['tidegate'] / 1e6:,.1f} million a second{comparison}",
    }
    return report_rate(RANDOMIZING, f"{name}, {operator.values} categories, epsilon {EPSILON}", count, runs, **more)


def expected_shown(operator: Pure) -> float:
    """Return how often the true value is reported; for sets, their expected size."""
    others = (operator.values - 1) * float(operator.q)
    return float(operator.p) + (others if operator.form == "set" else 0.0)


def cpu_seconds(runs: list[Run]) -> float:
    """Return the median of CPU seconds."""
    return median(run.cpu for run in runs)


def scale_runs(runs: list[Run], by: float) -> list[Run]:
    """As if a peer had reports as count reports as we."""
    return [Run(by * run.clock, by * run.cpu) for run in runs]


# ---- long lists


def measure_list(categories: int, peer_reports: int) -> Iterator[dict[str, Any]]:
    """Drawing one by one on a client, and decoding a million reports; of a peer, the same for its few reports."""
    operator, source = ProjectiveGeometry(categories, epsilon=LISTED_EPSILON), SystemBytes()
    codes = random_codes(categories, DRAWN).tolist()
    counts = np.random.default_rng(SEED).multinomial(COUNTED, operator.column(0))
    missing: dict[str, str] = {}
    with ExitStack() as stack:
        peers = []
        try:
            if peer_reports:
                peers.append(Peer("pureldp", categories, float(LISTED_EPSILON), peer_reports, topic="lists"))
                stack.callback(peers[-1].close)
        except PeerUnavailable as problem:
            missing["pureldp"] = str(problem)
        drawing: dict[str, Task] = {"tidegate": lambda: [operator.sample(code, source) for code in codes]}
        decoding: dict[str, Task] = {"tidegate": lambda: operator.supports(counts)}
        for peer in peers:
            tasks = {f"{peer.name} {task}": partial(peer.run_task, task) for task in peer.tasks}
            drawing.update({label: task for label, task in tasks.items() if "decoding" not in label})
            decoding.update({label: task for label, task in tasks.items() if "decoding" in label})
        for what, tasks, own in (("drawn", drawing, DRAWN), ("decoded", decoding, COUNTED)):
            runs = take_turns(tasks)
            for peer in peers:
                for label in tasks.keys() - {"tidegate"}:
                    own_runs = peer.runs[label.removeprefix(f"{peer.name} ")][-RUNS:]
                    runs[label] = scale_runs(own_runs, own / peer_reports)
            rates = {label: own / cpu_seconds(task_runs) for label, task_runs in runs.items()}
            sizes = {"tidegate": -(-(operator.report_size - 1).bit_length() // 8)}
            sizes["tidegate, free text"] = -(-Prefix(epsilon=LISTED_EPSILON).report_size // 8)
            if categories <= HashResponse.most_values:
                hashed = HashResponse(categories, epsilon=LISTED_EPSILON)
                sizes["tidegate, rounds"] = -(-(hashed.report_size - 1).bit_length() // 8)
            sizes |= {f"{peer.name} {task}": size for peer in peers for task, size in peer.about["bytes"].items()}
            each = "; ".join(f"{label} {rate:,.0f} a second" for label, rate in rates.items())
            more = {
                "reports_a_second": rates,
                "bytes_per_report": sizes,
                "missing": missing,
                "peer_reports": peer_reports,
            }
            summary = f"{each}; bytes of a report: {', '.join(f'{label} {size:,}' for label, size in sizes.items())}"
            case = f"{operator.name}, {categories:,} categories, epsilon {LISTED_EPSILON}, {what}"
            yield report_rate(RANDOMIZING, case, own, runs, found=summary, **more)


# ---- counting


def measure_counting(operator: Operator, kind: Any, count: int) -> dict[str, Any]:
    reports = sample_many(operator, random_codes(operator.values, count), BulkBits()).astype(kind)
    words, other = reports[: count // 8 * 8].view(np.uint64), np.empty_like(reports)
    assert (count_many(operator, reports) == np.bincount(reports, minlength=operator.report_size)).all()
    tasks: dict[str, Task] = {
        "tidegate": lambda: count_many(operator, reports),
        "read (sum of its words)": words.sum,
        "copy": lambda: np.copyto(other, reports),
        "numpy.bincount": lambda: np.bincount(reports, minlength=operator.report_size),
    }
    runs = take_turns(tasks)
    rates = {label: count / cpu_seconds(task_runs) for label, task_runs in runs.items()}
    bandwidth = {label: rate * reports.itemsize / 1e9 for label, rate in rates.items()}
    each = ", ".join(f"{label} {speed:.1f}" for label, speed in bandwidth.items())
    summary = f"{rates['tidegate'] / 1e6:,.0f} million a second; GB a second: {each}"
    more = {"reports_a_second": rates, "gigabytes_a_second": bandwidth, "found": summary}
    return report_rate(
        COUNTING, f"count codes of {reports.itemsize} byte{'s'[: reports.itemsize - 1]}", count, runs, **more
    )


def report_rate(question: str, case: str, count: int, runs: Runs, **more: Any) -> dict[str, Any]:
    return write_record("randomizing", question, case, size=count, runs=runs, peak_mb=peak_memory(), **more)
