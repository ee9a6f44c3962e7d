"""Candidates: finite sets of parameters that no row chooses.

Each set is a function of the public seed, of public sizes, and of what earlier rounds gave out. Parameters are whole
multiples of 1 / UNIT, so that a chosen one can be written down exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tidegate.arrays import Floats, Ints

UNIT = 2**20
MANY, SOME = 20_000, 2_000  # candidates of a round over the prior and next to it, and of a later one
WIDEST, FIRST_FLOOR = 1.0, 0.4  # radii in standard deviations
NEARER = 0.1  # the nearest candidates lie at a tenth of the radius
Made = Callable[[], Ints]


def whole(parameters: Floats) -> Ints:
    """Parameters on their lattice."""
    return np.rint(np.asarray(parameters) * UNIT).astype(np.int64)


def real(written: Ints) -> Floats:
    """What whole numbers of the diary stand for."""
    return np.asarray(written, np.float64) / UNIT


def anywhere(size: int, *, count: int = MANY, random: np.random.Generator) -> Ints:
    """Centres evenly over a universe of `size` codes, scales evenly on a logarithmic scale from 1/4 to `size` codes."""
    centres = random.uniform(-0.5, size - 0.5, count)
    scales = random.uniform(math.log(0.25), math.log(size), count)
    return whole(np.column_stack([centres, scales]))


def around(current: Ints, spread: Floats, radius: float, *, count: int, random: np.random.Generator) -> Ints:
    """The current parameters, and others at normal distances: near ones and far ones up to the radius."""
    reach = radius * np.exp(random.uniform(math.log(NEARER), 0.0, count))
    steps = reach[:, None] * random.standard_normal((count, current.size)) * spread
    return np.vstack([current, current + whole(steps)])


def first_radius(*, rows: int, reach: int, epsilon: Fraction, floor: float = FIRST_FLOOR) -> float:
    """How far the truth may be from a first choice, in standard deviations; `floor`: how far its candidates lie apart."""
    return min(WIDEST, max(25.0 * reach / _strength(rows, epsilon), floor))


def next_radius(radius: float, *, rows: int, reach: int, epsilon: Fraction, count: int, dimensions: int) -> float:
    """How far it may be after one more round: what its loss and what its number of candidates resolve."""
    spacing = 3.0 * math.exp(-math.log(count) / dimensions)
    return min(radius, max(40.0 * reach / _strength(rows, epsilon), radius * spacing))


def _strength(rows: int, epsilon: Fraction) -> float:
    return max(rows * float(epsilon), 1e-9)
