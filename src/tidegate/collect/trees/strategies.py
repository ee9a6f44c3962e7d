"""The published strategies: how often the distributions are reconstructed while a tree grows.

randomized   never: reports are used as values                    global    once for each attribute
original     never: there is no noise (the tree to compare with)   by-class  once for each attribute and class
local        at every node, for each attribute and class

Reference:
    Agrawal, Srikant 2000 (SIGMOD), Section 4. Records are assigned to intervals in the order of their reports.
"""

from __future__ import annotations

import numpy as np

from tidegate.arrays import Ints32
from tidegate.collect.reconstruct.fit import one_thread
from tidegate.collect.trees.grow import Tree, grow
from tidegate.collect.trees.training import Training

FEWEST = 500  # records of a node that is reconstructed separately; smaller nodes keep the parent's association
FEWEST_OF_A_CLASS = 50


def randomized(training: Training) -> Tree:
    """Return the tree of the reports, used as values; for plain columns, the tree of the values."""
    codes = [column.nearest[rows] for column, rows in zip(training.columns, training.reports, strict=True)]
    return _grown(training, np.array(codes, np.int32))


@one_thread
def globally(training: Training) -> Tree:
    """Return the tree after one reconstruction for each attribute over all classes."""
    return _grown(training, _associated(training, [training.all()]))


@one_thread
def by_class(training: Training) -> Tree:
    """Return the tree after one reconstruction for each attribute and class."""
    return _grown(training, _associated(training, training.by_class(training.all())))


@one_thread
def local(training: Training) -> Tree:
    """Return the tree with a reconstruction at every node, for each attribute and class.

    Attributes of splits above are not reconstructed: their records were chosen by their reports, so their noise is no
    longer independent of the value and the channel does not apply. They keep their association.
    """
    codes = _associated(training, training.by_class(training.all()))

    def again(records: Ints32, above: frozenset[int]) -> None:
        if not above or records.size < FEWEST:
            return
        for group in training.by_class(records):
            if group.size >= FEWEST_OF_A_CLASS:
                for attribute in set(range(len(training.columns))) - above:
                    training.associate(attribute, group, codes[attribute])

    return grow(codes, training.labels, sizes=training.sizes, unmix=training.unmix, associate=again)


def _associated(training: Training, groups: list[Ints32]) -> Ints32:
    codes = np.empty_like(training.reports)
    for attribute in range(len(training.columns)):
        for group in groups:
            training.associate(attribute, group, codes[attribute])
    return codes


def _grown(training: Training, codes: Ints32) -> Tree:
    return grow(codes, training.labels, sizes=training.sizes, unmix=training.unmix)
