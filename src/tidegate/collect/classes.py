"""Measures of operators that report sets, by classes of reports: sets of one size say the same, but for names.

For equally likely values a set of c members has the posterior g / (c g + k - c) for each member and 1 / (c g + k - c) for
each other value, g being the ratio gamma. So sums run over sizes, not over 2**k sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, floor, lgamma, log, log2

from tidegate.collect.mechanisms import Pure, SubsetSelection
from tidegate.risk.entropy import EntropyPrivacy


@dataclass(frozen=True)
class Judged:
    """Entropy, the worst breach from a prior, and the highest posterior of a value."""

    entropy: EntropyPrivacy
    breach: float
    revealed: float


def judge_sets(operator: Pure, unlikely: float) -> Judged:
    """All measures of a set operator, for equally likely values."""
    k, g = operator.values, float(operator.gamma or 0)
    chances = size_chances(operator)
    left = sum(chance * _left(size, k, g) for size, chance in chances.items())
    few = floor(unlikely * k + 1e-9)
    return Judged(
        EntropyPrivacy(log2(k), max(0.0, log2(k) - left)),
        max((min(few, c) * g + few - min(few, c)) / (c * g + k - c) for c in chances),
        max((g if c else 1.0) / (c * g + k - c) for c in chances),
    )


def size_chances(operator: Pure) -> dict[int, float]:
    """How likely a report has each number of members."""
    if isinstance(operator, SubsetSelection):
        return {operator.size: 1.0}
    k, p, q = operator.values, float(operator.p), float(operator.q)
    others = [_binomial(k - 1, c, q) for c in range(k)]
    return {c: p * (others[c - 1] if c else 0) + (1 - p) * (others[c] if c < k else 0) for c in range(k + 1)}


def _binomial(n: int, c: int, q: float) -> float:
    return exp(lgamma(n + 1) - lgamma(c + 1) - lgamma(n - c + 1) + c * log(q) + (n - c) * log(1 - q))


def _left(size: int, k: int, g: float) -> float:
    """Bits of uncertainty after a set of that size."""
    total = size * g + k - size
    member, other = g / total, 1 / total
    return -(size * member * log2(member) + (k - size) * other * log2(other))
