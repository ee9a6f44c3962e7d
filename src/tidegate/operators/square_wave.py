"""The square wave on the grid: one probability near the value, a smaller one elsewhere."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from tidegate.operators.channel import ChannelSpec
from tidegate.operators.exact_draws import ONE, WHOLE, Bytes, below, coin, exp_below
from tidegate.operators.operator import CERTAIN, EPSILON, Operator, Report, code

if TYPE_CHECKING:
    from tidegate.arrays import Floats


class SquareWave(Operator):
    """Reports 0 .. values + 2 half - 1: the 2 half + 1 around the value (report - half) have probability `near` in total.

    Guarantee:
        Local loss at most epsilon: near / (2 half + 1) over (1 - near) / (values - 1) is at most a lower bound of
        e**epsilon, in integer arithmetic.

    Reference:
        Li, Wang, Lopuhaa-Zwakenberg, Li, Skoric 2020 (SIGMOD): the most informative width for a uniform value,
        b = (eps E - E + 1) / (2 E (E - 1 - eps)) of the range with E = e**eps.
    """

    name = "square-wave"
    parameters = (EPSILON,)
    ordered: ClassVar[bool] = True

    def __init__(self, values: int, *, epsilon: Fraction) -> None:
        self.values, self.half = values, int(width(epsilon) * values)
        self.report_size = values + 2 * self.half
        odds = Fraction(exp_below(epsilon), ONE) * (2 * self.half + 1) / (values - 1)
        self.near = int(WHOLE * odds / (1 + odds))  # rounded down, so that the loss stays below epsilon

    @cached_property
    def near_each(self) -> Fraction:
        """The probability of each near report."""
        return Fraction(self.near, WHOLE * (2 * self.half + 1))

    @cached_property
    def far_each(self) -> Fraction:
        """The probability of each far report."""
        return Fraction(WHOLE - self.near, WHOLE * (self.values - 1))

    @property
    def gamma(self) -> Fraction:
        return self.near_each / self.far_each

    def probability(self, report: Report, value: int) -> Fraction:
        return self.near_each if 0 <= code(report) - value <= 2 * self.half else self.far_each

    def sample(self, value: int, source: Bytes) -> Report:
        if coin(self.near, source):
            return value + below(2 * self.half + 1, source)
        far = below(self.values - 1, source)
        return far if far < value else far + 2 * self.half + 1

    def recipe(self) -> dict[str, Any]:
        return {"draw": "square wave", "values": self.values, "half": self.half, "near": self.near}

    def column(self, value: int) -> Floats:
        import numpy as np

        chances = np.full(self.report_size, float(self.far_each))
        chances[value : value + 2 * self.half + 1] = float(self.near_each)
        return chances

    def long_channel(self) -> ChannelSpec:
        import numpy as np

        near, far = float(self.near_each), float(self.far_each)
        kernel = np.full(2 * self.half + 1, near - far)
        return ChannelSpec(self.values, kernel=kernel, background=np.full(self.report_size, far))

    def variance(self) -> float:
        """Return the largest variance, over the values, of a report as an unbiased estimate of its value, in squared steps."""
        near, far, wide = float(self.near_each), float(self.far_each), 2 * self.half + 1
        slope = (near - far) * wide
        size = self.report_size
        total, squares = size * (size - 1) / 2, (size - 1) * size * (2 * size - 1) / 6
        worst = 0.0
        for value in (0, (self.values - 1) // 2):
            first = wide * (value + self.half)
            second = wide * (value + self.half) ** 2 + wide * (wide * wide - 1) / 12
            mean, square = far * total + (near - far) * first, far * squares + (near - far) * second
            worst = max(worst, square - mean**2)
        return worst / slope**2

    def interval(self) -> float | None:
        near, wide, certain = float(self.near_each), 2 * self.half + 1, float(CERTAIN)
        if near * wide >= certain:
            return math.ceil(certain / near - 1e-9) - 1.0
        return wide + math.ceil((certain - near * wide) / float(self.far_each) - 1e-9) - 1.0


def width(epsilon: Fraction) -> Fraction:
    """Return b, the half-width of the near part as a share of the range."""
    power = Fraction(exp_below(epsilon), ONE)
    return (epsilon * power - power + 1) / (2 * power * (power - 1 - epsilon))
