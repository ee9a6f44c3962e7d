"""Logistic regression: coefficients by Newton's steps, probabilities of many columns by quasi-Newton ones.

Told apart by logistic regression: means and shares, and with pairs also associations.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.extras import extra
from tidegate.policy import Numeric
from tidegate.risk.pmse import null_logistic
from tidegate.synthesize.quality.codes import Coded
from tidegate.synthesize.quality.separation import Kind, Separation

with extra("synthesize", "Making synthetic tables"):
    from scipy.optimize import minimize  # type: ignore[import-untyped]
    from scipy.special import expit  # type: ignore[import-untyped]

STEPS = 40
ENOUGH = 1e-9  # change of the log likelihood per row at which steps end
RIDGE = 1e-4  # against separation: coefficients of unit-variance columns have a prior deviation of 100


def fit_probabilities(matrix: Floats, basis: Floats, label: Floats, *, ridge: float = RIDGE) -> Floats:
    """The fitted probability of label 1 for each row, from an intercept and the columns of matrix @ basis.

    Needs:
        Columns of mean 0 and variance 1 without correlation: then a few dozen quasi-Newton steps are enough, and none
        of them costs more than reading the matrix twice.
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


MOST_LEVELS = 40  # indicators of one category; the rest is "other"
LEVELS_IN_PAIRS = 2  # indicators of one category that enter products
MOST_PRODUCTS = 200
NOTHING = 1e-15  # a pMSE below this is the rounding of 0
SAME = 1e-9  # of the largest: a direction with less variance than this is no column of its own


def logistic_separation(original: Coded, synthetic: Sequence[Coded], *, pairs: bool = False) -> Separation:
    """The pMSE of logistic propensities for each table, and its null from the sizes alone.

    The null assumes synthetic rows from the right model, fitted to the original rows: mean (k-1) (1-c)^2 c / N,
    standard deviation sqrt(2 (k-1)) (1-c)^2 c / N, for k parameters (redundant columns are not counted).

    Reference:
        Snoke, Raab, Nowok, Dibben, Slavkovic 2018, JRSS A 181(3), Section 3.
    """
    found = [_one(original, table, pairs) for table in synthetic]
    values, parameters = tuple(value for value, _ in found), found[0][1]
    rows, made = original.rows, synthetic[0].rows
    null = null_logistic(parameters, rows=rows, synthetic=made)
    spread = null * (2 / (parameters - 1)) ** 0.5 if parameters > 1 else 0.0
    c = made / (rows + made)
    kind: Kind = "logistic with pairs" if pairs else "logistic"
    how = f"from the sizes alone: {parameters:,} parameters, {rows:,} original and {made:,} synthetic rows"
    return Separation(kind, values, null, spread, c * (1 - c), parameters, how)


def _one(original: Coded, synthetic: Coded, pairs: bool) -> tuple[float, int]:
    pooled = Coded(original.attributes, np.vstack([original.codes, synthetic.codes]))
    label = np.arange(pooled.rows) >= original.rows
    matrix, basis = independent(design(pooled, pairs=pairs))
    if not basis.shape[1]:
        return 0.0, 1
    chance = fit_probabilities(matrix, basis, label.astype(np.float64))
    value = float(((chance - label.mean()) ** 2).mean())
    return (value if value > NOTHING else 0.0), basis.shape[1] + 1


def design(table: Coded, *, pairs: bool = False) -> Floats:
    """A column for every number, indicators for categories and for missing; with `pairs` also products across columns."""
    parts = [_columns(table, name) for name in table.names]
    few = [part[:, :LEVELS_IN_PAIRS] for part in parts]
    products = _products(few) if pairs else []
    return np.column_stack([*parts, *products]) if parts else np.zeros((table.rows, 0))


def independent(matrix: Floats) -> tuple[Floats, Floats]:
    """A matrix and a basis: their product spans the same in columns of mean 0 and variance 1 without correlation. What
    repeats other columns falls away."""
    centred = matrix - matrix.mean(axis=0)
    size = np.sqrt((centred**2).mean(axis=0))
    scaled = centred[:, size > 0] / size[size > 0]
    values, vectors = np.linalg.eigh(scaled.T @ scaled / max(len(scaled), 1))
    kept = values > SAME * max(float(values.max(initial=0.0)), SAME)
    return scaled, vectors[:, kept] / np.sqrt(values[kept])


def _columns(table: Coded, name: str) -> Floats:
    """The most telling column first: it is the one that enters products."""
    codes, attribute = table.column(name), table.attributes[name]
    if not isinstance(attribute, Numeric):
        return _indicators(codes)
    missing = codes >= attribute.size
    there = ~missing
    middle = codes[there].mean() if there.any() else 0.0
    return np.column_stack([np.where(missing, middle, codes), *([missing] if missing.any() else [])]).astype(np.float64)


def _indicators(codes: Ints) -> Floats:
    """One for every value that occurs but the most frequent, the frequent first; beyond 40 they share one."""
    values, places, amounts = np.unique(codes, return_inverse=True, return_counts=True)
    rank = np.empty(len(values), np.int64)
    rank[np.argsort(-amounts, kind="stable")] = np.arange(len(values))
    ranks = np.minimum(rank[places.reshape(-1)], MOST_LEVELS)
    return np.asarray(ranks[:, None] == np.arange(1, min(len(values) - 1, MOST_LEVELS) + 1), np.float64)


def _products(parts: Sequence[Floats]) -> list[Floats]:
    """Products of centred columns of every two different attributes, the first ones where they are too many."""
    centred = [part - part.mean(axis=0) for part in parts]
    every = [
        (one[:, i], other[:, j])
        for one, other in combinations(centred, 2)
        for i in range(one.shape[1])
        for j in range(other.shape[1])
    ]
    chosen = np.linspace(0, len(every) - 1, min(len(every), MOST_PRODUCTS)).astype(int)
    return [(every[place][0] * every[place][1])[:, None] for place in chosen]
