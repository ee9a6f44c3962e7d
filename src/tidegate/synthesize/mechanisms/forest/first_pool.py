"""A pool of rows drawn from the forest with a public seed: cells of every column, weighted by raking and resampled later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tidegate.arrays import Floats, Ints, Ints32, Positions
from tidegate.synthesize.facts import Column
from tidegate.synthesize.mechanisms.forest._kernels import exchange_rows
from tidegate.synthesize.mechanisms.forest.groups import Grouping
from tidegate.synthesize.mechanisms.forest.pairs import Pair, fit_table
from tidegate.synthesize.mechanisms.forest.rounds import independent_counts

POOL = 150_000
SEED = 20180604  # public: the pool is drawn from numbers that are already released

Generator = np.random.Generator


def draw_pool(pairs: Sequence[Pair], shares: Sequence[Floats], rows: int) -> Ints32:
    """Return the cells of POOL rows, (columns, rows): parents first, children by the pair that joins them."""
    generator = np.random.Generator(np.random.PCG64(SEED))
    cells: dict[int, Ints32] = {}
    for root in range(len(shares)):
        if root not in cells:
            cells[root] = spread(shares[root], POOL, generator)
            _descend(root, pairs, shares, rows, cells, generator)
    return np.stack([cells[n] for n in range(len(shares))])


def _descend(
    root: int,
    pairs: Sequence[Pair],
    shares: Sequence[Floats],
    rows: int,
    cells: dict[int, Ints32],
    generator: Generator,
) -> None:
    """Draw all columns connected to a root."""
    reached = [root]
    for parent in reached:
        for pair in pairs:
            both = pair.candidate.left, pair.candidate.right
            if parent in both and (child := both[both[0] == parent]) not in cells:
                table, above, below = _orient(pair, shares, rows, parent)
                cells[child] = _draw_children(above.cells[cells[parent]], table, below, shares[child], generator)
                reached.append(child)


def _orient(pair: Pair, shares: Sequence[Floats], rows: int, parent: int) -> tuple[Floats, Grouping, Grouping]:
    """Return the pair's table, fitted to both margins, with the parent's groups as rows."""
    candidate = pair.candidate
    table = pair.against(independent_counts(candidate, shares[candidate.left], shares[candidate.right], rows))
    left, right = candidate.rows.sums(shares[candidate.left]), candidate.columns.sums(shares[candidate.right])
    table = fit_table(table, rows * left, rows * right)
    if parent == candidate.left:
        return table, candidate.rows, candidate.columns
    return table.T, candidate.columns, candidate.rows


def _draw_children(parents: Ints, table: Floats, groups: Grouping, shares: Floats, generator: Generator) -> Ints32:
    """Draw a cell for each row, given its parent's group: a group by the table, then one of its cells by the margin."""
    drawn = np.empty(parents.size, np.int64)
    for group in range(table.shape[0]):
        here = np.flatnonzero(parents == group)
        drawn[here] = spread(table[group], here.size, generator)
    out = np.empty(parents.size, np.int32)
    for group in range(groups.size):
        here, members = np.flatnonzero(drawn == group), np.flatnonzero(groups.cells == group)
        out[here] = members[spread(shares[members], here.size, generator)]
    return out


def spread(weights: Floats, size: int, generator: Generator) -> Ints32:
    """Draw `size` indexes by their weights, each as often as expected to within one, in random order."""
    total = np.cumsum(weights)
    if size == 0 or total[-1] <= 0:
        return generator.integers(0, weights.size, size, dtype=np.int32)
    at = (generator.permutation(size) + generator.random()) / size * total[-1]
    return np.asarray(np.minimum(np.searchsorted(total, at, side="right"), weights.size - 1), np.int32)


OFFERS = 2  # attempted exchanges per drawn row


@dataclass(frozen=True, eq=False)
class WeightedPool:
    """The learned model: weighted rows of cells, and tables to agree with (the cell of each row in each of them).

    It contains nothing private.
    """

    columns: tuple[Column, ...]
    cells: Ints32
    weights: Floats
    tables: Sequence[Ints32] = ()

    def draw(self, rows: int, *, seed: int) -> Ints:
        """Draw rows of the pool by their weights, and codes evenly inside their cells.

        A sample of independent rows would miss the model's counts by random error; here rows are exchanged until margins and
        counted pairs are nearly those of the whole pool.
        """
        generator = np.random.Generator(np.random.PCG64(seed))
        chosen = self._exchange(self._sample(rows, generator), generator)
        cells = self.cells[:, generator.permutation(chosen)]
        return np.column_stack([_codes(c, k, generator) for c, k in zip(self.columns, cells, strict=True)])

    def _sample(self, rows: int, generator: Generator) -> Positions:
        """Return each row of the pool as often as its weight requires, to within one."""
        total = np.cumsum(self.weights)
        at = (np.arange(rows) + generator.random()) / max(rows, 1) * total[-1]
        return np.asarray(np.minimum(np.searchsorted(total, at, side="right"), total.size - 1))

    def _exchange(self, chosen: Positions, generator: Generator) -> Positions:
        if chosen.size == 0:
            return chosen
        size = int(self._places[-1].max()) + 1
        expected = sum((np.bincount(table, self.weights, size) for table in self._places), np.zeros(size))
        expected *= chosen.size / self.weights.sum()
        over = np.bincount(self._places[:, chosen].ravel(), minlength=size) - expected
        offers = generator.permutation(self._sample(OFFERS * chosen.size, generator))
        slots = generator.integers(0, chosen.size, offers.size)
        return np.asarray(exchange_rows(chosen, self._places, over, 1 / (expected + 1), slots, offers))

    @cached_property
    def _places(self) -> Ints32:
        """The cell of each row in all margins and tables, numbered one after the other: (tables, pool)."""
        tables = [*self.cells, *self.tables]
        ends = np.cumsum([int(table.max()) + 1 for table in tables])
        return np.stack([table + start for table, start in zip(tables, [0, *ends[:-1]], strict=True)]).astype(np.int32)


def _codes(column: Column, cells: Ints32, generator: Generator) -> Ints:
    """Draw a code inside each cell, all equally likely."""
    firsts, ends = np.array(column.firsts), np.array(column.ends)
    return np.asarray(firsts[cells] + generator.integers(0, (ends - firsts)[cells], dtype=np.int64))
