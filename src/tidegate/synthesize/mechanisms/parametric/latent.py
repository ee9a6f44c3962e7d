"""Private rows as points: a code of a coarse number stands for the stretch around it, and a row for several points there.

A code of a coarse column hides a step of its distribution. Each row is then several rows, evenly placed inside the step,
in an order of its own for every column. So a row is spread over the cells that its interval covers, in whole parts, and
one row is never more than `shares` parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Bools, Floats, Ints
from tidegate.synthesize.facts import Column
from tidegate.synthesize.mechanisms.parametric.plan import is_number

FINE, COARSE = 256, 32  # codes from which a row is one point; below which it is many


@dataclass(frozen=True)
class Points:
    """One column: a number's places, or a category's levels, and which of them are listed."""

    values: Floats
    present: Bools


def shares_of(columns: Sequence[Column]) -> int:
    """Points of a row: public."""
    fewest = min((column.size for column in columns if is_number(column)), default=FINE)
    return 1 if fewest >= FINE else 4 if fewest >= COARSE else 16


def points(codes: Ints, column: Column, *, place: int, shares: int, seed: int) -> Points:
    """The points of one column: rows one after the other, once for each share."""
    many = np.tile(codes, shares)
    if not is_number(column):
        return Points(many.astype(np.float64), many >= 0)
    order = np.random.default_rng([seed, 1, place]).permutation(shares)
    inside = np.repeat((order + 0.5) / shares, codes.size)
    return Points(many + inside - 0.5, (many >= 0) & (many < column.size))
