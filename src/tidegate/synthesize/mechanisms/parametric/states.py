"""What was learnt of one column: a regression on its parents. Nothing private is left in it.

Artificial rows from what was learnt: one column after the other, each from its regression. Post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Bools, Floats, Ints
from tidegate.synthesize.facts import Column
from tidegate.synthesize.mechanisms.parametric.plan import MOST_FEATURES
from tidegate.synthesize.mechanisms.parametric.scores import PAIRED, normal_cuts

PARTS = 1024
INDICATED = 3  # levels of a category that get an indicator where it is a parent


@dataclass(frozen=True)
class Number:
    """value = weights . features + spread * normal; `centre` and `scale` are its own, whatever its parents."""

    column: Column
    parents: tuple[int, ...]
    centre: float
    scale: float
    weights: Floats
    spread: float
    missing: int = 0
    rows: int = 1

    @property
    def wide(self) -> int:
        """As how many features it enters others' regressions."""
        return 1

    def as_features(self, values: Floats, present: Bools) -> list[Floats]:
        """How it enters others' regressions: standardized; 0 where it is missing."""
        return [np.where(present, (values - self.centre) / self.scale, 0.0)]

    def cells(self, values: Floats, features: Floats) -> Ints:
        """In which of equally likely parts of its conditional distribution each value lies."""
        expected = np.zeros(values.size)
        for weight, one in zip(self.weights, features, strict=True):
            expected += weight * one  # not @: its last bit depends on where a row stands, so others could turn its cell
        residuals = (values - expected) / self.spread
        return np.asarray(np.searchsorted(normal_cuts(PAIRED), residuals))

    def parts(self) -> Ints:
        """What each of those cells should hold, of PARTS in all."""
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
    """P(level) in proportion to exp(logits[level] . features); `shares` are its own, whatever its parents."""

    column: Column
    parents: tuple[int, ...]
    shares: Floats
    logits: Floats

    @property
    def wide(self) -> int:
        """As how many features it enters others' regressions."""
        return len(indicated(self.shares))

    def as_features(self, values: Floats, present: Bools) -> list[Floats]:
        """Standardized indicators of the largest levels but one; 0 where it is not listed."""
        return [
            np.where(present, ((values == level) - share) / np.sqrt(share * (1 - share)), 0.0)
            for level, share in ((level, self.shares[level]) for level in indicated(self.shares))
        ]

    def cells(self, values: Floats, features: Floats) -> Ints:
        """Its levels; with many, the small ones are one cell, the last."""
        return self._groups()[np.maximum(values, 0).astype(np.int64)]

    def parts(self) -> Ints:
        """What each of those cells should hold, of PARTS in all."""
        held = np.bincount(self._groups(), weights=self.shares, minlength=PAIRED)
        upto = np.rint(np.cumsum(held) * PARTS).astype(np.int64)
        return np.diff(upto, prepend=0)

    def _groups(self) -> Ints:
        ranks = np.empty(self.shares.size, np.int64)
        ranks[np.argsort(-self.shares, kind="stable")] = np.arange(self.shares.size)
        return np.minimum(ranks, PAIRED - 1)

    def masses(self, features: Floats) -> Floats:
        """The probability of every level: (levels, rows)."""
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


def indicated(shares: Floats) -> list[int]:
    """The levels with an indicator: for two levels the second, else the largest but the very largest."""
    if shares.size == 2:
        return [1]
    return [int(level) for level in np.argsort(-shares, kind="stable")[1 : INDICATED + 1]]


def features(states: Sequence[State], values: Sequence[Floats], present: Sequence[Bools], rows: int) -> Floats:
    """A row of ones, and the numbers that stand for the parents, as many as a block takes."""
    found = [one for s, v, p in zip(states, values, present, strict=True) for one in s.as_features(v, p)]
    return np.vstack([np.ones(rows), *found[:MOST_FEATURES]])


@dataclass(frozen=True)
class Regressions:
    """One regression a column, in order: a column's parents stand before it."""

    states: tuple[State, ...]

    def draw(self, rows: int, *, seed: int) -> Ints:
        """Rows that are independent of each other, as codes."""
        random = np.random.default_rng(seed)
        values: list[Floats] = []
        present: list[Bools] = []
        for state in self.states:
            parents = [self.states[p] for p in state.parents]
            given = features(parents, [values[p] for p in state.parents], [present[p] for p in state.parents], rows)
            drawn, there = state.draw(given, random)
            values.append(drawn)
            present.append(there)
        return np.column_stack([s.codes(v, p) for s, v, p in zip(self.states, values, present, strict=True)])
