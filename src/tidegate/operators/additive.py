"""Noise on the grid: report = value + integer noise, drawn from a table of integer weights."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

from tidegate.operators.channel import ChannelSpec
from tidegate.operators.exact_draws import WHOLE, Bytes, below, draw_whole
from tidegate.operators.operator import CERTAIN, Operator, Parameter, Report, code

if TYPE_CHECKING:
    from tidegate.arrays import Floats

PRIVACY = Parameter(
    "privacy",
    "The noise's 95% interval as a share of the range.",
    least=Fraction(1, 1000),
    most=Fraction(100),
    search=(Fraction(1, 100), Fraction(10)),
    example="1",
)


class AdditiveNoise(Operator):
    """value + d with probability weights[d + reach] / total for d = -reach .. reach; the report is value + d + reach.

    Guarantee:
        The client draws exactly these probabilities. Because the noise is bounded, some report rules out some
        value: the local loss is unlimited and reported as such.
    """

    ordered: ClassVar[bool] = True

    def __init__(self, values: int, weights: list[int]) -> None:
        self.values, self.weights = values, weights
        self.reach = len(weights) // 2
        self.report_size = values + 2 * self.reach

    @cached_property
    def total(self) -> int:
        return sum(self.weights)

    @property
    def gamma(self) -> Fraction | None:
        return None

    def probability(self, report: Report, value: int) -> Fraction:
        index = code(report) - value
        return Fraction(self.weights[index], self.total) if 0 <= index < len(self.weights) else Fraction(0)

    def sample(self, value: int, source: Bytes) -> Report:
        return value + self.draw(source)

    def draw(self, source: Bytes) -> int:
        """Draw an index of the table of weights."""
        return bisect_right(self._cumulative, draw_whole(source))

    @cached_property
    def _cumulative(self) -> list[int]:
        if self.total != WHOLE:
            raise ValueError("The weights of a table must sum to 2**48.")
        return list(accumulate(self.weights))

    def recipe(self) -> dict[str, Any]:
        return {"draw": "table", "values": self.values, "reach": self.reach, "weights": self.weights}

    @cached_property
    def chances(self) -> Floats:
        """The weights as probabilities, for arrays of the channel."""
        import numpy as np

        return np.asarray(np.array(self.weights, np.float64) / self.total)

    def column(self, value: int) -> Floats:
        import numpy as np

        chances = np.zeros(self.report_size)
        chances[value : value + len(self.weights)] = self.chances
        return chances

    def long_channel(self) -> ChannelSpec:
        return ChannelSpec(self.values, kernel=self.chances)

    def noise_variance(self) -> Fraction:
        """Return the variance of the noise, in squared steps."""
        squares = sum(weight * (index - self.reach) ** 2 for index, weight in enumerate(self.weights))
        return Fraction(squares, self.total)

    def variance(self) -> float:
        return float(self.noise_variance())

    def interval(self) -> float | None:
        first, last = shortest_run(self.weights, CERTAIN)
        return float(last - first)


class EvenNoise(AdditiveNoise):
    """Noise whose weights are all 1: drawn as one integer below their count."""

    def draw(self, source: Bytes) -> int:
        return below(len(self.weights), source)

    def recipe(self) -> dict[str, Any]:
        return {"draw": "even", "values": self.values, "reach": self.reach}


def shortest_run(weights: Sequence[int], confidence: Fraction) -> tuple[int, int]:
    """Return the first and last index of the shortest run that has at least this share of all weight."""
    target = math.ceil(confidence * sum(weights))
    covered, start, best = 0, 0, (0, len(weights) - 1)
    for end, weight in enumerate(weights):
        covered += weight
        while covered - weights[start] >= target:
            covered -= weights[start]
            start += 1
        if covered >= target and end - start < best[1] - best[0]:
            best = start, end
    return best
