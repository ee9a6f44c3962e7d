"""A tree by Gini impurity over intervals, pruned by description length.

Reference:
    Shafer, Agrawal, Mehta 1996 (SPRINT) for the growing; Mehta, Rissanen, Agrawal 1995 for the pruning: a node
    is a leaf if encoding its class and its exceptions takes fewer bits than encoding the split and both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import lgamma, log, log2, pi
from typing import Any

import numpy as np

from tidegate.arrays import Floats, Ints32
from tidegate.collect.trees._kernels import best_split, class_counts, leaf_of, part

LEAST = 50.0  # least weight of a node that is split; less with few records
Associate = Callable[[Ints32, frozenset[int]], None]  # records, attributes split on above: changes their codes


@dataclass
class Node:
    """A set of records while a tree grows. `counts` are of reported classes."""

    counts: Floats
    attribute: int = -1
    boundary: int = 0
    below: Node | None = None
    above: Node | None = None


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes as arrays; node 0 is the root, a leaf has attribute -1. Codes below the boundary go left."""

    attribute: Ints32
    boundary: Ints32
    left: Ints32
    right: Ints32
    counts: Floats = field(repr=False)  # (nodes, classes), of true classes

    @property
    def leaves(self) -> int:
        return int((self.attribute < 0).sum())

    @property
    def used(self) -> list[int]:
        """The attributes of all splits, ascending."""
        return sorted({int(a) for a in self.attribute if a >= 0})

    def to_dict(self) -> dict[str, Any]:
        """Return the arrays as JSON values."""
        return {name: getattr(self, name).tolist() for name in ("attribute", "boundary", "left", "right", "counts")}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tree:
        """Return the tree that `to_dict` wrote."""
        attribute, boundary, left, right = (
            np.array(data[name], np.int32) for name in ("attribute", "boundary", "left", "right")
        )
        return cls(attribute, boundary, left, right, np.array(data["counts"], np.float64))

    def leaf(self, codes: Ints32) -> Ints32:
        """Return the leaf of every record of (records, attributes)."""
        leaves: Ints32 = leaf_of(codes, self.attribute, self.boundary, self.left, self.right)
        return leaves

    def boxes(self, sizes: Ints32) -> dict[int, Ints32]:
        """Return the first and one past the last interval of every attribute for every leaf: (attributes, 2)."""
        boxes, waiting = {}, [(0, np.stack([np.zeros_like(sizes), sizes], axis=1))]
        while waiting:
            node, box = waiting.pop()
            a, at = int(self.attribute[node]), self.boundary[node]
            if a < 0:
                boxes[node] = box
                continue
            low, high = box.copy(), box.copy()
            low[a, 1] = high[a, 0] = at
            waiting += [(int(self.right[node]), high), (int(self.left[node]), low)]
        return boxes


def grow(
    codes: Ints32, labels: Ints32, *, sizes: Ints32, unmix: Floats, weights: Floats | None = None,
    associate: Associate | None = None, unit: float = 1.0,
) -> Tree:  # fmt: skip
    """Grow and prune the tree of codes (attributes, records). `associate` can change the codes of a node's records in place.

    `unit` is the number of records that a weight of one represents when bits are counted.
    """
    record_weights = np.ones(labels.size) if weights is None else weights
    least = min(LEAST, max(2.0, float(record_weights.sum()) / 100))
    order = np.arange(labels.size, dtype=np.int32)
    root = _grow(codes, labels, record_weights, order, sizes, unmix, associate, frozenset(), least)
    _prune(root, sizes, unmix, unit)
    return _flat(root, unmix)


def _grow(
    codes: Ints32, labels: Ints32, weights: Floats, records: Ints32, sizes: Ints32, unmix: Floats,
    associate: Associate | None, above: frozenset[int], least: float,
) -> Node:  # fmt: skip
    if associate is not None:
        associate(records, above)
    counts = class_counts(codes, labels, weights, records, sizes, unmix.shape[0])
    node = Node(counts[0].sum(axis=0))
    if node.counts.sum() < least or (node.counts > 0).sum() < 2:
        return node
    a, boundary, impurity = best_split(counts, sizes, unmix)
    if a < 0 or impurity >= _gini(node.counts, unmix) * (1 - 1e-12):
        return node
    middle = part(codes[a], boundary, records)
    node.attribute, node.boundary = a, boundary
    inner = above | {a}
    node.below = _grow(codes, labels, weights, records[:middle], sizes, unmix, associate, inner, least)
    node.above = _grow(codes, labels, weights, records[middle:], sizes, unmix, associate, inner, least)
    return node


def _gini(counts: Floats, unmix: Floats) -> float:
    true = np.maximum(unmix @ counts, 0)
    return float(true.sum() - (true**2).sum() / max(true.sum(), 1e-300))


def leaf_bits(counts: Floats) -> float:
    """Return the bits that encode the class of every record of a leaf.

    Reference:
        Rastogi, Shim 1998 (PUBLIC), Section 3.1; Krichevsky, Trofimov 1981.
    """
    n, k = float(counts.sum()), counts.size
    if n <= 0:
        return 0.0
    some = counts[counts > 0]
    spread = float((some * np.log2(n / some)).sum())
    return spread + max(0.0, (k - 1) / 2 * log2(n / 2) + (k / 2 * log(pi) - lgamma(k / 2)) / log(2))


def _prune(node: Node, sizes: Ints32, unmix: Floats, unit: float) -> float:
    """Remove splits that do not save bits; return the remaining bits. One bit distinguishes a leaf from a split."""
    here = 1 + leaf_bits(unit * np.maximum(unmix @ node.counts, 0))
    if node.below is None or node.above is None:
        return here
    test = 1 + log2(sizes.size) + log2(max(1, int(sizes[node.attribute]) - 1))
    split = test + _prune(node.below, sizes, unmix, unit) + _prune(node.above, sizes, unmix, unit)
    if here <= split:
        node.attribute, node.below, node.above = -1, None, None
    return min(here, split)


def _flat(root: Node, unmix: Floats) -> Tree:
    nodes, left, right = [root], [-1], [-1]
    index = 0
    while index < len(nodes):
        for side, child in ((left, nodes[index].below), (right, nodes[index].above)):
            if child is not None:
                side[index] = len(nodes)
                nodes.append(child)
                left.append(-1)
                right.append(-1)
        index += 1
    true = np.maximum(np.array([unmix @ node.counts for node in nodes]), 0)
    attribute, boundary = (_ints([getattr(node, name) for node in nodes]) for name in ("attribute", "boundary"))
    return Tree(attribute, boundary, _ints(left), _ints(right), true)


def _ints(numbers: list[int]) -> Ints32:
    return np.array(numbers, np.int32)
