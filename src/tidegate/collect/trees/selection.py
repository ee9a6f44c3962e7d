"""The choice of the best strategy from randomized reports alone.

Each tree is grown from half of the records. From the other half, the masses of its leaves are reconstructed
class by class, from the probability of a record's reports given a value in each leaf. The score is Brier's, of the tree's
shares under these masses. The best strategy grows the final tree from all records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats, Ints32
from tidegate.collect.reconstruct.em import TINY
from tidegate.collect.reconstruct.fit import one_thread
from tidegate.collect.trees.grow import Tree
from tidegate.collect.trees.joint import Axis, Chosen, axis, brier, choose, forward, joint_em, joint_of, tally
from tidegate.collect.trees.strategies import by_class, local
from tidegate.collect.trees.training import Training

STEPS = 100
LOOKED_AT = 30_000  # records of the other half
CELLS = 20  # of each attribute that was chosen for joint reconstruction


@one_thread
def best(training: Training) -> tuple[str, Tree]:
    """Return the chosen strategy and its tree."""
    chosen = choose(training)
    half, other = training.halves()
    rest, prior = other.first(LOOKED_AT), prior_of(training, chosen)
    makers: dict[str, Callable[[Training], Tree]] = {
        "joint": lambda data: joint_of(data, chosen),
        "by-class": by_class,
        "local": local,
    }
    scores = {name: held_out(make(half), rest, prior) for name, make in makers.items()}
    name = min(scores, key=scores.__getitem__)
    return name, makers[name](training)


@dataclass(frozen=True, eq=False)
class Prior:
    """The distribution of the values over all classes: jointly for the chosen attributes, separately for each other one."""

    axes: Sequence[Axis]
    masses: Floats  # on the cells of the axes
    marginals: Sequence[Floats]  # of every attribute


def prior_of(training: Training, chosen: Chosen) -> Prior:
    """Reconstruct the prior from all records."""
    axes = [axis(training.columns[a], a, cells=CELLS) for a in chosen.attributes]
    (masses,) = joint_em(tally(training, axes).sum(axis=0), axes, steps=(STEPS,))
    return Prior(axes, masses, [training.masses(a, training.all()) for a in range(len(training.columns))])


def held_out(tree: Tree, rest: Training, prior: Prior) -> float:
    """Return Brier's score of a tree for held-out records; 0 is best."""
    boxes = tree.boxes(rest.sizes)
    chances = leaf_chances(np.array(list(boxes.values())), tree.used, rest, prior)
    masses = np.zeros((rest.classes, len(boxes)))
    for label in range(rest.classes):
        masses[label] = _leaf_masses(chances[rest.labels == label])
    return brier(tree.counts[list(boxes)].T, rest.true(masses))


def leaf_chances(boxes: Ints32, used: Sequence[int], rest: Training, prior: Prior) -> Floats:
    """Return P(reports of a record | a value in the box), (records, boxes), for boxes (boxes, attributes, 2) of intervals."""
    chances = np.ones((rest.records, len(boxes)))
    if together := [axis_ for axis_ in prior.axes if axis_.attribute in used]:
        chances = _together(boxes, rest, prior)
    for a in used:
        if a not in [axis_.attribute for axis_ in together]:
            chances *= _alone(boxes[:, a], rest.columns[a].channel.matrix, prior.marginals[a])[rest.reports[a]]
    return chances


def _together(boxes: Ints32, rest: Training, prior: Prior) -> Floats:
    rows = tuple(axis_.joined[rest.reports[axis_.attribute]] for axis_ in prior.axes)
    chances = np.empty((rest.records, len(boxes)))
    for index, box in enumerate(boxes):
        masses = prior.masses + TINY
        for number, axis_ in enumerate(prior.axes):
            shape = [-1 if number == k else 1 for k in range(len(prior.axes))]
            masses = masses * _overlap(axis_.starts, *box[axis_.attribute]).reshape(shape)
        chances[:, index] = forward(masses / masses.sum(), prior.axes)[rows]
    return chances


def _overlap(starts: Ints32, low: int, high: int) -> Floats:
    """Return the share of each cell in a run of intervals."""
    inside = np.minimum(starts[1:], high) - np.maximum(starts[:-1], low)
    return np.asarray(np.maximum(inside, 0) / np.diff(starts))


def _alone(runs: Ints32, matrix: Floats, marginal: Floats) -> Floats:
    """Return P(report | a value in the run), (reports, runs)."""
    masses = marginal + 1e-9
    reached = np.concatenate([[0.0], np.cumsum(masses)])
    passed = np.concatenate([np.zeros((len(matrix), 1)), np.cumsum(matrix * masses, axis=1)], axis=1)
    low, high = runs[:, 0], runs[:, 1]
    return np.asarray((passed[:, high] - passed[:, low]) / (reached[high] - reached[low]))


def _leaf_masses(chances: Floats) -> Floats:
    """Estimate how many of these records have their value in each leaf, by EM on shares."""
    shares = np.full(chances.shape[1], 1 / chances.shape[1])
    for _ in range(STEPS):
        shares = shares * ((1 / np.maximum(chances @ shares, TINY)) @ chances)
        shares /= max(float(shares.sum()), TINY)
    return np.asarray(len(chances) * shares)
