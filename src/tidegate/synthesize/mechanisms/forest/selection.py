"""Which pair of columns to count next, and how finely: the one whose counts are furthest from the model.

The score of a candidate is half the total variation between the rows and the model on its groups, in rows, minus the
noise of counting it. Scores are counted in halves: integers that change by at most 2 when one row changes (one count falls
by 1, another rises by 1; the model and the noise are public by then).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.synthesize.facts import Column
from tidegate.synthesize.mechanisms.forest._kernels import coarsen_table
from tidegate.synthesize.mechanisms.forest.groups import Grouping, Groups, group_cells
from tidegate.synthesize.mechanisms.forest.margins import Margin

NOISE_WEIGHT = 0.7  # share of the expected noise that a candidate's misfit must exceed
HALVES = 2  # scores are counted in halves
LARGEST_PENALTY = 2**50

Tables = Mapping[tuple[int, int], Ints]


@dataclass(frozen=True, eq=False)
class Candidate:
    """Two columns, each divided into groups."""

    left: int
    right: int
    rows: Grouping
    columns: Grouping

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.size, self.columns.size

    @property
    def cells(self) -> int:
        return self.rows.size * self.columns.size


def group_counts(left: int, right: int, size: int, most: int) -> tuple[int, int]:
    """Return the numbers of groups of two columns that give a table of about `size` cells, as square as possible."""
    rows = min(left, most, max(2, round(size**0.5)))
    columns = min(right, most, max(2, size // rows))
    return min(left, most, max(2, size // columns)), columns


def offer_groupings(
    cells: Sequence[int], sizes: Sequence[int], most: int
) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Return the numbers of groups offered for each pair of columns. Columns of one cell carry no information."""
    pairs = [(i, j) for i, j in combinations(range(len(cells)), 2) if min(cells[i], cells[j]) > 1]
    return {(i, j): sorted({group_counts(cells[i], cells[j], s, most) for s in sizes}) for i, j in pairs}


class Candidates:
    """All candidates, and the offsets of their cells in one long array."""

    def __init__(self, groups: Sequence[Groups], offers: Mapping[tuple[int, int], Sequence[tuple[int, int]]]) -> None:
        self.groups = groups
        self.all = [
            Candidate(i, j, groups[i].grouping(a), groups[j].grouping(b))
            for (i, j), counts in offers.items()
            for a, b in counts
        ]
        self.cells = np.array([candidate.cells for candidate in self.all], np.int64)
        self.left = np.array([candidate.left for candidate in self.all], np.int64)
        self.right = np.array([candidate.right for candidate in self.all], np.int64)
        self.offsets = np.concatenate([[0], np.cumsum(self.cells)]).astype(np.int64)

    @cached_property
    def by_pair(self) -> dict[tuple[int, int], list[int]]:
        indexes: dict[tuple[int, int], list[int]] = {}
        for index, candidate in enumerate(self.all):
            indexes.setdefault((candidate.left, candidate.right), []).append(index)
        return indexes

    def table(self, flat: Floats | Ints, index: int) -> Floats | Ints:
        """Return a candidate's part of a long array, as a table."""
        return flat[self.offsets[index] : self.offsets[index + 1]].reshape(self.all[index].shape)

    def coarsen(self, flat: Floats | Ints, pair: tuple[int, int], table: Floats | Ints) -> None:
        """Sum a pair's table over pieces into the tables of all its candidates."""
        for index in self.by_pair[pair]:
            candidate = self.all[index]
            coarsen_table(table, candidate.rows.pieces, candidate.columns.pieces, self.table(flat, index))

    def joining(self, component: Ints) -> list[int]:
        """Return the candidates whose columns are not connected yet."""
        indexes: list[int] = np.flatnonzero(component[self.left] != component[self.right]).tolist()
        return indexes


def prepare_candidates(
    margins: Sequence[Margin],
    sizes: Sequence[int],
    most_groups: int,
    count: Callable[[Sequence[Column]], Tables],
    *,
    without: Iterable[int] = (),
    known: Iterable[int] = (),
) -> tuple[Candidates, Private]:
    """Return the candidates, and the rows' counts on them. The margins choose groups, and the groups give candidates.

    `count` counts all pairs of columns, once, on the finest cells that a candidate needs. Columns in `without` are in no pair,
    columns in `known` in no pair with each other.
    """
    absent = set(without)
    cells = [1 if n in absent else margin.column.cells for n, margin in enumerate(margins)]
    offers = offer_groupings(cells, sizes, most_groups)
    related = set(known)
    offers = {pair: counts for pair, counts in offers.items() if not related.issuperset(pair)}
    counts_by_column: list[set[int]] = [set() for _ in margins]
    for (i, j), counts in offers.items():
        counts_by_column[i] |= {a for a, _ in counts}
        counts_by_column[j] |= {b for _, b in counts}
    groups = [
        group_cells(margin.column, margin.shares(), sorted(counts))
        for margin, counts in zip(margins, counts_by_column, strict=True)
    ]
    candidates = Candidates(groups, offers)
    return candidates, Private(candidates, lambda: count([group.coarse for group in groups]))


class Private:
    """The rows' counts on every candidate, requested once, when the first of them is needed."""

    def __init__(self, candidates: Candidates, ask: Callable[[], Tables]) -> None:
        self._candidates, self._ask = candidates, ask

    @cached_property
    def counts(self) -> Ints:
        flat = np.zeros(self._candidates.offsets[-1], np.int64)
        tables = self._ask()
        for pair in self._candidates.by_pair:
            self._candidates.coarsen(flat, pair, np.ascontiguousarray(tables[pair]))
        return flat

    def table(self, index: int) -> Ints:
        return np.asarray(self._candidates.table(self.counts, index))

    def misfits(self, model: Ints) -> Ints:
        """Return the sum of absolute differences from a model's integers, for every candidate.

        The model is clipped to plausible numbers, so that a floating-point failure cannot make a sum wrap around: the sum would
        then change by more than 2.
        """
        if not self._candidates.all:
            return np.zeros(0, np.int64)
        return np.add.reduceat(np.abs(self.counts - np.clip(model, 0, LARGEST_PENALTY)), self._candidates.offsets[:-1])


def penalties(cells: Ints, mean_noise: Floats) -> Ints:
    """Return the expected noise of counting, in halves of a row: integers that do not depend on the data."""
    return np.minimum(np.rint(NOISE_WEIGHT * cells * mean_noise), LARGEST_PENALTY).astype(np.int64)
