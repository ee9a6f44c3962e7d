"""What the whole numbers of a misfit mean, and the most that one row can change them.

The score is the total variation on cells: linear in the misfit where pMSE is quadratic, and pMSE <= pMAE / 2 = TV / 4 at equal
sizes. So the exponential mechanism ends at a misfit of the order d / (n epsilon) instead of its square root.
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
    """score / denominator - constant is the measure; replacing one row moves the score by at most `sensitivity`.

    A public function of sizes and settings: no row was read to make it.
    """

    measure: str
    denominator: int
    sensitivity: int
    constant: Fraction = Fraction(0)

    def value(self, score: int) -> Fraction:
        """The measure itself. A function of the private rows: for the data holder's eyes."""
        return Fraction(int(score), self.denominator) - self.constant

    def rate(self, epsilon: Fraction, *, reach: int = 1) -> Fraction:
        """What to multiply -score with, so that exp(rate * -score) spends epsilon if a person has up to `reach` rows."""
        return epsilon / (2 * self.sensitivity * reach)


def variation_scale(*, cells: int, tables: int = 1, shares: int = 1) -> Scale:
    """score / denominator is rows x the mean total variation of the tables, which one row moves by at most 1.

    Reference:
        Snoke & Slavkovic 2018 bound pMSE; for the total variation see `tidegate.risk.pmse.variation_sensitivity`.
    """
    most = 2 * cells * shares * tables
    return Scale("rows x total variation", denominator=most, sensitivity=most)


def misfit_scale(*, parts: int, shares: int = 1) -> Scale:
    """score / denominator is rows x total variation; `parts` is the sum of the expected table."""
    return Scale("rows x total variation", denominator=2 * parts * shares, sensitivity=2 * parts * shares)


def normal_cuts(cells: int) -> Floats:
    """Where a standard normal is cut into equiprobable cells."""
    if not 2 <= cells <= MOST:
        raise ValueError(f"an axis has 2 to {MOST} cells, not {cells}")
    return np.asarray(ndtri(np.arange(1, cells) / cells), np.float64)
