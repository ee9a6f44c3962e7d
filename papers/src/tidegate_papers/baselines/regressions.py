"""Learned regressions of columns on their parents, rows drawn from them, and the private rows beside them.

Rows are drawn column by column. That is post-processing: nothing private remains in a regression.

A code of a coarse column hides a step of its distribution. Each private row is therefore several points, evenly spaced inside
the step, in a different order for every column. A row is thus spread over the cells that its interval covers, in whole parts,
and is never more than `shares` parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Bools, Floats, Ints, Octets
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.model import Rows
from tidegate_papers.baselines._regression_kernels import ABSENT
from tidegate_papers.baselines.rounds import MOST_FEATURES, PAIRED, is_number, levels_of, normal_cuts

PARTS = 1024
INDICATED = 3  # levels of a category that get an indicator if it is a parent


@dataclass(frozen=True)
class Number:
    """value = weights . features + spread * normal; `center` and `scale` describe the column regardless of its parents."""

    column: Column
    parents: tuple[int, ...]
    center: float
    scale: float
    weights: Floats
    spread: float
    missing: int = 0
    rows: int = 1

    @property
    def feature_count(self) -> int:
        """The number of features that the column contributes to other regressions."""
        return 1

    def as_features(self, values: Floats, present: Bools) -> list[Floats]:
        """Return the column as features of other regressions: standardized, 0 where it is missing."""
        return [np.where(present, (values - self.center) / self.scale, 0.0)]

    def cells(self, values: Floats, features: Floats) -> Ints:
        """Return which of equally likely parts of its conditional distribution contains each value."""
        expected = np.zeros(values.size)
        for weight, feature in zip(self.weights, features, strict=True):
            # Not @: its last bit depends on the row's position, so other rows could change this row's cell.
            expected += weight * feature
        residuals = (values - expected) / self.spread
        return np.asarray(np.searchsorted(normal_cuts(PAIRED), residuals))

    def parts(self) -> Ints:
        """Return the expected count of each of those cells, of PARTS in all."""
        return np.full(PAIRED, PARTS // PAIRED)

    def draw(self, features: Floats, random: np.random.Generator) -> tuple[Floats, Bools]:
        values = self.weights @ features + self.spread * random.standard_normal(features.shape[1])
        present = np.asarray(random.random(features.shape[1]) * self.rows >= self.missing, np.bool_)
        return np.clip(values, -0.5, self.column.size - 0.5), present

    def codes(self, values: Floats, present: Bools) -> Ints:
        near = np.clip(np.floor(values + 0.5).astype(np.int64), 0, self.column.size - 1)
        return np.where(present, near, self.column.size)


@dataclass(frozen=True)
class Levels:
    """P(level) in proportion to exp(logits[level] . features); `shares` describe the column regardless of its parents."""

    column: Column
    parents: tuple[int, ...]
    shares: Floats
    logits: Floats

    @property
    def feature_count(self) -> int:
        """The number of features that the column contributes to other regressions."""
        return len(indicator_levels(self.shares))

    def as_features(self, values: Floats, present: Bools) -> list[Floats]:
        """Return standardized indicators of the largest levels but one; 0 where the value is not listed."""
        return [
            np.where(present, ((values == level) - share) / np.sqrt(share * (1 - share)), 0.0)
            for level, share in ((level, self.shares[level]) for level in indicator_levels(self.shares))
        ]

    def cells(self, values: Floats, features: Floats) -> Ints:
        """Return the levels as cells; with many levels, the small ones share the last cell."""
        return self._groups()[np.maximum(values, 0).astype(np.int64)]

    def parts(self) -> Ints:
        """Return the expected count of each of those cells, of PARTS in all."""
        masses = np.bincount(self._groups(), weights=self.shares, minlength=PAIRED)
        upto = np.rint(np.cumsum(masses) * PARTS).astype(np.int64)
        return np.diff(upto, prepend=0)

    def _groups(self) -> Ints:
        ranks = np.empty(self.shares.size, np.int64)
        ranks[np.argsort(-self.shares, kind="stable")] = np.arange(self.shares.size)
        return np.minimum(ranks, PAIRED - 1)

    def masses(self, features: Floats) -> Floats:
        """Return the probability of every level: (levels, rows)."""
        powers = self.logits @ features
        raised = np.exp(powers - powers.max(0))
        return np.asarray(raised / raised.sum(0))

    def draw(self, features: Floats, random: np.random.Generator) -> tuple[Floats, Bools]:
        upto = np.cumsum(self.masses(features), 0)
        levels = (upto < random.random(features.shape[1])).sum(0)
        return np.minimum(levels, len(self.shares) - 1).astype(np.float64), np.ones(features.shape[1], np.bool_)

    def codes(self, values: Floats, present: Bools) -> Ints:
        return values.astype(np.int64)


State = Number | Levels


def indicator_levels(shares: Floats) -> list[int]:
    """Return the levels with an indicator: the second of two levels, else the largest except the very largest."""
    if shares.size == 2:
        return [1]
    return [int(level) for level in np.argsort(-shares, kind="stable")[1 : INDICATED + 1]]


def features(states: Sequence[State], values: Sequence[Floats], present: Sequence[Bools], rows: int) -> Floats:
    """Return a row of ones and the features of the parents, at most MOST_FEATURES."""
    rows_of_features = [
        feature
        for state, value, is_present in zip(states, values, present, strict=True)
        for feature in state.as_features(value, is_present)
    ]
    return np.vstack([np.ones(rows), *rows_of_features[:MOST_FEATURES]])


@dataclass(frozen=True)
class Regressions:
    """One regression per column, in order: a column's parents come before it."""

    states: tuple[State, ...]

    def draw(self, rows: int, *, seed: int) -> Ints:
        """Draw independent rows, as codes."""
        random = np.random.default_rng(seed)
        values: list[Floats] = []
        present: list[Bools] = []
        for state in self.states:
            parents = [self.states[p] for p in state.parents]
            predictors = features(
                parents, [values[p] for p in state.parents], [present[p] for p in state.parents], rows
            )
            drawn, is_present = state.draw(predictors, random)
            values.append(drawn)
            present.append(is_present)
        return np.column_stack([s.codes(v, p) for s, v, p in zip(self.states, values, present, strict=True)])


# The private side: rows as points and cells, read and computed when a round first needs them

ARTIFICIAL = 20_000  # points that give the expected counts of a category's tables


class RegressionRows(NamedTuple):
    """A number's points, the features beside them (F, n), and the cells of its parents (P, n). Private."""

    values: Floats
    features: Floats
    cells: NDArray[np.uint8]


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
