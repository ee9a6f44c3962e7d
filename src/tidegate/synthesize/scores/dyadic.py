"""pMSE of the best dyadic tree on a 2^k x 2^k grid, with a penalty for every split: the data-free stand-in for cp."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tidegate.arrays import Ints
from tidegate.synthesize.scores._kernels import best_dyadic
from tidegate.synthesize.scores.scale import Scale, fraction_bits, squares_sensitivity


def dyadic_score(
    counts: Ints,
    *,
    rows: int,
    weight: int = 1,
    penalty: Fraction = Fraction(0),
    shares: int = 1,
    synthetic: Ints | None = None,
) -> int:
    """max over dyadic trees of sum floor(2^p a^2 / (a + b)) - splits x penalty, by dynamic programming.

    A rectangle stays whole or is halved in either direction, down to single cells: V(R) = max(phi(R), V(left) +
    V(right) - penalty for both directions), over all (2^(k+1) - 1)^2 dyadic rectangles. Without `synthetic` the cells
    hold equal mass, a = weight rows / 4^k each; with it, its counts.

    Guarantee  Replacing one row moves it by at most `dyadic_scale(...).sensitivity`: the trees are a family that no row
               chooses, and the penalty is free of data.
    Needs      Square tables with a power of two of cells on each side; several (three axes) are added up.
    Reference  Donoho 1997, "CART and best-ortho-basis" (Annals of Statistics 25); `tidegate.risk.pmse.sensitivity`.
    """
    tables = np.ascontiguousarray(counts, np.int64).reshape(-1, *counts.shape[-2:])
    mass = _mass(rows, weight, synthetic)
    side = tables.shape[1]
    cells = np.ones((side, side), np.int64) if synthetic is None else np.ascontiguousarray(synthetic, np.int64)
    unit, over = (mass, side * side) if synthetic is None else (1, 1)
    places = fraction_bits(mass, shares=shares, cells=over)
    cost = whole_penalty(penalty, places)
    return int(sum(best_dyadic(cells, table, unit, over, shares, places, cost) for table in tables))


def dyadic_scale(
    *, side: int, rows: int, weight: int = 1, tables: int = 1, shares: int = 1, synthetic: int | None = None
) -> Scale:
    """score / denominator - constant is the largest N x pMSE - splits x penalty, averaged over the tables.

    `shares`: parts of a row in a table (for a pair of axes, the square of an axis's).
    """
    mass = weight * rows if synthetic is None else synthetic
    return Scale(
        "N x pMSE - penalty x splits",
        denominator=tables * 2 ** fraction_bits(mass, shares=shares, cells=side * side if synthetic is None else 1),
        sensitivity=tables * squares_sensitivity(mass, shares=shares, cells=side * side),
        constant=Fraction(mass * mass, rows + mass),
    )


def whole_penalty(penalty: Fraction, places: int) -> int:
    """A penalty in units of N x pMSE as whole units of the score."""
    return round(penalty * (1 << places))


def _mass(rows: int, weight: int, synthetic: Ints | None) -> int:
    return weight * rows if synthetic is None else int(synthetic.sum())
