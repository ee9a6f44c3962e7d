"""How long does one draw of integer noise take, compared with a library and with unsafe floats?

    python -m benchmarks noise --full

Ours are exact draws of the discrete Laplace and the discrete Gaussian distribution from the operating system's generator.
OpenDP 0.16 draws the same distributions exactly, as a vector. NumPy's floats are the floor and NOT SAFE: their low bits
reveal the value. The wide scale is that of a sum: its noise is drawn in cells of several integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import opendp.prelude as dp

from benchmarks.measure import SEED, median_seconds, peak_memory, take_turns, write_record
from tidegate.noise import SecureBits, discrete_gaussian, discrete_laplace
from tidegate.noise.inversion import gaussian_table, laplace_table

QUESTION = "How many nanoseconds does one draw of integer noise take?"
SCALES = {
    "scale 10": Fraction(10),
    "scale 2/0.123457": Fraction(2_000_000, 123_457),
    "scale 10,000/3": Fraction(10_000, 3),
}
CALLS = {1: 2_000, 100: 1_000, 10_000: 20, 1_000_000: 1}  # per run, so that a run takes milliseconds
LIBRARY_CALLS = {1: 500, 100: 50, 10_000: 1, 1_000_000: 1}


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    dp.enable_features("contrib")
    for size in (1, 100, 10_000, 1_000_000) if full else (1, 100, 10_000):
        for name, scale in SCALES.items():
            yield measure_case("laplace", name, scale, size)
            yield measure_case("gaussian", name.replace("scale", "sigma"), scale, size)
    for name, scale in SCALES.items():
        yield measure_first(name, scale)


def measure_case(kind: str, name: str, scale: Fraction, size: int) -> dict[str, Any]:
    zeros, bits = [0] * size, SecureBits()
    floats = np.random.default_rng(SEED)
    space = dp.vector_domain(dp.atom_domain(T="i64"))
    if kind == "laplace":
        ours, library = discrete_laplace, dp.m.make_laplace(space, dp.l1_distance(T="i64"), scale=float(scale))
        floor = floats.laplace
    else:
        ours, library = discrete_gaussian, dp.m.make_gaussian(space, dp.l2_distance(T="f64"), scale=float(scale))
        floor = floats.normal
    calls, library_calls = CALLS[size], LIBRARY_CALLS[size]
    tasks = {
        "tidegate": lambda: [ours(scale, size=size, bits=bits) for _ in range(calls)],
        "OpenDP": lambda: [library(zeros) for _ in range(library_calls)],
        "NumPy floats": lambda: [floor(0, float(scale), size) for _ in range(calls)],
    }
    runs = take_turns(tasks)
    runs["OpenDP"] = [type(task_run)(*(calls / library_calls * t for t in task_run)) for task_run in runs["OpenDP"]]
    each = {label: 1e9 * median_seconds(task_runs) / size / calls for label, task_runs in runs.items()}
    summary = f"{each['tidegate']:,.0f} ns a draw (OpenDP {each['OpenDP']:,.0f}, NumPy {each['NumPy floats']:,.0f})"
    return write_record(
        "noise",
        QUESTION,
        f"{kind} {name}",
        size=size,
        runs=runs,
        peak_mb=peak_memory(),
        ns_per_draw=each,
        found=summary,
    )


def measure_first(name: str, scale: Fraction) -> dict[str, Any]:
    """Measure the first draw with a scale, which computes its table of cumulative probabilities."""

    def draw_first() -> None:
        for _ in range(20):
            laplace_table.cache_clear()
            gaussian_table.cache_clear()
            discrete_laplace(scale, size=1, bits=SecureBits())
            discrete_gaussian(scale, size=1, bits=SecureBits())

    runs = take_turns({"tidegate": draw_first})
    summary = f"{1e6 * median_seconds(runs['tidegate']) / 20:,.0f} us for one draw of each distribution with new tables"
    question = "How long does the first draw with a scale take?"
    return write_record(
        "noise", question, f"first draws, {name}", size=1, runs=runs, peak_mb=peak_memory(), found=summary
    )
