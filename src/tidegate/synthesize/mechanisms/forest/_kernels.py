"""Hot loops of the forest: arrays in, arrays out. The reference implementations are in tests/reference/forest.py.

Where NumPy adds in the order of the rows, as the loop does, its form runs until the loop is compiled: it takes 2 to 20
times as long as the compiled loop, and compiling takes a second for each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tidegate.extras import require
from tidegate.kernels import kernel

require("synthesize", "Making synthetic tables")


def _coarsen_in_numpy(table: Any, left: Any, right: Any, out: Any) -> Any:
    cells = np.asarray(left, np.int64)[:, None] * out.shape[1] + right[None, :]
    everything = np.concatenate([np.arange(out.size), cells.ravel()])  # `out` first, then the rows in their order
    out[...] = np.bincount(everything, np.concatenate([out.ravel(), table.ravel()])).reshape(out.shape)
    return out


@kernel(nogil=True, plain=_coarsen_in_numpy)
def coarsen_table(table: Any, left: Any, right: Any, out: Any) -> Any:
    """Add a table, summed over groups of its rows and of its columns, to `out` and return it."""
    for a in range(table.shape[0]):
        for b in range(table.shape[1]):
            out[left[a], right[b]] += table[a, b]
    return out


def _count_in_numpy(left: Any, right: Any, weights: Any, rows: Any, columns: Any) -> Any:
    cells = np.asarray(left, np.int64) * columns + right
    return np.bincount(cells, weights, minlength=rows * columns).reshape(rows, columns)


@kernel(nogil=True, plain=_count_in_numpy)
def weighted_counts(left: Any, right: Any, weights: Any, rows: Any, columns: Any) -> Any:
    """Return the weight in each cell of two codes."""
    out = np.zeros((rows, columns))
    for n in range(weights.size):
        out[left[n], right[n]] += weights[n]
    return out


def _rake_in_numpy(places: Any, target: Any, weights: Any, least: Any, most: Any) -> Any:
    sums = np.bincount(places, weights, minlength=target.size)
    factors, is_filled = np.ones(target.size), sums > 0
    factors[is_filled] = np.clip(target[is_filled] / sums[is_filled], least, most)
    return weights * factors[places]


@kernel(nogil=True, plain=_rake_in_numpy)
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


def _spread_in_numpy(weights: Any, raw: Any) -> Any:
    size = raw.size
    if size == 0:
        return np.empty(0, np.int32)
    upper, total = raw >> np.uint64(32), int(weights.sum())
    if total <= 0:
        return (upper * np.uint64(weights.size) >> np.uint64(32)).astype(np.int32)
    at = (np.arange(size) * total + int(raw[0]) % total) // size
    values = np.searchsorted(np.cumsum(weights), at, side="right").tolist()
    others = (upper * np.arange(1, size + 1, dtype=np.uint64) >> np.uint64(32)).tolist()
    for n in range(size - 1, 0, -1):  # lists are faster than arrays where each step is a step of Python
        other = others[n]
        values[n], values[other] = values[other], values[n]
    return np.array(values, np.int32)


@kernel(nogil=True, plain=_spread_in_numpy, work=lambda weights, raw: 4 * int(raw.size))
def spread_ints(weights: Any, raw: Any) -> Any:
    """Draw an index for each random 64-bit number, each index as often as its whole weight requires to within one.

    Only whole numbers are used, so that every machine draws the same: positions are spread evenly over the sum of the weights,
    then shuffled (Fisher, Yates).
    """
    size = raw.size
    out = np.empty(size, np.int32)
    if size == 0:
        return out
    total = np.int64(0)
    for weight in weights:
        total += weight
    if total <= 0:
        for n in range(size):
            out[n] = np.int64((raw[n] >> np.uint64(32)) * np.uint64(weights.size) >> np.uint64(32))
        return out
    offset = np.int64(raw[0] % np.uint64(total))
    index, reached = 0, np.int64(weights[0])
    for n in range(size):
        at = (np.int64(n) * total + offset) // np.int64(size)
        while at >= reached:
            index += 1
            reached += weights[index]
        out[n] = index
    for n in range(size - 1, 0, -1):
        other = np.int64((raw[n] >> np.uint64(32)) * np.uint64(n + 1) >> np.uint64(32))
        out[n], out[other] = out[other], out[n]
    return out


def _sort_in_numpy(groups: Any, count: Any) -> Any:
    begins = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(groups, minlength=count), out=begins[1:])
    short = groups.astype(np.uint16) if count <= 2**16 else groups  # 16 bits are sorted by digits
    return np.argsort(short, kind="stable"), begins


@kernel(nogil=True, plain=_sort_in_numpy)
def sort_by_group(groups: Any, count: Any) -> Any:
    """Return the positions ordered by group, and where each group begins (counting sort)."""
    begins = np.zeros(count + 1, np.int64)
    for n in range(groups.size):
        begins[groups[n] + 1] += 1
    for k in range(count):
        begins[k + 1] += begins[k]
    at = begins.copy()
    order = np.empty(groups.size, np.int64)
    for n in range(groups.size):
        order[at[groups[n]]] = n
        at[groups[n]] += 1
    return order, begins
