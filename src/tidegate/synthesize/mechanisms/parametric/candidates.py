"""Candidates: finite sets of parameters that do not depend on the rows, and one round of choosing among them.

Each set is a function of the public seed, of public sizes, and of the results of earlier rounds. Parameters are whole
multiples of 1 / UNIT, so that the diary stores a chosen one exactly. A round chooses one candidate by the exact exponential
mechanism and writes its parameters into the diary.
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
MANY, SOME = 20_000, 2_000  # candidates of a margin's round, and of a block's round
WIDEST, FIRST_FLOOR = 1.0, 0.4  # radii in standard deviations
NEARER = 0.1  # distance of the nearest candidates, as a share of the radius
Made = Callable[[], Ints]


def whole(parameters: Floats) -> Ints:
    """Return parameters as integers on their lattice."""
    return np.rint(np.asarray(parameters) * UNIT).astype(np.int64)


def real(written: Ints) -> Floats:
    """Return the parameters that integers of the diary represent."""
    return np.asarray(written, np.float64) / UNIT


def anywhere(size: int, *, count: int = MANY, random: np.random.Generator) -> Ints:
    """Return centers uniform over `size` codes and scales log-uniform from 1/4 to `size` codes."""
    centers = random.uniform(-0.5, size - 0.5, count)
    scales = random.uniform(math.log(0.25), math.log(size), count)
    return whole(np.column_stack([centers, scales]))


def around(current: Ints, spread: Floats, radius: float, *, count: int, random: np.random.Generator) -> Ints:
    """Return the current parameters and others at normal distances, near ones and far ones up to the radius."""
    reach = radius * np.exp(random.uniform(math.log(NEARER), 0.0, count))
    steps = reach[:, None] * random.standard_normal((count, current.size)) * spread
    return np.vstack([current, current + whole(steps)])


def first_radius(*, rows: int, reach: int, epsilon: Fraction, floor: float = FIRST_FLOOR) -> float:
    """Return how far the truth can be from a first choice, in standard deviations; `floor` is the spacing of candidates."""
    return min(WIDEST, max(25.0 * reach / _strength(rows, epsilon), floor))


def next_radius(radius: float, *, rows: int, reach: int, epsilon: Fraction, count: int, dimensions: int) -> float:
    """Return how far the truth can be after one more round, given what its loss and its number of candidates resolve."""
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
        """Return the chosen parameters; small misfits are likely. Without epsilon, return the first candidate."""

        def measure() -> Ints:
            parameters = candidates()
            index = (
                self._choose_index(misfits(parameters), rate_for(sensitivity * self.reach, epsilon)) if epsilon else 0
            )
            return np.asarray(parameters[index], np.int64)

        return self.diary.step(name, epsilon, measure)

    def _choose_index(self, misfits: Ints, rate: Fraction) -> int:
        if not rate:  # the loss is too small to favor a candidate: choose uniformly
            return int(below(misfits.size, size=1, bits=self.bits)[0])
        return exponential_choice(-misfits, rate, bits=self.bits)


def rate_for(sensitivity: int, epsilon: Fraction) -> Fraction:
    """Return epsilon / (2 sensitivity), or a short fraction just below it. It is never above, so it can be 0."""
    rate = epsilon / (2 * sensitivity)
    if rate.numerator <= SHORT and rate.denominator <= 2**60:
        return rate
    grid = 1
    while rate * grid < SHORT // 2 and grid < 2**60:
        grid *= 2
    return Fraction(math.floor(rate * grid), grid)
