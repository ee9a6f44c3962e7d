"""Which strategy's tree is the best, told from randomized reports alone.

Each tree is grown from half of the records. Of the other half the masses of its leaves are reconstructed, class by class
through the channels: leaf by leaf, how likely a record's reports are from values there. The score is Brier's, of the tree's
own shares under these masses. The strategy that wins grows the final tree, from all records.
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
def best(given: Training) -> tuple[str, Tree]:
    """The strategy chosen and its tree."""
    chosen = choose(given)
    half, other = given.halves()
    rest, prior = other.first(LOOKED_AT), prior_of(given, chosen)
    makers: dict[str, Callable[[Training], Tree]] = {
        "joint": lambda data: joint_of(data, chosen),
        "by-class": by_class,
        "local": local,
    }
    scores = {name: held_out(make(half), rest, prior) for name, make in makers.items()}
    name = min(scores, key=scores.__getitem__)
    return name, makers[name](given)


@dataclass(frozen=True, eq=False)
class Prior:
    """How the values are distributed, whatever the class: the chosen attributes together, each other one by itself."""

    axes: Sequence[Axis]
    masses: Floats  # on the cells of the axes
    marginals: Sequence[Floats]  # of every attribute


def prior_of(given: Training, chosen: Chosen) -> Prior:
    """Reconstructed from all records."""
    axes = [axis(given.columns[a], a, cells=CELLS) for a in chosen.attributes]
    (masses,) = joint_em(tally(given, axes).sum(axis=0), axes, steps=(STEPS,))
    return Prior(axes, masses, [given.masses(a, given.all()) for a in range(len(given.columns))])


def held_out(tree: Tree, rest: Training, prior: Prior) -> float:
    """Brier's score of a tree for records that it has not seen; 0 is best."""
    boxes = tree.boxes(rest.sizes)
    chances = leaf_chances(np.array(list(boxes.values())), tree.used, rest, prior)
    found = np.zeros((rest.classes, len(boxes)))
    for label in range(rest.classes):
        found[label] = _leaf_masses(chances[rest.labels == label])
    return brier(tree.counts[list(boxes)].T, rest.true(found))


def leaf_chances(boxes: Ints32, used: Sequence[int], rest: Training, prior: Prior) -> Floats:
    """P(reports of a record | a value in the box), (records, boxes), for boxes (boxes, attributes, 2) of intervals."""
    found = np.ones((rest.records, len(boxes)))
    if together := [one for one in prior.axes if one.attribute in used]:
        found = _together(boxes, rest, prior)
    for a in used:
        if a not in [one.attribute for one in together]:
            found *= _alone(boxes[:, a], rest.columns[a].channel.matrix, prior.marginals[a])[rest.reports[a]]
    return found


def _together(boxes: Ints32, rest: Training, prior: Prior) -> Floats:
    rows = tuple(one.joined[rest.reports[one.attribute]] for one in prior.axes)
    found = np.empty((rest.records, len(boxes)))
    for place, box in enumerate(boxes):
        masses = prior.masses + TINY
        for number, one in enumerate(prior.axes):
            shape = [-1 if number == k else 1 for k in range(len(prior.axes))]
            masses = masses * _overlap(one.starts, *box[one.attribute]).reshape(shape)
        found[:, place] = forward(masses / masses.sum(), prior.axes)[rows]
    return found


def _overlap(starts: Ints32, low: int, high: int) -> Floats:
    """Which share of each cell lies in a run of intervals."""
    inside = np.minimum(starts[1:], high) - np.maximum(starts[:-1], low)
    return np.asarray(np.maximum(inside, 0) / np.diff(starts))


def _alone(runs: Ints32, matrix: Floats, marginal: Floats) -> Floats:
    """P(report | a value in the run), (reports, runs)."""
    masses = marginal + 1e-9
    reached = np.concatenate([[0.0], np.cumsum(masses)])
    passed = np.concatenate([np.zeros((len(matrix), 1)), np.cumsum(matrix * masses, axis=1)], axis=1)
    low, high = runs[:, 0], runs[:, 1]
    return np.asarray((passed[:, high] - passed[:, low]) / (reached[high] - reached[low]))


def _leaf_masses(chances: Floats) -> Floats:
    """How many of these records have their value in each leaf: EM on shares."""
    shares = np.full(chances.shape[1], 1 / chances.shape[1])
    for _ in range(STEPS):
        shares = shares * ((1 / np.maximum(chances @ shares, TINY)) @ chances)
        shares /= max(float(shares.sum()), TINY)
    return np.asarray(len(chances) * shares)
