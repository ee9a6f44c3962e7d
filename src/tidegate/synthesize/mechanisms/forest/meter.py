"""Every private number of the forest: noisy counts, scalars and choices. Nothing else reads the rows.

The limit of a synthesis is divided into a million parts; every step spends a whole number of them, so that sums are exact
and short. The meter decides the noise of a step and states its exact loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.errors import Unsupported
from tidegate.noise import (
    Bits,
    below,
    discrete_gaussian,
    discrete_laplace,
    exponential_choice,
    permute_and_flip,
    rate_for,
    scale_for,
    sigma_for,
)
from tidegate.synthesize.diary import Diary, Loss

PARTS = 1_000_000  # of the limit
FINEST_RATE = 2**32  # denominator of the rates of the exponential mechanism
MEAN_OF_GAUSSIAN = (2 / math.pi) ** 0.5  # of |noise|, in standard deviations


class Meter:
    """Private measurements through the diary, by a pure loss (discrete Laplace) or by z (discrete Gaussian).

    Guarantee:
        A unit changes at most `reach` rows, and a row leaves one count and enters another.
        Pure: counts change by at most 2 reach in sum, so noise of scale 2 reach / e has loss e; a scalar with sensitivity s
        changes by at most s reach; permute-and-flip at rate e / (2 s reach) has loss e.
        z: without the unit, counts are c; with it they are c + v, v >= 0 and |v| <= reach in L2, so that sigma has
        z = reach**2 / (2 sigma**2) and a pairwise zcdp of twice that. A scalar lies in an interval of length D = s reach
        in all worlds: z = D**2 / (8 sigma**2), zcdp four times that. The exponential mechanism with weights exp(rate q) has
        z = rate**2 D**2 / 8 and zcdp four times that (permute-and-flip has no such bound: its ratios have no bounded range).
        If the limit on zcdp is only twice the limit on z, scalars and choices are charged at their pairwise price.

    Reference:
        Canonne, Kamath, Steinke 2020, arXiv:2004.00010; Dong, Durfee, Rogers 2020, arXiv:1909.13830 (bounded range).
    """

    def __init__(self, diary: Diary, *, reach: int, bits: Bits) -> None:
        self._diary, self._reach, self._bits = diary, reach, bits
        limit = diary.limit
        self.is_pure = limit.pure is not None
        self._whole = limit.pure if limit.pure is not None else limit.z
        self._pairwise = not self.is_pure and limit.zcdp < Fraction(12, 5) * limit.z
        refuse_small(limit, reach)

    @property
    def spent(self) -> Loss:
        return self._diary.spent

    def deviation(self, parts: int) -> float:
        """Return the standard deviation of the noise of counts that spend some parts."""
        loss = self._loss(parts)
        if self.is_pure:
            return math.sqrt(2) * float(scale_for(Fraction(2 * self._reach), loss))
        return float(sigma_for(Fraction(self._reach**2), loss))

    def scale(self, parts: int) -> float:
        """Return the deviation divided by the square root of 2 (the scale of Laplace noise)."""
        return self.deviation(parts) / math.sqrt(2)

    def mean_noise(self, parts: Ints) -> Floats:
        """Return the expected size of a count's noise, for arrays of parts."""
        losses = np.maximum(parts * (float(self._whole) / PARTS), 1e-300)
        if self.is_pure:
            return np.asarray(2 * self._reach / losses)
        return np.asarray(MEAN_OF_GAUSSIAN * self._reach / np.sqrt(2 * losses))

    def parts_for_counts(self, deviation: float) -> int:
        """Return the parts that give counts this standard deviation, rounded up."""
        needed = math.sqrt(8) * self._reach / deviation if self.is_pure else (self._reach / deviation) ** 2 / 2
        return self._parts(needed)

    def parts_for_scalar(self, deviation: float, *, sensitivity: int = 1) -> int:
        """Return the parts that give a scalar this standard deviation, rounded up."""
        moved = sensitivity * self._reach
        if self.is_pure:
            return self._parts(math.sqrt(2) * moved / deviation)
        return self._parts((moved / deviation) ** 2 / 8 * (2 if self._pairwise else 1))

    def parts_for_choice(self, error: float, candidates: int, *, sensitivity: int = 1) -> int:
        """Return the parts with which a choice is expected to miss the best score by about `error`, rounded up."""
        moved, rate = sensitivity * self._reach, math.log(max(candidates, 2)) / error
        if self.is_pure:
            return self._parts(2 * moved * rate)
        return self._parts((rate * moved) ** 2 / 8 * (2 if self._pairwise else 1))

    def counts(self, name: str, parts: int, count: Callable[[], Ints]) -> Floats:
        """Return counts of disjoint cells with noise."""
        loss = self._loss(parts)
        if self.is_pure:
            scale = scale_for(Fraction(2 * self._reach), loss)
            noisy = self._diary.step(name, loss, lambda: self._add_laplace(count(), scale))
        else:
            sigma = sigma_for(Fraction(self._reach**2), loss)
            z = self._reach**2 / (2 * sigma**2)
            noisy = self._diary.step(name, Loss(None, z, 2 * z), lambda: self._add_gaussian(count(), sigma))
        return noisy.astype(np.float64)

    def scalar(self, name: str, parts: int, value: Callable[[], int], *, sensitivity: int = 1) -> int:
        """Return a whole number with noise. `sensitivity` is its largest change when one row changes."""
        loss, moved = self._loss(parts), sensitivity * self._reach
        if self.is_pure:
            scale = scale_for(Fraction(moved), loss)
            noisy = self._diary.step(name, loss, lambda: self._add_laplace(np.array([value()]), scale))
        else:
            sigma = sigma_for(Fraction(moved**2, 4), loss / 2 if self._pairwise else loss)
            z = moved**2 / (8 * sigma**2)
            noisy = self._diary.step(name, Loss(None, z, 4 * z), lambda: self._add_gaussian(np.array([value()]), sigma))
        return int(noisy[0])

    def choice(self, name: str, parts: int, scores: Callable[[], Ints], *, sensitivity: int) -> int:
        """Return the index of a high score. `sensitivity` is the largest change of a score when one row changes."""
        loss, moved = self._loss(parts), sensitivity * self._reach
        if self.is_pure:
            rate = rate_for(moved, loss)
            chosen = self._diary.step(name, loss, lambda: np.array([permute_and_flip(scores(), rate, bits=self._bits)]))
        else:
            rate = rate_for_z(moved, loss / 2 if self._pairwise else loss)
            z = (rate * moved) ** 2 / 8
            chosen = self._diary.step(name, Loss(None, z, 4 * z), lambda: np.array([self._choose(scores(), rate)]))
        return int(chosen[0])

    def frequent(self, name: str, parts: int, count: Callable[[], Ints], *, above: float, most: int) -> Ints:
        """Return the indexes of noisy counts above a public bound, at most the `most` highest; the counts are not stored."""
        loss = self._loss(parts)
        scale = scale_for(Fraction(2 * self._reach), loss)

        def find() -> Ints:
            noisy = self._add_laplace(count(), scale)
            highest = np.argsort(-noisy, kind="stable")[:most]
            return np.sort(highest[noisy[highest] > above])

        return self._diary.step(name, loss, find)

    def _loss(self, parts: int) -> Fraction:
        return self._whole * Fraction(int(parts), PARTS)

    def _parts(self, needed: float) -> int:
        return max(1, math.ceil(min(needed / float(self._whole), 1e6) * PARTS))

    def _add_laplace(self, counts: Ints, scale: Fraction) -> Ints:
        return counts + discrete_laplace(scale, size=counts.size, bits=self._bits).reshape(counts.shape)

    def _add_gaussian(self, counts: Ints, sigma: Fraction) -> Ints:
        return counts + discrete_gaussian(sigma, size=counts.size, bits=self._bits).reshape(counts.shape)

    def _choose(self, scores: Ints, rate: Fraction) -> int:
        if rate == 0:
            return int(below(scores.size, size=1, bits=self._bits)[0])
        return exponential_choice(scores, rate, bits=self._bits)


def rate_for_z(moved: int, z: Fraction) -> Fraction:
    """Return the largest rate of a choice, in whole parts of 2**-32, whose z is at most `z`: sqrt(8 z) / moved, rounded down."""
    squared = 8 * z * FINEST_RATE**2 / moved**2
    return Fraction(math.isqrt(math.floor(squared)), FINEST_RATE)


def refuse_small(limit: Loss, reach: int) -> None:
    """Refuse a limit for which the noise of one part does not fit into 64 bits."""
    if limit.pure is not None:
        name, value, least = "epsilon", limit.pure, Fraction(2 * reach * PARTS, 2**51)
    else:
        name, value, least = "z", limit.z, Fraction(reach**2 * PARTS, 2**80)
    if value < least:
        raise Unsupported(
            f"{'An' if name == 'epsilon' else 'A'} {name} of {float(value):.3g} is too small to learn a table.",
            f"Use {float(least):.3g} or more.",
        )
