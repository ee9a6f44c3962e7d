"""What a score's whole number means, and the most that one row can change it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tidegate.errors import Unsupported

MOST_BITS, FEWEST_BITS, WORD = 20, 4, 62


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


def fraction_bits(mass: int, *, shares: int = 1, cells: int = 1) -> int:
    """How many binary places a^2 / m keeps, so that nothing exceeds 64 bits: a public function of the sizes.

    `shares`: parts of a row in a table, where rows are spread; `cells`: into how many the mass is divided.
    Places are cut off (rounded down) cell by cell in whole numbers, so that a cell's change is rounded up at most:
    |change of S| <= x becomes ceil(2^places x).
    """
    places = min(MOST_BITS, WORD - (mass * mass * shares).bit_length())
    if places < FEWEST_BITS or (cells * (cells + 1) * mass * shares).bit_length() > WORD:
        raise Unsupported(
            f"a pMSE score of {mass:,} synthetic rows in {cells:,} cells does not fit 64 bits",
            "Use the total variation (the default), fewer cells, or fewer shares of a row.",
            mass=mass,
            shares=shares,
            cells=cells,
        )
    return places


def squares_sensitivity(mass: int, *, shares: int = 1, cells: int = 1) -> int:
    """The most that sum floor(2^p a^2 / m) changes when one original row is replaced: ceil(2^p ns / (ns + 1)).

    Guarantee  A row that lies in one cell changes one floor when it leaves and one when it enters, with opposite signs
               (`tidegate.risk.pmse.sensitivity`), and floor(x) - floor(y) <= ceil(x - y). A row spread over cells
               changes up to `cells` floors each way, each rounded by less than one: `cells` more.
    """
    places = fraction_bits(mass, shares=shares)
    return -(-(mass << places) // (mass + 1)) + (cells if shares > 1 else 0)
