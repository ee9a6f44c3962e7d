"""Joint reconstruction of two or three attributes, class by class, and the tree grown from it.

Reconstructing one attribute at a time loses interactions; records are then assigned to intervals by rank. Here the masses
of all combinations of cells are reconstructed, and the tree is grown from these masses without records.

The attributes and the number of EM steps are chosen on two halves of the records: the shares of the classes in each cell
of one half are scored against the masses of the other (Brier's score). This needs only reports and channels.

EM of several attributes at once: masses on cells, counts of combined reports, one channel for each axis.

The steps are those of `reconstruct.em`, with A the product of the channels: it is never formed, but applied one axis after another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from tidegate.arrays import Bools, Floats, Ints32
from tidegate.collect.reconstruct.em import TINY
from tidegate.collect.reconstruct.fit import one_thread
from tidegate.collect.trees.columns import Column
from tidegate.collect.trees.grow import Tree, grow
from tidegate.collect.trees.training import Training

MOST = 3  # attributes
STEPS = (30, 100, 300)  # of EM: early ones are smoother
LOOK = 60  # steps while attributes are compared
COARSE = 13  # cells of an attribute while they are compared
FINE = {1: 100, 2: 50, 3: 40}  # cells of an attribute in the result, by the number of attributes, if there is room
ROOM = 300_000  # largest number of combinations of reports
PAIRS = 12  # attributes of which all pairs are compared; of more, those with the best single scores

Scores = dict[tuple[int, ...], float]


@dataclass(frozen=True)
class Chosen:
    """Attributes, steps, and their score on halves (0 is best)."""

    attributes: tuple[int, ...]
    steps: int
    score: float


@one_thread
def joint(training: Training) -> Tree:
    """Return the tree of the most informative attributes."""
    return joint_of(training, choose(training))


def joint_of(training: Training, chosen: Chosen) -> Tree:
    """Return the tree of these attributes."""
    axes = fine_axes(training, chosen.attributes)
    return tree_of_masses(training, reconstructed(training, axes, steps=(chosen.steps,))[0], axes)


def choose(training: Training) -> Chosen:
    """Choose one to three attributes, each only if it lowers the score; then the number of steps."""
    halves = training.halves()
    axes = [axis(c, a, cells=COARSE) for a, c in enumerate(training.columns)]
    single: Scores = {(a,): score(halves, axes[a : a + 1], (LOOK,))[0] for a in range(len(axes))}
    best = min(single.items(), key=lambda item: item[1])
    good = sorted(which[0] for which in sorted(single, key=single.__getitem__)[:PAIRS])
    while len(best[0]) < min(MOST, len(axes)):
        more = _wider(best[0], good)
        scores = {which: score(halves, [axes[a] for a in which], (LOOK,))[0] for which in more}
        widest = min(scores.items(), key=lambda item: item[1])
        if widest[1] >= best[1]:
            break
        best = widest
    by_steps = score(halves, [axes[a] for a in best[0]], STEPS)
    at = int(np.argmin(by_steps))
    return Chosen(best[0], STEPS[at], by_steps[at])


def _wider(which: tuple[int, ...], good: list[int]) -> list[tuple[int, ...]]:
    """Return every pair, to find attributes that are informative only together; then one attribute more."""
    if len(which) == 1:
        return list(combinations(good, 2))
    return [tuple(sorted((*which, a))) for a in good if a not in which]


def score(halves: tuple[Training, Training], axes: Sequence[Axis], steps: Sequence[int]) -> list[float]:
    """Return the mean of Brier's scores of each half's shares under the other half's masses, after each number of steps."""
    first, second = (reconstructed(half, axes, steps=steps) for half in halves)
    return [(brier(a, b) + brier(b, a)) / 2 for a, b in zip(first, second, strict=True)]


def brier(shown: Floats, masses: Floats) -> float:
    """Return the mean squared error of the shares by `shown` (classes, cells...), weighted by `masses`."""
    shares = shown / np.maximum(shown.sum(axis=0), TINY)
    errors = (shares**2).sum(axis=0) + 1 - 2 * shares  # sum over k of (share_k - [k = class])^2
    return float((masses * errors).sum() / masses.sum())


def reconstructed(training: Training, axes: Sequence[Axis], *, steps: Sequence[int]) -> list[Floats]:
    """Return masses of the true classes on cells, (classes, cells...), after each number of steps."""
    counts = tally(training, axes)
    runs = zip(*(joint_em(class_counts, axes, steps=steps) for class_counts in counts), strict=True)
    return [training.true(np.stack(masses)) for masses in runs]


def fine_axes(training: Training, attributes: Sequence[int]) -> list[Axis]:
    """Return axes with as many cells as fit; if noise is very wide, reports are merged instead."""
    cells, rows = FINE[len(attributes)], int(ROOM ** (1 / len(attributes)))
    while cells > COARSE:
        axes = [axis(training.columns[a], a, cells=cells) for a in attributes]
        if np.prod([float(axis_.matrix.shape[0]) for axis_ in axes]) <= ROOM:
            return axes
        cells = cells * 4 // 5
    return [axis(training.columns[a], a, cells=COARSE, rows=rows) for a in attributes]


def tree_of_masses(training: Training, masses: Floats, axes: Sequence[Axis]) -> Tree:
    """Return the tree of cells, weighted by their masses, with boundaries in intervals."""
    shape = masses.shape
    indexes = np.indices(shape).reshape(len(shape), -1).astype(np.int32)
    weights = masses.ravel()
    some = weights > 1e-9 * weights.sum()
    codes, labels = np.ascontiguousarray(indexes[1:, some]), np.ascontiguousarray(indexes[0, some])
    sizes = np.array(shape[1:], np.int32)
    grown = grow(codes, labels, sizes=sizes, unmix=np.eye(training.classes), weights=weights[some])
    return in_intervals(grown, axes)


def in_intervals(tree: Tree, axes: Sequence[Axis]) -> Tree:
    """Return the same tree over the intervals of all attributes."""
    attribute, boundary = tree.attribute.copy(), tree.boundary.copy()
    for node in np.flatnonzero(tree.attribute >= 0):
        axis_ = axes[tree.attribute[node]]
        attribute[node], boundary[node] = axis_.attribute, axis_.starts[tree.boundary[node]]
    return replace(tree, attribute=attribute, boundary=boundary)


FEWEST_ROWS = 16  # different reports across the range of the values
RARE = 0.004  # a report less frequent than this (for uniform values) is joined with its neighbor: the tails


@dataclass(frozen=True, eq=False)
class Axis:
    """One attribute of a joint reconstruction: neighboring intervals as cells, equivalent reports joined."""

    attribute: int
    matrix: Floats  # (joined reports, cells)
    joined: Ints32  # (reports,) which of them each is
    starts: Ints32  # (cells + 1,) the first interval of each


def axis(column: Column, attribute: int, *, cells: int, rows: int = 1_000) -> Axis:
    """Return an axis with at most `cells` cells and `rows` rows; joined reports are as wide as a cell, and none is rare."""
    run = -(-column.intervals // cells)
    starts = np.append(np.arange(0, column.intervals, run), column.intervals)
    matrix = column.channel.merged(np.arange(column.channel.reports + 1), starts)
    width = max(_width(column, starts.size - 1), -(-column.channel.reports // rows))
    firsts = _firsts(matrix.mean(axis=1), width)
    joined = (np.cumsum(firsts) - 1).astype(np.int32)
    return Axis(attribute, np.add.reduceat(matrix, np.flatnonzero(firsts), axis=0), joined, starts.astype(np.int32))


def _width(column: Column, cells: int) -> int:
    """Return how many neighboring reports are joined, from the distance between reports of the first and last interval."""
    matrix = column.channel.matrix
    if not column.ordered or column.intervals < 2:
        return 1
    ends = np.arange(len(matrix)) @ matrix[:, [0, -1]]
    across = (ends[1] - ends[0]) * column.intervals / (column.intervals - 1)
    return max(1, int(across / max(cells, FEWEST_ROWS) + 1e-9))


def _firsts(shares: Floats, width: int) -> Bools:
    """Return where each group of neighbors starts: at least `width` wide and not rare; the last takes the rest."""
    starts, count, share = np.zeros(shares.size, bool), width, 1.0
    for index, here in enumerate(shares):
        if count >= width and share >= RARE and shares[index:].sum() >= RARE:
            starts[index], count, share = True, 0, 0.0
        count, share = count + 1, share + float(here)
    starts[0] = True
    return starts


def tally(training: Training, axes: Sequence[Axis]) -> Floats:
    """Count each combination of reports by reported class: (classes, reports, reports, ...)."""
    shape = (training.classes, *(axis_.matrix.shape[0] for axis_ in axes))
    indexes = (training.labels, *(axis_.joined[training.reports[axis_.attribute]] for axis_ in axes))
    flat = np.ravel_multi_index(indexes, shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def forward(masses: Floats, axes: Sequence[Axis]) -> Floats:
    """Return the probabilities of combined reports. Each product replaces the first axis and moves it to the end."""
    for axis_ in axes:
        masses = np.tensordot(masses, axis_.matrix, axes=(0, 1))
    return masses


def back(weights: Floats, axes: Sequence[Axis]) -> Floats:
    """Apply the transpose of `forward`."""
    for axis_ in axes:
        weights = np.tensordot(weights, axis_.matrix, axes=(0, 0))
    return weights


def joint_em(counts: Floats, axes: Sequence[Axis], *, steps: Sequence[int]) -> Iterator[Floats]:
    """Yield masses on cells after each of these numbers of steps, from the uniform distribution; they sum to the counts."""
    total, shape = counts.sum(), tuple(axis_.matrix.shape[1] for axis_ in axes)
    masses, done = np.full(shape, total / np.prod(shape)), 0
    for target in steps:
        for _ in range(target - done):
            masses = masses * back(counts / np.maximum(forward(masses, axes), TINY), axes)
            masses *= total / max(masses.sum(), TINY)
        done = target
        yield masses
