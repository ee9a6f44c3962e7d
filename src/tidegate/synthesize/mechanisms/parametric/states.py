"""The learned regression of one column on its parents, and artificial rows drawn from these regressions.

Rows are drawn column by column. That is post-processing: nothing private remains in a regression.
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
