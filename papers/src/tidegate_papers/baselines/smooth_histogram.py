""" "smooth-histogram/1": rows drawn from the histogram mixed with the uniform distribution, as many as the original has.

The mixing weight is the printed one, lambda >= K / (K + n (e^(epsilon/n) - 1)), with epsilon for n (e^(epsilon/n) - 1):
larger, so valid, by a share of epsilon / 2n; and rational, so that rows are drawn exactly. It is nearly 1 if there are more
cells than epsilon: this method reveals little about the table.

Reference:
    Wasserman & Zhou 2010, JASA 105(489); Snoke & Slavkovic 2018, equation (1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tidegate.arrays import Ints
from tidegate.errors import Unsupported
from tidegate.noise import Bits, below
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.model import Progress, Rows, Stage
from tidegate_papers.baselines.rounds import pure_loss

MOST_CELLS = 2**22
FINE = 2**20  # of epsilon's denominator, rounded down


@dataclass(frozen=True)
class SmoothHistogram:
    """Rows of a smoothed histogram.

    Guarantee:
        P(cell) = (1 - lambda) count / n + lambda / K. One row changes a count by 1, so the largest ratio of one draw is
        1 + (1 - lambda) K / (lambda n) = 1 + epsilon / n <= e^(epsilon/n), and that of n draws e^epsilon. If n is a noisy
        number below the true number of rows, P(cell) is in proportion to p count + n q (`weights`), and the same holds: a of
        a unit's rows leave a cell and j more arrive than leave, a + j <= reach, so the ratio is at most
        (1 + a p / nq) (1 + j p / T) <= 1 + (a + j) p / nq, since the total T is at least nq + a p. No error reveals which
        case it was.
    """

    name: ClassVar[str] = "smooth-histogram/1"
    exact: ClassVar[bool] = True

    def stages(self, facts: Facts, *, limit: Loss) -> tuple[Stage, ...]:
        if facts.rows > most_rows(cells_of(facts), pure_loss(limit)):
            raise Unsupported("The table is too large for 64-bit weights.", "Use fewer or coarser columns.")
        return (Stage("rows", Fraction(1), "draw rows from the smoothed histogram"),)

    def learn(self, facts: Facts, rows: Rows, diary: Diary, *, bits: Bits, progress: Progress) -> Drawn:
        cells = cells_of(facts)
        most = most_rows(cells, diary.epsilon)
        facts = replace(facts, rows=min(facts.rows, most))  # a noisy number can exceed what was expected and charged
        drawn = diary.step(
            "rows", diary.epsilon, lambda: draw_cells(counts(facts, rows), facts, diary.epsilon, bits=bits)
        )
        progress("rows", 1, 1)
        return Drawn(facts.columns, cells, drawn)


def cells_of(facts: Facts) -> int:
    """Return the number of cells of the whole table."""
    cells = math.prod(column.cells for column in facts.columns)
    if cells > MOST_CELLS or not facts.rows:
        raise Unsupported(
            f"A histogram of {cells:,} cells is too large." if facts.rows else "There are no rows to draw.",
            f"Choose columns with at most {MOST_CELLS:,} cells in total.",
        )
    return cells


def counts(facts: Facts, rows: Rows) -> Ints:
    """Count the rows in each cell of the whole table. Rows with an unlisted value are in none."""
    codes = rows.codes(facts.columns)
    cells = np.zeros(len(codes), np.int64)
    listed = np.ones(len(codes), np.bool_)
    for index, column in enumerate(facts.columns):
        cell = column.cell_of(codes[:, index])
        listed &= cell >= 0
        cells = cells * column.cells + cell
    return np.bincount(cells[listed], minlength=cells_of(facts))


def weights(cell_counts: Ints, facts: Facts, epsilon: Fraction) -> tuple[Ints, int, int]:
    """Return the weights of cells, the weight of unlisted rows, and the total.

    Cells have p count + n q, for epsilon = p / q per row of a unit.
    """
    share = epsilon / facts.reach
    p, q = math.floor(share * FINE), FINE
    each = p * cell_counts + facts.rows * q
    unlisted = p * max(facts.rows - int(cell_counts.sum()), 0)  # a noisy number of rows can be below the true one
    return each, unlisted, int(each.sum()) + unlisted


def most_rows(cells: int, epsilon: Fraction) -> int:
    """Return the most rows whose weights fit 64 bits, from public numbers alone."""
    return 2**61 // (math.floor(epsilon * FINE) + FINE * cells)


def draw_cells(cell_counts: Ints, facts: Facts, epsilon: Fraction, *, bits: Bits) -> Ints:
    """Draw as many cells as rows, exactly in proportion to their weights; the weight of unlisted rows is spread evenly."""
    each, _, total = weights(cell_counts, facts, epsilon)
    at = below(total, size=facts.rows, bits=bits)
    cells = np.searchsorted(np.cumsum(each), at, side="right")
    spread = below(each.size, size=facts.rows, bits=bits)
    return np.where(cells < each.size, cells, spread)


@dataclass(frozen=True)
class Drawn:
    """Drawn cells. Rows are these in a new order; more rows than were drawn repeat them."""

    columns: tuple[Column, ...]
    cells: int
    drawn: Ints

    def draw(self, rows: int, *, seed: int) -> Ints:
        random = np.random.default_rng(seed)
        order = np.concatenate([random.permutation(self.drawn) for _ in range(-(-rows // self.drawn.size))])
        cells, codes = order[:rows], []
        for column in reversed(self.columns):
            cells, cell = np.divmod(cells, column.cells)
            codes.append(_codes(column, cell, random))
        return np.column_stack(codes[::-1])


def _codes(column: Column, cell: Ints, random: np.random.Generator) -> Ints:
    first, after = np.array(column.firsts)[cell], np.array(column.ends)[cell]
    return np.asarray(random.integers(first, after))
