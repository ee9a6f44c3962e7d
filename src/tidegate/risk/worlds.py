"""The possible worlds of an adversary who knows all rows but one, and the statistics asked of them.

Reference  Lee & Clifton 2012, Sections 3.3 and 3.5. A world is what is known plus one missing row. In their examples each entry
           of the universe is a person, and one already known cannot be the missing one; in their Section 5 it is a value,
           which may occur again.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

Values = Sequence[Fraction]
Statistic = Callable[[Values], Fraction | float]


def missing_rows(universe: Values, known: Values, *, may_repeat: bool = False) -> list[Fraction]:
    """The rows that could be the missing one, in the order of the universe."""
    if may_repeat:
        return list(universe)
    taken, left = Counter(known), []
    for value in universe:
        if taken[value]:
            taken[value] -= 1
        else:
            left.append(value)
    return left


def outputs(statistic: Statistic, missing: Values, known: Values) -> list[Fraction | float]:
    """The statistic of every possible world."""
    return [statistic([*known, row]) for row in missing]


def at_least(threshold: Fraction) -> Statistic:
    """The statistic that counts rows of at least this value."""
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
