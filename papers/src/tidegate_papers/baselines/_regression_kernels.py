"""Compiled: how uneven the rows' residuals are, for many candidates at once.

Under its model a residual is uniform on (0, 1) whatever the values before it, so every cell of a grid of residuals should
contain the same number of rows. Thresholds are constants; results are integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from tidegate.arrays import Floats, Ints

ABSENT = 255


@njit(cache=True)
def _first_above(values: Floats, threshold: float) -> int:
    low, high = 0, values.size
    while low < high:
        middle = (low + high) // 2
        if values[middle] <= threshold:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def margin_misfits(ordered: Floats, rows: int, centers: Floats, scales: Floats, thresholds: Floats) -> Ints:
    """Return, for every center and scale, the sum over cells of |cells * count - rows|, for values in increasing order."""
    cells = thresholds.size + 1
    out = np.empty(centers.size, np.int64)
    for m in range(centers.size):
        before, total = 0, 0
        for k in range(cells - 1):
            upto = _first_above(ordered, centers[m] + scales[m] * thresholds[k])
            total += abs(cells * (upto - before) - rows)
            before = upto
        out[m] = total + abs(cells * (ordered.size - before) - rows)
    return out


@njit(cache=True)
def linear_misfits(
    values: Floats,
    features: Floats,
    parents: Any,
    parts: Ints,
    rows: int,
    weights: Floats,
    scales: Floats,
    thresholds: Floats,
) -> Ints:
    """Return the same over pairs (cell of a parent, cell of the residual), summed over parents: |bins * R * count - rows * part|.

    values (n), features (F, n) with a row of ones first, parents (P, n) cells (ABSENT: not counted), parts (P, G): the expected
    count of each cell of a parent, of R in all; weights (M, F), scales (M). The residual is (value - weights . features) /
    scale.
    """
    n, bins, groups = values.size, thresholds.size + 1, parts.shape[1]
    out = np.empty(scales.size, np.int64)
    counts = np.zeros(groups * bins, np.int64)
    cell = np.empty(n, np.int32)
    rest = np.empty(n)
    for m in range(scales.size):
        for i in range(n):
            rest[i] = values[i]
        for f in range(features.shape[0]):
            weight, column = weights[m, f], features[f]
            for i in range(n):
                rest[i] -= weight * column[i]
        for i in range(n):
            cell[i] = 0
        for k in range(bins - 1):
            edge = thresholds[k] * scales[m]
            for i in range(n):
                cell[i] += rest[i] > edge
        out[m] = 0
        for p in range(parents.shape[0]):
            _count(cell, parents[p], bins, counts)
            out[m] += _pair_misfit(counts, parts[p], bins, rows)
    return out


@njit(cache=True)
def _count(cell: Any, parent: Any, bins: int, counts: Ints) -> None:
    counts[:] = 0
    for i in range(cell.size):
        if parent[i] != ABSENT:
            counts[parent[i] * bins + cell[i]] += 1


@njit(cache=True)
def _pair_misfit(counts: Ints, parts: Ints, bins: int, rows: int) -> int:
    total, whole = 0, bins * parts.sum()
    for g in range(parts.size):
        for k in range(bins):
            total += abs(whole * counts[g * bins + k] - rows * parts[g])
    return total


@njit(cache=True)
def level_misfits(
    counts: Ints, features: Floats, parents: Any, rows: int, logits: Floats, tried: int, candidates: Floats
) -> Ints:
    """Return, for every candidate, the sum over pairs (cell of a parent, level) of |count - expected|, summed over parents.

    The expected counts come from artificial rows (features (F, m), parents (P, m) cells), each spread over the levels by its
    probabilities, scaled to `rows` and rounded. counts (P, G, C), logits (C, F), candidates (M, F) for level `tried`.
    """
    m_rows, levels = features.shape[1], logits.shape[0]
    raised = np.empty((m_rows, levels))
    others = np.zeros(m_rows)
    for i in range(m_rows):
        for c in range(levels):
            raised[i, c] = _exponential(logits[c], features, i) if c != tried else 0.0
            others[i] += raised[i, c]
    out = np.empty(candidates.shape[0], np.int64)
    expected = np.empty(counts.shape)
    share = rows / m_rows
    for m in range(candidates.shape[0]):
        expected[:] = 0.0
        for i in range(m_rows):
            mass = _exponential(candidates[m], features, i)
            unit = share / (others[i] + mass)
            raised[i, tried] = mass
            for p in range(parents.shape[0]):
                if parents[p, i] != ABSENT:
                    for c in range(levels):
                        expected[p, parents[p, i], c] += raised[i, c] * unit
        out[m] = _absolute_difference(counts, expected)
    return out


@njit(cache=True)
def _absolute_difference(counts: Ints, expected: Floats) -> int:
    total = 0
    for p in range(counts.shape[0]):
        for g in range(counts.shape[1]):
            for c in range(counts.shape[2]):
                total += abs(counts[p, g, c] - np.int64(np.rint(expected[p, g, c])))
    return total


@njit(cache=True)
def _exponential(weights: Floats, features: Floats, i: int) -> float:
    power = 0.0
    for f in range(features.shape[0]):
        power += weights[f] * features[f, i]
    return float(np.exp(min(max(power, -300.0), 300.0)))
