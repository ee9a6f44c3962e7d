"""Permute-and-flip, slowly: one candidate and one coin at a time, and its probabilities over all orders.

Written from McKenna, Sheldon 2020 (arXiv:2010.12603), Algorithm 1, not from our sampler.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, permutations
from math import factorial

import mpmath
from reference.laplace import bernoulli_exp, uniform


def choose(scores: Sequence[int], rate: Fraction, coin: Iterator[int]) -> int:
    """Take the candidates in random order; keep the first whose coin, of probability exp(-rate * gap), says so."""
    waiting = list(range(len(scores)))
    while True:
        candidate = waiting.pop(uniform(len(waiting), coin))
        if bernoulli_exp(rate * (max(scores) - scores[candidate]), coin):
            return candidate


def coins(scores: Sequence[int], rate: Fraction) -> list[mpmath.mpf]:
    step = mpmath.mpf(rate.numerator) / rate.denominator
    return [mpmath.exp(step * (score - max(scores))) for score in scores]


def probabilities(scores: Sequence[int], rate: Fraction) -> list[mpmath.mpf]:
    """The probability of each index: over all orders, all coins before it show tails and its own shows heads."""
    with mpmath.workdps(50):
        p = coins(scores, rate)
        total = [mpmath.mpf(0)] * len(scores)
        for order in permutations(range(len(scores))):
            going = mpmath.mpf(1)
            for index in order:
                total[index] += going * p[index]
                going *= 1 - p[index]
        return [value / factorial(len(scores)) for value in total]


def of_all_heads(scores: Sequence[int], rate: Fraction) -> list[mpmath.mpf]:
    """The same by another route: all coins are thrown, and one of the heads is drawn evenly."""
    with mpmath.workdps(50):
        p = coins(scores, rate)
        total = [mpmath.mpf(0)] * len(scores)
        for size in range(1, len(scores) + 1):
            for heads in combinations(range(len(scores)), size):
                chance = mpmath.fprod(p[i] if i in heads else 1 - p[i] for i in range(len(scores)))
                for index in heads:
                    total[index] += chance / size
        return total
