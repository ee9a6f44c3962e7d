"""The private side of a sequential model: what its rounds look at, read and computed when a round first asks.

Private rows as points: a code of a coarse number stands for the stretch around it, and a row for several points there.

A code of a coarse column hides a step of its distribution. Each row is then several rows, evenly placed inside the step,
in an order of its own for every column. So a row is spread over the cells that its interval covers, in whole parts, and
one row is never more than `shares` parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from tidegate.arrays import Bools, Floats, Ints, Octets
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.parametric._kernels import ABSENT
from tidegate.synthesize.mechanisms.parametric.linear import Seen
from tidegate.synthesize.mechanisms.parametric.plan import is_number, levels_of
from tidegate.synthesize.mechanisms.parametric.scores import PAIRED
from tidegate.synthesize.mechanisms.parametric.states import Regressions, State, features
from tidegate.synthesize.model import Rows

ARTIFICIAL = 20_000  # rows that say what a category's tables should hold


class Private:
    """Rows as points and cells. `shares` and `artificial` are public; all else is not."""

    def __init__(self, facts: Facts, rows: Rows, seed: int) -> None:
        self.facts, self._rows, self.seed = facts, rows, seed
        self.shares = shares_of(facts.columns)
        self._states: list[State] = []
        self._cells: dict[int, Octets] = {}
        self.held = cache(self._held)

    def learnt(self, state: State) -> None:
        """The next column's regression is known: others may depend on it."""
        self._states.append(state)

    @cached_property
    def codes(self) -> Ints:
        return self._rows.codes(self.facts.columns)

    def _held(self, place: int) -> Points:
        return self._points(self.codes[:, place], place)

    def levels(self, place: int) -> Ints:
        """How many rows have each level."""
        codes = self.codes[:, place]
        return np.bincount(codes[codes >= 0], minlength=levels_of(self.facts.columns[place]))

    def missing(self, place: int) -> Ints:
        return np.array([np.count_nonzero(self.codes[:, place] == self.facts.columns[place].size)])

    def ordered(self, place: int) -> Floats:
        held = self.held(place)
        return np.sort(held.values[held.present])

    def seen(self, place: int, parents: tuple[int, ...]) -> Seen:
        """A number beside its parents, where it is there."""
        own = self.held(place)
        given = self._features(parents, [self.held(p) for p in parents], own.values.size)
        cells = np.stack([self.cells(p) for p in parents])
        there = own.present
        return Seen(own.values[there], np.ascontiguousarray(given[:, there]), np.ascontiguousarray(cells[:, there]))

    def cells(self, place: int) -> Octets:
        """The cell of each point of a column, given the columns before it."""
        if place not in self._cells:
            held = [self.held(p) for p in range(place + 1)]
            self._cells[place] = self._conditional(place, held)
        return self._cells[place]

    def by_parents(self, place: int, parents: tuple[int, ...]) -> Ints:
        """A category's points by the cell of each parent and the level."""
        own, levels = self.held(place), levels_of(self.facts.columns[place])
        return np.stack([_counted(self.cells(p), own, levels) for p in parents])

    def table(self, one: int, other: int, first: State, second: State) -> Ints:
        """Points by the cells of two columns, each on its own."""
        ones = np.ones((1, self.held(one).values.size))
        pair = [_cells_of(state, self.held(p), ones) for p, state in ((one, first), (other, second))]
        both = (pair[0] != ABSENT) & (pair[1] != ABSENT)
        left, right = (cells[both].astype(np.int64) for cells in pair)
        return np.bincount(left * PAIRED + right, minlength=PAIRED * PAIRED).reshape(PAIRED, PAIRED)

    def artificial(self, parents: tuple[int, ...]) -> tuple[Floats, Octets]:
        """What rows drawn from the columns learnt so far hold in the parents, as points: features and cells. Public."""
        codes = Regressions(tuple(self._states)).draw(ARTIFICIAL // self.shares, seed=self.seed)
        held = [self._points(codes[:, p], p) for p in range(len(self._states))]
        given = self._features(parents, [held[p] for p in parents], held[0].values.size)
        return given, np.stack([self._conditional(p, held) for p in parents])

    def _points(self, codes: Ints, place: int) -> Points:
        return points(codes, self.facts.columns[place], place=place, shares=self.shares, seed=self.seed)

    def _features(self, parents: tuple[int, ...], held: list[Points], size: int) -> Floats:
        states = [self._states[p] for p in parents]
        return features(states, [one.values for one in held], [one.present for one in held], size)

    def _conditional(self, place: int, held: list[Points]) -> Octets:
        state = self._states[place]
        given = self._features(state.parents, [held[p] for p in state.parents], held[place].values.size)
        return _cells_of(state, held[place], given)


def _cells_of(state: State, held: Points, given: Floats) -> Octets:
    return np.where(held.present, state.cells(held.values, given), ABSENT).astype(np.uint8)


def _counted(cells: Octets, own: Points, levels: int) -> Ints:
    both = own.present & (cells != ABSENT)
    pairs = cells[both].astype(np.int64) * levels + own.values[both].astype(np.int64)
    return np.bincount(pairs, minlength=PAIRED * levels).reshape(PAIRED, levels)


FINE, COARSE = 256, 32  # codes from which a row is one point; below which it is many


@dataclass(frozen=True)
class Points:
    """One column: a number's places, or a category's levels, and which of them are listed."""

    values: Floats
    present: Bools


def shares_of(columns: Sequence[Column]) -> int:
    """Points of a row: public."""
    fewest = min((column.size for column in columns if is_number(column)), default=FINE)
    return 1 if fewest >= FINE else 4 if fewest >= COARSE else 16


def points(codes: Ints, column: Column, *, place: int, shares: int, seed: int) -> Points:
    """The points of one column: rows one after the other, once for each share."""
    many = np.tile(codes, shares)
    if not is_number(column):
        return Points(many.astype(np.float64), many >= 0)
    order = np.random.default_rng([seed, 1, place]).permutation(shares)
    inside = np.repeat((order + 0.5) / shares, codes.size)
    return Points(many + inside - 0.5, (many >= 0) & (many < column.size))
