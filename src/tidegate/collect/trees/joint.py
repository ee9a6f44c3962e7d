"""Two or three attributes reconstructed together, class by class, and a tree grown from what is found.

One attribute at a time, what the attributes say together is lost, and records are given to intervals by rank to guess it.
Here the masses of all combinations of cells are reconstructed; the tree is grown from these masses, with no records.

Which attributes, and how many steps of EM, is decided on two halves of the records: the shares of the classes in each
cell by one half are held against the masses of the other (Brier's score). It needs reports and channels alone.

EM of several attributes at once: masses on cells, counts of combined reports, one channel for each axis.

The steps are those of `reconstruct.em`, with A the product of the channels: never formed, applied one axis after another.
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
FINE = {1: 100, 2: 50, 3: 40}  # cells of an attribute in the end, by the number of attributes, if there is room
ROOM = 300_000  # combinations of reports that a reconstruction may have
PAIRS = 12  # attributes of which all pairs are compared; of more, those with the best single scores

Scores = dict[tuple[int, ...], float]


@dataclass(frozen=True)
class Chosen:
    """Attributes, steps, and the score that they reached on halves (0 is best)."""

    attributes: tuple[int, ...]
    steps: int
    score: float


@one_thread
def joint(given: Training) -> Tree:
    """The tree of the attributes that say most together."""
    return joint_of(given, choose(given))


def joint_of(given: Training, chosen: Chosen) -> Tree:
    """The tree of these attributes."""
    axes = fine_axes(given, chosen.attributes)
    return tree_of_masses(given, reconstructed(given, axes, steps=(chosen.steps,))[0], axes)


def choose(given: Training) -> Chosen:
    """One, two or three attributes, each only if it lowers the score; then the number of steps."""
    halves = given.halves()
    axes = [axis(c, a, cells=COARSE) for a, c in enumerate(given.columns)]
    single: Scores = {(a,): score(halves, axes[a : a + 1], (LOOK,))[0] for a in range(len(axes))}
    best = min(single.items(), key=lambda item: item[1])
    good = sorted(which[0] for which in sorted(single, key=single.__getitem__)[:PAIRS])
    while len(best[0]) < min(MOST, len(axes)):
        more = _wider(best[0], good)
        found = {which: score(halves, [axes[a] for a in which], (LOOK,))[0] for which in more}
        widest = min(found.items(), key=lambda item: item[1])
        if widest[1] >= best[1]:
            break
        best = widest
    by_steps = score(halves, [axes[a] for a in best[0]], STEPS)
    at = int(np.argmin(by_steps))
    return Chosen(best[0], STEPS[at], by_steps[at])


def _wider(which: tuple[int, ...], good: list[int]) -> list[tuple[int, ...]]:
    """Every pair, so that two attributes that only tell something together are found; then one more."""
    if len(which) == 1:
        return list(combinations(good, 2))
    return [tuple(sorted((*which, a))) for a in good if a not in which]


def score(halves: tuple[Training, Training], axes: Sequence[Axis], steps: Sequence[int]) -> list[float]:
    """Brier's score of each half's shares under the other half's masses, their mean, after each number of steps."""
    one, other = (reconstructed(half, axes, steps=steps) for half in halves)
    return [(brier(a, b) + brier(b, a)) / 2 for a, b in zip(one, other, strict=True)]


def brier(shown: Floats, held: Floats) -> float:
    """The mean squared error of the shares by `shown` (classes, cells...), over the masses `held`."""
    shares = shown / np.maximum(shown.sum(axis=0), TINY)
    wrong = (shares**2).sum(axis=0) + 1 - 2 * shares  # sum over k of (share_k - [k = class])^2
    return float((held * wrong).sum() / held.sum())


def reconstructed(given: Training, axes: Sequence[Axis], *, steps: Sequence[int]) -> list[Floats]:
    """Masses of the true classes on cells, (classes, cells...), after each number of steps."""
    counts = tally(given, axes)
    runs = zip(*(joint_em(one, axes, steps=steps) for one in counts), strict=True)
    return [given.true(np.stack(masses)) for masses in runs]


def fine_axes(given: Training, attributes: Sequence[int]) -> list[Axis]:
    """As many cells as there is room for; where noise is very wide, its reports are taken together instead."""
    cells, rows = FINE[len(attributes)], int(ROOM ** (1 / len(attributes)))
    while cells > COARSE:
        axes = [axis(given.columns[a], a, cells=cells) for a in attributes]
        if np.prod([float(one.matrix.shape[0]) for one in axes]) <= ROOM:
            return axes
        cells = cells * 4 // 5
    return [axis(given.columns[a], a, cells=COARSE, rows=rows) for a in attributes]


def tree_of_masses(given: Training, masses: Floats, axes: Sequence[Axis]) -> Tree:
    """The tree of cells, weighted by their masses, with boundaries told in intervals."""
    shape = masses.shape
    places = np.indices(shape).reshape(len(shape), -1).astype(np.int32)
    weights = masses.ravel()
    some = weights > 1e-9 * weights.sum()
    codes, labels = np.ascontiguousarray(places[1:, some]), np.ascontiguousarray(places[0, some])
    sizes = np.array(shape[1:], np.int32)
    grown = grow(codes, labels, sizes=sizes, unmix=np.eye(given.classes), weights=weights[some])
    return in_intervals(grown, axes)


def in_intervals(tree: Tree, axes: Sequence[Axis]) -> Tree:
    """The same tree over the intervals of all attributes."""
    attribute, boundary = tree.attribute.copy(), tree.boundary.copy()
    for node in np.flatnonzero(tree.attribute >= 0):
        one = axes[tree.attribute[node]]
        attribute[node], boundary[node] = one.attribute, one.starts[tree.boundary[node]]
    return replace(tree, attribute=attribute, boundary=boundary)


FEWEST_ROWS = 16  # kinds of reports across the range of the values
RARE = 0.004  # a kind of report less frequent than this (of even values) is joined with its neighbour: the tails


@dataclass(frozen=True, eq=False)
class Axis:
    """One attribute of a joint reconstruction: neighbouring intervals as cells, reports that say the same joined."""

    attribute: int
    matrix: Floats  # (joined reports, cells)
    joined: Ints32  # (reports,) which of them each is
    starts: Ints32  # (cells + 1,) the first interval of each


def axis(column: Column, attribute: int, *, cells: int, rows: int = 1_000) -> Axis:
    """At most so many cells, and rows; kinds of reports are as wide as a cell, but not too few, and none is rare."""
    run = -(-column.intervals // cells)
    starts = np.append(np.arange(0, column.intervals, run), column.intervals)
    matrix = column.channel.merged(np.arange(column.channel.reports + 1), starts)
    width = max(_width(column, starts.size - 1), -(-column.channel.reports // rows))
    firsts = _firsts(matrix.mean(axis=1), width)
    joined = (np.cumsum(firsts) - 1).astype(np.int32)
    return Axis(attribute, np.add.reduceat(matrix, np.flatnonzero(firsts), axis=0), joined, starts.astype(np.int32))


def _width(column: Column, cells: int) -> int:
    """How many neighbouring reports are joined: by how far the reports of the first and the last interval are apart."""
    matrix = column.channel.matrix
    if not column.ordered or column.intervals < 2:
        return 1
    ends = np.arange(len(matrix)) @ matrix[:, [0, -1]]
    across = (ends[1] - ends[0]) * column.intervals / (column.intervals - 1)
    return max(1, int(across / max(cells, FEWEST_ROWS) + 1e-9))


def _firsts(shares: Floats, width: int) -> Bools:
    """Where a group of neighbours starts: each has `width` at least, and is not rare; the last takes what is left."""
    found, many, share = np.zeros(shares.size, bool), width, 1.0
    for place, here in enumerate(shares):
        if many >= width and share >= RARE and shares[place:].sum() >= RARE:
            found[place], many, share = True, 0, 0.0
        many, share = many + 1, share + float(here)
    found[0] = True
    return found


def tally(given: Training, axes: Sequence[Axis]) -> Floats:
    """How often each combination of reports came from each reported class: (classes, reports, reports, ...)."""
    shape = (given.classes, *(one.matrix.shape[0] for one in axes))
    places = (given.labels, *(one.joined[given.reports[one.attribute]] for one in axes))
    flat = np.ravel_multi_index(places, shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def forward(masses: Floats, axes: Sequence[Axis]) -> Floats:
    """The chances of combined reports. Each product takes the first axis and puts its successor last."""
    for one in axes:
        masses = np.tensordot(masses, one.matrix, axes=(0, 1))
    return masses


def back(weights: Floats, axes: Sequence[Axis]) -> Floats:
    """The transpose of `forward`."""
    for one in axes:
        weights = np.tensordot(weights, one.matrix, axes=(0, 0))
    return weights


def joint_em(counts: Floats, axes: Sequence[Axis], *, steps: Sequence[int]) -> Iterator[Floats]:
    """Masses on cells after each of these numbers of steps, from the even distribution; they sum to the counts."""
    total, shape = counts.sum(), tuple(one.matrix.shape[1] for one in axes)
    masses, done = np.full(shape, total / np.prod(shape)), 0
    for wanted in steps:
        for _ in range(wanted - done):
            masses = masses * back(counts / np.maximum(forward(masses, axes), TINY), axes)
            masses *= total / max(masses.sum(), TINY)
        done = wanted
        yield masses
