"""Compiled loops of the scores: cell counts, sums of floor(2^p a^2 / m), the best trees. Integers throughout.

Only the step from a row to its cell uses floating point. It is a function of that row and of public numbers, the same for
every order and number of rows, so a replaced row changes only its own count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from tidegate.arrays import Floats, Ints, Octets

BLOCK = 512


@njit(cache=True, nogil=True)
def _square(a: int, over: int, b: int, shares: int, places: int) -> int:
    """Return floor(2^p x^2 / (x + y)) for x = a / over, y = b / shares; 0 for an empty cell."""
    if a == 0:
        return 0
    return ((a * a * shares) << places) // (over * (a * shares + over * b))


@njit(cache=True, nogil=True)
def squares(counts: Ints, mass: int, cells: int, shares: int, places: int) -> int:
    """Return the sum over cells of equal synthetic mass."""
    total = 0
    for b in counts:
        total += _square(mass, cells, b, shares, places)
    return total


@njit(cache=True, nogil=True)
def best_dyadic(cells: Ints, counts: Ints, unit: int, over: int, shares: int, places: int, penalty: int) -> int:
    """Return the best value of a dyadic tree. Intervals are numbered as in a heap: 1 is the whole, 2h and 2h+1 its halves.

    The synthetic mass of a rectangle is unit x its cells / over, reduced by twos so that squares stay small.
    """
    side = counts.shape[0]
    a, b = np.empty((2 * side, 2 * side), np.int64), np.empty((2 * side, 2 * side), np.int64)
    best = np.empty((2 * side, 2 * side), np.int64)
    for x in range(2 * side - 1, 0, -1):
        for y in range(2 * side - 1, 0, -1):
            if x >= side and y >= side:
                a[x, y], b[x, y] = cells[x - side, y - side], counts[x - side, y - side]
            elif x < side:
                a[x, y], b[x, y] = a[2 * x, y] + a[2 * x + 1, y], b[2 * x, y] + b[2 * x + 1, y]
            else:
                a[x, y], b[x, y] = a[x, 2 * y] + a[x, 2 * y + 1], b[x, 2 * y] + b[x, 2 * y + 1]
            part, whole = a[x, y], over
            while part > 0 and part & 1 == 0 and whole & 1 == 0:
                part, whole = part >> 1, whole >> 1
            value = _square(unit * part, whole, b[x, y], shares, places)
            if x < side:
                value = max(value, best[2 * x, y] + best[2 * x + 1, y] - penalty)
            if y < side:
                value = max(value, best[x, 2 * y] + best[x, 2 * y + 1] - penalty)
            best[x, y] = value
    return int(best[1, 1])


@njit(cache=True, nogil=True)
def count_pairs(codes: Octets, bins: int) -> Ints:
    """Count rows by the codes of every two columns, in both orders: (columns, columns, bins, bins)."""
    columns, rows = codes.shape
    counts = np.zeros((columns, columns, bins, bins), np.int64)
    for i in range(columns):
        for j in range(i, columns):
            first, second, table = codes[i], codes[j], counts[i, j]
            for r in range(rows):
                table[first[r], second[r]] += 1
            if j > i:
                for u in range(bins):
                    for v in range(bins):
                        counts[j, i, v, u] = table[u, v]
    return counts


@njit(cache=True, nogil=True)
def _leaf(a: int, b: int, ns: int, n: int, places: int) -> int:
    """Return the term of a leaf: floor(2^p a^2 / m), or |a N - ns m| = |a n - ns b| if places < 0."""
    if places < 0:
        return abs(a * n - ns * b)
    return _square(a, 1, b, 1, places)


@njit(cache=True, nogil=True)
def best_depth2(synthetic: Ints, original: Ints, places: int) -> int:
    """Return the best value of a tree of depth two from the counts of all pairs."""
    columns, bins = synthetic.shape[0], synthetic.shape[2]
    ns, n = synthetic[0, 0].sum(), original[0, 0].sum()
    best = _leaf(ns, n, ns, n, places)
    low_a, low_b = np.empty(bins, np.int64), np.empty(bins, np.int64)
    high_a, high_b = np.empty(bins, np.int64), np.empty(bins, np.int64)
    sides = np.empty((2, bins), np.int64)  # the best of the low and the high side of each first threshold
    for i in range(columns):
        sides[:] = 0
        for j in range(columns):
            a, b = synthetic[i, j], original[i, j]
            low_a[:], low_b[:] = 0, 0
            high_a[:], high_b[:] = a.sum(axis=0), b.sum(axis=0)
            for s in range(bins - 1):  # codes up to s are low
                low_a += a[s]
                low_b += b[s]
                high_a -= a[s]
                high_b -= b[s]
                sides[0, s] = max(sides[0, s], _best_cut(low_a, low_b, ns, n, places))
                sides[1, s] = max(sides[1, s], _best_cut(high_a, high_b, ns, n, places))
        for s in range(bins - 1):
            best = max(best, sides[0, s] + sides[1, s])
    return best


@njit(cache=True, nogil=True)
def _best_cut(a: Ints, b: Ints, ns: int, n: int, places: int) -> int:
    """Return the best two leaves of one side, by a threshold between codes (or none)."""
    whole_a, whole_b = a.sum(), b.sum()
    best = _leaf(whole_a, whole_b, ns, n, places)
    below_a, below_b = 0, 0
    for t in range(a.size - 1):
        below_a += a[t]
        below_b += b[t]
        here = _leaf(below_a, below_b, ns, n, places)
        best = max(best, here + _leaf(whole_a - below_a, whole_b - below_b, ns, n, places))
    return best


@njit(cache=True, nogil=True)
def threshold_places(rows: Floats, thresholds: Floats) -> Octets:
    """Count the thresholds of its column below each value: (columns, rows)."""
    count, columns = rows.shape
    codes = np.zeros((columns, count), np.uint8)
    for j in range(columns):
        cuts = thresholds[j]
        for r in range(count):
            value, low, high = rows[r, j], 0, cuts.size
            while low < high:
                middle = (low + high) >> 1
                if value > cuts[middle]:
                    low = middle + 1
                else:
                    high = middle
            codes[j, r] = low
    return codes


@njit(cache=True, nogil=True)
def residual_codes(columns: Floats, theta: Floats, cuts: Floats, start: int, stop: int, codes: Any) -> None:
    """Write the codes of rows start..stop-1 under a sequence of normal regressions into codes[:, 0 : stop-start].

    theta: for column j its intercept, its slopes on earlier columns, the logarithm of its scale.
    """
    size, offset = stop - start, 0
    z = np.empty(size)
    for j in range(columns.shape[0]):
        intercept, scale = theta[offset], np.exp(-theta[offset + j + 1])
        for r in range(size):
            z[r] = columns[j, start + r] - intercept
        for i in range(j):
            slope = theta[offset + 1 + i]
            for r in range(size):
                z[r] -= slope * columns[i, start + r]
        into = codes[j]
        for r in range(size):
            z[r] *= scale
            into[r] = 0
        for cut in cuts:
            for r in range(size):
                into[r] += z[r] > cut
        offset += j + 2


@njit(cache=True, nogil=True)
def count_into(codes: Octets, size: int, cells: int, tables: Ints) -> None:
    """Add rows to the tables of every two columns (or of the only one): tables is (pairs, cells^2) or (1, cells)."""
    columns = codes.shape[0]
    if columns == 1:
        for r in range(size):
            tables[0, codes[0, r]] += 1
        return
    pair = 0
    for i in range(columns):
        for j in range(i + 1, columns):
            first, second, table = codes[i], codes[j], tables[pair]
            for r in range(size):
                table[np.int64(first[r]) * cells + np.int64(second[r])] += 1
            pair += 1


@njit(cache=True, nogil=True)
def sequential_tables(columns: Floats, theta: Floats, cuts: Floats, tables: Ints) -> None:
    """Count the residual cells of one theta, in blocks of rows that stay in the cache."""
    rows, cells = columns.shape[1], cuts.size + 1
    codes = np.empty((columns.shape[0], BLOCK), np.uint8)
    tables[:] = 0
    for start in range(0, rows, BLOCK):
        stop = min(start + BLOCK, rows)
        residual_codes(columns, theta, cuts, start, stop, codes)
        count_into(codes, stop - start, cells, tables)


VARIATION, GRID, DYADIC = 0, 1, 2


@njit(cache=True, nogil=True)
def sequential_values(
    columns: Floats, thetas: Floats, cuts: Floats, kind: int, mass: int, places: int, penalty: int
) -> Ints:
    """Return the score of every theta."""
    width, rows, cells = columns.shape[0], columns.shape[1], cuts.size + 1
    shape = (1, cells) if width == 1 else (width * (width - 1) // 2, cells * cells)
    tables, scores = np.empty(shape, np.int64), np.zeros(thetas.shape[0], np.int64)
    ones = np.ones((cells, cells), np.int64)
    for t in range(thetas.shape[0]):
        sequential_tables(columns, thetas[t], cuts, tables)
        for pair in range(shape[0]):
            if kind == VARIATION:
                for b in tables[pair]:
                    scores[t] += abs(shape[1] * b - rows)
            elif kind == GRID:
                scores[t] += squares(tables[pair], mass, shape[1], 1, places)
            else:
                square = tables[pair].reshape(cells, cells)
                scores[t] += best_dyadic(ones, square, mass, shape[1], 1, places, penalty)
    return scores


@njit(cache=True, nogil=True)
def spread_shares(low: Floats, high: Floats, cells: int, shares: int) -> Ints:
    """Distribute a row's shares over equal cells of [0, 1], in proportion to its interval's overlap: (rows, cells).

    Each row sums to `shares`. Cumulated shares are rounded, and the last cell gets the rest, so every row adds up exactly
    for any floats; an empty or undefined interval is a point.
    """
    cells_of_rows = np.zeros((low.size, cells), np.int64)
    for r in range(low.size):
        start = low[r] if low[r] > 0 else 0.0  # written so that nan becomes an end of [0, 1]
        end = high[r] if high[r] < 1 else 1.0
        length, assigned = end - start, 0
        if not length > 0:
            cells_of_rows[r, min(int(start * cells), cells - 1) if start < 1 else cells - 1] = shares
            continue
        for k in range(cells - 1):
            part = ((k + 1) / cells - start) / length
            if part >= 1:
                cells_of_rows[r, k] = shares - assigned
                assigned = shares
                break
            upto = max(assigned, int(shares * part + 0.5)) if part > 0 else assigned
            cells_of_rows[r, k] = upto - assigned
            assigned = upto
        cells_of_rows[r, cells - 1] += shares - assigned
    return cells_of_rows


@njit(cache=True, nogil=True)
def spread_pairs(first: Ints, second: Ints) -> Ints:
    """Sum over rows the product of their shares on two axes: (cells, cells)."""
    rows, cells = first.shape
    table = np.zeros((cells, second.shape[1]), np.int64)
    for r in range(rows):
        for u in range(cells):
            if first[r, u]:
                for v in range(second.shape[1]):
                    table[u, v] += first[r, u] * second[r, v]
    return table
