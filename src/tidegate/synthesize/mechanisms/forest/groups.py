"""Coarser cells: groups of a column's cells with about the same number of rows, according to the noisy margin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.synthesize.facts import Column


@dataclass(frozen=True, eq=False)
class Grouping:
    """The group of every cell of one column, and of every piece of it (see `pieces`)."""

    cells: Ints
    pieces: Ints
    size: int

    def sums(self, values: Floats) -> Floats:
        """Return values of cells, summed over groups."""
        return np.bincount(self.cells, values, self.size).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Groups:
    """All offered groupings of one column, and its pieces: runs of cells that no grouping distinguishes."""

    column: Column
    counts: tuple[int, ...]
    labels: tuple[Ints, ...]

    @cached_property
    def pieces(self) -> Ints:
        """The piece of each cell."""
        if not self.labels:
            return np.zeros(self.column.cells, np.int64)
        differ = np.any([np.diff(label) != 0 for label in self.labels], axis=0)
        if self.column.missing:
            differ[-1] = True  # missing has its own code, beyond the last cell
        return np.concatenate([[0], np.cumsum(differ)])

    @cached_property
    def coarse(self) -> Column:
        """The column with its pieces as cells: the finest cells on which pairs are counted."""
        firsts = np.flatnonzero(np.diff(self.pieces, prepend=-1))
        starts = tuple(self.column.firsts[cell] for cell in firsts if cell < len(self.column.starts))
        return replace(self.column, starts=starts)

    def grouping(self, count: int) -> Grouping:
        label = self.labels[self.counts.index(count)]
        firsts = np.flatnonzero(np.diff(self.pieces, prepend=-1))
        return Grouping(label, label[firsts], int(label.max()) + 1)


def group_cells(column: Column, shares: Floats, counts: Sequence[int]) -> Groups:
    """Return groupings of a column into about as many groups as each count says."""
    group = ordered_groups if column.ordered else largest_and_rest
    group_counts = tuple(sorted(set(counts)))
    return Groups(column, group_counts, tuple(group(shares, count) for count in group_counts))


def largest_and_rest(shares: Floats, count: int) -> Ints:
    """Return a group for each of the largest cells and one group for all others."""
    label = np.full(shares.size, min(count, shares.size) - 1, np.int64)
    largest = np.argsort(-shares, kind="stable")[: count - 1] if count < shares.size else np.arange(shares.size)
    label[np.sort(largest)] = np.arange(largest.size)
    return label


def ordered_groups(shares: Floats, count: int) -> Ints:
    """Return a group for each cell that would fill one, and runs of equal mass of the others, in order."""
    if count >= shares.size:
        return np.arange(shares.size)
    alone = _heavy(shares, count)
    rest = np.where(alone, 0, shares)
    runs = count - int(alone.sum())
    middle = np.cumsum(rest) - rest / 2
    run = np.minimum((middle / max(rest.sum(), 1e-300) * runs).astype(np.int64), runs - 1)
    label = np.where(alone, count + np.arange(shares.size), run)
    return np.unique(label, return_inverse=True)[1].astype(np.int64)


def _heavy(shares: Floats, count: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which cells have at least the mass of an equal group of what remains; at least one group remains for the others."""
    alone = np.zeros(shares.size, np.bool_)
    for cell in np.argsort(-shares, kind="stable")[: count - 1]:
        remaining_mass, remaining_groups = shares[~alone].sum(), count - int(alone.sum())
        if shares[cell] * remaining_groups < remaining_mass:
            break
        alone[cell] = True
    return alone
