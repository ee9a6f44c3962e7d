"""One penalized fit: the most probable u of a family at one strength, with its evidence and degrees of freedom.

Newton steps with Fisher's information; the Cauchy prior enters by the Gaussian that touches it from below.

Fits run on one thread: a second one mostly waits for small products, and longer on a busy machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from math import log, pi
from typing import ParamSpec, TypeVar

import numpy as np

from tidegate.arrays import Floats
from tidegate.collect.reconstruct.families import Prior
from tidegate.extras import extra

with extra("collect", "Estimating from randomized reports"):
    from scipy.linalg.blas import dsyrk  # type: ignore[import-untyped]
    from scipy.linalg.lapack import dpotrf, dpotri, dpotrs  # type: ignore[import-untyped]
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

ENOUGH = 1e-3  # of log posterior: a smaller gain ends the fit
STEPS, HALVINGS, LONGEST = 40, 10, 6.0


@dataclass(frozen=True, eq=False)
class Data:
    """Counts of reports, their channel, and how wide each value's bin is (mean 1)."""

    counts: Floats  # (reports,)
    matrix: Floats  # (reports, values), columns sum to one
    widths: Floats  # (values,)

    @property
    def total(self) -> float:
        return float(self.counts.sum())


@dataclass(frozen=True, eq=False)
class Point:
    """The state of a fit: u, the masses, their slopes, the expected reports, and the log likelihood."""

    u: Floats
    masses: Floats
    slopes: Floats
    expected: Floats
    likelihood: float


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model."""

    family: str
    strength: float
    u: Floats
    masses: Floats
    slopes: Floats
    factor: Floats  # upper Cholesky factor of information + prior precision
    likelihood: float
    freedom: float  # effective number of parameters
    evidence: float


def fit(data: Data, prior: Prior, start: Floats) -> Fit:
    """Fit from `start`, which should be the fit at a similar strength."""
    here = point(data, prior, start)
    height = here.likelihood + prior.log(here.u)
    for _ in range(STEPS):
        curve = curvature(data, prior, here)
        gradient = here.slopes * (data.matrix.T @ (data.counts / here.expected) - data.total)
        gradient -= curve.precision @ (here.u - prior.family.even)
        step = dpotrs(curve.factor, gradient)[0]
        if gradient @ step < ENOUGH:
            return described(prior, here, curve)
        length, there, reached = climb(data, prior, here, step, height)
        if there is None:
            return described(prior, here, curve)
        gain, here, height = reached - height, there, reached
        if gain < ENOUGH and length == 1:
            break
    return described(prior, here, curvature(data, prior, here))


@dataclass(frozen=True, eq=False)
class Curvature:
    """Return the prior's precision at a point, and the upper Cholesky factor of its sum with Fisher's information."""

    precision: Floats
    factor: Floats


def curvature(data: Data, prior: Prior, here: Point) -> Curvature:
    """Fisher's information about u is N r r' (A' diag(1/d) A - 1), d the expected reports, r the slopes.

    Tried: keeping A' diag(1/d) A for several steps. It saves four products of five and gains nothing: steps get
    shorter, and some fits stop early.
    """
    precision = prior.precision(here.u)
    scaled = data.matrix / np.sqrt(here.expected)[:, None]
    whole = np.asarray(dsyrk(1.0, scaled.T))  # only the upper triangle is right, here and below
    whole -= 1.0
    whole *= (data.total * here.slopes)[:, None]
    whole *= here.slopes
    whole += precision
    return Curvature(precision, factored(whole, ridge=1e-9 * (1 + data.total / here.u.size)))


def point(data: Data, prior: Prior, u: Floats) -> Point:
    """Return the masses at u and the likelihood of the counts."""
    raised, slope = prior.family.link(u)
    raised, slope = data.widths * raised, data.widths * slope
    total = raised.sum()
    masses = raised / total
    expected = np.maximum(data.matrix @ masses, 1e-300)
    return Point(u, masses, slope / total, expected, float(data.counts @ np.log(expected)))


def climb(data: Data, prior: Prior, here: Point, step: Floats, height: float) -> tuple[float, Point | None, float]:
    """Return a step that raises likelihood and prior together, shortened until it does; None if there is none."""
    length = min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
    for _ in range(HALVINGS):
        there = point(data, prior, here.u + length * step)
        reached = there.likelihood + prior.log(there.u)
        if reached > height:
            return length, there, reached
        length /= 3
    return length, None, height


def factored(matrix: Floats, *, ridge: float) -> Floats:
    """Return the upper Cholesky factor, with more on the diagonal if rounding needs it."""
    diagonal = np.einsum("ii->i", matrix)
    diagonal += ridge
    factor, failed = dpotrf(matrix)
    more = 1e-10 * float(diagonal.max())
    while failed:
        diagonal += more
        factor, failed = dpotrf(matrix)
        more *= 10
    return np.asarray(factor)


def described(prior: Prior, here: Point, curve: Curvature) -> Fit:
    """Return degrees of freedom tr((H+Q)^-1 H) = k - tr((H+Q)^-1 Q), and Laplace's approximation to the evidence."""
    inverse, precision = np.triu(dpotri(curve.factor)[0]), curve.precision
    doubled = 2 * float((inverse * precision).sum()) - float(np.diag(inverse) @ np.diag(precision))
    height = here.likelihood + prior.log(here.u) + prior.constant
    evidence = height + here.u.size / 2 * log(2 * pi) - float(np.log(np.diag(curve.factor)).sum())
    return Fit(
        family=prior.family.name,
        strength=prior.strength,
        u=here.u,
        masses=here.masses,
        slopes=here.slopes,
        factor=curve.factor,
        likelihood=here.likelihood,
        freedom=here.u.size - doubled,
        evidence=evidence,
    )


P = ParamSpec("P")
T = TypeVar("T")


@cache
def _controller() -> ThreadpoolController:  # finding the libraries takes longer than a small fit
    return ThreadpoolController()


def one_thread(work: Callable[P, T]) -> Callable[P, T]:
    """Run a function with linear algebra on one thread."""

    @wraps(work)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        with _controller().limit(limits=1, user_api="blas"):
            return work(*args, **kwargs)

    return limited
