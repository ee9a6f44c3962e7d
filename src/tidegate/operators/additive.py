"""Noise on the grid: report = value + whole-numbered noise, drawn from a table of whole weights."""

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
        The client draws exactly these probabilities. Where the noise ends, some report rules some value out:
        the local loss is unlimited, and is said so.
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
        place = code(report) - value
        return Fraction(self.weights[place], self.total) if 0 <= place < len(self.weights) else Fraction(0)

    def sample(self, value: int, source: Bytes) -> Report:
        return value + self.draw(source)

    def draw(self, source: Bytes) -> int:
        """A place in the table of weights."""
        return bisect_right(self._reached, draw_whole(source))

    @cached_property
    def _reached(self) -> list[int]:
        if self.total != WHOLE:
            raise ValueError("a table's weights sum to 2**48")
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
        """The variance of the noise, in squared steps."""
        squares = sum(weight * (place - self.reach) ** 2 for place, weight in enumerate(self.weights))
        return Fraction(squares, self.total)

    def variance(self) -> float:
        return float(self.noise_variance())

    def interval(self) -> float | None:
        first, last = shortest_run(self.weights, CERTAIN)
        return float(last - first)


class EvenNoise(AdditiveNoise):
    """Noise whose weights are all one: drawn as one whole number below their count."""

    def draw(self, source: Bytes) -> int:
        return below(len(self.weights), source)

    def recipe(self) -> dict[str, Any]:
        return {"draw": "even", "values": self.values, "reach": self.reach}


def shortest_run(weights: Sequence[int], confidence: Fraction) -> tuple[int, int]:
    """First and last of the fewest neighbouring entries that hold the confidence's share of all weight."""
    wanted = math.ceil(confidence * sum(weights))
    held, start, best = 0, 0, (0, len(weights) - 1)
    for end, weight in enumerate(weights):
        held += weight
        while held - weights[start] >= wanted:
            held -= weights[start]
            start += 1
        if held >= wanted and end - start < best[1] - best[0]:
            best = start, end
    return best
