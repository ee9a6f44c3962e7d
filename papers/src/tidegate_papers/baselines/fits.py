"""The rounds of one column given its parents.

A number: center and scale in two rounds, each slope from a grid, then its whole block in two rounds.

A category: its counts with integer noise, each level's slopes from a grid, then each level's block in two rounds. With two
levels this is a logistic regression, with more a multinomial one. The largest level is the base; MOST_LEVELS others have
slopes. The rest have none: their counts are right, and they depend on no other column.
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
from tidegate_papers.baselines import rounds as near
from tidegate_papers.baselines._regression_kernels import level_misfits, linear_misfits, margin_misfits
from tidegate_papers.baselines.regressions import PARTS, RegressionRows
from tidegate_papers.baselines.rounds import (
    CODES,
    EARLY,
    FIRST,
    LATE,
    MOST_LEVELS,
    PAIRED,
    SECOND,
    Chooser,
    misfit_scale,
    normal_cuts,
    variation_scale,
)

HALF_GRID = 199  # correlations of a start: 399 from -0.995 to 0.995
LOG_SPREAD = 0.7  # spread of the logarithm of a scale, relative to 1 for a location


@dataclass(frozen=True)
class LinearFit:
    """The rounds of one number. `rows` is its public number of rows; each row is `shares` points.

    `parts` (P, cells) are the expected counts of its parents' cells. The private functions come last; only a round that is not
    yet written calls them.
    """

    column: Column
    chooser: Chooser
    rows: int
    shares: int
    seed: tuple[int, ...]
    parts: Ints
    features: int
    many: int
    some: int
    ordered: Callable[[], Floats]
    regression_rows: Callable[[], RegressionRows]

    def margin(self, epsilon: Fraction) -> Ints:
        """Return center and log scale, regardless of the other columns."""
        first, second = FIRST * epsilon, SECOND * epsilon
        parameters = self._on_axis(
            "centre and scale", first, lambda: near.anywhere(self.column.size, count=self.many, random=self._random(0))
        )
        radius = near.first_radius(rows=self.rows, reach=self.chooser.reach, epsilon=first)
        return self._on_axis(
            "centre and scale, closer", second, partial(self._around, parameters, radius, self.many, 1)
        )

    def after_margin(self, epsilon: Fraction) -> float:
        """Return the radius after these rounds."""
        first = near.first_radius(rows=self.rows, reach=self.chooser.reach, epsilon=FIRST * epsilon)
        return self.next_radius(first, SECOND * epsilon, self.many, 2)

    def start(self, margin: Ints, epsilon: Fraction) -> Ints:
        """Return slopes, chosen one after the other: a correlation with the residual of the slopes before."""
        parameters = np.insert(margin, 1, np.zeros(self.features - 1, np.int64))
        for feature in range(1, self.features):
            parameters = self._with_parents(
                f"slope {feature}", epsilon / (self.features - 1), partial(grid, parameters, feature)
            )
        return parameters

    def after_start(self, radius: float, epsilon: Fraction) -> float:
        """Return the radius after the slopes, given the radius after the margin."""
        each = near.first_radius(
            rows=self.rows, reach=self.chooser.reach, epsilon=epsilon / (self.features - 1), floor=0.0
        )
        return max(radius, each)

    def block(self, start: Ints, radius: float, epsilon: Fraction) -> Ints:
        """Return intercept, slopes and log scale, chosen together in two rounds."""
        choose = self._with_parents if self.features > 1 else self._on_axis
        for number, loss in ((1, EARLY * epsilon), (2, LATE * epsilon)):
            candidates = partial(self._around, start, radius, self.some, 1 + number)
            start = choose(f"block, round {number}", loss, candidates)
            radius = self.next_radius(radius, loss, self.some, start.size)
        return start

    def next_radius(self, radius: float, epsilon: Fraction, count: int, dimensions: int) -> float:
        return near.next_radius(
            radius, rows=self.rows, reach=self.chooser.reach, epsilon=epsilon, count=count, dimensions=dimensions
        )

    def _random(self, number: int) -> np.random.Generator:
        return np.random.default_rng([*self.seed, number])

    def _around(self, current: Ints, radius: float, count: int, number: int) -> Ints:
        """Return candidates near the current one: locations and slopes in units of the scale, and the scale's logarithm."""
        scale = float(np.exp(near.real(current[-1])))
        spread = np.append(np.full(current.size - 1, scale), LOG_SPREAD)
        return near.around(current, spread, radius, count=count, random=self._random(number))

    def _on_axis(self, name: str, epsilon: Fraction, candidates: near.Made) -> Ints:
        """Choose by the cells of the residual alone."""
        most = variation_scale(cells=CODES, shares=self.shares).sensitivity
        cuts, rows = normal_cuts(CODES), self.rows * self.shares

        def misfits(tried: Ints) -> Ints:
            parameters = near.real(tried)
            return np.asarray(
                margin_misfits(self.ordered(), rows, parameters[:, 0].copy(), np.exp(parameters[:, 1]), cuts)
            )

        return self.chooser.choose(f"{self.column.name}: {name}", epsilon, candidates, misfits, sensitivity=most)

    def _with_parents(self, name: str, epsilon: Fraction, candidates: near.Made) -> Ints:
        """Choose by the cells of the residual and of each parent."""
        most = len(self.parts) * misfit_scale(parts=PAIRED * PARTS, shares=self.shares).sensitivity
        cuts, rows = normal_cuts(PAIRED), self.rows * self.shares

        def misfits(tried: Ints) -> Ints:
            parameters, rows_of_parents = near.real(tried), self.regression_rows()
            weights, scales = np.ascontiguousarray(parameters[:, :-1]), np.exp(parameters[:, -1])
            return np.asarray(linear_misfits(*rows_of_parents, self.parts, rows, weights, scales, cuts))

        return self.chooser.choose(f"{self.column.name}: {name}", epsilon, candidates, misfits, sensitivity=most)


def grid(current: Ints, feature: int) -> Ints:
    """Return every correlation of a grid between one feature and the residual, 0 first."""
    steps = np.arange(1, HALF_GRID + 1)
    rho = np.concatenate([[0], steps, -steps]) / (HALF_GRID + 1)
    candidates = np.tile(current, (rho.size, 1))
    candidates[:, feature] += near.whole(rho * np.exp(near.real(current[-1])))
    candidates[:, -1] += near.whole(np.log1p(-(rho**2)) / 2)
    return candidates


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
