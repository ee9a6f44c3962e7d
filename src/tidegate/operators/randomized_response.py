"""Randomized response over k categories (GRR): the true one with probability p, else any other."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tidegate.errors import Unsupported
from tidegate.operators.exact_draws import ONE, WHOLE, Bytes, below, coin, exp_below
from tidegate.operators.operator import EACH, EPSILON, RANDOM, Pure, Report, code

if TYPE_CHECKING:
    from tidegate.arrays import Floats


class RandomizedResponse(Pure):
    """The true category with probability keep / 2**48, every other one equally often.

    `random` instead of epsilon is the share b of reports that are a uniform draw from all k categories, so that
    e**epsilon is exactly 1 + k (1 - b) / b.

    Guarantee:
        Local loss at most epsilon, in integer arithmetic: keep is rounded down. With `each`, the memoised answer
        goes through a second response for every report, so that a single report loses at most `each`; all
        reports of one value together never lose more than epsilon.

    Reference:
        Warner 1965; k categories: Kairouz, Bonawitz, Ramage 2016. Two layers: Erlingsson, Pihur, Korolova 2014.
    """

    name = "randomized-response"
    parameters = (EPSILON, RANDOM, EACH)

    def __init__(
        self,
        values: int,
        *,
        epsilon: Fraction | None = None,
        random: Fraction | None = None,
        each: Fraction | None = None,
    ) -> None:
        self.values = self.report_size = values
        self.keep = int(WHOLE * (1 - random + random / values)) if random is not None else _keep(values, epsilon)
        self.again = WHOLE if each is None else self._second(Fraction(_keep(values, each), WHOLE))
        first, second = Fraction(self.keep, WHOLE), Fraction(self.again, WHOLE)
        self.p = first * second + (1 - first) * (1 - second) / (values - 1)
        self.q = (1 - self.p) / (values - 1)
        self._permanent = first * (values - 1) / (1 - first)

    def _second(self, target: Fraction) -> int:
        """Return how often the second layer keeps the first, so that both keep the true value with probability `target`."""
        first = Fraction(self.keep, WHOLE)
        other = (1 - first) / (self.values - 1)
        return int(WHOLE * (target - other) / (first - other))

    @property
    def gamma(self) -> Fraction:
        """The ratio of a single report; `lifetime_gamma` is that of all reports of one value together."""
        return self.p / self.q

    @property
    def lifetime_gamma(self) -> Fraction:
        return self._permanent

    def probability(self, report: Report, value: int) -> Fraction:
        return self.p if report == value else self.q

    def column(self, value: int) -> Floats:
        import numpy as np

        chances = np.full(self.values, float(self.q))
        chances[value] = float(self.p)
        return chances

    def sample(self, value: int, source: Bytes) -> Report:
        """Draw the memoised answer; `repeated` turns it into a report."""
        return self._respond(value, self.keep, source)

    def repeated(self, report: Report, source: Bytes) -> Report:
        return report if self.again == WHOLE else self._respond(code(report), self.again, source)

    def _respond(self, value: int, keep: int, source: Bytes) -> int:
        if coin(keep, source):
            return value
        other = below(self.values - 1, source)
        return other if other < value else other + 1

    def recipe(self) -> dict[str, Any]:
        return {"draw": "response", "values": self.values, "keep": self.keep, "again": self.again}


def _keep(values: int, epsilon: Fraction | None) -> int:
    if epsilon is None:
        raise Unsupported("Randomized response needs `epsilon` or `random`.")
    power = Fraction(exp_below(epsilon), ONE)
    return int(WHOLE * power / (power + values - 1))
