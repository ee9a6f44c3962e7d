"""Hot loops of the forest: arrays in, arrays out. The reference implementations are in tests/reference/forest.py.

Sums over cells are NumPy's, which adds in the order of the rows, as a loop would. What depends on the step before it is a
kernel.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tidegate.extras import require
from tidegate.kernels import kernel

require("synthesize", "Making synthetic tables")

PLAIN = 300_000  # elements that are shuffled in plain Python: 30 ms


def coarsen_table(table: Any, left: Any, right: Any, out: Any) -> Any:
    """Add a table, summed over groups of its rows and of its columns, to `out` and return it."""
    np.add.at(out, (left[:, None], right[None, :]), table)
    return out


def weighted_counts(left: Any, right: Any, weights: Any, rows: Any, columns: Any) -> Any:
    """Return the weight in each cell of two codes."""
    cells = np.asarray(left, np.int64) * columns + right
    return np.bincount(cells, weights, minlength=rows * columns).reshape(rows, columns)


def rake_weights(places: Any, target: Any, weights: Any, least: Any, most: Any) -> Any:
    """Return weights whose sums over cells are near the targets, by factors between `least` and `most`."""
    sums = np.bincount(places, weights, minlength=target.size)
    factors = np.ones(target.size)
    filled = sums > 0
    factors[filled] = np.clip(target[filled] / sums[filled], least, most)
    return weights * factors[places]


@kernel(nogil=True, work=lambda values, *_: 3 * int(values.size) ** 2)
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
        total = 0.0
        for first in range(end):
            total += math.exp(each[first] - top)
        ahead[end] = top + math.log(total)
    for first in range(size - 1, -1, -1):
        for end in range(first + 1, size + 1):
            each[end] = behind[end] + 0.5 * ((wy[end] - wy[first]) ** 2 / (ww[end] - ww[first]) - penalty)
        top = each[first + 1 :].max()
        total = 0.0
        for end in range(first + 1, size + 1):
            total += math.exp(each[end] - top)
        behind[first] = top + math.log(total)
    steps = np.zeros(size + 1)
    for first in range(size):
        for end in range(first + 1, size + 1):
            density = (wy[end] - wy[first]) / (ww[end] - ww[first])
            fit = 0.5 * ((wy[end] - wy[first]) * density - penalty)
            part = density * math.exp(min(ahead[first] + fit + behind[end] - ahead[size], 0.0))
            steps[first] += part
            steps[end] -= part
    return np.cumsum(steps)[:size] * widths


@kernel(nogil=True, work=lambda chosen, places, over, price, slots, offers: int(offers.size) * int(places.shape[0]))
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


def spread_ints(weights: Any, raw: Any) -> Any:
    """Draw an index for each random 64-bit number, each index as often as its whole weight requires to within one.

    Only whole numbers are used, so that every machine draws the same: positions are spread evenly over the sum of the weights,
    then shuffled (Fisher, Yates).
    """
    size = raw.size
    if size == 0:
        return np.empty(0, np.int32)
    upper = raw >> np.uint64(32)
    total = int(weights.sum())
    if total <= 0:
        return (upper * np.uint64(weights.size) >> np.uint64(32)).astype(np.int32)
    offset = int(raw[0]) % total
    at = (np.arange(size) * total + offset) // size
    out = np.searchsorted(np.cumsum(weights), at, side="right").astype(np.int32)
    others = (upper * np.arange(1, size + 1, dtype=np.uint64) >> np.uint64(32)).astype(np.int64)
    if size > PLAIN:
        shuffle(out, others)
        return out
    return _shuffle_plainly(out, others)


def _shuffle_plainly(out: Any, others: Any) -> Any:
    """Return what `shuffle` makes of `out`. Lists are faster than arrays where each step is a step of Python."""
    values = out.tolist()
    for n, other in zip(range(out.size - 1, 0, -1), others[:0:-1].tolist(), strict=True):
        values[n], values[other] = values[other], values[n]
    return np.array(values, out.dtype)


@kernel(nogil=True, work=lambda out, others: int(out.size))
def shuffle(out: Any, others: Any) -> None:
    """Exchange each element, from the last on, with the one at its other position."""
    for n in range(out.size - 1, 0, -1):
        other = others[n]
        out[n], out[other] = out[other], out[n]


def sort_by_group(groups: Any, count: Any) -> Any:
    """Return the positions ordered by group, and where each group begins."""
    begins = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(groups, minlength=count), out=begins[1:])
    return np.argsort(groups, kind="stable"), begins
