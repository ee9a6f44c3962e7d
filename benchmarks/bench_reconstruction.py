"""How long does it take to reconstruct a distribution, and how does that grow with the grid?

    python -m benchmarks reconstruction

100,000 reports of a log-normal distribution under four noises, on 100, 1,000 and 4,000 bins. The default (bank) is
compared with the published EM with its stop rule (the floor: far less work and a larger error) and EM with smoothing.
One thread. The matrix of a long grid is never formed: of 4,000 bins it would take 340 MB under this Gaussian noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.measure import RUNS, SEED, median_seconds, peak_memory, take_turns, write_record
from tidegate.collect.reconstruct import (
    Channel,
    GaussianNoise,
    LaplaceNoise,
    SquareWave,
    UniformNoise,
    grid_channel,
    reconstruct,
    square_wave_channel,
)

QUESTION = "How long does it take to reconstruct a distribution from the counts of its randomized reports?"
REPORTS = 100_000
NOISES = {
    "uniform, privacy 50%": lambda bins: grid_channel(UniformNoise.at_privacy(0.5), bins),
    "Gaussian, privacy 50%": lambda bins: grid_channel(GaussianNoise.at_privacy(0.5), bins),
    "Laplace, privacy 100%": lambda bins: grid_channel(LaplaceNoise.at_privacy(1.0), bins),
    "square wave, epsilon 1": lambda bins: square_wave_channel(SquareWave(1.0), bins),
}


def run(*, full: bool) -> Iterator[dict[str, Any]]:
    for bins in (100, 1000, 4000):
        for name in NOISES if full else list(NOISES)[1:2]:
            yield measure_case(name, bins)


def measure_case(name: str, bins: int) -> dict[str, Any]:
    channel, known = NOISES[name](bins), lognormal(bins)
    counts = simulate(channel, known)
    estimates = {
        "bank": lambda: reconstruct(counts, channel),
        "EM": lambda: reconstruct(counts, channel, method="em"),
        "EM smoothed": lambda: reconstruct(counts, channel, method="em-smoothed"),
    }
    estimate = estimates["bank"]()
    runs = take_turns({**estimates, "band": estimate.band, "strict band": lambda: ten_points(estimate)}, runs=RUNS)
    errors = {label: float(np.abs(task().masses - known).sum()) for label, task in estimates.items()}
    each = ", ".join(f"{label} {1000 * median_seconds(runs[label]):,.0f} ms" for label in runs)
    off = ", ".join(f"{label} {error:.3f}" for label, error in errors.items())
    summary = f"{each}; L1 {off}"
    return write_record(
        "reconstruction", QUESTION, name, size=bins, runs=runs, peak_mb=peak_memory(), errors=errors, found=summary
    )


def ten_points(estimate: Any) -> Any:
    """Return the strict band of the distribution function at ten points."""
    bins = estimate.masses.size
    return estimate.band(
        "strict", of=(np.arange(bins) <= np.arange(bins // 20, bins, bins // 10)[:, None]).astype(float)
    )


def lognormal(bins: int) -> np.ndarray:
    """Return a log-normal distribution with median .2 and sigma .55 on [0, 1]."""
    at = (np.arange(20 * bins) + 0.5) / (20 * bins)
    masses = (np.exp(-(np.log(at / 0.2) ** 2) / (2 * 0.55**2)) / at).reshape(bins, 20).sum(axis=1)
    return np.asarray(masses / masses.sum())


def simulate(channel: Channel, known: np.ndarray) -> np.ndarray:
    probabilities = channel.forward(known)
    return np.random.default_rng(SEED).multinomial(REPORTS, probabilities / probabilities.sum()).astype(float)
