"""The private side of a sequential model: the rows as points and cells, read and computed when a round first needs them.

A code of a coarse column hides a step of its distribution. Each row is therefore several points, evenly spaced inside the
step, in a different order for every column. A row is thus spread over the cells that its interval covers, in whole parts,
and is never more than `shares` parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from tidegate.arrays import Bools, Floats, Ints, Octets
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.parametric._kernels import ABSENT
from tidegate.synthesize.mechanisms.parametric.linear import RegressionRows
from tidegate.synthesize.mechanisms.parametric.plan import is_number, levels_of
from tidegate.synthesize.mechanisms.parametric.scores import PAIRED
from tidegate.synthesize.mechanisms.parametric.states import Regressions, State, features
from tidegate.synthesize.model import Rows

ARTIFICIAL = 20_000  # points that give the expected counts of a category's tables


class Private:
    """Rows as points and cells. `shares` and `artificial` are public; everything else is private."""

    def __init__(self, facts: Facts, rows: Rows, seed: int) -> None:
        self.facts, self._rows, self.seed = facts, rows, seed
        self.shares = shares_of(facts.columns)
        self._states: list[State] = []
        self._cells: dict[int, Octets] = {}
        self.points = cache(self._load_points)

    def add_state(self, state: State) -> None:
        """Add the next column's regression, so that later columns can depend on it."""
        self._states.append(state)

    @cached_property
    def codes(self) -> Ints:
        return self._rows.codes(self.facts.columns)

    def _load_points(self, index: int) -> Points:
        return self._points(self.codes[:, index], index)

    def levels(self, index: int) -> Ints:
        """Return the number of rows with each level."""
        codes = self.codes[:, index]
        return np.bincount(codes[codes >= 0], minlength=levels_of(self.facts.columns[index]))

    def missing(self, index: int) -> Ints:
        return np.array([np.count_nonzero(self.codes[:, index] == self.facts.columns[index].size)])

    def ordered(self, index: int) -> Floats:
        points = self.points(index)
        return np.sort(points.values[points.present])

    def regression_rows(self, index: int, parents: tuple[int, ...]) -> RegressionRows:
        """Return a number with its parents, on the points where it is present."""
        own = self.points(index)
        predictors = self._features(parents, [self.points(p) for p in parents], own.values.size)
        cells = np.stack([self.cells(p) for p in parents])
        present = own.present
        return RegressionRows(
            own.values[present], np.ascontiguousarray(predictors[:, present]), np.ascontiguousarray(cells[:, present])
        )

    def cells(self, index: int) -> Octets:
        """Return the cell of each point of a column, given the columns before it."""
        if index not in self._cells:
            points = [self.points(p) for p in range(index + 1)]
            self._cells[index] = self._conditional(index, points)
        return self._cells[index]

    def by_parents(self, index: int, parents: tuple[int, ...]) -> Ints:
        """Return counts of a category's points by the cell of each parent and the level."""
        own, levels = self.points(index), levels_of(self.facts.columns[index])
        return np.stack([_count_cells(self.cells(p), own, levels) for p in parents])

    def table(self, left_index: int, right_index: int, left_state: State, right_state: State) -> Ints:
        """Return counts of points by the cells of two columns, each regardless of its parents."""
        ones = np.ones((1, self.points(left_index).values.size))
        pair = [
            _cells_of(state, self.points(p), ones)
            for p, state in ((left_index, left_state), (right_index, right_state))
        ]
        both = (pair[0] != ABSENT) & (pair[1] != ABSENT)
        left_cells, right_cells = (cells[both].astype(np.int64) for cells in pair)
        return np.bincount(left_cells * PAIRED + right_cells, minlength=PAIRED * PAIRED).reshape(PAIRED, PAIRED)

    def artificial(self, parents: tuple[int, ...]) -> tuple[Floats, Octets]:
        """Return the parents' features and cells of rows drawn from the columns learned so far, as points. Public."""
        codes = Regressions(tuple(self._states)).draw(ARTIFICIAL // self.shares, seed=self.seed)
        points = [self._points(codes[:, p], p) for p in range(len(self._states))]
        predictors = self._features(parents, [points[p] for p in parents], points[0].values.size)
        return predictors, np.stack([self._conditional(p, points) for p in parents])

    def _points(self, codes: Ints, index: int) -> Points:
        return points_of(codes, self.facts.columns[index], index=index, shares=self.shares, seed=self.seed)

    def _features(self, parents: tuple[int, ...], points: list[Points], size: int) -> Floats:
        states = [self._states[p] for p in parents]
        return features(states, [column.values for column in points], [column.present for column in points], size)

    def _conditional(self, index: int, points: list[Points]) -> Octets:
        state = self._states[index]
        predictors = self._features(state.parents, [points[p] for p in state.parents], points[index].values.size)
        return _cells_of(state, points[index], predictors)


def _cells_of(state: State, points: Points, predictors: Floats) -> Octets:
    return np.where(points.present, state.cells(points.values, predictors), ABSENT).astype(np.uint8)


def _count_cells(cells: Octets, own: Points, levels: int) -> Ints:
    both = own.present & (cells != ABSENT)
    pairs = cells[both].astype(np.int64) * levels + own.values[both].astype(np.int64)
    return np.bincount(pairs, minlength=PAIRED * levels).reshape(PAIRED, levels)


FINE, COARSE = 256, 32  # a row is 1 point from 256 codes, 4 points from 32 codes, and 16 below


@dataclass(frozen=True)
class Points:
    """One column: a number's values or a category's levels, and which of them are listed."""

    values: Floats
    present: Bools


def shares_of(columns: Sequence[Column]) -> int:
    """Return the number of points of a row. Public."""
    fewest = min((column.size for column in columns if is_number(column)), default=FINE)
    return 1 if fewest >= FINE else 4 if fewest >= COARSE else 16


def points_of(codes: Ints, column: Column, *, index: int, shares: int, seed: int) -> Points:
    """Return the points of one column: all rows, once for each share."""
    repeated = np.tile(codes, shares)
    if not is_number(column):
        return Points(repeated.astype(np.float64), repeated >= 0)
    order = np.random.default_rng([seed, 1, index]).permutation(shares)
    inside = np.repeat((order + 0.5) / shares, codes.size)
    return Points(repeated + inside - 0.5, (repeated >= 0) & (repeated < column.size))
