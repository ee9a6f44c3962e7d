"""Hot loops of the forest: arrays in, arrays out. The reference implementations are in tests/reference/forest.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.extras import extra

with extra("synthesize", "Making synthetic tables"):
    from numba import njit


@njit(cache=True, nogil=True)
def coarsen_table(table: Any, left: Any, right: Any, out: Any) -> Any:
    """Add a table, summed over groups of its rows and of its columns, to `out` and return it."""
    for a in range(table.shape[0]):
        for b in range(table.shape[1]):
            out[left[a], right[b]] += table[a, b]
    return out


@njit(cache=True, nogil=True)
def weighted_counts(left: Any, right: Any, weights: Any, rows: Any, columns: Any) -> Any:
    """Return the weight in each cell of two codes."""
    out = np.zeros((rows, columns))
    for n in range(weights.size):
        out[left[n], right[n]] += weights[n]
    return out


@njit(cache=True, nogil=True)
def rake_weights(places: Any, target: Any, weights: Any, least: Any, most: Any) -> Any:
    """Return weights whose sums over cells are near the targets, by factors between `least` and `most`."""
    sums = np.zeros(target.size)
    for n in range(weights.size):
        sums[places[n]] += weights[n]
    for k in range(target.size):
        sums[k] = min(max(target[k] / sums[k], least), most) if sums[k] > 0 else 1.0
    out = np.empty_like(weights)
    for n in range(weights.size):
        out[n] = weights[n] * sums[places[n]]
    return out


@njit(cache=True, nogil=True)
def average_density(values: Any, widths: Any, precision: Any, penalty: Any) -> Any:
    """Return the average of all piecewise constant densities, fitted by least squares, with a penalty on each segment.

    A segmentation has the weight exp(-(weighted squared error + penalty * segments) / 2); cell k is fitted as density *
    widths[k]. The sums run over all segmentations, forward and backward.
    """
    size = values.size
    ww, wy = np.zeros(size + 1), np.zeros(size + 1)
    for k in range(size):
        ww[k + 1] = ww[k] + precision[k] * widths[k] ** 2
        wy[k + 1] = wy[k] + precision[k] * widths[k] * values[k]
    ahead, behind, each = np.zeros(size + 1), np.zeros(size + 1), np.empty(size + 1)
    for end in range(1, size + 1):
        for first in range(end):
            each[first] = ahead[first] + 0.5 * ((wy[end] - wy[first]) ** 2 / (ww[end] - ww[first]) - penalty)
        top = each[:end].max()
        ahead[end] = top + np.log(np.exp(each[:end] - top).sum())
    for first in range(size - 1, -1, -1):
        for end in range(first + 1, size + 1):
            each[end] = behind[end] + 0.5 * ((wy[end] - wy[first]) ** 2 / (ww[end] - ww[first]) - penalty)
        top = each[first + 1 :].max()
        behind[first] = top + np.log(np.exp(each[first + 1 :] - top).sum())
    steps = np.zeros(size + 1)
    for first in range(size):
        for end in range(first + 1, size + 1):
            density = (wy[end] - wy[first]) / (ww[end] - ww[first])
            fit = 0.5 * ((wy[end] - wy[first]) * density - penalty)
            part = density * np.exp(min(ahead[first] + fit + behind[end] - ahead[size], 0.0))
            steps[first] += part
            steps[end] -= part
    return np.cumsum(steps)[:size] * widths


@njit(cache=True, nogil=True)
def exchange_rows(chosen: Any, places: Any, over: Any, price: Any, slots: Any, offers: Any) -> Any:
    """Return a sample with some of its rows exchanged, so that its counts come nearer to the expected ones.

    places (tables, pool): the cell of each row of the pool; over: the counts minus the expected ones; price: the cost of the
    square of such a difference. Offer k replaces the row in slot k if the sum of all costs falls.
    """
    chosen, over = chosen.copy(), over.copy()
    for k in range(offers.size):
        old, new = chosen[slots[k]], offers[k]
        change = 0.0
        for t in range(places.shape[0]):
            a, b = places[t, old], places[t, new]
            if a != b:
                change += price[a] * (1 - 2 * over[a]) + price[b] * (1 + 2 * over[b])
        if change < 0:
            for t in range(places.shape[0]):
                over[places[t, old]] -= 1
                over[places[t, new]] += 1
            chosen[slots[k]] = new
    return chosen
