"""MST (McKenna, Miklau, Sheldon 2021, arXiv:2108.04978) on public cells, with exact inference on its tree.

Libraries' MST needs minutes for one table; this one needs a second, so that every table and epsilon has three runs. It has
floating-point noise and is for comparison only. The promise is that of our mode z: the zCDP amount of (epsilon, 1e-5), one row
replaced. A third of it goes to margins, a third to choices of pairs, a third to the pairs. Values with fewer rows than three
standard deviations are merged, as in the paper. Inference: margins by weighted means, pairs projected to the simplex, then raked.
"""

from __future__ import annotations

import math
from itertools import combinations
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.synthesis.ours import limit_of
from benchmarks.synthesis.peers import public_cells
from benchmarks.synthesis.tables import TABLES
from tidegate.arrays import Ints

Floats = NDArray[np.float64]
Pair = tuple[int, int]


class Groups(NamedTuple):
    """The cells of a column after merging: the group of each cell, noisy counts of groups, their variances."""

    group_of: Ints
    counts: Floats
    variances: Floats


def synthesize(name: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Return a synthetic table as large as the true one, with its cost."""
    table, rng = TABLES[name](), np.random.default_rng(seed)
    train, columns = table.train[:, table.learnt()], table.columns.learnt
    starts = [
        np.array([*public_cells(table, column), *[column.size] * column.missing, column.size + column.missing])
        for column in columns
    ]
    began = process_time()
    cells = np.column_stack(
        [np.searchsorted(s, codes, side="right") - 1 for s, codes in zip(starts, train.T, strict=True)]
    )
    rho, d = float(limit_of(epsilon, "z").zcdp), len(starts)
    deviation = math.sqrt(3 * d / rho)  # a replaced row moves two counts by 1: zcdp 1 / deviation ** 2
    groups = [merge(np.bincount(c, minlength=len(s) - 1), deviation, rng) for c, s in zip(cells.T, starts, strict=True)]
    merged = np.column_stack([group.group_of[c] for group, c in zip(groups, cells.T, strict=True)])
    tree = choose_tree(merged, groups, rho / 3, rng)
    deviation = math.sqrt(3 * max(len(tree), 1) / rho)
    drawn = draw(tree, infer(merged, groups, tree, deviation, rng), groups, len(train), rng)
    codes = np.column_stack(
        [draw_codes(column, group, begins, rng) for column, group, begins in zip(drawn.T, groups, starts, strict=True)]
    )
    return {"codes": table.with_followers(codes), "seconds": process_time() - began}


def merge(counts: Ints, deviation: float, rng: np.random.Generator) -> Groups:
    """Return noisy counts; cells below three deviations are one group, the last."""
    noisy = counts + rng.normal(0, deviation, len(counts))
    is_frequent = noisy >= 3 * deviation
    group_of = np.where(is_frequent, np.cumsum(is_frequent) - 1, is_frequent.sum())
    merged = np.asarray(np.bincount(group_of, noisy), np.float64)
    return Groups(group_of, merged, deviation**2 * np.bincount(group_of).clip(1))


def choose_tree(merged: Ints, groups: list[Groups], rho: float, rng: np.random.Generator) -> list[Pair]:
    """Return pairs that join all columns, each by the exponential mechanism on the misfit of independence."""
    d, n = merged.shape[1], len(merged)
    shares = [simplex(group.counts, n) / n for group in groups]
    misfits = {
        (i, j): float(np.abs(count(merged, groups, (i, j)) - n * np.outer(shares[i], shares[j])).sum())
        for i, j in combinations(range(d), 2)
    }
    rate = math.sqrt(8 * rho / max(d - 1, 1)) / (2 * 2)  # a replaced row moves a misfit by at most 2
    component, tree = list(range(d)), list[Pair]()
    while len(tree) < d - 1:
        pairs = [pair for pair in misfits if component[pair[0]] != component[pair[1]]]
        scores = rate * np.array([misfits[pair] for pair in pairs]) + rng.gumbel(size=len(pairs))
        i, j = pairs[int(np.argmax(scores))]
        component = [component[i] if label == component[j] else label for label in component]
        tree.append((i, j))
    return tree


def count(merged: Ints, groups: list[Groups], pair: Pair) -> Floats:
    sizes = [len(groups[index].counts) for index in pair]
    both = np.bincount(merged[:, pair[0]] * sizes[1] + merged[:, pair[1]], minlength=sizes[0] * sizes[1])
    return both.reshape(sizes).astype(np.float64)


def infer(
    merged: Ints, groups: list[Groups], tree: list[Pair], deviation: float, rng: np.random.Generator
) -> tuple[list[Floats], dict[Pair, Floats]]:
    """Return margins and pairs that agree: margins by weighted means, pairs projected and raked to them."""
    n = len(merged)
    noisy = {pair: count(merged, groups, pair) for pair in tree}
    noisy = {pair: table + rng.normal(0, deviation, table.shape) for pair, table in noisy.items()}
    margins = []
    for index, group in enumerate(groups):
        weights, sums = 1 / group.variances, group.counts / group.variances
        for pair, table in noisy.items():
            if index in pair:
                axis = 1 - pair.index(index)
                weight = 1 / (table.shape[axis] * deviation**2)
                weights, sums = weights + weight, sums + weight * table.sum(axis=axis)
        margins.append(simplex(sums / weights, n))
    pairs = {}
    for (i, j), table in noisy.items():
        fitted = simplex(table.ravel(), n).reshape(table.shape) + 1e-9 * np.outer(margins[i], margins[j]) / n
        for _ in range(50):
            fitted *= (margins[i] / fitted.sum(axis=1).clip(1e-12))[:, None]
            fitted *= margins[j] / fitted.sum(axis=0).clip(1e-12)
        pairs[i, j] = fitted
    return margins, pairs


def simplex(values: Floats, total: float) -> Floats:
    """Return the nearest vector that is not negative and has this sum."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(values) + 1)
    return np.asarray(np.maximum(values - excess[np.flatnonzero(ordered > excess)[-1]], 0))


def draw(
    tree: list[Pair],
    fitted: tuple[list[Floats], dict[Pair, Floats]],
    groups: list[Groups],
    rows: int,
    rng: np.random.Generator,
) -> Ints:
    """Return groups of every column: the first column by its margin, the others given their neighbor."""
    margins, pairs = fitted
    drawn = np.full((rows, len(groups)), -1)
    drawn[:, 0] = rng.choice(len(margins[0]), rows, p=margins[0] / margins[0].sum())
    known, waiting = {0}, list(tree)
    while waiting:
        pair = next(pair for pair in waiting if (pair[0] in known) != (pair[1] in known))
        waiting.remove(pair)
        parent, child = pair if pair[0] in known else pair[::-1]
        table = pairs[pair] if parent == pair[0] else pairs[pair].T
        for value in np.unique(drawn[:, parent]):
            chosen = np.flatnonzero(drawn[:, parent] == value)
            chances = table[value] if table[value].sum() > 0 else margins[child]
            drawn[chosen, child] = rng.choice(len(chances), len(chosen), p=chances / chances.sum())
        known.add(child)
    return drawn


def draw_codes(drawn: Ints, group: Groups, starts: Ints, rng: np.random.Generator) -> Ints:
    """Return codes: an even cell of the group, an even code of the cell."""
    cells = np.zeros(len(drawn), np.int64)
    for number in np.unique(drawn):
        members, chosen = np.flatnonzero(group.group_of == number), drawn == number
        cells[chosen] = rng.choice(members, int(chosen.sum()))
    return rng.integers(starts[cells], starts[cells + 1])
