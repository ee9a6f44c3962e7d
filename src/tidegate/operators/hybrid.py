"""Hybrid: a report from which only the mean of a number is estimated, with a smaller error than any distribution needs."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from tidegate.operators.exact_draws import ONE, WHOLE, Bytes, below, coin, exp_below, exp_minus
from tidegate.operators.operator import EPSILON, Operator, Report, code

if TYPE_CHECKING:
    from tidegate.arrays import Floats

FINE = 1_024  # the smallest number of steps of the positions
LEAST_PIECEWISE = Fraction(61, 100)  # epsilon up to which the two ends alone have the smaller error


class Hybrid(Operator):
    """With probability piecewise / 2**48 a position near the value or anywhere, else one of the two ends of the range.

    The range has `fine` positions for each step of the values, and `half` more at either side. A position is uniform among
    the 2 half + 1 around the value with probability near / 2**48, else uniform among all. For an end, the value is first
    rounded to one of both at random, without changing its mean, and then sent as in randomized response. Codes are the
    positions, then the lower and the upper end.

    Order of the draws: the coin for the kind; the coin and the position; or the end and the coin.

    Guarantee:
        Local loss at most epsilon, in integer arithmetic: `near` and `keep` are rounded down. The score of a report is an
        unbiased estimate of its value.

    Reference:
        Wang, Xiao, Yang, Zhao, Hui, Shin, Shin, Yu 2019 (ICDE), "Collecting and analyzing multidimensional data with local
        differential privacy"; the ends: Duchi, Jordan, Wainwright 2018.
    """

    name = "hybrid"
    parameters = (EPSILON,)
    ordered = True
    only_mean: ClassVar[bool] = True

    def __init__(self, values: int, *, epsilon: Fraction) -> None:
        self.values = values
        power, root = exp_below(epsilon), exp_below(epsilon / 2)
        self.fine = -(-FINE // (values - 1))
        self.steps = self.fine * (values - 1)
        self.half = self.steps * ONE // (2 * root)
        self.positions = self.steps + 2 * self.half + 1
        self.piecewise = WHOLE * (ONE - exp_minus(epsilon / 2)) // ONE if epsilon > LEAST_PIECEWISE else 0
        odds = (power - ONE) * (2 * self.half + 1)
        self.near = WHOLE * odds // (self.positions * ONE + odds)
        self.keep = WHOLE * power // (power + ONE)
        self.first_end = self.positions if self.piecewise else 0
        self.report_size = self.first_end + 2
        self.outside = (1 - Fraction(self.near, WHOLE)) / self.positions
        self.inside = self.outside + Fraction(self.near, WHOLE) / (2 * self.half + 1)

    @property
    def gamma(self) -> Fraction:
        ends = Fraction(self.keep, WHOLE - self.keep)
        return max(ends, self.inside / self.outside) if self.piecewise else ends

    def probability(self, report: Report, value: int) -> Fraction:
        number, chance = code(report), Fraction(self.piecewise, WHOLE)
        if number < self.first_end:
            is_near = 0 <= number - value * self.fine <= 2 * self.half
            return chance * (self.inside if is_near else self.outside)
        upper, keep = Fraction(value, self.values - 1), Fraction(self.keep, WHOLE)
        lower_sent = upper * (1 - keep) + (1 - upper) * keep
        return (1 - chance) * (lower_sent if number == self.first_end else 1 - lower_sent)

    def column(self, value: int) -> Floats:
        import numpy as np

        chances = np.full(self.report_size, float(self.outside * self.piecewise / WHOLE))
        start = value * self.fine
        if self.piecewise:
            chances[start : start + 2 * self.half + 1] = float(self.inside * self.piecewise / WHOLE)
        chances[-2:] = [float(self.probability(self.first_end + end, value)) for end in (0, 1)]
        return chances

    def sample(self, value: int, source: Bytes) -> Report:
        if self.piecewise and coin(self.piecewise, source):
            if coin(self.near, source):
                return value * self.fine + below(2 * self.half + 1, source)
            return below(self.positions, source)
        end = int(below(self.values - 1, source) < value)
        return self.first_end + (end if coin(self.keep, source) else 1 - end)

    def grid_position(self, report: int) -> Fraction:
        """Return where a report is on the grid of the values; positions at either side are outside of it."""
        if report >= self.first_end:
            return Fraction((report - self.first_end) * (self.values - 1))
        return Fraction(report - self.half, self.fine)

    def score(self, report: int) -> Fraction:
        """Return the unbiased estimate of the value from one report, in steps."""
        middle = Fraction(self.values - 1, 2)
        if report >= self.first_end:
            keep = Fraction(self.keep, WHOLE)
            return (report - self.first_end - (1 - keep)) / (2 * keep - 1) * (self.values - 1)
        return middle + (self.grid_position(report) - middle) * WHOLE / self.near

    def scores(self) -> Floats:
        """Return the score of every report, as an array."""
        import numpy as np

        ends = [float(self.score(self.first_end + end)) for end in (0, 1)]
        if not self.piecewise:
            return np.array(ends)
        places = (np.arange(self.positions) - self.half) / self.fine
        middle = (self.values - 1) / 2
        return np.append(middle + (places - middle) * (WHOLE / self.near), ends)

    def noise_variance(self, value: float) -> float:
        """Return the variance of a report's score for a value, in squared steps."""
        chance, near, keep = self.piecewise / WHOLE, self.near / WHOLE, self.keep / WHOLE
        middle, span, wide = (self.values - 1) / 2, self.values - 1, self.half
        upper = value / span
        upper_sent = upper * keep + (1 - upper) * (1 - keep)
        ends = upper_sent * (1 - upper_sent) * (span / (2 * keep - 1)) ** 2
        away = (value - middle) * self.fine
        square = near * (away**2 + (wide**2 + wide) / 3) + (1 - near) * (self.positions**2 - 1) / 12
        return (1 - chance) * ends + chance * (square / near**2 - away**2) / self.fine**2

    def variance(self) -> float:
        """Return the largest variance over all values: at an end, or in the middle."""
        return max(self.noise_variance(value) for value in (0.0, (self.values - 1) / 2))

    def recipe(self) -> dict[str, Any]:
        positions = {"fine": self.fine, "half": self.half, "piecewise": self.piecewise, "near": self.near}
        return {"draw": self.name, "values": self.values, **positions, "keep": self.keep}
