"""Samplers that record what was requested, and how far the divergences of a step exceed its price."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from reference.forest import (
    ORDERS,
    counts_divergence,
    divergences,
    exponential_log_law,
    permute_and_flip_log_law,
    shift_divergence,
)

from tidegate.synthesize.diary import Loss

ROUNDING = 1e-12  # of divergences in floating point
AT_MOST_ONE = 1 + 1e-9  # of ratios in floating point


@dataclass
class Recorder:
    """Samplers without noise that write down what was requested."""

    kind: str = ""
    parameter: Fraction = Fraction(0)
    scores: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def laplace(self, scale: Fraction, *, size: int, bits: Any) -> np.ndarray:
        self.kind, self.parameter = "laplace", scale
        return np.zeros(size, np.int64)

    def gaussian(self, sigma: Fraction, *, size: int, bits: Any) -> np.ndarray:
        self.kind, self.parameter = "gaussian", sigma
        return np.zeros(size, np.int64)

    def exponential(self, scores: np.ndarray, rate: Fraction, *, bits: Any) -> int:
        self.kind, self.parameter, self.scores = "exponential", rate, np.array(scores)
        return 0

    def permute_and_flip(self, scores: np.ndarray, rate: Fraction, *, bits: Any) -> int:
        self.kind, self.parameter, self.scores = "permute and flip", rate, np.array(scores)
        return 0


@dataclass(frozen=True)
class Law:
    """What one step did: the kind of noise, its parameter, and the stated loss."""

    kind: str
    parameter: Fraction
    loss: Loss


# ---- how far a step exceeds its price, as a factor: at most 1 if it is right


def excess(law: Law, worlds: np.ndarray, base: np.ndarray, *, scalar: bool = False) -> float:
    """Return the largest ratio of a divergence to its price over all worlds; `base` is the world without the unit."""
    worlds = np.unique(worlds, axis=0)
    if law.kind == "laplace":
        return laplace_excess(law, worlds)
    if law.kind == "gaussian":
        return scalar_excess(law, worlds[:, 0]) if scalar else counts_excess(law, worlds, base)
    return choice_excess(law, worlds)


def laplace_excess(law: Law, worlds: np.ndarray) -> float:
    """log P_i(x) - log P_j(x) is (|x - c_j| - |x - c_i|) / scale in each cell: at most the distance over the scale."""
    assert law.loss.pure is not None
    furthest = max(int(np.abs(a - b).sum()) for a, b in product(worlds, repeat=2))
    return float(furthest / law.parameter / law.loss.pure)


def counts_excess(law: Law, worlds: np.ndarray, base: np.ndarray) -> float:
    central = {tuple(sorted(np.abs(world - base).tolist())) for world in worlds}
    mutual = {tuple(sorted(np.abs(a - b).tolist())) for a, b in product(worlds, repeat=2)}
    return max(
        ratio(counts_divergence(order, difference, law.parameter), order * price)
        for differences, price in ((central, law.loss.z), (mutual, law.loss.zcdp))
        for difference in differences
        for order in ORDERS
    )


def scalar_excess(law: Law, values: np.ndarray) -> float:
    center = Fraction(int(values.min()) + int(values.max()), 2)
    central = {abs(int(value) - center) for value in values}
    mutual = {abs(int(a) - int(b)) for a, b in product(values, repeat=2)}
    return max(
        ratio(shift_divergence(order, 0, Fraction(distance), law.parameter), order * price)
        for distances, price in ((central, law.loss.z), (mutual, law.loss.zcdp))
        for distance in distances
        for order in ORDERS
    )


def choice_excess(law: Law, worlds: np.ndarray) -> float:
    """Central: to the distribution of the middle scores for the exponential mechanism, of middle logarithms otherwise."""
    log_law = exponential_log_law if law.kind == "exponential" else permute_and_flip_log_law
    each = log_law(worlds.astype(np.float64), law.parameter)
    middle = (each.max(axis=0) + each.min(axis=0)) / 2
    if law.kind == "exponential":
        middle = float(law.parameter) * (worlds.max(axis=0) + worlds.min(axis=0)) / 2
    middle = middle - np.logaddexp.reduce(middle)
    factors = [float(np.abs(each[:, None] - each[None]).max()) / float(law.loss.pure)] if law.loss.pure else []
    for order in ORDERS:
        factors += [ratio(float(divergences(order, each, middle).max()), order * law.loss.z)]
        factors += [ratio(float(divergences(order, each[:, None], each[None]).max()), order * law.loss.zcdp)]
    return max(factors)


def ratio(divergence: float, price: Fraction) -> float:
    return max(divergence - ROUNDING, 0.0) / float(price)
