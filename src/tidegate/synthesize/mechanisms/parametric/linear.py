"""A number: centre and scale in two rounds, each slope from a grid, then its whole block in two rounds."""

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
LOG_SPREAD = 0.7  # how far the logarithm of a scale is spread, beside 1 for a location


class Seen(NamedTuple):
    """Private: a number's points, the features beside them (F, n), and the cells of its parents (P, n)."""

    values: Floats
    features: Floats
    cells: NDArray[np.uint8]


@dataclass(frozen=True)
class LinearFit:
    """The rounds of one number. `rows`: how many rows it should have, public; each is `shares` points.

    `parts` (P, cells): what the cells of its parents should hold. The private side comes last and is only asked for by a
    round that is not yet written.
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
    seen: Callable[[], Seen]

    def margin(self, epsilon: Fraction) -> Ints:
        """Centre and log scale, whatever the other columns hold."""
        first, second = FIRST * epsilon, SECOND * epsilon
        found = self._on_axis(
            "centre and scale", first, lambda: near.anywhere(self.column.size, count=self.many, random=self._random(0))
        )
        radius = near.first_radius(rows=self.rows, reach=self.chooser.reach, epsilon=first)
        return self._on_axis("centre and scale, closer", second, partial(self._around, found, radius, self.many, 1))

    def after_margin(self, epsilon: Fraction) -> float:
        """The radius that these rounds leave."""
        first = near.first_radius(rows=self.rows, reach=self.chooser.reach, epsilon=FIRST * epsilon)
        return self.next_radius(first, SECOND * epsilon, self.many, 2)

    def start(self, margin: Ints, epsilon: Fraction) -> Ints:
        """Slopes one after the other: a correlation with what the slopes before leave over."""
        found = np.insert(margin, 1, np.zeros(self.features - 1, np.int64))
        for place in range(1, self.features):
            found = self._with_parents(f"slope {place}", epsilon / (self.features - 1), partial(grid, found, place))
        return found

    def after_start(self, radius: float, epsilon: Fraction) -> float:
        """The radius that the slopes leave, if the margin left this one."""
        each = near.first_radius(
            rows=self.rows, reach=self.chooser.reach, epsilon=epsilon / (self.features - 1), floor=0.0
        )
        return max(radius, each)

    def block(self, start: Ints, radius: float, epsilon: Fraction) -> Ints:
        """Intercept, slopes and log scale together, in two rounds."""
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
        """Locations and slopes move in units of the scale; the last parameter is its logarithm."""
        scale = float(np.exp(near.real(current[-1])))
        spread = np.append(np.full(current.size - 1, scale), LOG_SPREAD)
        return near.around(current, spread, radius, count=count, random=self._random(number))

    def _on_axis(self, name: str, epsilon: Fraction, candidates: near.Made) -> Ints:
        """By the cells of the residual alone."""
        most = variation_scale(cells=CODES, shares=self.shares).sensitivity
        cuts, rows = normal_cuts(CODES), self.rows * self.shares

        def misfits(tried: Ints) -> Ints:
            found = near.real(tried)
            return np.asarray(margin_misfits(self.ordered(), rows, found[:, 0].copy(), np.exp(found[:, 1]), cuts))

        return self.chooser.choose(f"{self.column.name}: {name}", epsilon, candidates, misfits, sensitivity=most)

    def _with_parents(self, name: str, epsilon: Fraction, candidates: near.Made) -> Ints:
        """By the cells of the residual and of each parent."""
        most = len(self.parts) * misfit_scale(parts=PAIRED * PARTS, shares=self.shares).sensitivity
        cuts, rows = normal_cuts(PAIRED), self.rows * self.shares

        def misfits(tried: Ints) -> Ints:
            found, seen = near.real(tried), self.seen()
            weights, scales = np.ascontiguousarray(found[:, :-1]), np.exp(found[:, -1])
            return np.asarray(linear_misfits(*seen, self.parts, rows, weights, scales, cuts))

        return self.chooser.choose(f"{self.column.name}: {name}", epsilon, candidates, misfits, sensitivity=most)


def grid(current: Ints, place: int) -> Ints:
    """Every correlation of a grid between one feature and what is left over; 0 comes first."""
    steps = np.arange(1, HALF_GRID + 1)
    rho = np.concatenate([[0], steps, -steps]) / (HALF_GRID + 1)
    found = np.tile(current, (rho.size, 1))
    found[:, place] += near.whole(rho * np.exp(near.real(current[-1])))
    found[:, -1] += near.whole(np.log1p(-(rho**2)) / 2)
    return found
