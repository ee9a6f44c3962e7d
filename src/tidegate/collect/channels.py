"""Operators as arrays: P(report | value), one column for each value, also with neighbours merged."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from tidegate.arrays import Floats
from tidegate.collect.mechanisms import LaplaceNoise, Operator, RandomizedResponse, SquareWave
from tidegate.collect.mechanisms.additive import AdditiveNoise
from tidegate.errors import Unsupported


def channel_array(operator: Operator, *, merge: int = 1) -> Floats:
    """The channel (reports, values); with merge > 1 runs of that many reports are summed, of values averaged.

    Never holds more than one full column besides the result, so long grids can be merged on the way.
    """
    if operator.form == "set":
        raise Unsupported(
            f"a report of {operator.name} is a set: there are too many to list as rows.",
            "Count how many reports support each value; p and q of the operator say how often they do.",
        )
    starts = np.arange(0, operator.report_size, merge)
    cells = -(-operator.values // merge)
    merged = np.zeros((starts.size, cells))
    sizes = np.zeros(cells)
    for value in range(operator.values):
        merged[:, value // merge] += np.add.reduceat(column(operator, value), starts)
        sizes[value // merge] += 1
    return np.asarray(merged / sizes)


@singledispatch
def column(operator: Operator, value: int) -> Floats:
    """P(report | value) for all reports, from the operator's exact fractions."""
    return np.array([float(operator.probability(report, value)) for report in operator.reports()])


@column.register
def _(operator: AdditiveNoise, value: int) -> Floats:
    made = np.zeros(operator.report_size)
    made[value : value + len(operator.weights)] = operator.chances
    return made


@column.register
def _(operator: LaplaceNoise, value: int) -> Floats:
    first = operator.reach - value
    made = operator.chances[first : first + operator.values].copy()
    made[0], made[-1] = (float(operator.probability(end, value)) for end in (0, operator.values - 1))
    return made


@column.register
def _(operator: SquareWave, value: int) -> Floats:
    made = np.full(operator.report_size, float(operator.far_each))
    made[value : value + 2 * operator.half + 1] = float(operator.near_each)
    return made


@column.register
def _(operator: RandomizedResponse, value: int) -> Floats:
    made = np.full(operator.values, float(operator.q))
    made[value] = float(operator.p)
    return made
