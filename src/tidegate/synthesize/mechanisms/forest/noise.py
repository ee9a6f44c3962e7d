"""Every private number of the forest: noisy counts and choices. Nothing else reads the rows."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.noise import Bits, discrete_laplace, permute_and_flip, rate_for, scale_for
from tidegate.synthesize.diary import Diary
from tidegate.synthesize.mechanisms.forest.plan import Plan


class Measurements:
    """Private measurements through the diary; each step spends parts of epsilon.

    Guarantee:
        A unit changes at most `reach` rows, and a row leaves one count and enters another: counts change by at most 2
        reach in sum, so noise of scale 2 reach / e has loss e. Permute-and-flip at rate e / (2 s) has loss e if a
        unit changes every score by at most s.
    """

    def __init__(self, plan: Plan, diary: Diary, *, reach: int, bits: Bits) -> None:
        self._plan, self._diary, self._reach, self._bits = plan, diary, reach, bits

    def scale(self, parts: int) -> Fraction:
        """Return the scale of the noise of counts that spend some parts, rounded up."""
        return scale_for(Fraction(2 * self._reach), self._plan.loss(parts))

    def counts(self, name: str, parts: int, count: Callable[[], Ints]) -> Floats:
        """Return counts with noise."""
        return self._diary.step(name, self._plan.loss(parts), lambda: self._noisy(count(), parts)).astype(np.float64)

    def frequent(self, name: str, parts: int, count: Callable[[], Ints], *, above: float, most: int) -> Ints:
        """Return the indexes of noisy counts above a public bound, at most the `most` highest; the counts are not stored."""

        def find() -> Ints:
            noisy = self._noisy(count(), parts)
            highest = np.argsort(-noisy, kind="stable")[:most]
            return np.sort(highest[noisy[highest] > above])

        return self._diary.step(name, self._plan.loss(parts), find)

    def choice(self, name: str, parts: int, scores: Callable[[], Ints], *, sensitivity: int) -> int:
        """Return the index of a high score. `sensitivity` is the largest change of a score when one row changes."""
        rate = rate_for(sensitivity * self._reach, self._plan.loss(parts))
        chosen = self._diary.step(
            name, self._plan.loss(parts), lambda: np.array([permute_and_flip(scores(), rate, bits=self._bits)])
        )
        return int(chosen[0])

    def _noisy(self, counts: Ints, parts: int) -> Ints:
        return counts + discrete_laplace(self.scale(parts), size=counts.size, bits=self._bits).reshape(counts.shape)
