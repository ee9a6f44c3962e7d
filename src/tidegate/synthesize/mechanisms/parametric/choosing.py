"""One round: one of the candidates by the exact exponential mechanism, written into the diary by its parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tidegate.arrays import Ints
from tidegate.noise import Bits, below, exponential_choice
from tidegate.synthesize.diary import Diary

SHORT = 2**20  # of a rate's numerator, so that scores times it stay within 64 bits


@dataclass(frozen=True)
class Chooser:
    """Guarantee  A round spends at most its epsilon under replacement of one unit: no misfit changes by more than
                  `reach` times the sensitivity that is named, and the choice is exact in whole numbers.
    Needs         Candidates that are a function of public facts and of the diary.
    Reference     McSherry, Talwar 2007.
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
