"""Measures of the similarity of a synthetic table to the true rows, the same for all programs.

pmse, pmse01   propensity mean squared error with a greedy tree as rpart grows it, cp .001 and .01; 0 is best, .25 worst
pmse_sk        the same with scikit-learn's tree, at least 100 rows in a leaf
pmse_oh        the same as pmse, categories as one column per value
tv1, tv2, tv3  mean total variation of margins, of all pairs, of 80 triples, on public bins
auc, acc       a classifier trained on synthetic rows, tested on held-out true rows
dlog, dlin     mean absolute error of the coefficients of a logistic and of a linear regression
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier  # type: ignore[import-untyped]

from benchmarks.synthesis.exchange import Case
from benchmarks.synthesis.marginals import Bins, variations
from benchmarks.synthesis.models import Design, coefficient_error, linear, logistic, train_and_test
from tidegate.policy import Attribute, Category
from tidegate.risk.cart import pmse_greedy
from tidegate.risk.pmse import pmse

Matrix = NDArray[np.float64]
LEAF = 100
ONE_HOT = 50
MEASURES = ("pmse", "pmse01", "pmse_sk", "pmse_oh", "tv1", "tv2", "tv3", "auc", "acc", "dlog", "dlin")


class Exam(NamedTuple):
    """A case, the held-out rows, the bins on which margins are compared, and three models to learn."""

    case: Case
    test: pd.DataFrame
    bins: Bins
    target: str
    logistic: Design
    linear: Design


def evaluate(exam: Exam, synthetic: pd.DataFrame) -> dict[str, float]:
    """Return every measure of one synthetic table, which must have the true table's columns."""
    case, known = exam.case, exam.case.policy.attributes
    true, encoded = (encode(rows, known) for rows in (case.rows, synthetic))
    auc, acc = train_and_test(synthetic, exam.test, known, exam.target)
    return {
        "pmse": pmse_greedy(true, encoded, cp=0.001),
        "pmse01": pmse_greedy(true, encoded, cp=0.01),
        "pmse_sk": pmse_of_scikit(true, encoded),
        "pmse_oh": pmse_greedy(one_hot(true, known), one_hot(encoded, known), cp=0.001),
        **variations(case.rows, synthetic, known, exam.bins),
        "auc": auc,
        "acc": acc,
        "dlog": coefficient_error(logistic, exam.logistic, case.rows, synthetic),
        "dlin": coefficient_error(linear, exam.linear, case.rows, synthetic),
    }


def misfit(case: Case, synthetic: pd.DataFrame) -> dict[str, float]:
    """Return the measures of a table of two numbers: three trees, and the error of the slope of the second on the first."""
    true, encoded = (encode(rows, case.policy.attributes) for rows in (case.rows, synthetic))
    trees = {"pmse": pmse_greedy(true, encoded, cp=0.001), "pmse01": pmse_greedy(true, encoded, cp=0.01)}
    slopes = [float(np.cov(rows.T)[0, 1] / rows[:, 0].var(ddof=1)) for rows in (true, encoded)]
    return {**trees, "pmse_sk": pmse_of_scikit(true, encoded), "dlin": abs(slopes[0] - slopes[1])}


def encode(rows: pd.DataFrame, known: Mapping[str, Attribute]) -> Matrix:
    """Return numbers unchanged, categories as their index in the public list, and nan for missing values."""
    return np.column_stack([codes(rows[name], attribute) for name, attribute in known.items()])


def codes(column: pd.Series[Any], attribute: Attribute) -> Matrix:
    if not isinstance(attribute, Category):
        return np.asarray(pd.to_numeric(column).astype("Float64").to_numpy(np.float64, na_value=np.nan))
    indexes = pd.Categorical(column, categories=list(attribute.values)).codes.astype(np.float64)
    indexes[indexes < 0] = np.nan
    return np.asarray(indexes)


def one_hot(rows: Matrix, known: Mapping[str, Attribute]) -> Matrix:
    """Return encoded rows with one column per value of a category; lists longer than 50 stay one column."""
    parts = [
        rows[:, [index]] == np.arange(attribute.size)
        if isinstance(attribute, Category) and attribute.size <= ONE_HOT
        else rows[:, [index]]
        for index, attribute in enumerate(known.values())
    ]
    return np.hstack([np.asarray(part, np.float64) for part in parts])


def pmse_of_scikit(original: Matrix, synthetic: Matrix) -> float:
    """Return pMSE over the leaves of scikit-learn's tree: no pruning, leaves of at least 100 rows."""
    rows = np.nan_to_num(np.vstack([synthetic, original]), nan=-1.0)
    labels = np.arange(len(rows)) < len(synthetic)
    leaves = DecisionTreeClassifier(min_samples_leaf=LEAF, random_state=0).fit(rows, labels).apply(rows)
    counts = [np.bincount(leaves[chosen], minlength=leaves.max() + 1) for chosen in (labels, ~labels)]
    return pmse(*counts)
