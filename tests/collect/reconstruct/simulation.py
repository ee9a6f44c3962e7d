"""Distributions, noises and reports to test reconstruction with: 100 bins of [0, 1].

"On centers" puts every value at its bin's center (Laplace noise is then the discrete one, as sent by clients);
otherwise values lie evenly in their bins. Where no definition was published, the natural one was taken and checked
against published errors of EM: lognorm has median .2 and sigma .55; atoms5 has .1 .2 .4 .2 .1 at .1 .3 .5 .7 .9; heap
is Beta(2, 5) with half of the answers rounded to the middle of every fifth of a tenth.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import ceil, log

import numpy as np

from tidegate.collect.reconstruct import (
    Channel,
    Dense,
    GaussianNoise,
    LaplaceNoise,
    Shifted,
    SquareWave,
    UniformNoise,
    grid_channel,
    square_wave_channel,
)

NOISES = {"uniform": UniformNoise, "gauss": GaussianNoise, "laplace": LaplaceNoise}


def masses(density: Callable[[np.ndarray], np.ndarray], bins: int = 100, fine: int = 400) -> np.ndarray:
    at = (np.arange(bins * fine) + 0.5) / (bins * fine)
    sums = density(at).reshape(bins, fine).sum(axis=1)
    return sums / sums.sum()


def lognorm(x: np.ndarray) -> np.ndarray:
    return np.exp(-(np.log(x / 0.2) ** 2) / (2 * 0.55**2)) / x


@cache
def truth(name: str, bins: int = 100) -> np.ndarray:
    if name == "atoms5":
        atoms = np.zeros(bins)
        atoms[[bins * tenth // 10 for tenth in (1, 3, 5, 7, 9)]] = 0.1, 0.2, 0.4, 0.2, 0.1
        return atoms
    if name == "heap":
        smooth = masses(lambda x: x * (1 - x) ** 4, bins)
        heaps = np.zeros((20, bins // 20))
        heaps[:, bins // 40] = smooth.reshape(20, -1).sum(axis=1)
        return (smooth + heaps.ravel()) / 2
    densities = {
        "plateau": lambda x: 1.0 * ((x > 0.25) & (x < 0.75)),
        "triangle": lambda x: 1 - np.abs(2 * x - 1),
        "two-tri": lambda x: 1 - np.abs(4 * (x % 0.5) - 1),
        "lognorm": lognorm,
        "uniform": np.ones_like,
    }
    return masses(densities[name], bins)


@cache
def channel(noise: str, level: float, *, centers: bool = True, bins: int = 100) -> Channel:
    """A noise at a privacy level, or the square wave ("sw") at an epsilon."""
    if noise == "sw":
        return square_wave_channel(SquareWave(level), bins, spread=not centers)
    if noise == "laplace" and centers:
        return discrete_laplace_channel(bins * level / (2 * log(20)), bins)
    return grid_channel(NOISES[noise].at_privacy(level), bins, spread=not centers)


def discrete_laplace_channel(scale: float, bins: int) -> Dense:
    """Whole bins of noise, P(y) in proportion to exp(-|y| / scale), until 6.3e-5 are left in either tail."""
    reach = ceil(9.7 * scale)
    kernel = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    return Shifted(kernel / kernel.sum(), bins).columns(np.arange(bins))


def reports(known: np.ndarray, through: Channel, *, total: int, rng: np.random.Generator) -> np.ndarray:
    """Counts of the reports of `total` persons."""
    chances = through.forward(known)
    return rng.multinomial(total, chances / chances.sum()).astype(float)


def l1_distance(estimate: np.ndarray, known: np.ndarray) -> float:
    """The error called L1."""
    return float(np.abs(estimate - known).sum())
