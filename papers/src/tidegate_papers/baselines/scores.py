"""How far original rows are from a model: integer scores with a public denominator and a proven sensitivity.

Small is good. All scores use partitions that do not depend on the original rows, so that the proofs of
`tidegate.risk.pmse` hold, and all return exact integers, so that an exact sampler can use them:

    exponential_choice(-scores, scale.rate(epsilon), bits=bits)

There are total variation on cells, pMSE on cells, and pMSE of the best dyadic tree on a grid with a penalty per split (the
data-free counterpart of cp). Trees of depth two are in trees.py. Greedy trees are not scores: see `tidegate.risk.cart`.

Rows are scored as residuals under theta, in whose cells the model's mass is known exactly (Rosenblatt's transformation). For
a sequential model each value becomes v_j = F_theta(x_j | x_before). Under the model v is uniform on the cube, so equal cells
have equal synthetic mass: no synthetic rows are drawn, nothing is noisy, and the cells are constants.

A discrete value has an interval [F(x-), F(x)] instead of a point. Its row is spread over the cells that the interval
covers. To keep integers, a row has a public number of `shares` on each axis: any rule that gives each row exactly `shares`
integer shares, from that row and theta alone, keeps the bounds; ours rounds the cumulated overlap. Two axes multiply: a row
is `shares`^2 parts of a pair's table, and scores count in those parts (`shares=` of the scales).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tidegate.arrays import Floats, Ints, Octets
from tidegate.errors import Unsupported
from tidegate_papers.baselines._score_kernels import (
    DYADIC,
    GRID,
    VARIATION,
    best_dyadic,
    count_into,
    residual_codes,
    sequential_values,
    spread_pairs,
    spread_shares,
    squares,
)
from tidegate_papers.baselines.rounds import CODES, PAIRED, Scale, normal_cuts, variation_scale

Kind = Literal["variation", "grid", "dyadic"]

MOST_BITS, FEWEST_BITS, WORD = 20, 4, 62
SHARES = 4096
"""Shares of a row on an axis, for the total variation. Use 64 for pMSE, because its squares are larger."""


# Total variation on cells


def variation_score(counts: Ints) -> int:
    """Return sum |K b - n| over K cells that a model fills equally; several tables (the first axis of 3) are added up.

    Guarantee:
        Replacing one row changes it by at most `variation_scale(...).sensitivity`: a count changes by 1 (by the shares
        of a row, if rows are spread), K b by K, and a row that leaves one cell and enters another changes two terms
        of each table.

    Needs:
        Cells that do not depend on the rows; tables of one total. One table: one or two axes; several: three.
    """
    tables = _tables(counts)
    cells, total = tables.shape[1], tables[0].sum()
    return int(np.abs(cells * tables - total).sum())


def misfit_score(counts: Ints, expected: Ints) -> int:
    """Return sum |R b - n r| over cells that a model fills by r parts of R: for cells of unequal, rounded public mass.

    Guarantee:
        Replacing one row changes it by at most 2 R (`misfit_scale`).

    Needs:
        `expected`: whole numbers >= 0 of a public table or of theta, at least one above 0; n R below 2^60.
    """
    parts, total = int(expected.sum()), int(counts.sum())
    return int(np.abs(parts * counts.astype(np.int64) - total * expected.astype(np.int64)).sum())


def _tables(counts: Ints) -> Ints:
    """(tables, cells)."""
    return counts.reshape(counts.shape[0] if counts.ndim == 3 else 1, -1).astype(np.int64)


# pMSE on cells


def fraction_bits(mass: int, *, shares: int = 1, cells: int = 1) -> int:
    """Return the number of binary places of a^2 / m that fit 64 bits: a public function of the sizes.

    Places are cut off (rounded down) cell by cell in integers, so that a cell's change is rounded up at most:
    |change of S| <= x becomes ceil(2^places x).

    Args:
        shares: Parts of a row in a table, if rows are spread.
        cells: The number of cells that the mass is divided into.
    """
    places = min(MOST_BITS, WORD - (mass * mass * shares).bit_length())
    if places < FEWEST_BITS or (cells * (cells + 1) * mass * shares).bit_length() > WORD:
        raise Unsupported(
            f"A pMSE score of {mass:,} synthetic rows in {cells:,} cells does not fit 64 bits.",
            "Use the total variation (the default), fewer cells, or fewer shares of a row.",
            mass=mass,
            shares=shares,
            cells=cells,
        )
    return places


def squares_sensitivity(mass: int, *, shares: int = 1, cells: int = 1) -> int:
    """Return the most that sum floor(2^p a^2 / m) changes if one original row is replaced: ceil(2^p ns / (ns + 1)).

    Guarantee:
        A row in one cell changes one floor when it leaves and one when it enters, with opposite signs
        (`tidegate.risk.pmse.sensitivity`), and floor(x) - floor(y) <= ceil(x - y). A row spread over cells changes up
        to `cells` floors each way, each rounded by less than one: `cells` more.
    """
    places = fraction_bits(mass, shares=shares)
    return -(-(mass << places) // (mass + 1)) + (cells if shares > 1 else 0)


def grid_score(counts: Ints, *, rows: int, weight: int = 1, shares: int = 1) -> int:
    """Return sum floor(2^p a^2 / (a + b)) over K cells that a model fills equally, a = weight rows / K; tables are added up.

    Guarantee:
        Replacing one row changes it by at most `grid_scale(...).sensitivity`.

    Needs:
        Cells that do not depend on the rows. `weight` 2 counts the synthetic side twice: its second-order signal per
        sensitivity, r^2 / (1 + r)^3, is the largest (.148 against .125 at 1).
    """
    tables = np.ascontiguousarray(counts, np.int64).reshape(counts.shape[0] if counts.ndim == 3 else 1, -1)
    places = fraction_bits(weight * rows, shares=shares, cells=tables.shape[1])
    return int(squares(tables.ravel(), weight * rows, tables.shape[1], shares, places))


def grid_scale(*, cells: int, rows: int, weight: int = 1, tables: int = 1, shares: int = 1) -> Scale:
    """Return the scale: score / denominator - constant is N x pMSE (N = (1 + weight) rows), averaged over tables, to 2^-p per cell.

    `shares`: parts of a row in a table (for a pair of axes, the square of an axis's).

    Reference:
        `tidegate.risk.pmse.sensitivity`: |change of S| <= ns / (ns + 1), ns = weight rows, real-valued mass.
    """
    mass = weight * rows
    return Scale(
        "N x pMSE",
        denominator=tables * 2 ** fraction_bits(mass, shares=shares, cells=cells),
        sensitivity=tables * squares_sensitivity(mass, shares=shares, cells=cells),
        constant=Fraction(mass * mass, rows + mass),
    )


# pMSE of the best dyadic tree


def dyadic_score(
    counts: Ints,
    *,
    rows: int,
    weight: int = 1,
    penalty: Fraction = Fraction(0),
    shares: int = 1,
    synthetic: Ints | None = None,
) -> int:
    """Return the maximum over dyadic trees of sum floor(2^p a^2 / (a + b)) - splits x penalty, by dynamic programming.

    A rectangle stays whole or is halved in either direction, down to single cells: V(R) = max(phi(R), V(left) +
    V(right) - penalty for both directions), over all (2^(k+1) - 1)^2 dyadic rectangles. Without `synthetic` the cells
    hold equal mass, a = weight rows / 4^k each; with it, its counts.

    Guarantee:
        Replacing one row changes it by at most `dyadic_scale(...).sensitivity`: the trees are a family that no row
        chooses, and the penalty is free of data.

    Needs:
        Square tables with a power of two of cells on each side; several (three axes) are added up.

    Reference:
        Donoho 1997, "CART and best-ortho-basis" (Annals of Statistics 25); `tidegate.risk.pmse.sensitivity`.
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
    """Return the scale: score / denominator - constant is the largest N x pMSE - splits x penalty, averaged over tables.

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
    """Return a penalty in units of N x pMSE as integer units of the score."""
    return round(penalty * (1 << places))


def _mass(rows: int, weight: int, synthetic: Ints | None) -> int:
    return weight * rows if synthetic is None else int(synthetic.sum())


# Scores of a sequence of regressions


def sequential_scores(
    rows: Floats,
    thetas: Floats,
    *,
    kind: Kind = "variation",
    cells: int | None = None,
    weight: int = 1,
    penalty: Fraction = Fraction(0),
) -> Ints:
    """Return the score of every theta (one per row of `thetas`) for a sequence of normal linear regressions.

    theta holds for each column in turn its intercept, its slopes on the columns before, and the logarithm of its scale:
    q (q + 3) / 2 numbers for q columns. One column is scored on 16 equiprobable cells, two on 8 x 8 (16 x 16 for
    "dyadic"), more on the tables of all pairs, added up. `cells` overrules the cells of an axis.

    Guarantee:
        Replacing one row changes each score by at most `sequential_scale(...).sensitivity`. Every row is in exactly
        one cell of each table, whatever its values (nan is in the first).

    Needs:
        Thetas that are public or come from earlier private outputs. "dyadic" needs two columns or more. The
        interpreter's lock is released: parts of `thetas` can be scored in threads.

    Reference:
        Rosenblatt 1952; Snoke & Slavkovic 2018, Algorithm 1, line 3 permits predictors Z = f(X).
    """
    side = cells or default_cells(rows.shape[1], kind)
    mass = weight * rows.shape[0]
    places = 0 if kind == "variation" else fraction_bits(mass, cells=side if rows.shape[1] == 1 else side * side)
    columns = np.ascontiguousarray(rows.T, np.float64)
    which = {"variation": VARIATION, "grid": GRID, "dyadic": DYADIC}[kind]
    checked = _checked(thetas, rows.shape[1])
    if kind == "dyadic" and rows.shape[1] == 1:
        raise ValueError("Dyadic trees need at least two columns.")
    return np.asarray(
        sequential_values(columns, checked, normal_cuts(side), which, mass, places, whole_penalty(penalty, places)),
        np.int64,
    )


def sequential_scale(
    *, rows: int, columns: int, kind: Kind = "variation", cells: int | None = None, weight: int = 1, shares: int = 1
) -> Scale:
    """Return the scale of `sequential_scores`. `shares` is per axis if rows are spread (`spread_tables`)."""
    side = cells or default_cells(columns, kind)
    tables, cells_of_table = (1, side) if columns == 1 else (columns * (columns - 1) // 2, side * side)
    parts = shares if columns == 1 else shares * shares
    if kind == "variation":
        return variation_scale(cells=cells_of_table, tables=tables, shares=parts)
    if kind == "grid":
        return grid_scale(cells=cells_of_table, rows=rows, weight=weight, tables=tables, shares=parts)
    return dyadic_scale(side=side, rows=rows, weight=weight, tables=tables, shares=parts)


def default_cells(columns: int, kind: Kind) -> int:
    """Return the default number of cells of an axis."""
    return CODES if columns == 1 or (kind == "dyadic" and columns == 2) else PAIRED


def _checked(thetas: ArrayLike, columns: int) -> Floats:
    """Return one theta per row with the length that the columns need: the kernels do not check it."""
    array = np.ascontiguousarray(np.atleast_2d(np.asarray(thetas, np.float64)))
    if array.shape[1] != columns * (columns + 3) // 2:
        raise ValueError(f"{columns} columns need {columns * (columns + 3) // 2} parameters, not {array.shape[1]}.")
    return array


def sequential_codes(rows: Floats, theta: ArrayLike, *, cells: int = CODES) -> Octets:
    """Return the cell of every residual under a sequence of normal regressions: (columns, rows); code = cuts below it."""
    columns = np.ascontiguousarray(rows.T, np.float64)
    codes = np.empty(columns.shape, np.uint8)
    residual_codes(columns, _checked(theta, columns.shape[0])[0], normal_cuts(cells), 0, columns.shape[1], codes)
    return codes


def pair_tables(codes: Octets, *, cells: int) -> Ints:
    """Count rows by the codes of every two columns i < j: (pairs, cells, cells)."""
    columns, rows = codes.shape
    if codes.size and codes.max() >= cells:
        raise ValueError(f"Codes must be below {cells}.")
    tables = np.zeros((columns * (columns - 1) // 2, cells * cells), np.int64)
    count_into(np.ascontiguousarray(codes), rows, cells, tables)
    return tables.reshape(-1, cells, cells)


# Rows spread over cells


def interval_shares(low: Floats, high: Floats, *, cells: int = PAIRED, shares: int = SHARES) -> Ints:
    """Distribute a discrete value's row over the cells that [F(x-), F(x)] covers: (rows, cells), each row sums to `shares`.

    Guarantee:
        Sums are exact for any floats, so one row is never more than `shares` parts. Each part is within one share of
        the interval's true overlap.
    """
    return np.asarray(spread_shares(np.asarray(low, np.float64), np.asarray(high, np.float64), cells, shares), np.int64)


def code_shares(codes: Octets, *, cells: int = PAIRED, shares: int = SHARES) -> Ints:
    """Put all shares of a continuous value's row into its cell."""
    return np.asarray(shares * (codes[:, None] == np.arange(cells)), np.int64)


def spread_tables(axes: Sequence[Ints]) -> Ints:
    """Return the tables of every two axes: (pairs, cells, cells), each of rows x shares^2 parts."""
    return np.stack([spread_pairs(axes[i], axes[j]) for i in range(len(axes)) for j in range(i + 1, len(axes))])
