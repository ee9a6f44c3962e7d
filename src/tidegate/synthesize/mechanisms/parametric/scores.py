"""The meaning of a misfit's integers, and their sensitivity to one row.

The score is the total variation on cells: linear in the misfit, while pMSE is quadratic, and pMSE <= pMAE / 2 = TV / 4 at equal
sizes. The exponential mechanism therefore ends at a misfit of the order d / (n epsilon) instead of its square root.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tidegate.arrays import Floats
from tidegate.extras import extra

with extra("synthesize", "Making synthetic tables"):
    from scipy.special import ndtri  # type: ignore[import-untyped]

CODES = 16  # cells of a column on its own
PAIRED = 8  # cells of each of two columns
MOST = 256


@dataclass(frozen=True)
class Scale:
    """score / denominator - constant is the measure; replacing one row changes the score by at most `sensitivity`.

    A public function of sizes and settings: it depends on no row.
    """

    measure: str
    denominator: int
    sensitivity: int
    constant: Fraction = Fraction(0)

    def value(self, score: int) -> Fraction:
        """Return the measure itself. It is a function of the private rows, so it is for the data holder only."""
        return Fraction(int(score), self.denominator) - self.constant

    def rate(self, epsilon: Fraction, *, reach: int = 1) -> Fraction:
        """Return the rate at which exp(rate * -score) spends epsilon if a person has up to `reach` rows."""
        return epsilon / (2 * self.sensitivity * reach)


def variation_scale(*, cells: int, tables: int = 1, shares: int = 1) -> Scale:
    """Return the scale on which score / denominator is rows x the mean total variation; one row changes it by at most 1.

    Reference:
        Snoke & Slavkovic 2018 bound pMSE; for the total variation see `tidegate.risk.pmse.variation_sensitivity`.
    """
    most = 2 * cells * shares * tables
    return Scale("rows x total variation", denominator=most, sensitivity=most)


def misfit_scale(*, parts: int, shares: int = 1) -> Scale:
    """Return the scale on which score / denominator is rows x total variation; `parts` is the sum of the expected table."""
    return Scale("rows x total variation", denominator=2 * parts * shares, sensitivity=2 * parts * shares)


def normal_cuts(cells: int) -> Floats:
    """Return the cuts of a standard normal into cells of equal probability."""
    if not 2 <= cells <= MOST:
        raise ValueError(f"An axis must have 2 to {MOST} cells, not {cells}")
    return np.asarray(ndtri(np.arange(1, cells) / cells), np.float64)
