"""The private side of a sequential model: what its rounds look at, read and computed when a round first asks."""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np

from tidegate.arrays import Floats, Ints, Octets
from tidegate.synthesize.facts import Facts
from tidegate.synthesize.mechanisms.parametric._kernels import ABSENT
from tidegate.synthesize.mechanisms.parametric.drawing import Regressions
from tidegate.synthesize.mechanisms.parametric.latent import Points, points, shares_of
from tidegate.synthesize.mechanisms.parametric.linear import Seen
from tidegate.synthesize.mechanisms.parametric.plan import levels_of
from tidegate.synthesize.mechanisms.parametric.states import State, features
from tidegate.synthesize.model import Rows
from tidegate.synthesize.scores import pair_tables
from tidegate.synthesize.scores.rosenblatt import PAIRED

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
        return np.asarray(pair_tables(np.stack([cells[both] for cells in pair]), cells=PAIRED)[0])

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
