"""A number: center and scale in two rounds, each slope from a grid, then its whole block in two rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats, Ints
from tidegate.synthesize.facts import Column
from tidegate.synthesize.mechanisms.parametric import candidates as near
from tidegate.synthesize.mechanisms.parametric._kernels import linear_misfits, margin_misfits
from tidegate.synthesize.mechanisms.parametric.candidates import Chooser
from tidegate.synthesize.mechanisms.parametric.plan import EARLY, FIRST, LATE, SECOND
from tidegate.synthesize.mechanisms.parametric.scores import CODES, PAIRED, misfit_scale, normal_cuts, variation_scale
from tidegate.synthesize.mechanisms.parametric.states import PARTS

HALF_GRID = 199  # correlations of a start: 399 from -0.995 to 0.995
LOG_SPREAD = 0.7  # spread of the logarithm of a scale, relative to 1 for a location


class RegressionRows(NamedTuple):
    """A number's points, the features beside them (F, n), and the cells of its parents (P, n). Private."""

    values: Floats
    features: Floats
    cells: NDArray[np.uint8]


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
