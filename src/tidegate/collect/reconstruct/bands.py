"""Bands of an estimate. The default band assumes that the values are not a few atoms; the strict one only p >= 0.

Measured at 95%, 100,000 reports, sixteen noises: the default covers .97 to 1 of bins and .98 to 1 of the distribution
function where the density has no atoms; of heaped answers .68 of bins; of five atoms .89 of the distribution function.
The strict one covers .97 to 1 of the distribution function of all of these. Neither is a theorem.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats
from tidegate.collect.reconstruct.bank import Bank
from tidegate.collect.reconstruct.cells import Rows
from tidegate.collect.reconstruct.fit import Data, one_thread
from tidegate.extras import extra

with extra("collect", "Estimating from randomized reports"):
    from scipy.linalg import solve_triangular  # type: ignore[import-untyped]
    from scipy.optimize import nnls  # type: ignore[import-untyped]
    from scipy.special import chdtri  # type: ignore[import-untyped]

DRAWS, SEED = 400, 20260101  # fixed: the band of the same counts is the same
STRETCH = 1.25
HEAVY = 1e4  # weight of an equation against that of a report, in a least-squares problem
CLOSE, TRIES = 2e-3, 24  # of the way from the best value to the end, for the strict band


@dataclass(frozen=True, eq=False)
class Band:
    """Lower and upper ends, one per functional."""

    low: Floats
    high: Floats
    kind: str
    confidence: float


def draws(bank: Bank) -> Floats:
    """Masses that the reports leave possible: a model by its weight, then a Gaussian step in u, carried to masses
    by its slope. (Carrying u itself through the link is badly wrong: too wide by 5 to 10 and covering less.)"""
    generator = np.random.Generator(np.random.PCG64(SEED))
    weights = np.array([model.band_weight for model in bank.models])
    times = generator.multinomial(DRAWS, weights / weights.sum())
    drawn = []
    for model, count in zip(bank.models, times, strict=True):
        steps = generator.standard_normal((int(count), model.fit.u.size))
        if count:
            moved = solve_triangular(model.fit.factor, steps.T, check_finite=False).T * model.fit.slopes
            moved -= model.fit.masses * moved.sum(axis=1, keepdims=True)
            drawn.append(model.masses + bank.cells.placed(_shared(model.fit.masses, model.masses, moved, bank)))
    return np.concatenate(drawn)


def _shared(cell_masses: Floats, masses: Floats, moved: Floats, bank: Bank) -> Floats:
    """The change of a cell shared among its values as its mass is."""
    cells = bank.cells
    if not cells.merged:
        return moved
    share = masses[cells.listed] / np.maximum(cell_masses, 1e-300)[cells.of]
    return np.asarray(moved[:, cells.of] * share)


@one_thread
def default_band(bank: Bank, masses: Floats, *, of: str | Floats, confidence: float) -> Band:
    """Quantiles of the draws, stretched about the estimate."""
    estimate, drawn = applied(of, masses), applied(of, draws(bank))
    tail = (1 - confidence) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    least, most = limits(of, masses.size)
    low = np.minimum(estimate, estimate + STRETCH * (low - estimate))
    high = np.maximum(estimate, estimate + STRETCH * (high - estimate))
    return Band(np.maximum(low, least), np.minimum(high, most), "default", confidence)


def applied(of: str | Floats, masses: Floats) -> Floats:
    """Return the functionals of masses (last axis): the bins, the distribution function, or rows of coefficients."""
    if isinstance(of, str):
        return masses if of == "bins" else np.cumsum(masses, axis=-1)
    return np.asarray(masses @ np.atleast_2d(of).T)


def limits(of: str | Floats, size: int) -> tuple[Floats, Floats]:
    """Return the smallest and the largest value of each functional."""
    if isinstance(of, str):
        return np.zeros(size), np.ones(size)
    rows = np.atleast_2d(of)
    return rows.min(axis=1), rows.max(axis=1)


def coefficients(of: str | Floats, size: int) -> Floats:
    """Return functionals as rows."""
    if isinstance(of, str):
        return np.eye(size) if of == "bins" else np.tri(size)
    return np.atleast_2d(of)


@one_thread
def strict_band(data: Data, guess: Floats, low: Rows, high: Rows, *, confidence: float) -> Band:
    """For each functional the values v that some p >= 0 with c.p = v explains nearly as well as the best p does.

    `low` and `high` are functionals on cells: where a functional is not constant inside a cell, the least and
    the most that it can be there. `guess` are masses of cells, for the variances.

    Needs:
        The cut-off, chi-square with one degree of freedom, is not proven for p >= 0: it was measured.
    """
    problem = _Strict.of(data, guess, float(chdtri(1, 1 - confidence)))
    lower = np.array([-problem.farthest(-row) for row in low.coefficients])
    upper = np.array([problem.farthest(row) for row in high.coefficients])
    return Band(lower[low.wanted], upper[high.wanted], "strict", confidence)


@dataclass(frozen=True, eq=False)
class _Strict:
    """Weighted least squares in triangular form, with the best p >= 0."""

    triangle: Floats  # (rows, cells)
    target: Floats
    heavy: float
    best: Floats
    misfit: float
    cut: float

    @classmethod
    def of(cls, data: Data, guess: Floats, cut: float) -> _Strict:
        shares, total = data.counts / data.total, data.total
        scale = np.sqrt(total / np.maximum(data.matrix @ guess, 0.5 / total))
        whole = np.column_stack([data.matrix, shares]) * scale[:, None]
        reduced = np.asarray(np.linalg.qr(whole, mode="r"))
        triangle, target = reduced[:, :-1], reduced[:, -1]
        heavy = HEAVY * float(np.abs(triangle).max())
        ones = np.ones((1, triangle.shape[1]))
        best = nnls(np.vstack([triangle, heavy * ones]), np.append(target, heavy))[0]
        return cls(triangle, target, heavy, best, float(((triangle @ best - target) ** 2).sum()), cut)

    def farthest(self, row: Floats) -> float:
        """The largest v that is still explained. Regula falsi on the root of the excess, which is nearly straight."""
        inside, outside = float(row @ self.best), float(row.max())
        at_inside, at_outside = -np.sqrt(self.cut), self.excess(row, outside)
        if at_outside <= 0:
            return outside
        enough = CLOSE * (outside - inside)
        for _ in range(TRIES):
            if outside - inside <= min(enough, CLOSE * 10 * (outside - float(row @ self.best))):
                break
            share = np.clip(at_inside / (at_inside - at_outside), 0.02, 0.98)
            v = inside + share * (outside - inside)
            reached = self.excess(row, v)
            if reached > 0:
                outside, at_outside, at_inside = v, reached, at_inside / 2
            else:
                inside, at_inside, at_outside = v, reached, at_outside / 2
        return outside

    def excess(self, row: Floats, v: float) -> float:
        """Root of the misfit beyond the best, less that of the cut."""
        rows = np.vstack([self.triangle, self.heavy * np.ones_like(row), self.heavy * row])
        p = nnls(rows, np.concatenate([self.target, [self.heavy, self.heavy * v]]))[0]
        beyond = float(((self.triangle @ p - self.target) ** 2).sum()) - self.misfit
        return float(np.sqrt(max(beyond, 0.0)) - np.sqrt(self.cut))
