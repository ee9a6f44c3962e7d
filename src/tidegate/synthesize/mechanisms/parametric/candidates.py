"""Candidates: finite sets of parameters that no row chooses.

Each set is a function of the public seed, of public sizes, and of what earlier rounds gave out. Parameters are whole
multiples of 1 / UNIT, so that a chosen one can be written down exactly.

One round: one of the candidates by the exact exponential mechanism, written into the diary by its parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.noise import Bits, below, exponential_choice
from tidegate.synthesize.diary import Diary

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


SHORT = 2**20  # of a rate's numerator, so that scores times it stay within 64 bits


@dataclass(frozen=True)
class Chooser:
    """Private choices among public candidates, recorded in a diary.

    Guarantee:
        A round spends at most its epsilon under replacement of one unit: no misfit changes by more than `reach` times
        the stated sensitivity, and the choice is exact in whole numbers.

    Needs:
        Candidates that are a function of public facts and of the diary.

    Reference:
        McSherry, Talwar 2007.
    """

    diary: Diary
    reach: int
    bits: Bits

    def choose(
        self,
        name: str,
        epsilon: Fraction,
        candidates: Callable[[], Ints],
        misfits: Callable[[Ints], Ints],
        *,
        sensitivity: int,
    ) -> Ints:
        """The parameters chosen: small misfits are likely. Without epsilon, the first candidate."""

        def measure() -> Ints:
            found = candidates()
            place = self._place(misfits(found), rate_for(sensitivity * self.reach, epsilon)) if epsilon else 0
            return np.asarray(found[place], np.int64)

        return self.diary.step(name, epsilon, measure)

    def _place(self, misfits: Ints, rate: Fraction) -> int:
        if not rate:  # so small a loss tells nothing: any candidate, evenly
            return int(below(misfits.size, size=1, bits=self.bits)[0])
        return exponential_choice(-misfits, rate, bits=self.bits)


def rate_for(sensitivity: int, epsilon: Fraction) -> Fraction:
    """epsilon / (2 sensitivity), or a short fraction just below it; never above it, so it may be 0."""
    rate = epsilon / (2 * sensitivity)
    if rate.numerator <= SHORT and rate.denominator <= 2**60:
        return rate
    grid = 1
    while rate * grid < SHORT // 2 and grid < 2**60:
        grid *= 2
    return Fraction(math.floor(rate * grid), grid)
