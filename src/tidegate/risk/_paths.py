"""Compiled kernels: samples of a table of independent records, one record at a time; exact sums over binomials.

The generator (splitmix64) is implemented here, so that a seed gives the same paths on every machine and version. It computes
thresholds and protects no one. Protective noise comes from `tidegate.noise` alone.

Reference:
    Steele, Lea, Flood 2014 (splitmix64); Walker 1977 (drawing from a list of odds in one step).
"""

from __future__ import annotations

import math

import numpy as np

from tidegate.arrays import Floats, Ints, Words
from tidegate.extras import require
from tidegate.kernels import kernel

require("release", "Releasing records")

HALF = 32
WELL_POPULATED = 2000.0


@kernel()
def _mix(word: np.uint64) -> np.uint64:
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.uint64(word ^ (word >> np.uint64(31)))


@kernel()
def _draw_index(word: np.uint64, odds: Words, other: Ints) -> int:
    """Return an index: the upper half of a word selects it, the lower half decides whether to take its alias."""
    index = np.int64(((word >> np.uint64(HALF)) * np.uint64(odds.size)) >> np.uint64(HALF))
    return int(index if (word & np.uint64(0xFFFFFFFF)) < odds[index] else other[index])


@kernel(work=lambda sizes, first, stop, *_: 20 * int(stop - first) * int(sizes[-1]))
def grow_paths(
    sizes: Ints,
    first: int,
    stop: int,
    seed: np.uint64,
    value_odds: Words,
    value_other: Ints,
    target_odds: Words,
    target_other: Ints,
    costs: Floats,
) -> Floats:
    """Return G = sum over targets of g at each size, on paths first .. stop-1: (sizes, paths).

    A record of value x for a target that has c of it among its n adds 2 (D[c] - ln b[x] - D[n]) to G, where
    D[k] = (k+1) ln(k+1) - k ln k. `costs` is -ln b.
    """
    values, targets, longest = value_odds.size, target_odds.size, sizes[-1]
    steps = np.empty(longest)
    for k in range(longest):
        steps[k] = (k + 1) * math.log(k + 1) - (k * math.log(k) if k else 0.0)
    counts = np.zeros(values * targets, np.int32)
    target_sizes = np.zeros(targets, np.int32)
    cells = np.empty(longest, np.int64)
    out = np.empty((sizes.size, stop - first))
    stride = np.uint64(0x9E3779B97F4A7C15)
    for path in range(first, stop):
        state = _mix(np.uint64(seed) + stride * np.uint64(path + 1))  # a separate stream for each path
        total, row = 0.0, 0
        for n in range(longest):
            state += stride
            x = _draw_index(_mix(state), value_odds, value_other)
            y = 0
            if targets > 1:
                state += stride
                y = _draw_index(_mix(state), target_odds, target_other)
            cell = y * values + x
            total += 2 * (steps[counts[cell]] + costs[x] - steps[target_sizes[y]])
            counts[cell] += 1
            target_sizes[y] += 1
            cells[n] = cell
            if n + 1 == sizes[row]:
                out[row, path - first] = total
                row += 1
        for n in range(longest):  # cheaper than clearing a large table with few touched cells
            counts[cells[n]] = 0
            target_sizes[cells[n] // values] = 0
    return out


@kernel(work=lambda sizes, shares, times: 200 * int(sizes.size * shares.size))
def expected_divergence(sizes: Ints, shares: Floats, times: Ints) -> Floats:
    """Return E[g] of n independent draws, for each n; a share of several values is passed once, with its times."""
    out = np.zeros(sizes.size)
    for i in range(sizes.size):
        for j in range(shares.size):
            out[i] += times[j] * _expected_part(sizes[i], shares[j])
    return out


@kernel()
def _expected_part(n: int, share: float) -> float:
    """Return 2 E[c ln(c / m) - (c - m)] for c of Binomial(n, share), m = n share: terms of one sign do not cancel."""
    mean, rest = n * share, 1 - share
    if mean > WELL_POPULATED:  # by central moments; the remainder is of order mean^-3
        second = rest * (1 - 6 * share * rest) / 6 - rest**2 * (1 - 2 * share) + rest**3
        return rest + rest * (1 + share) / (6 * mean) + second / mean**2
    mode = min(int((n + 1) * share), n)
    mass, total = 1.0, _loss(mode, mean)  # probabilities relative to the mode, outward until they vanish
    chance, c = 1.0, mode
    while c < n and chance > 1e-19:
        chance *= (n - c) / (c + 1) * (share / rest)
        c += 1
        mass += chance
        total += chance * _loss(c, mean)
    chance, c = 1.0, mode
    while c > 0 and chance > 1e-19:
        chance *= c / (n - c + 1) * (rest / share)
        c -= 1
        mass += chance
        total += chance * _loss(c, mean)
    return 2 * total / mass  # type: ignore[no-any-return]  # a kernel returns what its source returns


@kernel()
def _loss(c: int, mean: float) -> float:
    if c == 0:
        return mean
    excess = (c - mean) / mean
    return mean * ((1 + excess) * math.log1p(excess) - excess)


def alias_table(shares: Floats) -> tuple[Words, Ints]:
    """Return, for each index, the odds (of 2^32) to keep it, and its alias otherwise."""
    size = shares.size
    level = [float(share) / float(shares.sum()) * size for share in shares]
    odds, other = np.full(size, 2**HALF, np.uint64), np.arange(size)
    poor = [index for index in range(size) if level[index] < 1]
    rich = [index for index in range(size) if level[index] >= 1]
    while poor and rich:
        low, high = poor.pop(), rich[-1]
        odds[low], other[low] = round(level[low] * 2**HALF), high
        level[high] -= 1 - level[low]
        if level[high] < 1:
            poor.append(rich.pop())
    return odds, other
