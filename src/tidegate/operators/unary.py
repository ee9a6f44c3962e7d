"""Optimized unary encoding (OUE): one bit for each category; the true bit is fair, the others are rare."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from math import exp, lgamma, log
from typing import Any, ClassVar, Literal

from tidegate.operators.channel import Support
from tidegate.operators.exact_draws import ONE, WHOLE, Bytes, coin, exp_below
from tidegate.operators.operator import EACH, EPSILON, Pure, Report, is_set, members

FAIR = WHOLE // 2


class Unary(Pure):
    """Each category is in the report independently: the true one with probability 1/2, another with probability q.

    Guarantee:
        Local loss at most epsilon, in integer arithmetic: (1/2) (1 - q) / (q (1/2)) = (1 - q) / q, q rounded up. With
        `each`, every bit of the memoised answer is randomized again for a report, so that a single report loses
        at most `each`.

    Reference:
        Wang, Blocki, Li, Jha 2017 (OUE); two layers: Erlingsson, Pihur, Korolova 2014 (RAPPOR).
    """

    name = "unary"
    parameters = (EPSILON, EACH)
    form: ClassVar[Literal["code", "set"]] = "set"
    supports_several: ClassVar[bool] = True

    def __init__(self, values: int, *, epsilon: Fraction, each: Fraction | None = None) -> None:
        self.values = self.report_size = values
        self.rare = _rare(epsilon)
        first = Fraction(self.rare, WHOLE)
        second = None if each is None else Fraction(_rare(each), WHOLE)
        self.stay = WHOLE if second is None else int(WHOLE * (1 - first - second) / (1 - 2 * first))
        stay = Fraction(self.stay, WHOLE)
        self.p, self.q = Fraction(1, 2), first * stay + (1 - first) * (1 - stay)
        self._permanent = (1 - first) / first

    @property
    def gamma(self) -> Fraction:
        """The ratio of a single report; `lifetime_gamma` is that of all reports of one value together."""
        return (1 - self.q) / self.q

    @property
    def lifetime_gamma(self) -> Fraction:
        return self._permanent

    def probability(self, report: Report, value: int) -> Fraction:
        others = len(set(members(report)) - {value})
        return self.q**others * (1 - self.q) ** (self.values - 1 - others) / 2

    def sample(self, value: int, source: Bytes) -> Report:
        """Draw the memoised answer, one coin for each category in order; `repeated` turns it into a report."""
        return [code for code in range(self.values) if coin(FAIR if code == value else self.rare, source)]

    def repeated(self, report: Report, source: Bytes) -> Report:
        if self.stay == WHOLE:
            return report
        codes = set(members(report))
        return [code for code in range(self.values) if coin(self.stay, source) == (code in codes)]

    def reports(self) -> Iterator[Report]:
        for size in range(self.values + 1):
            yield from map(list, combinations(range(self.values), size))

    def accepts(self, report: Any) -> bool:
        return is_set(report, self.values)

    def support(self) -> Support:
        p, q = float(self.p), float(self.q)
        return Support(p, q, p * q, q * q)

    def pick_chance(self) -> float:
        """Return E[1 / (1 + others)] with others ~ Binomial(n - 1, q); an empty report gives any of n values."""
        n, p, q = self.values, float(self.p), float(self.q)
        return p * (1 - (1 - q) ** n) / (n * q) + (1 - p) * (1 - q) ** (n - 1) / n

    def member_counts(self) -> range:
        return range(self.values + 1)

    def member_chances(self) -> dict[int, float]:
        k, p, q = self.values, float(self.p), float(self.q)
        others = [_binomial(k - 1, c, q) for c in range(k)]
        return {c: p * (others[c - 1] if c else 0) + (1 - p) * (others[c] if c < k else 0) for c in range(k + 1)}

    def recipe(self) -> dict[str, Any]:
        return {"draw": "unary", "values": self.values, "rare": self.rare, "stay": self.stay}


def _rare(epsilon: Fraction) -> int:
    """Return 1 / (e**epsilon + 1) as an integer over 2**48, rounded up."""
    return -(-WHOLE * ONE // (exp_below(epsilon) + ONE))


def _binomial(n: int, c: int, q: float) -> float:
    return exp(lgamma(n + 1) - lgamma(c + 1) - lgamma(n - c + 1) + c * log(q) + (n - c) * log(1 - q))
