"""Every private number of the forest: counts with noise, and choices. Nothing else sees the rows."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.noise import Bits, discrete_laplace, permute_and_flip, rate_for, scale_for
from tidegate.synthesize.diary import Diary
from tidegate.synthesize.mechanisms.forest.plan import Plan


class Measuring:
    """Asks through the diary; each step takes parts of epsilon.

    Guarantee:
        A unit changes at most `reach` rows, and a row leaves one count and enters another: counts move by at most 2
        reach in sum, so noise of scale 2 reach / e has loss e. Permute-and-flip at rate e / (2 s) has loss e where a
        unit moves every score by at most s.
    """

    def __init__(self, plan: Plan, diary: Diary, *, reach: int, bits: Bits) -> None:
        self._plan, self._diary, self._reach, self._bits = plan, diary, reach, bits

    def scale(self, parts: int) -> Fraction:
        """The scale of the noise that counts get for so many parts, rounded up."""
        return scale_for(Fraction(2 * self._reach), self._plan.loss(parts))

    def counts(self, name: str, parts: int, count: Callable[[], Ints]) -> Floats:
        """Counts with noise."""
        return self._diary.step(name, self._plan.loss(parts), lambda: self._noisy(count(), parts)).astype(np.float64)

    def frequent(self, name: str, parts: int, count: Callable[[], Ints], *, above: float, most: int) -> Ints:
        """Where noisy counts exceed a public bound, the highest `most` of them at most; the counts are not kept."""

        def found() -> Ints:
            noisy = self._noisy(count(), parts)
            highest = np.argsort(-noisy, kind="stable")[:most]
            return np.sort(highest[noisy[highest] > above])

        return self._diary.step(name, self._plan.loss(parts), found)

    def choice(self, name: str, parts: int, scores: Callable[[], Ints], *, sensitivity: int) -> int:
        """The place of a high score. `sensitivity`: how much a change of one row can move a score."""
        rate = rate_for(sensitivity * self._reach, self._plan.loss(parts))
        chosen = self._diary.step(
            name, self._plan.loss(parts), lambda: np.array([permute_and_flip(scores(), rate, bits=self._bits)])
        )
        return int(chosen[0])

    def _noisy(self, counts: Ints, parts: int) -> Ints:
        return counts + discrete_laplace(self.scale(parts), size=counts.size, bits=self._bits).reshape(counts.shape)
