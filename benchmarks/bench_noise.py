"""How long does one draw of integer noise take, compared with a library and with unsafe floats?

    python -m benchmarks noise --full

Ours are exact draws of the discrete Laplace distribution from the operating system's generator. OpenDP 0.16 draws the
same distribution exactly, as a vector. NumPy's float Laplace is the floor and NOT SAFE: its low bits reveal the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import opendp.prelude as dp

from benchmarks.measure import SEED, median_seconds, peak_memory, take_turns, write_record
from tidegate.noise import SecureBits, discrete_laplace

QUESTION = "How many nanoseconds does one draw of integer noise take?"
SCALES = {"scale 10": Fraction(10), "scale 20/3": Fraction(20, 3), "scale 2/0.123457": Fraction(2_000_000, 123_457)}


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    dp.enable_features("contrib")
    for size in (100, 10_000, 1_000_000) if full else (100, 10_000):
        for name, scale in SCALES.items():
            yield measure_case(name, scale, size)


def measure_case(name: str, scale: Fraction, size: int) -> dict[str, Any]:
    zeros = [0] * size
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    library, floats = dp.m.make_laplace(*space, scale=float(scale)), np.random.default_rng(SEED)
    tasks = {
        "tidegate": lambda: discrete_laplace(scale, size=size, bits=SecureBits()),
        "OpenDP": lambda: library(zeros),
        "NumPy floats": lambda: floats.laplace(0, float(scale), size),
    }
    runs = take_turns(tasks)
    each = {label: 1e9 * median_seconds(task_runs) / size for label, task_runs in runs.items()}
    summary = f"{each['tidegate']:,.0f} ns a draw (OpenDP {each['OpenDP']:,.0f}, NumPy {each['NumPy floats']:,.0f})"
    return write_record(
        "noise", QUESTION, name, size=size, runs=runs, peak_mb=peak_memory(), ns_per_draw=each, found=summary
    )
