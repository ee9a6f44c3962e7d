"""Subset selection: a set of fixed size that contains the true category more often than chance."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any, ClassVar, Literal

from tidegate.operators.channel import Support
from tidegate.operators.exact_draws import ONE, WHOLE, Bytes, below, coin, exp_below
from tidegate.operators.operator import EPSILON, Pure, Report, is_set, members


class SubsetSelection(Pure):
    """A set of `size` categories: with probability p one that contains the true category; all such sets are equally likely.

    Guarantee:
        Local loss at most epsilon, in integer arithmetic: p (values - size) / ((1 - p) size), p rounded down.

    Reference:
        Ye, Barg 2018; Wang, Huang, Wang, Nie, Xiao, Yang, Li, Qiao 2016: size near values / (e**epsilon + 1).
    """

    name = "subset"
    parameters = (EPSILON,)
    form: ClassVar[Literal["code", "set"]] = "set"
    supports_several: ClassVar[bool] = True

    def __init__(self, values: int, *, epsilon: Fraction) -> None:
        self.values = self.report_size = values
        power = Fraction(exp_below(epsilon), ONE)
        self.size = best_size(values, power)
        odds = power * self.size / (values - self.size)
        self.keep = int(WHOLE * odds / (1 + odds))
        self.p = Fraction(self.keep, WHOLE)
        self.q = (self.p * (self.size - 1) + (1 - self.p) * self.size) / (values - 1)

    @property
    def gamma(self) -> Fraction:
        return self.p * (self.values - self.size) / ((1 - self.p) * self.size)

    def probability(self, report: Report, value: int) -> Fraction:
        codes = members(report)
        if len(codes) != self.size:
            return Fraction(0)
        if value in codes:
            return self.p / comb(self.values - 1, self.size - 1)
        return (1 - self.p) / comb(self.values - 1, self.size)

    def sample(self, value: int, source: Bytes) -> Report:
        """Draw a coin for the true category, then other categories one by one; repeated ones are drawn again."""
        codes = {value} if coin(self.keep, source) else set()
        while len(codes) < self.size:
            other = below(self.values - 1, source)
            codes.add(other if other < value else other + 1)
        return sorted(codes)

    def reports(self) -> Iterator[Report]:
        return map(list, combinations(range(self.values), self.size))

    def accepts(self, report: Any) -> bool:
        return is_set(report, self.values) and len(report) == self.size

    def support(self) -> Support:
        p, n, w = float(self.p), self.values, self.size
        pairs = p * (w - 1) * (w - 2) + (1 - p) * w * (w - 1)
        return Support(p, float(self.q), p * (w - 1) / (n - 1), pairs / ((n - 1) * (n - 2)) if n > 2 else 0.0)

    def member_counts(self) -> range:
        return range(self.size, self.size + 1)

    def member_chances(self) -> dict[int, float]:
        return {self.size: 1.0}

    def recipe(self) -> dict[str, Any]:
        return {"draw": "subset", "values": self.values, "size": self.size, "keep": self.keep}


def best_size(values: int, power: Fraction) -> int:
    """Return the size with the least variance, one of the two integers around values / (e**epsilon + 1)."""
    low = max(1, int(values / (power + 1)))

    def variance(size: int) -> Fraction:
        p = power * size / (power * size + values - size)
        q = (p * (size - 1) + (1 - p) * size) / (values - 1)
        return q * (1 - q) / (p - q) ** 2

    return min((size for size in (low, low + 1) if size < values), key=variance)
