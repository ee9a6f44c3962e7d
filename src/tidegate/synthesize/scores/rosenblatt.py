"""Rows as residuals under theta, in whose cells the model's mass is known exactly (Rosenblatt's transformation).

For a sequential model each value becomes v_j = F_theta(x_j | x_before). Under the model v is uniform on the cube, so equal
cells hold equal synthetic mass: no synthetic rows are drawn, nothing is noisy, and the cells are constants.

A discrete value has an interval [F(x-), F(x)] instead of a point. Its row is spread over the cells that the interval
covers. To keep whole numbers, a row has a public number of `shares` on each axis: any rule that gives each row exactly
`shares` whole shares, from that row and theta alone, keeps the bounds; ours rounds the cumulated overlap. Two axes
multiply: a row is `shares`^2 parts of a pair's table, and scores count in those parts (`shares=` of the scales).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri  # type: ignore[import-untyped]

from tidegate.arrays import Floats, Ints, Octets
from tidegate.synthesize.scores._kernels import (
    DYADIC,
    GRID,
    VARIATION,
    count_into,
    residual_codes,
    sequential_values,
    spread_pairs,
    spread_shares,
)
from tidegate.synthesize.scores.dyadic import dyadic_scale, whole_penalty
from tidegate.synthesize.scores.grid import grid_scale
from tidegate.synthesize.scores.scale import Scale, fraction_bits
from tidegate.synthesize.scores.variation import variation_scale

Kind = Literal["variation", "grid", "dyadic"]

CODES = 16
MOST = 256
PAIRED = 8
SHARES = 4096
"""Shares of a row on an axis, for the total variation. For pMSE take 64: its squares need the room."""


def sequential_scores(
    rows: Floats,
    thetas: Floats,
    *,
    kind: Kind = "variation",
    cells: int | None = None,
    weight: int = 1,
    penalty: Fraction = Fraction(0),
) -> Ints:
    """The score of every theta (one per row of `thetas`) for a sequence of normal linear regressions.

    theta holds for each column in turn its intercept, its slopes on the columns before, and the logarithm of its scale:
    q (q + 3) / 2 numbers for q columns. One column is scored on 16 equiprobable cells, two on 8 x 8 (16 x 16 for
    "dyadic"), more on the tables of all pairs, added up. `cells` overrules the cells of an axis.

    Guarantee  Replacing one row moves each score by at most `sequential_scale(...).sensitivity`. Every row lies in exactly
               one cell of each table, whatever it holds (nan lies in the first).
    Needs      Thetas that are public or come from earlier private outputs. "dyadic" needs two columns or more.
               The interpreter's lock is released: parts of `thetas` can be scored in threads.
    Reference  Rosenblatt 1952; Snoke & Slavkovic 2018, Algorithm 1, line 3 permits predictors Z = f(X).
    """
    many = cells or default_cells(rows.shape[1], kind)
    mass = weight * rows.shape[0]
    places = 0 if kind == "variation" else fraction_bits(mass, cells=many if rows.shape[1] == 1 else many * many)
    columns = np.ascontiguousarray(rows.T, np.float64)
    which = {"variation": VARIATION, "grid": GRID, "dyadic": DYADIC}[kind]
    asked = _checked(thetas, rows.shape[1])
    if kind == "dyadic" and rows.shape[1] == 1:
        raise ValueError("dyadic trees need two columns or more")
    return np.asarray(
        sequential_values(columns, asked, normal_cuts(many), which, mass, places, whole_penalty(penalty, places)),
        np.int64,
    )


def sequential_scale(
    *, rows: int, columns: int, kind: Kind = "variation", cells: int | None = None, weight: int = 1, shares: int = 1
) -> Scale:
    """What the scores of `sequential_scores` mean. `shares` per axis where rows are spread (`spread_tables`)."""
    side = cells or default_cells(columns, kind)
    tables, many = (1, side) if columns == 1 else (columns * (columns - 1) // 2, side * side)
    parts = shares if columns == 1 else shares * shares
    if kind == "variation":
        return variation_scale(cells=many, tables=tables, shares=parts)
    if kind == "grid":
        return grid_scale(cells=many, rows=rows, weight=weight, tables=tables, shares=parts)
    return dyadic_scale(side=side, rows=rows, weight=weight, tables=tables, shares=parts)


def default_cells(columns: int, kind: Kind) -> int:
    """Cells of an axis."""
    return CODES if columns == 1 or (kind == "dyadic" and columns == 2) else PAIRED


def normal_cuts(cells: int) -> Floats:
    """Where a standard normal is cut into equiprobable cells."""
    if not 2 <= cells <= MOST:
        raise ValueError(f"an axis has 2 to {MOST} cells, not {cells}")
    return np.asarray(ndtri(np.arange(1, cells) / cells), np.float64)


def _checked(thetas: ArrayLike, columns: int) -> Floats:
    """One theta per row, of the length that the columns need: the kernels do not look."""
    asked = np.ascontiguousarray(np.atleast_2d(np.asarray(thetas, np.float64)))
    if asked.shape[1] != columns * (columns + 3) // 2:
        raise ValueError(f"{columns} columns need {columns * (columns + 3) // 2} parameters, not {asked.shape[1]}")
    return asked


def sequential_codes(rows: Floats, theta: ArrayLike, *, cells: int = CODES) -> Octets:
    """The cell of every residual under a sequence of normal regressions: (columns, rows); code = cuts below it."""
    columns = np.ascontiguousarray(rows.T, np.float64)
    codes = np.empty(columns.shape, np.uint8)
    residual_codes(columns, _checked(theta, columns.shape[0])[0], normal_cuts(cells), 0, columns.shape[1], codes)
    return codes


def pair_tables(codes: Octets, *, cells: int) -> Ints:
    """Rows by the codes of every two columns i < j: (pairs, cells, cells)."""
    columns, rows = codes.shape
    if codes.size and codes.max() >= cells:
        raise ValueError(f"codes must lie below {cells}")
    tables = np.zeros((columns * (columns - 1) // 2, cells * cells), np.int64)
    count_into(np.ascontiguousarray(codes), rows, cells, tables)
    return tables.reshape(-1, cells, cells)


# Rows that are spread over cells


def interval_shares(low: Floats, high: Floats, *, cells: int = PAIRED, shares: int = SHARES) -> Ints:
    """A discrete value's row over the cells of [0, 1] that [F(x-), F(x)] covers: (rows, cells), each row sums to `shares`.

    Guarantee  Sums are exact for any floats, so one row is never more than `shares` parts. Each part is within one share
               of the interval's true overlap.
    """
    return np.asarray(spread_shares(np.asarray(low, np.float64), np.asarray(high, np.float64), cells, shares), np.int64)


def code_shares(codes: Octets, *, cells: int = PAIRED, shares: int = SHARES) -> Ints:
    """A continuous value's row: all of its shares in its cell."""
    return np.asarray(shares * (codes[:, None] == np.arange(cells)), np.int64)


def spread_tables(axes: Sequence[Ints]) -> Ints:
    """The tables of every two axes: (pairs, cells, cells), each of rows x shares^2 parts."""
    return np.stack([spread_pairs(axes[i], axes[j]) for i in range(len(axes)) for j in range(i + 1, len(axes))])
