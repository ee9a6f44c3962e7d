"""Pools of rows drawn from a fitted forest by a public seed, in whole numbers: the same on every machine and in every version."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats, Ints, Ints32
from tidegate.synthesize.mechanisms.forest._kernels import sort_by_group, spread_ints

UNIT = 2**40  # whole weights of a distribution add up to about this


class Stream:
    """Random 64-bit numbers of a public seed. The raw output of PCG64 is the same in every version of NumPy."""

    def __init__(self, seed: str) -> None:
        digest = hashlib.sha256(seed.encode()).digest()
        self._bits = np.random.PCG64(int.from_bytes(digest[:16]))

    def raw(self, size: int) -> NDArray[np.uint64]:
        return np.asarray(self._bits.random_raw(size), np.uint64)

    def fraction(self) -> float:
        """Return a number from 0 to below 1."""
        return float(int(self.raw(1)[0]) >> 11) * 2.0**-53

    def permuted(self, size: int) -> Ints:
        return np.asarray(spread_ints(np.ones(max(size, 1), np.int64), self.raw(size)), np.int64)

    def below(self, limits: Ints) -> Ints:
        """Return a whole number from 0 to below each limit."""
        return np.asarray(self.raw(limits.size) % limits.astype(np.uint64), np.int64)


def whole_weights(shares: Floats) -> Ints:
    """Return a distribution as whole weights; at least one is positive."""
    total = float(np.cumsum(shares)[-1])
    scaled = np.asarray(np.rint(shares / total * UNIT) if total > 0 else np.zeros(shares.size), np.int64)
    return scaled if scaled.any() else np.ones(shares.size, np.int64)


@dataclass(frozen=True, eq=False)
class GroupTable:
    """A table of two columns on groups of their cells: labels of the cells, and whole weights of the pairs of groups."""

    left: int
    right: int
    rows: Ints
    columns: Ints
    weights: Ints

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.rows.max()) + 1, int(self.columns.max()) + 1

    def places(self, cells: Ints32) -> Ints32:
        """Return the cell of the table for each row of a pool."""
        labels = self.rows[cells[self.left]] * self.shape[1] + self.columns[cells[self.right]]
        return np.asarray(labels, np.int32)

    def turned(self, parent: int) -> tuple[Ints, Ints, Ints]:
        """Return the labels of the parent, those of the child, and the weights with a line for each group of the parent."""
        table = self.weights.reshape(self.shape)
        if parent == self.left:
            return self.rows, self.columns, table
        return self.columns, self.rows, np.ascontiguousarray(table.T)


def draw_pool(
    shares: Sequence[Ints],
    trees: Sequence[GroupTable],
    size: int,
    stream: Stream,
    *,
    fixed: Mapping[int, Ints32] | None = None,
) -> Ints32:
    """Return the cells of `size` rows, (columns, rows): parents first, children by the table that joins them.

    Columns in `fixed` have these cells; they are parents of the columns that are joined to them.
    """
    cells: dict[int, Ints32] = dict(fixed or {})
    for root in [-1, *range(len(shares))]:
        if root in cells:
            continue
        if root >= 0:
            cells[root] = spread_ints(shares[root], stream.raw(size))
        reached = [root] if root >= 0 else list(cells)
        for parent in reached:
            for tree in trees:
                both = tree.left, tree.right
                if parent in both and (child := both[both[0] == parent]) not in cells:
                    cells[child] = _draw_children(cells[parent], tree.turned(parent), shares[child], stream)
                    reached.append(child)
    return np.stack([cells[n] for n in range(len(shares))])


def _draw_children(parents: Ints32, turned: tuple[Ints, Ints, Ints], shares: Ints, stream: Stream) -> Ints32:
    """Draw a cell for each row, given its parent's group: a group by the table, then one of its cells by the margin."""
    above, below, table = turned
    drawn = np.empty(parents.size, np.int32)
    order, begins = sort_by_group(above[parents], table.shape[0])
    for group in range(table.shape[0]):
        here = order[begins[group] : begins[group + 1]]
        drawn[here] = spread_ints(table[group], stream.raw(here.size))
    out = np.empty(parents.size, np.int32)
    order, begins = sort_by_group(drawn, table.shape[1])
    for group in range(table.shape[1]):
        here, members = order[begins[group] : begins[group + 1]], np.flatnonzero(below == group)
        out[here] = members[spread_ints(shares[members], stream.raw(here.size))]
    return out
