"""A category: its counts with integer noise, each level's slopes from a grid, then each level's block in two rounds.

With two levels this is a logistic regression, with more a multinomial one. The largest level is the base; MOST_LEVELS others
have slopes. The rest have none: their counts are right, and they depend on no other column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats, Ints
from tidegate.noise import discrete_laplace, scale_for
from tidegate.synthesize.facts import Column
from tidegate.synthesize.mechanisms.parametric import candidates as near
from tidegate.synthesize.mechanisms.parametric._kernels import level_misfits
from tidegate.synthesize.mechanisms.parametric.candidates import Chooser
from tidegate.synthesize.mechanisms.parametric.plan import EARLY, LATE, MOST_LEVELS

SLOPES = np.arange(1, 41) / 10  # of a start, both ways, and 0: up to 4 for one standard deviation
LEAST = 0.5  # smallest count of a level, so that its logarithm exists


def noisy_counts(chooser: Chooser, name: str, counts: Callable[[], Ints], epsilon: Fraction, *, of: int) -> Ints:
    """Return counts of `of` disjoint cells, with noise; without epsilon, ones. One unit changes them by 2 reach in total."""

    def measure() -> Ints:
        if not epsilon:
            return np.ones(of, np.int64)
        scale = scale_for(Fraction(2 * chooser.reach), epsilon)
        return np.asarray(counts() + discrete_laplace(scale, size=of, bits=chooser.bits))

    return chooser.diary.step(name, epsilon, measure)


def shares_from(noisy: Ints) -> Floats:
    """Return shares of all levels, none of them 0."""
    counts = np.maximum(noisy.astype(np.float64), LEAST)
    return np.asarray(counts / counts.sum())


@dataclass(frozen=True)
class Tables:
    """What a category's rounds compare: private counts, and the artificial rows that give the expected counts.

    counts (parents, cells, levels) of all points; features and cells of artificial rows, drawn from the columns before.
    """

    counts: Callable[[], Ints]
    features: Floats
    cells: NDArray[np.uint8]


@dataclass(frozen=True)
class LevelsFit:
    """The rounds of one category with parents.

    Guarantee:
        A row is `shares` points, and replacing it changes at most two counts of each parent's table by that number: a
        misfit changes by at most 2 shares parents.
    """

    column: Column
    chooser: Chooser
    rows: int
    shares: int
    seed: tuple[int, ...]
    some: int
    tables: Tables

    def fit(self, own: Floats, start: Fraction, block: Fraction) -> Floats:
        """Return the logits: (levels, features)."""
        logits = np.zeros((own.size, len(self.tables.features)))
        logits[:, 0] = np.log(own)
        levels = [int(level) for level in np.argsort(-own, kind="stable")[1 : MOST_LEVELS + 1]]
        for level in levels:
            logits[level] = self._slopes(logits, own, level, start / len(levels))
        for level in levels:
            logits[level] = self._block(logits, level, block / len(levels))
        return logits

    def _slopes(self, logits: Floats, own: Floats, level: int, epsilon: Fraction) -> Floats:
        parameters, base = near.whole(logits[level]), float(logits[np.argmax(own), 0])
        steps = len(self.tables.features) - 1
        for feature in range(1, steps + 1):
            parameters = self._choose(
                f"level {level}, slope {feature}", epsilon / steps, logits, level,
                partial(slopes, parameters, feature, base=base),
            )  # fmt: skip
        return near.real(parameters)

    def _block(self, logits: Floats, level: int, epsilon: Fraction) -> Floats:
        parameters, radius, spread = near.whole(logits[level]), near.WIDEST, np.ones(logits.shape[1])
        for number, loss in ((1, EARLY * epsilon), (2, LATE * epsilon)):
            random = np.random.default_rng([*self.seed, level, number])
            parameters = self._choose(
                f"level {level}, round {number}", loss, logits, level,
                partial(near.around, parameters, spread, radius, count=self.some, random=random),
            )  # fmt: skip
            radius = near.next_radius(
                radius,
                rows=self.rows,
                reach=self.chooser.reach,
                epsilon=loss,
                count=self.some,
                dimensions=parameters.size,
            )
        return near.real(parameters)

    def _choose(self, name: str, epsilon: Fraction, logits: Floats, level: int, candidates: near.Made) -> Ints:
        rows, tables = self.rows * self.shares, self.tables

        def misfits(tried: Ints) -> Ints:
            parameters = near.real(tried)
            return np.asarray(
                level_misfits(tables.counts(), tables.features, tables.cells, rows, logits, level, parameters)
            )

        return self.chooser.choose(
            f"{self.column.name}: {name}", epsilon, candidates, misfits, sensitivity=2 * self.shares * len(tables.cells)
        )


def slopes(current: Ints, feature: int, *, base: float) -> Ints:
    """Return every slope of a grid on one feature, 0 first. The intercept changes too, so that the level stays as frequent.

    (With a normal predictor of variance v, logit(share) = a / sqrt(1 + 0.346 v) approximately.)
    """
    candidates = np.tile(current, (1 + 2 * SLOPES.size, 1))
    before = float((near.real(current[1:]) ** 2).sum())
    candidates[:, feature] += near.whole(np.concatenate([[0], SLOPES, -SLOPES]))
    after = (near.real(candidates[:, 1:]) ** 2).sum(1)
    odds = near.real(current[0]) - base
    stretched = base + odds * np.sqrt((1 + 0.346 * after) / (1 + 0.346 * before))
    candidates[:, 0] = near.whole(stretched)
    return candidates
