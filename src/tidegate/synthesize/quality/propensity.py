"""Told apart by logistic regression: means and shares, and with pairs also associations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.policy import Numeric
from tidegate.risk.pmse import null_logistic
from tidegate.synthesize.quality.coding import Coded
from tidegate.synthesize.quality.logistic import fit_probabilities
from tidegate.synthesize.quality.separation import Kind, Separation

MOST_LEVELS = 40  # indicators of one category; the rest is "other"
LEVELS_IN_PAIRS = 2  # indicators of one category that enter products
MOST_PRODUCTS = 200
NOTHING = 1e-15  # a pMSE below this is the rounding of 0
SAME = 1e-9  # of the largest: a direction with less variance than this is no column of its own


def logistic_separation(original: Coded, synthetic: Sequence[Coded], *, pairs: bool = False) -> Separation:
    """The pMSE of logistic propensities for each table, and its null from the sizes alone.

    Null       synthetic rows that come from the right model, fitted to the original rows: mean (k-1) (1-c)^2 c / N,
               standard deviation sqrt(2 (k-1)) (1-c)^2 c / N, for k parameters (columns that repeat others not counted).
    Reference  Snoke, Raab, Nowok, Dibben, Slavkovic 2018, JRSS A 181(3), Section 3.
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
