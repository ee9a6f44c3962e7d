"""Logistic regression: coefficients by Newton's method, and probabilities for many columns by a quasi-Newton method.

Separation by logistic regression compares means and shares, and with pairs also associations.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.extras import extra
from tidegate.policy import Numeric
from tidegate.risk.pmse import null_logistic
from tidegate.synthesize.quality.codes import CodedTable
from tidegate.synthesize.quality.separation import Kind, Separation

with extra("synthesize", "Making synthetic tables"):
    from scipy.optimize import minimize  # type: ignore[import-untyped]
    from scipy.special import expit  # type: ignore[import-untyped]

STEPS = 40
ENOUGH = 1e-9  # the iteration stops at this change of the log likelihood per row
RIDGE = 1e-4  # against separation: coefficients of unit-variance columns have a prior deviation of 100


def fit_probabilities(matrix: Floats, basis: Floats, label: Floats, *, ridge: float = RIDGE) -> Floats:
    """Return the fitted probability of label 1 for each row, from an intercept and the columns of matrix @ basis.

    Needs:
        Uncorrelated columns of mean 0 and variance 1: then a few dozen quasi-Newton steps are enough, and each of them
        costs no more than reading the matrix twice.
    """
    share = label.mean()

    def loss(weights: Floats) -> tuple[float, Floats]:
        line = weights[0] + matrix @ (basis @ weights[1:])
        off = expit(line) - label
        value = np.logaddexp(0, line).sum() - label @ line + ridge * (weights[1:] @ weights[1:]) / 2
        slope = np.concatenate([[off.sum()], basis.T @ (matrix.T @ off) + ridge * weights[1:]])
        return float(value) / len(label), slope / len(label)

    start = np.concatenate([[np.log(share / (1 - share))], np.zeros(basis.shape[1])])
    options = {"maxiter": 300, "ftol": 1e-12, "gtol": 1e-7}
    weights = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    return np.asarray(expit(weights[0] + matrix @ (basis @ weights[1:])))


def fit(matrix: Floats, label: Floats, *, ridge: float = RIDGE) -> Floats:
    """Return the coefficients that maximize the likelihood with a ridge penalty on all but the intercept.

    Newton's steps are halved while they do not help. With the ridge there is exactly one maximum, even for separated rows.
    """
    penalty = np.full(matrix.shape[1], ridge)
    penalty[0] = 1e-12
    weights = np.zeros(matrix.shape[1])
    value = _objective(matrix, label, weights, penalty)
    for _ in range(STEPS):
        chance = expit(matrix @ weights)
        slope = matrix.T @ (label - chance) - penalty * weights
        curve = (matrix * (chance * (1 - chance))[:, None]).T @ matrix
        curve[np.diag_indices_from(curve)] += penalty + 1e-12
        step = np.linalg.lstsq(curve, slope, rcond=None)[0]
        next_weights, next_value = _line_search(matrix, label, weights, step, penalty, value)
        if next_value - value <= ENOUGH * len(label):
            return next_weights
        weights, value = next_weights, next_value
    return weights


def _line_search(
    matrix: Floats, label: Floats, weights: Floats, step: Floats, penalty: Floats, value: float
) -> tuple[Floats, float]:
    for part in (1.0, 0.5, 0.25, 0.0625, 0.01):
        candidate = weights + part * step
        next_value = _objective(matrix, label, candidate, penalty)
        if next_value >= value:
            return candidate, next_value
    return weights, value


def _objective(matrix: Floats, label: Floats, weights: Floats, penalty: Floats) -> float:
    line = matrix @ weights
    return float(label @ line - np.logaddexp(0, line).sum() - (penalty * weights**2).sum() / 2)


MOST_LEVELS = 40  # indicators of one category; the rest is "other"
LEVELS_IN_PAIRS = 2  # indicators of one category that enter products
MOST_PRODUCTS = 200
ROUNDING = 1e-15  # a pMSE below this is the rounding of 0
SAME = 1e-9  # a direction with less variance than this, relative to the largest, is redundant


def logistic_separation(original: CodedTable, synthetic: Sequence[CodedTable], *, pairs: bool = False) -> Separation:
    """Return the pMSE of logistic propensities for each table, and its null from the sizes alone.

    The null assumes synthetic rows from the right model, fitted to the original rows: mean (k-1) (1-c)^2 c / N,
    standard deviation sqrt(2 (k-1)) (1-c)^2 c / N, for k parameters (redundant columns are not counted).

    Reference:
        Snoke, Raab, Nowok, Dibben, Slavkovic 2018, JRSS A 181(3), Section 3.
    """
    fits = [_fit_table(original, table, pairs) for table in synthetic]
    values, parameters = tuple(value for value, _ in fits), fits[0][1]
    rows, synthetic_rows = original.rows, synthetic[0].rows
    null = null_logistic(parameters, rows=rows, synthetic=synthetic_rows)
    spread = null * (2 / (parameters - 1)) ** 0.5 if parameters > 1 else 0.0
    c = synthetic_rows / (rows + synthetic_rows)
    kind: Kind = "logistic with pairs" if pairs else "logistic"
    how = f"from the sizes alone: {parameters:,} parameters, {rows:,} original and {synthetic_rows:,} synthetic rows"
    return Separation(kind, values, null, spread, c * (1 - c), parameters, how)


def _fit_table(original: CodedTable, synthetic: CodedTable, pairs: bool) -> tuple[float, int]:
    pooled = CodedTable(original.attributes, np.vstack([original.codes, synthetic.codes]))
    label = np.arange(pooled.rows) >= original.rows
    matrix, basis = independent(design(pooled, pairs=pairs))
    if not basis.shape[1]:
        return 0.0, 1
    chance = fit_probabilities(matrix, basis, label.astype(np.float64))
    value = float(((chance - label.mean()) ** 2).mean())
    return (value if value > ROUNDING else 0.0), basis.shape[1] + 1


def design(table: CodedTable, *, pairs: bool = False) -> Floats:
    """Return a column for every number, indicators for categories and missing, and with `pairs` products across columns."""
    parts = [_columns(table, name) for name in table.names]
    few = [part[:, :LEVELS_IN_PAIRS] for part in parts]
    products = _products(few) if pairs else []
    return np.column_stack([*parts, *products]) if parts else np.zeros((table.rows, 0))


def independent(matrix: Floats) -> tuple[Floats, Floats]:
    """Return a matrix and a basis whose product has uncorrelated columns of mean 0 and variance 1 and the same span.

    Redundant columns are dropped.
    """
    centered = matrix - matrix.mean(axis=0)
    size = np.sqrt((centered**2).mean(axis=0))
    scaled = centered[:, size > 0] / size[size > 0]
    values, vectors = np.linalg.eigh(scaled.T @ scaled / max(len(scaled), 1))
    used = values > SAME * max(float(values.max(initial=0.0)), SAME)
    return scaled, vectors[:, used] / np.sqrt(values[used])


def _columns(table: CodedTable, name: str) -> Floats:
    """Return the columns of an attribute, the most informative first: it enters products."""
    codes, attribute = table.column(name), table.attributes[name]
    if not isinstance(attribute, Numeric):
        return _indicators(codes)
    missing = codes >= attribute.size
    there = ~missing
    middle = codes[there].mean() if there.any() else 0.0
    return np.column_stack([np.where(missing, middle, codes), *([missing] if missing.any() else [])]).astype(np.float64)


def _indicators(codes: Ints) -> Floats:
    """Return an indicator for every value except the most frequent, in order of frequency; the rarest share the last one."""
    values, places, amounts = np.unique(codes, return_inverse=True, return_counts=True)
    rank = np.empty(len(values), np.int64)
    rank[np.argsort(-amounts, kind="stable")] = np.arange(len(values))
    ranks = np.minimum(rank[places.reshape(-1)], MOST_LEVELS)
    return np.asarray(ranks[:, None] == np.arange(1, min(len(values) - 1, MOST_LEVELS) + 1), np.float64)


def _products(parts: Sequence[Floats]) -> list[Floats]:
    """Return products of centered columns of every two different attributes, an even selection if there are too many."""
    centered = [part - part.mean(axis=0) for part in parts]
    products = [
        (left[:, i], right[:, j])
        for left, right in combinations(centered, 2)
        for i in range(left.shape[1])
        for j in range(right.shape[1])
    ]
    chosen = np.linspace(0, len(products) - 1, min(len(products), MOST_PRODUCTS)).astype(int)
    return [(products[index][0] * products[index][1])[:, None] for index in chosen]
