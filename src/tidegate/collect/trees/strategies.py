"""The published strategies: how often the distributions are reconstructed while a tree grows.

randomized   never: reports are taken for values                   global    once for each attribute
original     never: there is no noise (the tree to compare with)   by-class  once for each attribute and class
local        at every node, for each attribute and class

Reference  Agrawal, Srikant 2000 (SIGMOD), Section 4. Records are given to intervals by the order of their reports.
"""

from __future__ import annotations

import numpy as np

from tidegate.arrays import Ints32
from tidegate.collect.reconstruct.fit import one_thread
from tidegate.collect.trees.grow import Tree, grow
from tidegate.collect.trees.training import Training

FEWEST = 500  # records of a node that are worth a reconstruction of their own; below, the parent's association stays
FEWEST_OF_A_CLASS = 50


def randomized(given: Training) -> Tree:
    """Reports taken for values. Of plain columns: the tree of the values themselves."""
    codes = [column.nearest[rows] for column, rows in zip(given.columns, given.reports, strict=True)]
    return _grown(given, np.array(codes, np.int32))


@one_thread
def globally(given: Training) -> Tree:
    """One reconstruction for each attribute, whatever the class."""
    return _grown(given, _associated(given, [given.all()]))


@one_thread
def by_class(given: Training) -> Tree:
    """One reconstruction for each attribute and class."""
    return _grown(given, _associated(given, given.by_class(given.all())))


@one_thread
def local(given: Training) -> Tree:
    """A reconstruction at every node, for each attribute and class.

    Not of an attribute that was split on above: its records were chosen by their reports, so their noise is no longer
    independent of the value, and its channel no longer holds. Their association stays.
    """
    codes = _associated(given, given.by_class(given.all()))

    def again(records: Ints32, above: frozenset[int]) -> None:
        if not above or records.size < FEWEST:
            return
        for group in given.by_class(records):
            if group.size >= FEWEST_OF_A_CLASS:
                for attribute in set(range(len(given.columns))) - above:
                    given.associate(attribute, group, codes[attribute])

    return grow(codes, given.labels, sizes=given.sizes, unmix=given.unmix, associate=again)


def _associated(given: Training, groups: list[Ints32]) -> Ints32:
    codes = np.empty_like(given.reports)
    for attribute in range(len(given.columns)):
        for group in groups:
            given.associate(attribute, group, codes[attribute])
    return codes


def _grown(given: Training, codes: Ints32) -> Tree:
    return grow(codes, given.labels, sizes=given.sizes, unmix=given.unmix)
