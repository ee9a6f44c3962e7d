"""Bounds on supports where baskets were cut: what such reports can say, and no more.

Of a basket of r items that was cut to f, a k-itemset stays with probability w_k(r) = C(f, k) / C(r, k) if r > f, else 1. The
reports estimate c = sum over r of w_k(r) s_r, where s_r is the share of people with r items who hold the itemset. The
support, the sum of s_r, is not identified: populations with different supports give the same distribution of reports.

Guarantee  `bracket` contains every support that some population with these shares of sizes can have, if c is between `low`
           and `high`; each end is reached by some population.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import comb

from tidegate.collect.baskets.mining import Frequent
from tidegate.errors import Unsupported

SURE = 1.959963984540054  # standard errors of a 95% interval


@dataclass(frozen=True)
class Cut:
    """Baskets of up to `largest` items that were cut to `fixed`. `sizes` are the shares of basket sizes, where known."""

    fixed: int
    largest: int
    sizes: Mapping[int, float] | None = None

    def __post_init__(self) -> None:
        if self.sizes is None:
            return
        shares = [float(share) for share in self.sizes.values()]
        is_known = all(0 <= size <= self.largest for size in self.sizes)
        if not is_known or min(shares, default=0) < 0 or abs(sum(shares) - 1) > 1e-6:
            raise Unsupported(f"`sizes` must be shares of sizes from 0 to {self.largest} that add up to 1.")

    def kept(self, size: int, items: int) -> float:
        """Return the probability that an itemset of a basket of this size survives the cut."""
        return 1.0 if size <= self.fixed else float(Fraction(comb(self.fixed, items), comb(size, items)))

    def bracket(self, low: float, high: float, items: int) -> tuple[float, float]:
        """Return the bounds on a support, given the bounds on what is left of it after the cut."""
        low, high = max(0.0, low), min(1.0, max(0.0, high))
        ascending = sorted(size for size in self.sizes or {self.largest: 1.0} if size >= items)
        if items > self.fixed:  # no report shows such an itemset
            return 0.0, min(1.0, sum(float((self.sizes or {self.largest: 1.0})[size]) for size in ascending))
        if self.sizes is None:
            return low, min(1.0, high / self.kept(self.largest, items))
        return self._filled(low, items, ascending), self._filled(high, items, reversed(ascending))

    def of(self, found: Frequent) -> tuple[float, float]:
        """Return the 95% bracket of a mined itemset: what is left of it is widened by its own interval first."""
        width = SURE * found.error
        return self.bracket(found.support - width, found.support + width, len(found.items))

    def _filled(self, left: float, items: int, order: Iterable[int]) -> float:
        """Fill what is left after the cut from the sizes in this order: a fractional knapsack."""
        support = 0.0
        for size in order:
            share, kept = float((self.sizes or {})[size]), self.kept(size, items)
            part = min(share, left / kept)
            support, left = support + part, left - part * kept
        return min(1.0, support)
