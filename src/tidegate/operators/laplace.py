"""Laplace noise on the grid: the discrete Laplace, cut back to the attribute's own range."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from tidegate.errors import Unsupported
from tidegate.operators.additive import AdditiveNoise
from tidegate.operators.channel import ChannelSpec
from tidegate.operators.exact_draws import ONE, PLACES, WHOLE, Bytes, exp_below, exp_minus
from tidegate.operators.operator import CERTAIN, EPSILON, Report, code

if TYPE_CHECKING:
    from tidegate.arrays import Floats


class LaplaceNoise(AdditiveNoise):
    """value + d with P(d) falling by e**(-epsilon / range) a step; a report beyond an end of the range is that end.

    Guarantee:
        Local loss at most epsilon over the whole range, checked on the whole numbers that are drawn. Cutting back
        loses nothing: every report beyond an end speaks of the values in the same proportions.

    Reference:
        Ghosh, Roughgarden, Sundararajan 2009 (the truncated geometric mechanism).
    """

    name = "laplace-noise"
    parameters = (EPSILON,)
    ordered: ClassVar[bool] = True

    def __init__(self, values: int, *, epsilon: Fraction) -> None:
        self.tails = safe_tails(values, epsilon)  # P(d >= i), i = 1 .. values-1, in 2**-48ths
        super().__init__(values, _weights(self.tails))
        self.report_size = values

    @cached_property
    def gamma(self) -> Fraction:
        return largest_ratio(self.tails)

    def probability(self, report: Report, value: int) -> Fraction:
        distance = abs(code(report) - value)
        if report in (0, self.values - 1):
            return Fraction(self.tails[distance - 1] if distance else WHOLE - self.tails[0], WHOLE)
        return Fraction(self.weights[self.reach + distance], WHOLE)

    def sample(self, value: int, source: Bytes) -> Report:
        return min(max(value + self.draw(source) - self.reach, 0), self.values - 1)

    def recipe(self) -> dict[str, Any]:
        return {**super().recipe(), "draw": "table, cut back to the range"}

    def column(self, value: int) -> Floats:
        first = self.reach - value
        chances = self.chances[first : first + self.values].copy()
        chances[0], chances[-1] = (float(self.probability(end, value)) for end in (0, self.values - 1))
        return chances

    def long_channel(self) -> ChannelSpec:
        return ChannelSpec(self.values, kernel=self.chances, clipped=self.reach)

    def variance(self) -> float:
        """As if the ends had not been cut back, which costs nothing: 2 r / (1 - r)**2."""
        r = float(Fraction(self.tails[1], self.tails[0])) if self.values > 2 else float(1 / self.gamma)
        return 2 * r / (1 - r) ** 2

    def interval(self) -> float | None:
        """Of the noise before it is clamped to the range: ``P(|d| > q) = 2 r**(q+1) / (1 + r)``."""
        rate = self.epsilon / (self.values - 1)
        tail = (1 - float(CERTAIN)) * (1 + math.exp(-rate)) / 2
        return 2.0 * max(0, math.ceil(-math.log(tail) / rate - 1 - 1e-12))


def safe_tails(values: int, epsilon: Fraction) -> list[int]:
    """The tails of the discrete Laplace in whole 2**-48ths, with a loss a hair below epsilon where rounding needs it."""
    limit = Fraction(exp_below(epsilon), ONE)
    for hair in range(44, 3, -1):
        tails = _tails(values, epsilon * (1 - Fraction(1, 2**hair)))
        if tails[-1] > 0 and largest_ratio(tails) <= limit:
            return tails
    raise Unsupported(
        f"laplace-noise cannot keep epsilon {float(epsilon):g} on {values:,} values in whole numbers.",
        "Give the attribute bins or a larger step, or use another operator.",
    )


def _tails(values: int, epsilon: Fraction) -> list[int]:
    shrink = exp_minus(epsilon / (values - 1))
    power, tails = shrink, []
    for _ in range(values - 1):
        tails.append(WHOLE * power // (ONE + shrink))
        power = power * shrink >> PLACES
    return tails


def _weights(tails: list[int]) -> list[int]:
    """The noise itself, the last weight holding all that is beyond."""
    side = [here - beyond for here, beyond in zip(tails, [*tails[1:], 0], strict=True)]
    return [*reversed(side), WHOLE - 2 * tails[0], *side]


def largest_ratio(tails: list[int]) -> Fraction:
    """Over all reports and pairs of values: at an end of the range, and inside it."""
    ends = Fraction(WHOLE - tails[0], tails[-1])
    inside = _weights(tails)[len(tails) : -1]  # distances 0 .. values-2
    if len(inside) < 2:
        return ends
    return max(ends, Fraction(max(inside), min(inside))) if min(inside) else Fraction(2**200)
