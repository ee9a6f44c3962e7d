"""Kernels for growing trees: histograms of classes, the best split, the partition of records, the path to a leaf.

Codes are (attributes, records) so that a column is contiguous; a node is a run order[start:end] of record numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.arrays import Floats, Ints32
from tidegate.extras import extra

with extra("collect", "Estimating from randomized reports"):
    from numba import njit


@njit(cache=True)
def class_counts(codes: Ints32, labels: Ints32, weights: Floats, records: Ints32, sizes: Ints32, classes: int) -> Any:
    """Return the weight of each class in each interval of each attribute: (attributes, widest, classes)."""
    counts = np.zeros((codes.shape[0], sizes.max(), classes))
    for a in range(codes.shape[0]):
        column, into = codes[a], counts[a]
        for i in records:
            into[column[i], labels[i]] += weights[i]
    return counts


@njit(cache=True)
def best_split(counts: Floats, sizes: Ints32, unmix: Floats) -> Any:
    """Return the attribute and the boundary with the least Gini impurity, and that impurity; the first of ties.

    `unmix` turns counts of reported classes into counts of classes; what it makes negative counts as nothing.
    """
    classes = counts.shape[2]
    best, attribute, boundary = np.inf, -1, -1
    below, above = np.empty(classes), np.empty(classes)
    whole = np.empty(classes)
    for a in range(counts.shape[0]):
        whole[:] = 0.0
        for j in range(sizes[a]):
            whole += counts[a, j]
        below[:] = 0.0
        for j in range(sizes[a] - 1):
            moved = 0.0
            for c in range(classes):
                below[c] += counts[a, j, c]
                above[c] = whole[c] - below[c]
                moved += counts[a, j, c]
            if moved == 0.0:
                continue
            left, right = below.sum(), above.sum()
            if left <= 1e-9 * right or right <= 1e-9 * left:
                continue
            impurity = _impurity(below, unmix) + _impurity(above, unmix)
            if impurity < best * (1 - 1e-12):
                best, attribute, boundary = impurity, a, j + 1
    return attribute, boundary, best


@njit(cache=True)
def _impurity(counts: Floats, unmix: Floats) -> float:
    """n (1 - sum p^2), for n the weight and p the shares of the true classes."""
    total, squares = 0.0, 0.0
    for c in range(counts.size):
        share = 0.0
        for r in range(counts.size):
            share += unmix[c, r] * counts[r]
        share = max(share, 0.0)
        total += share
        squares += share * share
    return total - squares / total if total > 0 else 0.0


@njit(cache=True)
def part(column: Ints32, boundary: int, records: Ints32) -> int:
    """Move the records below the boundary to the front, keeping their order; return their number."""
    spare = np.empty_like(records)
    low, high = 0, 0
    for i in records:
        if column[i] < boundary:
            records[low] = i
            low += 1
        else:
            spare[high] = i
            high += 1
    records[low:] = spare[:high]
    return low


@njit(cache=True)
def leaf_of(codes: Ints32, attribute: Ints32, boundary: Ints32, left: Ints32, right: Ints32) -> Any:
    """Return the leaf of each record of (records, attributes)."""
    leaves = np.empty(codes.shape[0], np.int32)
    for i in range(codes.shape[0]):
        node = 0
        while attribute[node] >= 0:
            node = left[node] if codes[i, attribute[node]] < boundary[node] else right[node]
        leaves[i] = node
    return leaves


@njit(cache=True)
def associated(reports: Ints32, records: Ints32, ends: Floats, kinds: int, out: Ints32) -> None:
    """Assign records to intervals in the order of their reports, so that `ends[j]` of them are in intervals up to j."""
    starts = np.zeros(kinds + 1, np.int64)
    for i in records:
        starts[reports[i] + 1] += 1
    starts = np.cumsum(starts)
    for i in records:
        rank = starts[reports[i]]
        starts[reports[i]] += 1
        out[i] = np.searchsorted(ends, rank + 0.5)


@njit(cache=True)
def kept(reports: Ints32, records: Ints32, room: Floats, out: Ints32) -> None:
    """Assign each record the interval of its report while there is room, and the others the remaining room, in order."""
    left = room.copy()
    for i in records:
        out[i] = -1
        if left[reports[i]] > 0:
            left[reports[i]] -= 1
            out[i] = reports[i]
    interval = 0
    for i in records:
        if out[i] < 0:
            while interval < left.size - 1 and left[interval] <= 0:
                interval += 1
            left[interval] -= 1
            out[i] = interval
