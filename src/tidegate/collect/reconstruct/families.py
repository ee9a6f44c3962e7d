"""Four families of smooth distributions: a link from numbers u to masses, and a prior on the differences of u.

masses p = width g(u) / sum.  e = D u are scaled differences of order d; their prior is Gaussian, -strength/2 sum e^2,
or Cauchy, -sum ln(1 + strength e^2), which allows a few large ones. The null space of D (polynomials below degree d) has a
proper Gaussian prior around the uniform distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log, pi

import numpy as np

from tidegate.arrays import Floats
from tidegate.extras import extra

with extra("collect", "Estimating from randomized reports"):
    from scipy.special import expit  # type: ignore[import-untyped]

NULL_VARIANCE = 9.0  # per value: the prior of the null space of the differences


@dataclass(frozen=True)
class Family:
    """A link, an order of differences, a prior, and the strengths to try, from strong to weak."""

    name: str
    softplus: bool
    order: int
    cauchy: bool
    strengths: tuple[float, ...]

    @property
    def even(self) -> float:
        """The u with g(u) = 1."""
        return log(np.e - 1) if self.softplus else 0.0

    def link(self, u: Floats) -> tuple[Floats, Floats]:
        """g(u) and its slope."""
        if self.softplus:
            return np.logaddexp(0, u), expit(u)
        raised = np.exp(np.minimum(u, 700.0))
        return raised, raised


def _powers(first: float, step: float, count: int) -> tuple[float, ...]:
    return tuple(10.0 ** (first - step * i) for i in range(count))


BANK = (
    Family("sp1t", softplus=True, order=1, cauchy=True, strengths=_powers(2.5, 0.5, 12)),  # jumps, plateaus, atoms
    Family("sp2t", softplus=True, order=2, cauchy=True, strengths=_powers(1.5, 0.75, 13)),  # kinks, triangles
    Family("sp3g", softplus=True, order=3, cauchy=False, strengths=_powers(-1.5, 0.9, 14)),  # smooth
    Family("exp3g", softplus=False, order=3, cauchy=False, strengths=_powers(-1.0, 0.9, 14)),  # smooth, long tails
)


@dataclass(frozen=True, eq=False)
class Smoothness:
    """D, the precision of its null space, and the fixed parts of the prior's constant."""

    differences: Floats  # (k - d, k)
    squared: Floats  # D'D
    null: Floats  # (k, k)
    constant: float

    @property
    def rows(self) -> int:
        return int(self.differences.shape[0])


def smoothness(order: int, centers: Floats) -> Smoothness:
    """Return the smoothness for values at `centers` of [0, 1]. At equal steps of 1/m this is m^(d - 1/2) diff(u, d)."""
    return _smoothness(order, tuple(centers.tolist()))


@lru_cache(maxsize=32)
def _smoothness(order: int, at: tuple[float, ...]) -> Smoothness:
    centers = np.array(at)
    k, d = centers.size, order
    differences = np.eye(k)
    for step in range(1, d + 1):  # divided differences: with d! they are the d-th derivative
        spans = centers[step:] - centers[:-step]
        differences = step * np.diff(differences, axis=0) / spans[:, None]
    differences *= np.sqrt((centers[d:] - centers[:-d]) / d)[:, None]
    vectors, _ = np.linalg.qr(np.vander(centers - centers.mean(), d))
    constant = -0.5 * d * log(NULL_VARIANCE * k) - 0.5 * d * log(2 * pi)
    constant += 0.5 * float(np.linalg.slogdet(differences @ differences.T)[1])
    return Smoothness(differences, differences.T @ differences, vectors @ vectors.T / (NULL_VARIANCE * k), constant)


@dataclass(frozen=True, eq=False)
class Prior:
    """A family's prior at one strength: its logarithm, its precision, its constant."""

    family: Family
    shape: Smoothness
    strength: float

    def precision(self, u: Floats) -> Floats:
        """Return the precision of the Gaussian that touches the prior at u."""
        if not self.family.cauchy:
            return self.strength * self.shape.squared + self.shape.null
        e = self.shape.differences @ u
        weights = 2 * self.strength / (1 + self.strength * e**2)
        return self.shape.differences.T @ (weights[:, None] * self.shape.differences) + self.shape.null

    def log(self, u: Floats) -> float:
        """Return the logarithm of the prior, up to `constant`."""
        e, off = self.shape.differences @ u, u - self.family.even
        null = 0.5 * float(off @ (self.shape.null @ off))
        if self.family.cauchy:
            return -float(np.log1p(self.strength * e**2).sum()) - null
        return -0.5 * self.strength * float(e @ e) - null

    @property
    def constant(self) -> float:
        each = -log(pi) if self.family.cauchy else -0.5 * log(2 * pi)
        return self.shape.constant + self.shape.rows * (0.5 * log(self.strength) + each)
