"""Logistic regression: coefficients by Newton's steps, probabilities of many columns by quasi-Newton ones."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize  # type: ignore[import-untyped]
from scipy.special import expit  # type: ignore[import-untyped]

from tidegate.arrays import Floats

STEPS = 40
ENOUGH = 1e-9  # change of the log likelihood per row at which steps end
RIDGE = 1e-4  # against separation: coefficients of unit-variance columns have a prior deviation of 100


def fit_probabilities(matrix: Floats, basis: Floats, label: Floats, *, ridge: float = RIDGE) -> Floats:
    """The fitted probability of label 1 for each row, from an intercept and the columns of matrix @ basis.

    Needs      Columns of mean 0 and variance 1 without correlation: then a few dozen quasi-Newton steps are enough, and
               none of them costs more than reading the matrix twice.
    """
    share = label.mean()

    def loss(found: Floats) -> tuple[float, Floats]:
        line = found[0] + matrix @ (basis @ found[1:])
        off = expit(line) - label
        value = np.logaddexp(0, line).sum() - label @ line + ridge * (found[1:] @ found[1:]) / 2
        slope = np.concatenate([[off.sum()], basis.T @ (matrix.T @ off) + ridge * found[1:]])
        return float(value) / len(label), slope / len(label)

    start = np.concatenate([[np.log(share / (1 - share))], np.zeros(basis.shape[1])])
    options = {"maxiter": 300, "ftol": 1e-12, "gtol": 1e-7}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    return np.asarray(expit(found[0] + matrix @ (basis @ found[1:])))


def fit(matrix: Floats, label: Floats, *, ridge: float = RIDGE) -> Floats:
    """The coefficients that maximise the likelihood, minus ridge times half their squares (the first, the intercept, free).

    Newton's steps, halved while they do not help. With the ridge there is exactly one maximum, also for separated rows.
    """
    penalty = np.full(matrix.shape[1], ridge)
    penalty[0] = 1e-12
    found = np.zeros(matrix.shape[1])
    value = _objective(matrix, label, found, penalty)
    for _ in range(STEPS):
        chance = expit(matrix @ found)
        slope = matrix.T @ (label - chance) - penalty * found
        curve = (matrix * (chance * (1 - chance))[:, None]).T @ matrix
        curve[np.diag_indices_from(curve)] += penalty + 1e-12
        step = np.linalg.lstsq(curve, slope, rcond=None)[0]
        better, gained = _ahead(matrix, label, found, step, penalty, value)
        if gained - value <= ENOUGH * len(label):
            return better
        found, value = better, gained
    return found


def _ahead(
    matrix: Floats, label: Floats, found: Floats, step: Floats, penalty: Floats, value: float
) -> tuple[Floats, float]:
    for part in (1.0, 0.5, 0.25, 0.0625, 0.01):
        tried = found + part * step
        gained = _objective(matrix, label, tried, penalty)
        if gained >= value:
            return tried, gained
    return found, value


def _objective(matrix: Floats, label: Floats, found: Floats, penalty: Floats) -> float:
    line = matrix @ found
    return float(label @ line - np.logaddexp(0, line).sum() - (penalty * found**2).sum() / 2)
