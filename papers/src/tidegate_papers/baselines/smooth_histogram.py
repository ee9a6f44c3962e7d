""" "smooth-histogram/1": as many rows as there are, drawn from the histogram mixed with the uniform distribution.

The mixing weight is the printed one, lambda >= K / (K + n (e^(epsilon/n) - 1)), with epsilon for n (e^(epsilon/n) - 1):
larger, so valid, by a share of epsilon / 2n; and rational, so that rows are drawn exactly. It is nearly 1 wherever there are
more cells than epsilon: this method tells little of the table.

Reference:
    Wasserman & Zhou 2010, JASA 105(489); Snoke & Slavkovic 2018, equation (1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tidegate.arrays import Ints
from tidegate.errors import Unsupported
from tidegate.noise import Bits, below
from tidegate.synthesize.diary import Diary
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.model import Progress, Rows, Stage

MOST_CELLS = 2**22
FINE = 2**20  # of epsilon's denominator, rounded down


@dataclass(frozen=True)
class SmoothHistogram:
    """Guarantee  P(cell) = (1 - lambda) count / n + lambda / K. One row changes a count by 1, so the largest ratio of one
    draw is 1 + (1 - lambda) K / (lambda n) = 1 + epsilon / n <= e^(epsilon/n), and that of n draws e^epsilon. Where n is
    a noisy number and more rows than that are there, P(cell) is in proportion to p count + n q (`weights`), and the same
    holds: a of a unit's rows leave a cell and j more come than go, a + j <= reach, so the ratio is at most
    (1 + a p / nq) (1 + j p / T) <= 1 + (a + j) p / nq, since the total T is at least nq + a p. No error tells which it was.
    """

    name: ClassVar[str] = "smooth-histogram/1"
    exact: ClassVar[bool] = True

    def stages(self, facts: Facts, *, epsilon: Fraction, split: Mapping[str, Fraction]) -> tuple[Stage, ...]:
        if facts.rows > most_rows(cells_of(facts), epsilon):
            raise Unsupported("the table is too large for 64-bit weights.", "Take fewer columns, or coarser ones.")
        return (Stage("rows", Fraction(1), "draw rows from the smoothed histogram"),)

    def learn(
        self, facts: Facts, rows: Rows, diary: Diary, *, split: Mapping[str, Fraction], bits: Bits, progress: Progress
    ) -> Drawn:
        cells = cells_of(facts)
        most = most_rows(cells, diary.epsilon)
        facts = replace(facts, rows=min(facts.rows, most))  # a noisy number may be above what was expected and paid for
        drawn = diary.step(
            "rows", diary.epsilon, lambda: draw_cells(counts(facts, rows), facts, diary.epsilon, bits=bits)
        )
        progress("rows", 1, 1)
        return Drawn(facts.columns, cells, drawn)


def cells_of(facts: Facts) -> int:
    """How many cells the whole table has."""
    found = math.prod(column.cells for column in facts.columns)
    if found > MOST_CELLS or not facts.rows:
        raise Unsupported(
            f"a histogram of {found:,} cells is too large." if facts.rows else "there are no rows to draw.",
            f"Take columns with together at most {MOST_CELLS:,} cells.",
        )
    return found


def counts(facts: Facts, rows: Rows) -> Ints:
    """How many rows lie in each cell of the whole table. Rows with a value that is not listed lie in none."""
    codes = rows.codes(facts.columns)
    places = np.zeros(len(codes), np.int64)
    listed = np.ones(len(codes), np.bool_)
    for place, column in enumerate(facts.columns):
        cell = column.cell_of(codes[:, place])
        listed &= cell >= 0
        places = places * column.cells + cell
    return np.bincount(places[listed], minlength=cells_of(facts))


def weights(found: Ints, facts: Facts, epsilon: Fraction) -> tuple[Ints, int, int]:
    """Cells in proportion p count + n q, of epsilon = p / q for each row of a unit; what unlisted rows leave; and the total."""
    share = epsilon / facts.reach
    p, q = math.floor(share * FINE), FINE
    each = p * found + facts.rows * q
    left = p * max(facts.rows - int(found.sum()), 0)  # a noisy number of rows may be below the true one
    return each, left, int(each.sum()) + left


def most_rows(cells: int, epsilon: Fraction) -> int:
    """For how many rows the weights fit 64 bits: by public numbers alone."""
    return 2**61 // (math.floor(epsilon * FINE) + FINE * cells)


def draw_cells(found: Ints, facts: Facts, epsilon: Fraction, *, bits: Bits) -> Ints:
    """As many cells as there are rows, exactly in proportion to their weights; what is left over is spread evenly."""
    each, _, total = weights(found, facts, epsilon)
    at = below(total, size=facts.rows, bits=bits)
    cells = np.searchsorted(np.cumsum(each), at, side="right")
    spread = below(each.size, size=facts.rows, bits=bits)
    return np.where(cells < each.size, cells, spread)


@dataclass(frozen=True)
class Drawn:
    """Cells that were drawn. Rows are these, in a new order; more rows than were drawn repeat them."""

    columns: tuple[Column, ...]
    cells: int
    drawn: Ints

    def draw(self, rows: int, *, seed: int) -> Ints:
        random = np.random.default_rng(seed)
        order = np.concatenate([random.permutation(self.drawn) for _ in range(-(-rows // self.drawn.size))])
        places, made = order[:rows], []
        for column in reversed(self.columns):
            places, cell = np.divmod(places, column.cells)
            made.append(_codes(column, cell, random))
        return np.column_stack(made[::-1])


def _codes(column: Column, cell: Ints, random: np.random.Generator) -> Ints:
    first, after = np.array(column.firsts)[cell], np.array(column.ends)[cell]
    return np.asarray(random.integers(first, after))
