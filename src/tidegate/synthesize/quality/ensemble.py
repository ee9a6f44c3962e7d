"""Boosted trees on codes: the classifier of the boosted pMSE, and the learner that is trained on one table and tested on another.

Histogram gradient boosting with the usual settings (100 trees of at most 31 leaves of at least 20 rows, rate 0.1). On
columns of at most 255 distinct values it gives the predictions of scikit-learn's `HistGradientBoosting*`, which would add
51 MB to an installation. A measure for the data holder only.

Reference:
    Friedman 2001, "Greedy function approximation: a gradient boosting machine"; Ke et al. 2017, LightGBM.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats, Ints
from tidegate.extras import extra

with extra("synthesize", "Making synthetic tables"):
    from numba import njit
    from scipy.stats import rankdata  # type: ignore[import-untyped]

TREES, MOST_LEAVES, LEAST_ROWS, RATE = 100, 31, 20, 0.1
MOST_BINS = 255
LEAST_CURVATURE = 1e-3


def boosted_scores(
    train: Ints, outcome: Floats, test: Ints, *, is_binary: bool, trees: int = TREES, leaves: int = MOST_LEAVES
) -> Floats:
    """Return predictions for the rows of `test`, learned from `train`: probabilities of 1 if the outcome is 0 or 1."""
    mean = float(outcome.mean())
    if is_binary and mean in (0.0, 1.0):
        return np.full(len(test), mean)
    start = float(np.log(mean / (1 - mean))) if is_binary else mean
    edges = [_edges(train[:, column]) for column in range(train.shape[1])]
    counts = np.array([len(cuts) + 1 for cuts in edges])
    sides = (_bins(train, edges), outcome.astype(np.float64), _bins(test, edges))
    scores = _boost(*sides, counts, start, is_binary, trees, leaves)
    return np.asarray(1 / (1 + np.exp(-scores)) if is_binary else scores)


def area_under_curve(outcome: NDArray[np.bool_], scores: Floats) -> float | None:
    """Return how often a row with the outcome has the higher score of two random rows; None if one kind of row is missing."""
    positive, negative = int(outcome.sum()), int((~outcome).sum())
    if not positive or not negative:
        return None
    above = float(rankdata(scores)[outcome].sum()) - positive * (positive + 1) / 2
    return above / (positive * negative)


def _edges(codes: Ints) -> Ints:
    """Return the last code of every bin but the highest: one bin per value, or about equal numbers of rows."""
    values = np.unique(codes)
    if len(values) <= MOST_BINS:
        return values[:-1]
    cuts = np.quantile(codes, np.arange(1, MOST_BINS) / MOST_BINS, method="inverted_cdf")
    return np.unique(cuts)


def _bins(codes: Ints, edges: list[Ints]) -> NDArray[np.uint8]:
    columns = [np.searchsorted(cuts, codes[:, column], side="left") for column, cuts in enumerate(edges)]
    return np.ascontiguousarray(columns, np.uint8)


@njit(cache=True)
def _boost(
    bins: Any,
    outcome: Floats,
    test_bins: Any,
    counts: Ints,
    start: float,
    is_binary: bool,
    trees: int,
    leaves: int,
) -> Floats:
    """Return the scores of the test rows after all trees. Bins are columns by rows."""
    rows, test_rows = bins.shape[1], test_bins.shape[1]
    scores, test_scores = np.full(rows, start), np.full(test_rows, start)
    slope, curve = np.empty(rows), np.ones(rows)
    order, spare = np.arange(rows), np.empty(rows, np.int64)
    tree = np.zeros((2 * leaves, 4), np.int64)  # column (-1: leaf), last bin on the left, left node, right node
    values = np.zeros(2 * leaves)
    for _ in range(trees):
        for row in range(rows):
            if is_binary:
                chance = 1 / (1 + np.exp(-scores[row]))
                slope[row], curve[row] = chance - outcome[row], chance * (1 - chance)
            else:
                slope[row] = scores[row] - outcome[row]
            order[row] = row
        if not _grow(bins, slope, curve, counts, order, spare, tree, values, scores):
            break
        for row in range(test_rows):
            node = 0
            while tree[node, 0] >= 0:
                node = tree[node, 2] if test_bins[tree[node, 0], row] <= tree[node, 1] else tree[node, 3]
            test_scores[row] += values[node]
    return test_scores


@njit(cache=True)
def _grow(
    bins: Any,
    slope: Floats,
    curve: Floats,
    counts: Ints,
    order: Ints,
    spare: Ints,
    tree: Ints,
    values: Floats,
    scores: Floats,
) -> bool:
    """Grow one tree, the leaf with the largest gain first, and add its values to the scores; False without a split."""
    size = tree.shape[0]
    starts, stops = np.zeros(size, np.int64), np.zeros(size, np.int64)
    gains, columns, last_bins = np.zeros(size), np.zeros(size, np.int64), np.zeros(size, np.int64)
    stops[0], tree[0, 0] = order.shape[0], -1
    gains[0], columns[0], last_bins[0] = _best_split(bins, slope, curve, counts, order)
    nodes, leaves, most = 1, 1, size // 2
    while leaves < most:
        node = int(np.argmax(gains[:nodes]))
        if gains[node] <= 0:
            break
        start, stop, column, last = starts[node], stops[node], columns[node], last_bins[node]
        middle, right = start, 0
        for position in range(start, stop):
            row = order[position]
            if bins[column, row] <= last:
                order[middle] = row
                middle += 1
            else:
                spare[right] = row
                right += 1
        order[middle:stop] = spare[:right]
        gains[node] = 0.0
        tree[node, 0], tree[node, 1], tree[node, 2], tree[node, 3] = column, last, nodes, nodes + 1
        for child in (nodes, nodes + 1):
            starts[child], stops[child] = (start, middle) if child == nodes else (middle, stop)
            tree[child, 0] = -1
            inside = order[starts[child] : stops[child]]
            gains[child], columns[child], last_bins[child] = _best_split(bins, slope, curve, counts, inside)
        nodes += 2
        leaves += 1
    for node in range(nodes):
        if tree[node, 0] < 0:
            down, bend = 0.0, 0.0
            for position in range(starts[node], stops[node]):
                down += slope[order[position]]
                bend += curve[order[position]]
            values[node] = -RATE * down / max(bend, 1e-12)
            for position in range(starts[node], stops[node]):
                scores[order[position]] += values[node]
    return leaves > 1


@njit(cache=True)
def _best_split(bins: Any, slope: Floats, curve: Floats, counts: Ints, rows: Ints) -> Any:
    """Return the gain of the best split of some rows, its column, and the last bin on the left; a gain of 0 without one."""
    size = rows.shape[0]
    best, best_column, best_bin = 0.0, -1, 0
    if size < 2 * LEAST_ROWS:
        return best, best_column, best_bin
    down, bend = 0.0, 0.0
    for row in rows:
        down += slope[row]
        bend += curve[row]
    whole = down * down / max(bend, 1e-12)
    for column in range(bins.shape[0]):
        run = bins[column]
        slopes, curves = np.zeros(counts[column]), np.zeros(counts[column])
        amounts = np.zeros(counts[column], np.int64)
        for row in rows:
            cell = run[row]
            slopes[cell] += slope[row]
            curves[cell] += curve[row]
            amounts[cell] += 1
        left, left_down, left_bend = 0, 0.0, 0.0
        for cell in range(counts[column] - 1):
            left += amounts[cell]
            left_down += slopes[cell]
            left_bend += curves[cell]
            if left < LEAST_ROWS or left_bend < LEAST_CURVATURE:
                continue
            if size - left < LEAST_ROWS or bend - left_bend < LEAST_CURVATURE:
                break
            right_down, right_bend = down - left_down, bend - left_bend
            gain = left_down * left_down / left_bend + right_down * right_down / right_bend - whole
            if gain > best + 1e-9:
                best, best_column, best_bin = gain, column, cell
    return best, best_column, best_bin
