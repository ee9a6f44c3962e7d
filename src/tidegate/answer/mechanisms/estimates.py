"""Estimates that follow from a measurement of several queries together, and their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from tidegate.answer.mechanisms.mechanism import Reading, clip_reading, most_rows
from tidegate.arrays import Floats
from tidegate.policy import Policy

NORMAL = NormalDist()


@dataclass(frozen=True)
class Estimated:
    """The estimates of one query: one number for each cell, its standard deviation, and its largest single noise.

    `largest` is 0 for Gaussian noise, whose sums are normal; a sum of Laplace noises has longer tails.
    """

    values: Floats
    deviations: Floats
    largest: float

    def half_width(self, confidence: float) -> float:
        """Return the widest half-interval of all numbers."""
        return float(half_width(self.deviations, self.largest, confidence).max(initial=0.0))

    def to_stored(self) -> dict[str, Any]:
        """Return the estimates as they are stored."""
        numbers = {"estimates": self.values.tolist(), "deviations": self.deviations.tolist()}
        return {**numbers, "largest": self.largest}


def read_estimates(policy: Policy, stored: Any, *, confidence: float) -> Reading:
    """Return the reading of stored estimates."""
    values, deviations = np.array(stored["estimates"], np.float64), np.array(stored["deviations"], np.float64)
    half = half_width(deviations, stored["largest"], confidence)
    return clip_reading(values, values - half, values + half, ends=(0, most_rows(policy)))


def half_width(deviations: Floats, largest: float, confidence: float) -> Floats:
    """Return the half-width of an interval: of a normal distribution, or a Chernoff bound for a sum of Laplace noises.

    A sum of independent Laplace noises with variance V, each of a scale of at most M, has a logarithm of the moment
    generating function of at most -V / (2 M**2) ln(1 - (t M)**2): each term's is convex in its squared scale.
    """
    if not largest:
        return np.asarray(deviations * NORMAL.inv_cdf(0.5 + confidence / 2))
    steps = np.linspace(0.005, 0.995, 199)[:, None] / largest
    shape = deviations.reshape(1, -1) ** 2 / (2 * largest**2)
    bounds = (-np.log1p(-((steps * largest) ** 2)) * shape + math.log(2 / (1 - confidence))) / steps
    return np.asarray(bounds.min(axis=0).reshape(deviations.shape))
