"""Laplace noise on the grid: the discrete Laplace, clamped to the attribute's range."""

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
    """value + d with P(d) falling by e**(-epsilon / range) per step; a report outside the range becomes the nearest end.

    Guarantee:
        Local loss at most epsilon over the whole range, checked on the integers that are drawn. Clamping
        loses no information: all reports beyond an end have the same likelihood ratios.

    Reference:
        Ghosh, Roughgarden, Sundararajan 2009 (the truncated geometric mechanism).
    """

    name = "laplace-noise"
    parameters = (EPSILON,)
    ordered: ClassVar[bool] = True

    def __init__(self, values: int, *, epsilon: Fraction) -> None:
        self.tails = safe_tails(values, epsilon)  # P(d >= i), i = 1 .. values-1, over 2**48
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
        """Return the variance without clamping, which loses no information: 2 r / (1 - r)**2."""
        r = float(Fraction(self.tails[1], self.tails[0])) if self.values > 2 else float(1 / self.gamma)
        return 2 * r / (1 - r) ** 2

    def interval(self) -> float | None:
        """Return the interval of the noise before clamping: ``P(|d| > q) = 2 r**(q+1) / (1 + r)``."""
        rate = self.epsilon / (self.values - 1)
        tail = (1 - float(CERTAIN)) * (1 + math.exp(-rate)) / 2
        return 2.0 * max(0, math.ceil(-math.log(tail) / rate - 1 - 1e-12))


def safe_tails(values: int, epsilon: Fraction) -> list[int]:
    """Return the tails of the discrete Laplace as integers over 2**48, with a loss just below epsilon if rounding needs it."""
    limit = Fraction(exp_below(epsilon), ONE)
    for margin in range(44, 3, -1):
        tails = _tails(values, epsilon * (1 - Fraction(1, 2**margin)))
        if tails[-1] > 0 and largest_ratio(tails) <= limit:
            return tails
    raise Unsupported(
        f"laplace-noise cannot keep epsilon {float(epsilon):g} on {values:,} values with probabilities over 2**48.",
        "Declare bins or a larger step for the attribute, or use another operator.",
    )


def _tails(values: int, epsilon: Fraction) -> list[int]:
    shrink = exp_minus(epsilon / (values - 1))
    power, tails = shrink, []
    for _ in range(values - 1):
        tails.append(WHOLE * power // (ONE + shrink))
        power = power * shrink >> PLACES
    return tails


def _weights(tails: list[int]) -> list[int]:
    """Return the weights of the noise; the outermost weights include everything beyond them."""
    side = [here - beyond for here, beyond in zip(tails, [*tails[1:], 0], strict=True)]
    return [*reversed(side), WHOLE - 2 * tails[0], *side]


def largest_ratio(tails: list[int]) -> Fraction:
    """Return the largest ratio over all reports and pairs of values, at the ends of the range and inside it."""
    ends = Fraction(WHOLE - tails[0], tails[-1])
    inside = _weights(tails)[len(tails) : -1]  # distances 0 .. values-2
    if len(inside) < 2:
        return ends
    return max(ends, Fraction(max(inside), min(inside))) if min(inside) else Fraction(2**200)
