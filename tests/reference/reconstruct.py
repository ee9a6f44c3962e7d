"""Reconstruction, slowly: sums written out, matrices inverted, a general optimizer in place of Newton's steps.

Written from the formulas (Agrawal & Srikant 2000, Agrawal & Aggarwal 2001, and the definition of the bank), not from
the code: `family` is (softplus, order, cauchy), `u` a list of numbers, `matrix[s][j]` the chance of report s from j.
"""

from __future__ import annotations

from math import exp, log, log1p, pi

import numpy as np
from scipy.optimize import minimize

Family = tuple[bool, int, bool]


def chance(cumulative, low: float, high: float, start: float, end: float, points: int = 2000) -> float:
    """P(low <= X + Y < high) for X even on [start, end]: the mean over many points."""
    x = start + (np.arange(points) + 0.5) * (end - start) / points
    return float(np.mean(cumulative(high - x) - cumulative(low - x)))


def em_step(counts, matrix, p):
    """Every report shared among the values as their posterior says."""
    total, new = sum(counts), [0.0] * len(p)
    for s, n in enumerate(counts):
        seen = sum(matrix[s][j] * p[j] for j in range(len(p)))
        for j in range(len(p)):
            new[j] += n / total * matrix[s][j] * p[j] / seen if seen > 0 else 0.0
    return np.array(new)


def merge(matrix, reports, values):
    """Cells of neighboring reports and values, value by value."""
    rows = range(len(reports) - 1)
    columns = range(len(values) - 1)
    return np.array(
        [
            [
                sum(matrix[s][j] for s in range(reports[a], reports[a + 1]) for j in range(values[b], values[b + 1]))
                / (values[b + 1] - values[b])
                for b in columns
            ]
            for a in rows
        ]
    )


def joining_starts(matrix, total: float, lost: float) -> list[int]:
    """Where a new group of reports starts: its first report would lose too much by joining the group before."""
    starts, group = [0], [matrix[0]]
    for s in range(1, len(matrix)):
        together, alone = np.sum(group, axis=0), np.asarray(matrix[s])
        a, b = together.mean(), alone.mean()
        if a > 0 and b > 0:
            loss = total * a * b / (a + b) * np.mean((together / a - alone / b) ** 2)
        else:
            loss = 0.0 if a == b else np.inf
        if loss > lost:
            starts, group = [*starts, s], []
        group.append(alone)
    return starts


def masses(family: Family, u) -> np.ndarray:
    raised = np.array([log1p(exp(-abs(x))) + max(x, 0.0) if family[0] else exp(x) for x in u])
    return raised / raised.sum()


def differences(order: int, size: int) -> np.ndarray:
    return size ** (order - 0.5) * np.diff(np.eye(size), order, axis=0)


def unseen(order: int, size: int) -> np.ndarray:
    """The precision of what the differences do not see: V V' / 9k, V orthonormal polynomials below the order."""
    values, vectors = np.linalg.eigh(differences(order, size).T @ differences(order, size))
    null = vectors[:, :order]
    assert values[order] > 1e6 * abs(values[:order]).max()
    return null @ null.T / (9 * size)


def center(family: Family, u) -> np.ndarray:
    return np.asarray(u) - (log(exp(1) - 1) if family[0] else 0.0)


def log_posterior(counts, matrix, family: Family, strength: float, u) -> float:
    seen = np.asarray(matrix) @ masses(family, u)
    e, off = differences(family[1], len(u)) @ np.asarray(u), center(family, u)
    roughness = np.log1p(strength * e**2).sum() if family[2] else strength / 2 * (e**2).sum()
    return float(np.dot(counts, np.log(seen)) - roughness - off @ unseen(family[1], len(u)) @ off / 2)


def best(counts, matrix, family: Family, strength: float, start) -> float:
    """The highest log posterior that a general optimizer finds from `start`."""
    optimum = minimize(lambda u: -log_posterior(counts, matrix, family, strength, u), start, method="BFGS")
    return -float(optimum.fun)


def slope(counts, matrix, family: Family, strength: float, u, step: float = 1e-5) -> np.ndarray:
    """Of the log posterior, by differences."""

    def at(moved) -> float:
        return log_posterior(counts, matrix, family, strength, moved)

    return np.array([(at(u + step * unit) - at(u - step * unit)) / (2 * step) for unit in np.eye(len(u))])


def curvature(counts, matrix, family: Family, strength: float, u) -> tuple[np.ndarray, np.ndarray]:
    """Fisher's information about u, by differences of the expected reports; and the prior's precision."""
    matrix, u, total, step = np.asarray(matrix), np.asarray(u, float), sum(counts), 1e-6
    slopes = np.array(
        [
            (matrix @ masses(family, u + step * unit) - matrix @ masses(family, u - step * unit)) / (2 * step)
            for unit in np.eye(len(u))
        ]
    )
    information = total * slopes @ np.diag(1 / (matrix @ masses(family, u))) @ slopes.T
    d = differences(family[1], len(u))
    weights = 2 * strength / (1 + strength * (d @ u) ** 2) if family[2] else np.full(len(d), strength)
    return information, d.T @ np.diag(weights) @ d + unseen(family[1], len(u))


def freedom(counts, matrix, family: Family, strength: float, u) -> float:
    information, precision = curvature(counts, matrix, family, strength, u)
    return float(np.trace(np.linalg.inv(information + precision) @ information))


def evidence(counts, matrix, family: Family, strength: float, u) -> float:
    """Laplace's approximation: height, prior's constant, and the volume under the peak."""
    k, order = len(u), family[1]
    d = differences(order, k)
    constant = order / 2 * log(1 / (9 * k)) - order / 2 * log(2 * pi)
    constant += np.linalg.slogdet(d @ d.T)[1] / 2 + (k - order) / 2 * log(strength)
    constant -= (k - order) * log(pi) if family[2] else (k - order) / 2 * log(2 * pi)
    whole = sum(curvature(counts, matrix, family, strength, u))
    volume = k / 2 * log(2 * pi) - np.linalg.slogdet(whole)[1] / 2
    return log_posterior(counts, matrix, family, strength, u) + constant + volume


def nearest_distribution(raw) -> np.ndarray:
    """One amount taken from all, found by halving, so that what stays above zero sums to one."""
    low, high = min(raw) - 1.0, max(raw)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(max(x - middle, 0.0) for x in raw) > 1 else (low, middle)
    return np.array([max(x - low, 0.0) for x in raw])
