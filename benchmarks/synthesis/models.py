"""What is learnt from synthetic rows: a classifier, a logistic and a linear regression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier  # type: ignore[import-untyped]
from sklearn.metrics import roc_auc_score  # type: ignore[import-untyped]

from tidegate.policy import Attribute, Category

Matrix = NDArray[np.float64]
Design = Callable[[pd.DataFrame], tuple[Matrix, Matrix]]  # regressors (with the constant) and response


def trained(made: pd.DataFrame, test: pd.DataFrame, known: Mapping[str, Attribute], target: str) -> tuple[float, float]:
    """AUC and accuracy on true rows of gradient boosting that was trained on synthetic ones. Two values to tell apart."""
    attribute = known[target]
    assert isinstance(attribute, Category)
    positive = attribute.values[-1]
    right = (test[target] == positive).to_numpy()
    learnt = (made[target] == positive).to_numpy()
    if learnt.all() or not learnt.any():
        return 0.5, float(np.mean(right == learnt[0]))
    rest = [name for name in known if name != target]
    nominal = [isinstance(known[name], Category) and known[name].size <= 255 for name in rest]
    boosted = HistGradientBoostingClassifier(categorical_features=nominal, random_state=0)
    boosted.fit(_features(made, known, rest), learnt)
    chance = boosted.predict_proba(_features(test, known, rest))[:, 1]
    return float(roc_auc_score(right, chance)), float(np.mean((chance > 0.5) == right))


def _features(rows: pd.DataFrame, known: Mapping[str, Attribute], names: list[str]) -> Matrix:
    columns = []
    for name in names:
        attribute = known[name]
        if isinstance(attribute, Category):
            place = pd.Categorical(rows[name], categories=list(attribute.values)).codes.astype(float)
            columns.append(np.where(place < 0, np.nan, place))
        else:
            columns.append(pd.to_numeric(rows[name]).astype("Float64").to_numpy(np.float64, na_value=np.nan))
    return np.column_stack(columns)


def coefficient_error(
    fit: Callable[[Matrix, Matrix], Matrix], design: Design, true: pd.DataFrame, made: pd.DataFrame
) -> float:
    """Mean absolute difference of the coefficients, the constant's left out."""
    return float(np.mean(np.abs(fit(*design(true)) - fit(*design(made)))[1:]))


def linear(regressors: Matrix, response: Matrix) -> Matrix:
    """Least squares."""
    return np.asarray(np.linalg.lstsq(regressors, response, rcond=None)[0])


def logistic(regressors: Matrix, response: Matrix, *, steps: int = 50, ridge: float = 1e-6) -> Matrix:
    """Newton's method; the tiny ridge keeps a synthetic table without some combination from running away."""
    found = np.zeros(regressors.shape[1])
    for _ in range(steps):
        chance = 1 / (1 + np.exp(-np.clip(regressors @ found, -30, 30)))
        slope = regressors.T @ (response - chance) - ridge * found
        curve = (regressors * (chance * (1 - chance))[:, None]).T @ regressors + ridge * np.eye(len(found))
        step = np.linalg.solve(curve, slope)
        found = found + np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-9:
            break
    return found


def flags(column: pd.Series[Any], *values: Any) -> Matrix:
    """1 where the column has one of the values."""
    return np.asarray(column.isin(values), np.float64)
