"""Positions out of a weighted pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tidegate.arrays import Floats, Ints, Ints32, Positions
from tidegate.synthesize.facts import Column
from tidegate.synthesize.mechanisms.forest._kernels import exchanged

OFFERS = 2  # times the rows: how often a drawn row may be exchanged

Generator = np.random.Generator


@dataclass(frozen=True, eq=False)
class WeightedPool:
    """The learnt model: rows of cells with weights, and tables to agree with (the place of each row in each of them).

    Nothing private is in it.
    """

    columns: tuple[Column, ...]
    cells: Ints32
    weights: Floats
    tables: Sequence[Ints32] = ()

    def draw(self, rows: int, *, seed: int) -> Ints:
        """Positions of the pool by their weights, with codes drawn evenly inside their cells.

        A sample of independent rows would miss the model's counts by as much as chance does; here rows are exchanged until
        margins and counted pairs are nearly those of the whole pool.
        """
        generator = np.random.Generator(np.random.PCG64(seed))
        chosen = self._exchanged(self._sample(rows, generator), generator)
        cells = self.cells[:, generator.permutation(chosen)]
        return np.column_stack([_codes(c, k, generator) for c, k in zip(self.columns, cells, strict=True)])

    def _sample(self, rows: int, generator: Generator) -> Positions:
        """Each row of the pool as often as its weight says, to within one."""
        total = np.cumsum(self.weights)
        at = (np.arange(rows) + generator.random()) / max(rows, 1) * total[-1]
        return np.asarray(np.minimum(np.searchsorted(total, at, side="right"), total.size - 1))

    def _exchanged(self, chosen: Positions, generator: Generator) -> Positions:
        if chosen.size == 0:
            return chosen
        size = int(self._places[-1].max()) + 1
        wanted = sum((np.bincount(table, self.weights, size) for table in self._places), np.zeros(size))
        wanted *= chosen.size / self.weights.sum()
        over = np.bincount(self._places[:, chosen].ravel(), minlength=size) - wanted
        offers = generator.permutation(self._sample(OFFERS * chosen.size, generator))
        slots = generator.integers(0, chosen.size, offers.size)
        return np.asarray(exchanged(chosen, self._places, over, 1 / (wanted + 1), slots, offers))

    @cached_property
    def _places(self) -> Ints32:
        """Where each row counts, in all margins and tables one after the other: (tables, pool)."""
        tables = [*self.cells, *self.tables]
        ends = np.cumsum([int(table.max()) + 1 for table in tables])
        return np.stack([table + start for table, start in zip(tables, [0, *ends[:-1]], strict=True)]).astype(np.int32)


def _codes(column: Column, cells: Ints32, generator: Generator) -> Ints:
    """A code inside each cell, all equally likely."""
    firsts, ends = np.array(column.firsts), np.array(column.ends)
    return np.asarray(firsts[cells] + generator.integers(0, (ends - firsts)[cells], dtype=np.int64))
