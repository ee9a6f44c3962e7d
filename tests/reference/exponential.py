"""The exponential mechanism, slowly: one proposal and one coin at a time, and its probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import mpmath
from reference.laplace import bernoulli_exp, uniform


def choose(scores: Sequence[int], rate: Fraction, coin: Iterator[int]) -> int:
    """An index with probability proportional to exp(rate * score): any index, kept as often as it falls short of the best."""
    while True:
        index = uniform(len(scores), coin)
        if bernoulli_exp(rate * (max(scores) - scores[index]), coin):
            return index


def probabilities(scores: Sequence[int], rate: Fraction) -> list[mpmath.mpf]:
    """The probability of each index."""
    with mpmath.workdps(50):
        step = mpmath.mpf(rate.numerator) / rate.denominator
        weights = [mpmath.exp(step * (score - max(scores))) for score in scores]
        total = mpmath.fsum(weights)
        return [weight / total for weight in weights]
