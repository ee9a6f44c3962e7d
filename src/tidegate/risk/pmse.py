"""Distances of two tables from the counts of a partition: pMSE and total variation, and the effect of one row.

Cell i contains a_i synthetic and b_i original rows, m_i = a_i + b_i; ns and n are their sums, N = n + ns, c = ns / N.
Empty cells are ignored. Counts can be fractions (see `sensitivity`).

Reference:
    Woo et al. 2009; Snoke, Raab, Nowok, Dibben, Slavkovic 2018, "General and specific utility measures for
    synthetic data", JRSS A 181(3); Snoke & Slavkovic 2018, "pMSE Mechanism", Section 3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Number = int | Fraction
Origin = Literal["fitted", "fresh"]


def pmse(synthetic: ArrayLike, original: ArrayLike) -> float:
    """Return (1/N) sum m_i (a_i / m_i - c)^2: 0 if all shares agree, c (1 - c) if the tables are disjoint."""
    a, b = _counts(synthetic), _counts(original)
    off = a * b.sum() - b * a.sum()  # m N (share - c): whole numbers, so agreement is exactly 0
    filled = a + b > 0
    return float((off[filled] ** 2 / (a + b)[filled]).sum() / (a.sum() + b.sum()) ** 3)


def pmse_exactly(synthetic: Sequence[Number], original: Sequence[Number]) -> Fraction:
    """Return pMSE as an exact fraction: (S - ns^2 / N) / N for S = sum a_i^2 / m_i."""
    ns, total = sum(synthetic), sum(synthetic) + sum(original)
    return (squares_exactly(synthetic, original) - Fraction(ns) ** 2 / total) / total


def squares_exactly(synthetic: Sequence[Number], original: Sequence[Number]) -> Fraction:
    """Return S = sum a_i^2 / m_i, the part of pMSE that depends on the cells of the rows."""
    return sum((Fraction(a) ** 2 / (a + b) for a, b in zip(synthetic, original, strict=True) if a + b), Fraction(0))


def total_variation(synthetic: ArrayLike, original: ArrayLike) -> float:
    """Return (1/2) sum |a_i / ns - b_i / n|: the largest difference of the tables' shares in any union of cells."""
    a, b = _counts(synthetic), _counts(original)
    return float(np.abs(a * b.sum() - b * a.sum()).sum() / (2 * a.sum() * b.sum()))


def total_variation_exactly(synthetic: Sequence[Number], original: Sequence[Number]) -> Fraction:
    """The same as an exact fraction."""
    ns, n = Fraction(sum(synthetic)), Fraction(sum(original))
    return sum((abs(a / ns - b / n) for a, b in zip(synthetic, original, strict=True)), Fraction(0)) / 2


def pmae(synthetic: ArrayLike, original: ArrayLike) -> float:
    """Return (1/N) sum m_i |a_i / m_i - c|: 2 c (1 - c) times the total variation, or half of it at ns = n."""
    c = float(_counts(synthetic).sum() / (_counts(synthetic).sum() + _counts(original).sum()))
    return 2 * c * (1 - c) * total_variation(synthetic, original)


def pmae_exactly(synthetic: Sequence[Number], original: Sequence[Number]) -> Fraction:
    """The same as an exact fraction."""
    c = Fraction(sum(synthetic)) / (sum(synthetic) + sum(original))
    return 2 * c * (1 - c) * total_variation_exactly(synthetic, original)


def sensitivity(rows: Number, synthetic: Number) -> Fraction:
    """Return the largest change of pMSE when one of n original rows is replaced: ns / ((ns + 1) (n + ns)).

    Guarantee:
        Exact: never exceeded, and attained by a = (ns, 0), b = (1, n-1) -> (0, n). At ns = n it is
        1 / (2 (n + 1)), half of the 1/n of the paper's Theorem 2. It holds for
        * one fixed partition. N pMSE = S - ns^2/N with S = sum a_i^2 / m_i. If a row moves from cell j to k,
              S' - S = a_j^2 / (m_j (m_j - 1)) - a_k^2 / (m_k (m_k + 1)).
          b_j >= 1, so m_j - 1 >= a_j and the first term is at most a_j / (a_j + 1) <= ns / (ns + 1); m_k >= a_k,
          so the second is at most a_k / (a_k + 1) <= ns / (ns + 1). Both are >= 0 and enter with opposite
          signs: |S' - S| <= ns / (ns + 1).
        * the best of any family of partitions that does not depend on the original rows, because
          |max f(X) - max f(X')| <= max |f(X) - f(X')|; so for optimal trees with public thresholds, also with a
          penalty per leaf or a least number of SYNTHETIC rows per leaf; for averages over partitions, trees or
          synthetic tables; for thresholds taken from theta, the synthetic table or a public seed.
        * real-valued a_i (ns p_i for probabilities p, any ns > 0): nothing above needs whole a_i, except the case
          a_i < 1, where a_j^2 / (m_j (m_j - 1)) <= a_j^2 / ((a_j + 1) a_j) all the same.
        * rows spread over cells by weights w_i >= 0 that sum to 1 (soft assignment). Taking one out changes S by
          sum a_i^2 w_i / (m_i (m_i - w_i)) <= sum a_i w_i / (a_i + w_i) as m_i >= a_i + w_i; a w / (a + w) is
          concave and homogeneous, hence superadditive: the sum is at most ns * 1 / (ns + 1). Putting one back
          changes it the other way by no more.

    Needs:
        A family that is fixed before the original rows are seen. It fails for greedy trees (`tidegate.risk.cart`), for
        a least number of original or of all rows per leaf, and for a short list of thresholds from the pooled rows.

    Reference:
        Snoke & Slavkovic 2018, Theorem 2 and its appendix, which bounds both terms as if they could add up and
        so arrives at 1/n. Enumerated in rational arithmetic in tests/risk/test_pmse.py.
    """
    return Fraction(synthetic) / ((synthetic + 1) * (rows + synthetic))


def variation_sensitivity(rows: int) -> Fraction:
    """Return the largest change of the total variation when one of n original rows is replaced: 1/n.

    Guarantee:
        Exact. A row that leaves one cell and enters another changes two terms of (1/2) sum |a_i/ns - b_i/n| by at
        most 1/n each; spread rows move at most mass 1 out and 1 in. The same for averages and for the best of a
        family that does not depend on the rows. pMAE: 2 c (1 - c) / n.
    """
    return Fraction(1, rows)


def null_logistic(parameters: int, *, rows: int, synthetic: int, origin: Origin = "fitted") -> float:
    """Return E[pMSE] of logistic propensities with k parameters (with intercept) if the synthetic rows' model is correct.

    fitted   synthetic rows come from the correct model with parameters fitted to the original rows:
             (k - 1) (1 - c)^2 c / N.
    fresh    both are samples of one distribution (a permutation test): (k - 1) (1 - c) c / N, because the randomness of
             the original is not shared.

    It depends on sizes alone, not on epsilon: noise for privacy is misfit, and the null model must not excuse it.
    The standard deviation is sqrt(2 / (k - 1)) times the mean (a scaled chi-square).

    Reference:
        Snoke et al. 2018, Section 3 and appendix (fitted). Large samples; k - 1 far below both sizes.
    """
    total = rows + synthetic
    c = synthetic / total
    return (parameters - 1) * (1 - c) * c / total * (1 - c if origin == "fitted" else 1)


def _counts(values: ArrayLike) -> NDArray[Any]:
    return np.asarray(values, np.float64)
