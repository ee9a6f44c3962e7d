"""pMSE with a greedy tree: how well rpart would distinguish original from synthetic rows. A measure only.

Greedy trees have no bounded sensitivity. One row can change the first split and with it the whole tree; changes of more
than 150 times the bound of `tidegate.risk.pmse.sensitivity` were observed. It compares tables for the data holder only and
is never the score of a mechanism. Scores with a proof are in `tidegate_papers.baselines.scores`.

Reference:
    Snoke & Slavkovic 2018, "pMSE Mechanism: Differentially Private Synthetic Data with Maximal Distributional
    Similarity", Algorithm 1, Section 3.2 and Table 1.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.risk._cart import ANOVA, CLASS, CODE, ROW, grow_leaves
from tidegate.risk.pmse import pmse

Method = Literal["class", "anova"]


def pmse_greedy(
    original: Floats,
    synthetic: Floats,
    *,
    cp: float = 0.001,
    minsplit: int = 20,
    minbucket: int = 7,
    max_depth: int = 30,
    method: Method = "class",
) -> float:
    """Return pMSE over the leaves of a greedy tree: 0 without splits, at most c (1 - c) for the fraction c of synthetic rows.

    Needs:
        Rows by columns, both of the same columns. A missing value (nan) is a value of its own, above all others.

    Reference:
        Snoke & Slavkovic 2018, Algorithm 1; the trees are rpart's (see `leaves_greedy`).
    """
    leaves = leaves_greedy(
        original, synthetic, cp=cp, minsplit=minsplit, minbucket=minbucket, max_depth=max_depth, method=method
    )
    return pmse(leaves[:, 0], leaves[:, 1])


def leaves_greedy(
    original: Floats,
    synthetic: Floats,
    *,
    cp: float = 0.001,
    minsplit: int = 20,
    minbucket: int = 7,
    max_depth: int = 30,
    method: Method = "class",
) -> Ints:
    """Return the numbers of synthetic and original rows in each leaf of a greedy tree: (leaves, 2).

    Splits are chosen by Gini's impurity. A split stays if it lowers the risk by more than `cp` times the root's, and for
    method "class" the risk is the number of misclassified rows, not the impurity: splits with the same majority on both
    sides pay only through later ones. For "anova" it is the sum of squares. Children inherit the remainder of the parent's
    bound, the left one first, as in rpart. (In rpart, setting minbucket alone sets minsplit to three times it.)
    """
    rows = np.vstack([synthetic, original])
    words = sorted_words(rows, len(synthetic))
    return np.asarray(
        grow_leaves(words, len(synthetic), cp, minsplit, minbucket, max_depth, CLASS if method == "class" else ANOVA),
        np.int64,
    )


def sorted_words(rows: Floats, synthetic: int) -> Ints:
    """Return each column as increasing words of code, row and label; the first rows are the synthetic ones."""
    size, columns = rows.shape
    words = np.empty((columns, size), np.int64)
    labels = np.arange(size) < synthetic
    for j in range(columns):
        column = np.ascontiguousarray(rows[:, j])
        order = np.argsort(column, kind="stable")
        values = column[order]
        new = (values[1:] != values[:-1]) & ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
        codes = np.concatenate([[0], np.cumsum(new)])
        words[j] = (codes << CODE) | (order << ROW) | labels[order]
    return words


@cache
def null_greedy(
    rows: int,
    synthetic: int,
    *,
    columns: int,
    cp: float = 0.001,
    minsplit: int = 20,
    minbucket: int = 7,
    max_depth: int = 30,
    method: Method = "class",
    draws: int = 20,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the mean and standard deviation of `pmse_greedy` for two samples of one distribution.

    A public function of the sizes: the columns are independent and continuous, and a tree depends on them through ranks
    alone, so that no distribution has to be chosen. Ties and dependence leave a tree fewer splits that fit noise: real
    columns score lower. Nothing private is read, and epsilon has no effect.
    """
    random = np.random.default_rng(seed)
    settings: dict[str, Any] = {"cp": cp, "minsplit": minsplit, "minbucket": minbucket, "max_depth": max_depth}
    scores = [
        pmse_greedy(random.random((rows, columns)), random.random((synthetic, columns)), method=method, **settings)
        for _ in range(draws)
    ]
    return float(np.mean(scores)), float(np.std(scores, ddof=1))
