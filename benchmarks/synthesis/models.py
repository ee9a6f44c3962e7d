"""Models learned from synthetic rows: a classifier, a logistic and a linear regression."""

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


def train_and_test(
    synthetic: pd.DataFrame, test: pd.DataFrame, known: Mapping[str, Attribute], target: str
) -> tuple[float, float]:
    """Return AUC and accuracy on true rows of gradient boosting trained on synthetic ones. The target has two values."""
    attribute = known[target]
    assert isinstance(attribute, Category)
    positive = attribute.values[-1]
    truth = (test[target] == positive).to_numpy()
    labels = (synthetic[target] == positive).to_numpy()
    if labels.all() or not labels.any():
        return 0.5, float(np.mean(truth == labels[0]))
    rest = [name for name in known if name != target]
    nominal = [isinstance(known[name], Category) and known[name].size <= 255 for name in rest]
    boosted = HistGradientBoostingClassifier(categorical_features=nominal, random_state=0)
    boosted.fit(_features(synthetic, known, rest), labels)
    probability = boosted.predict_proba(_features(test, known, rest))[:, 1]
    return float(roc_auc_score(truth, probability)), float(np.mean((probability > 0.5) == truth))


def _features(rows: pd.DataFrame, known: Mapping[str, Attribute], names: list[str]) -> Matrix:
    columns = []
    for name in names:
        attribute = known[name]
        if isinstance(attribute, Category):
            codes = pd.Categorical(rows[name], categories=list(attribute.values)).codes.astype(float)
            columns.append(np.where(codes < 0, np.nan, codes))
        else:
            columns.append(pd.to_numeric(rows[name]).astype("Float64").to_numpy(np.float64, na_value=np.nan))
    return np.column_stack(columns)


def coefficient_error(
    fit: Callable[[Matrix, Matrix], Matrix], design: Design, true: pd.DataFrame, synthetic: pd.DataFrame
) -> float:
    """Return the mean absolute difference of the coefficients, without the constant."""
    return float(np.mean(np.abs(fit(*design(true)) - fit(*design(synthetic)))[1:]))


def linear(regressors: Matrix, response: Matrix) -> Matrix:
    """Return the least-squares coefficients."""
    return np.asarray(np.linalg.lstsq(regressors, response, rcond=None)[0])


def logistic(regressors: Matrix, response: Matrix, *, steps: int = 50, ridge: float = 1e-6) -> Matrix:
    """Return logistic coefficients by Newton's method; a tiny ridge bounds them if some combination is missing."""
    coefficients = np.zeros(regressors.shape[1])
    for _ in range(steps):
        probability = 1 / (1 + np.exp(-np.clip(regressors @ coefficients, -30, 30)))
        slope = regressors.T @ (response - probability) - ridge * coefficients
        curve = (regressors * (probability * (1 - probability))[:, None]).T @ regressors + ridge * np.eye(
            len(coefficients)
        )
        step = np.linalg.solve(curve, slope)
        coefficients = coefficients + np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-9:
            break
    return coefficients


def flags(column: pd.Series[Any], *values: Any) -> Matrix:
    """Return 1 for rows whose column has one of the values, else 0."""
    return np.asarray(column.isin(values), np.float64)
