"""Total variation on cells, in whole numbers: the default score.

It is linear in the misfit where pMSE is quadratic, and pMSE <= pMAE / 2 = TV / 4 at equal sizes: the exponential mechanism
ends at a misfit of the order d / (n epsilon) instead of its square root.
"""

from __future__ import annotations

import numpy as np

from tidegate.arrays import Ints
from tidegate.synthesize.scores.scale import Scale


def variation_score(counts: Ints) -> int:
    """sum |K b - n| over K cells that a model fills equally; several tables (the first axis of 3) are added up.

    Guarantee  Replacing one row moves it by at most `variation_scale(...).sensitivity`: a count changes by 1 (by the
               shares of a row, if rows are spread), K b by K, and a row that leaves one cell and enters another
               changes two terms of each table.
    Needs      Cells that do not depend on the rows; tables of one total. One table: one or two axes; several: three.
    """
    tables = _tables(counts)
    cells, total = tables.shape[1], tables[0].sum()
    return int(np.abs(cells * tables - total).sum())


def variation_scale(*, cells: int, tables: int = 1, shares: int = 1) -> Scale:
    """score / denominator is rows x the mean total variation of the tables, which one row moves by at most 1.

    Reference  Snoke & Slavkovic 2018 bound pMSE; for the total variation see `tidegate.risk.pmse.variation_sensitivity`.
    """
    most = 2 * cells * shares * tables
    return Scale("rows x total variation", denominator=most, sensitivity=most)


def misfit_score(counts: Ints, expected: Ints) -> int:
    """sum |R b - n r| over cells that a model fills by r parts of R: for cells of unequal, rounded public mass.

    Guarantee  Replacing one row moves it by at most 2 R (`misfit_scale`).
    Needs      `expected`: whole numbers >= 0 of a public table or of theta, at least one above 0; n R below 2^60.
    """
    parts, total = int(expected.sum()), int(counts.sum())
    return int(np.abs(parts * counts.astype(np.int64) - total * expected.astype(np.int64)).sum())


def misfit_scale(*, parts: int, shares: int = 1) -> Scale:
    """score / denominator is rows x total variation; `parts` is the sum of the expected table."""
    return Scale("rows x total variation", denominator=2 * parts * shares, sensitivity=2 * parts * shares)


def _tables(counts: Ints) -> Ints:
    """(tables, cells)."""
    return counts.reshape(counts.shape[0] if counts.ndim == 3 else 1, -1).astype(np.int64)
