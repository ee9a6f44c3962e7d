"""Published continuous noise: its distribution function, the integral of that, its density, and its reach.

"A privacy of p" is a 95% confidence interval as wide as p times the attribute's range: Agrawal & Srikant 2000.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, pi, sqrt
from typing import Protocol

import numpy as np

from tidegate.arrays import Floats
from tidegate.extras import extra

with extra("collect", "Estimating from randomized reports"):
    from scipy.special import ndtr  # type: ignore[import-untyped]

GAUSSIAN_95 = 3.919927969080108  # width of the shortest interval of 95%, in standard deviations


class Noise(Protocol):
    """A symmetric distribution Y that is added to a value."""

    def cumulative(self, at: Floats) -> Floats: ...
    def integral(self, at: Floats) -> Floats: ...
    def density(self, at: Floats) -> Floats: ...
    def reach(self, *, beyond: float) -> float: ...


@dataclass(frozen=True)
class UniformNoise:
    """Y uniform on [-half, half]."""

    half: float

    @classmethod
    def at_privacy(cls, privacy: float) -> UniformNoise:
        return cls(privacy / 1.9)

    def cumulative(self, at: Floats) -> Floats:
        return (np.clip(at, -self.half, self.half) + self.half) / (2 * self.half)

    def integral(self, at: Floats) -> Floats:
        inside = np.clip(at, -self.half, self.half) + self.half
        return inside**2 / (4 * self.half) + np.maximum(at - self.half, 0)

    def density(self, at: Floats) -> Floats:
        return np.where(
            np.abs(at) <= self.half * (1 + 1e-9), 1 / (2 * self.half), 0.0
        )  # closed, whatever rounding does

    def reach(self, *, beyond: float) -> float:
        return self.half


@dataclass(frozen=True)
class GaussianNoise:
    """Y normal with standard deviation sigma."""

    sigma: float

    @classmethod
    def at_privacy(cls, privacy: float) -> GaussianNoise:
        return cls(privacy / GAUSSIAN_95)

    def cumulative(self, at: Floats) -> Floats:
        return np.asarray(ndtr(at / self.sigma))

    def integral(self, at: Floats) -> Floats:
        x = at / self.sigma
        return self.sigma * np.asarray(x * ndtr(x) + np.exp(-(x**2) / 2) / sqrt(2 * pi))

    def density(self, at: Floats) -> Floats:
        return np.exp(-((at / self.sigma) ** 2) / 2) / (self.sigma * sqrt(2 * pi))

    def reach(self, *, beyond: float) -> float:
        return self.sigma * sqrt(-2 * log(beyond))  # a little too far: the tail is below exp(-x^2 / 2)


@dataclass(frozen=True)
class LaplaceNoise:
    """Y with density exp(-|y| / scale) / (2 scale)."""

    scale: float

    @classmethod
    def at_privacy(cls, privacy: float) -> LaplaceNoise:
        return cls(privacy / (2 * log(20)))

    def cumulative(self, at: Floats) -> Floats:
        tail = np.exp(-np.abs(at) / self.scale) / 2
        return np.where(at < 0, tail, 1 - tail)

    def integral(self, at: Floats) -> Floats:
        return np.maximum(at, 0) + self.scale * np.exp(-np.abs(at) / self.scale) / 2

    def density(self, at: Floats) -> Floats:
        return np.exp(-np.abs(at) / self.scale) / (2 * self.scale)

    def reach(self, *, beyond: float) -> float:
        return -self.scale * log(2 * beyond)


@dataclass(frozen=True)
class SquareWave:
    """Reports on [-half, 1 + half]: density `near` within half of the value, `far` elsewhere; near / far = e^epsilon.

    Reference:
        Li et al. 2020, "Estimating numerical distributions under local differential privacy", Section 4.
    """

    epsilon: float

    @property
    def half(self) -> float:
        e = exp(self.epsilon)
        return (self.epsilon * e - e + 1) / (2 * e * (e - 1 - self.epsilon))

    @property
    def far(self) -> float:
        return 1 / (2 * self.half * exp(self.epsilon) + 1)

    @property
    def near(self) -> float:
        return exp(self.epsilon) * self.far
