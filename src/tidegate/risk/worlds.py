"""The possible worlds of an adversary who knows all rows but one, and statistics of them.

Reference:
    Lee & Clifton 2012, Sections 3.3 and 3.5. A world is the known rows plus one missing row. In their examples each
    entry of the universe is a person, and a known person cannot be the missing one; in their Section 5 it is a
    value, which can occur again.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

Values = Sequence[Fraction]
Statistic = Callable[[Values], Fraction | float]


def missing_rows(universe: Values, known: Values, *, may_repeat: bool = False) -> list[Fraction]:
    """Return the rows that could be the missing one, in the order of the universe."""
    if may_repeat:
        return list(universe)
    remaining_known, candidates = Counter(known), []
    for value in universe:
        if remaining_known[value]:
            remaining_known[value] -= 1
        else:
            candidates.append(value)
    return candidates


def outputs(statistic: Statistic, missing: Values, known: Values) -> list[Fraction | float]:
    """Return the statistic of every possible world."""
    return [statistic([*known, row]) for row in missing]


def at_least(threshold: Fraction) -> Statistic:
    """Return the statistic that counts rows of at least `threshold`."""
    return lambda world: Fraction(sum(value >= threshold for value in world))


def _total(world: Values) -> Fraction:
    return sum(world, Fraction(0))


def _mean(world: Values) -> Fraction:
    return _total(world) / len(world)


STATISTICS: dict[str, Statistic] = {
    "mean": _mean,
    "sum": _total,
    "median": statistics.median,
    "min": min,
    "max": max,
    "std": statistics.stdev,
}
