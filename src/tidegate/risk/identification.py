"""Conclusions of an informed adversary: the posterior of every possible world after a response.

Reference:
    Lee & Clifton 2012, Sections 3.5 and 4. The worst response for world i is exactly its own output: no other
    response favors i more over any other world, and this one favors it most over all worlds at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidegate.arrays import Floats


def posterior(
    outputs: Sequence[float] | Floats,
    response: float | Floats,
    *,
    scale: float | Floats,
    prior: Sequence[float] | None = None,
) -> Floats:
    """Return the probability of each world after a response: outputs + Laplace noise of `scale`.

    `outputs` is one number per world, or one row of numbers per world; then `response` and `scale` have one per column.
    """
    worlds = _rows(outputs)
    distance = np.abs(worlds - np.asarray(response, np.float64)) / np.asarray(scale, np.float64)
    return _normalize(-distance.sum(axis=1), prior, len(worlds))


def worst_risk(
    outputs: Sequence[float] | Floats, *, scale: float | Floats, prior: Sequence[float] | None = None
) -> float:
    """Return the highest probability that any response can assign to any world."""
    worlds, scales = _rows(outputs), np.asarray(scale, np.float64)
    return max(float(posterior(outputs, worlds[i], scale=scales, prior=prior)[i]) for i in range(len(worlds)))


def equation_15(sensitivity: float, *, worlds: float, rho: float) -> float:
    """Return the Laplace scale of equation (15); infinite if rho is not above a random guess."""
    if rho * worlds <= 1:
        return float("inf")
    return float(sensitivity / np.log((worlds - 1) * rho / (1 - rho)))


def _rows(outputs: Sequence[float] | Floats) -> Floats:
    values = np.asarray(outputs, np.float64)
    return values[:, None] if values.ndim == 1 else values


def _normalize(exponents: Floats, prior: Sequence[float] | None, count: int) -> Floats:
    weights = np.full(count, 1 / count) if prior is None else np.asarray(prior, np.float64)
    lifted = np.exp(exponents - exponents.max()) * weights
    return np.asarray(lifted / lifted.sum())
