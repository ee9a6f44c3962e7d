"""Rectangles of the bivariate normal distribution, for a whole grid of correlations at once."""

from __future__ import annotations

import numpy as np

from tidegate.arrays import Floats
from tidegate.extras import extra

with extra("synthesize", "Making synthetic tables"):
    from scipy.special import ndtr  # type: ignore[import-untyped]

FAR = 9.0  # a cut so far out that nothing lies beyond it
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)


def rectangles(first: Floats, second: Floats, correlations: Floats) -> Floats:
    """P(first[i] < Z1 <= first[i+1], second[j] < Z2 <= second[j+1]) at each correlation: (correlations, cells, cells).

    Needs      Rising cuts (infinite ends allowed) and correlations of size below 1.
    Reference  Plackett 1954: the derivative of the distribution function by rho is the density, here in rho = sin(angle).
    """
    one, two = np.clip(first, -FAR, FAR)[:, None], np.clip(second, -FAR, FAR)[None, :]
    base = ndtr(one) * ndtr(two)
    angles = np.arcsin(correlations)
    order = np.argsort(np.abs(angles), kind="stable")
    found = np.empty((correlations.size, first.size - 1, second.size - 1))
    for sign in (1, -1):
        upto, value = 0.0, base
        for place in (p for p in order if (angles[p] >= 0) == (sign > 0)):
            value = value + _between(one, two, upto, float(angles[place]))
            upto = float(angles[place])
            found[place] = np.diff(np.diff(value, axis=0), axis=1)
    return np.clip(found, 0.0, 1.0)


def _between(one: Floats, two: Floats, start: float, end: float) -> Floats:
    """The integral of the density from one angle to another; the steps of a grid are short, so eight nodes suffice."""
    half, middle = (end - start) / 2, (end + start) / 2
    total = np.zeros(np.broadcast_shapes(one.shape, two.shape))
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        angle = middle + half * node
        power = (one**2 - 2 * one * two * np.sin(angle) + two**2) / (2 * np.cos(angle) ** 2)
        total += weight * np.exp(-power)
    return np.asarray(half * total / (2 * np.pi))
