"""How many units to ask each person, if they share an epsilon: the errors for every number, and the best one.

With s of Q units per person, each unit gets epsilon / s, and s in Q people answer it. So N times the variance of a unit is
(Q / s) times its variance at epsilon / s. A unit is a question, or several that are asked together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import sqrt

Variance = Callable[[Fraction], float]  # N times the variance of an estimate for a population, at an epsilon


def errors_by_count(variances: Sequence[Variance], epsilon: Fraction) -> list[list[float]]:
    """Return sqrt(N) times the standard error of every unit, one list for each number of units per person, from 1 to all."""
    units = len(variances)
    return [
        [sqrt(units / count * variance(epsilon / count)) for variance in variances] for count in range(1, units + 1)
    ]


def best_count(errors: Sequence[Sequence[float]]) -> int:
    """Return how many units to ask: the largest error, relative to the unit's own best, is smallest.

    Errors of shares and of means have different units, so only ratios of the same unit's errors are compared. Of several equal
    numbers, the smallest one is best: the form is shorter.
    """
    smallest = [min(by_count) for by_count in zip(*errors, strict=True)]
    worst = [max(error / best for error, best in zip(row, smallest, strict=True)) for row in errors]
    return min(range(len(errors)), key=lambda index: round(worst[index], 9)) + 1
