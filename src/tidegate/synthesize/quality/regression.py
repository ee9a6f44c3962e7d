"""The coefficients of one regression, original and synthetic: whether an analysis would reach the same result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats
from tidegate.extras import extra
from tidegate.policy import Category
from tidegate.synthesize.quality.codes import CodedTable
from tidegate.synthesize.quality.combine import Estimate, Rule, combine, overlap, rule_for
from tidegate.synthesize.quality.formula import Formula, column_names, matrices

with extra("synthesize", "Making synthetic tables"):
    from scipy.special import expit  # type: ignore[import-untyped]

STEPS = 40
ENOUGH = 1e-9  # Newton's method stops at this change of the log likelihood per row
REPEATS = 1e-7  # a column whose independent part is smaller than this is a sum of earlier ones


@dataclass(frozen=True)
class Coefficient:
    """One coefficient. None if a table cannot estimate it (its column is constant there, or a sum of others)."""

    name: str
    original: Estimate | None
    synthetic: Estimate | None

    @property
    def overlap(self) -> float | None:
        """The overlap of the 95% intervals."""
        if self.original is None or self.synthetic is None:
            return None
        return overlap(self.original.interval(), self.synthetic.interval())

    @property
    def difference(self) -> float | None:
        """Synthetic minus original, in standard errors of the original."""
        if self.original is None or self.synthetic is None or self.original.variance <= 0:
            return None
        return (self.synthetic.value - self.original.value) / self.original.error

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "original": _estimate_dict(self.original),
            "synthetic": _estimate_dict(self.synthetic),
            "interval_overlap": self.overlap,
            "difference_in_standard_errors": self.difference,
        }


@dataclass(frozen=True)
class Regression:
    """A regression on both sides. `rule` is the rule that combined the synthetic tables."""

    formula: Formula
    kind: str
    rule: str
    coefficients: tuple[Coefficient, ...]
    rows: tuple[int, int]

    @property
    def overlap(self) -> float | None:
        """The mean overlap of the intervals, without the intercept."""
        overlaps = [coefficient.overlap for coefficient in self.coefficients[1:] if coefficient.overlap is not None]
        return float(np.mean(overlaps)) if overlaps else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "formula": str(self.formula),
            "kind": self.kind,
            "combining_rule": self.rule,
            "rows": {"original": self.rows[0], "synthetic": self.rows[1]},
            "mean_interval_overlap": self.overlap,
            "coefficients": [coefficient.to_dict() for coefficient in self.coefficients],
        }


def regress(
    formula: Formula, original: CodedTable, synthetic: Sequence[CodedTable], *, rule: Rule = "auto"
) -> Regression:
    """Fit a formula to every table and combine the synthetic ones."""
    kind = "logistic" if isinstance(original.attributes[formula.outcome], Category) else "linear"
    chosen = rule_for(len(synthetic), rule)
    pairs = [matrices(formula, table) for table in (original, *synthetic)]
    fits = [estimates(outcome, matrix, kind) for outcome, matrix in pairs]
    rows, synthetic_rows = len(pairs[0][0]), len(pairs[1][0])
    coefficients = []
    for index, name in enumerate(column_names(formula, original.attributes)):
        estimates_by_table = [fit[index] for fit in fits[1:]]
        known = [estimate for estimate in estimates_by_table if estimate is not None]
        combined = (
            combine(known, rows=rows, synthetic=synthetic_rows, rule=rule)
            if len(known) == len(estimates_by_table) and rows
            else None
        )
        coefficients.append(Coefficient(name, fits[0][index], combined))
    return Regression(formula, kind, chosen, tuple(coefficients), (rows, synthetic_rows))


def estimates(outcome: Floats, matrix: Floats, kind: str) -> list[Estimate | None]:
    """Return each coefficient by least squares or maximum likelihood, with its large-sample variance."""
    rows = len(outcome)
    size = np.sqrt((matrix**2).mean(axis=0)) if rows else np.zeros(matrix.shape[1])
    used = _independent_columns(matrix / np.where(size > 0, size, 1.0)) if rows else np.zeros(matrix.shape[1], bool)
    results: list[Estimate | None] = [None] * matrix.shape[1]
    constant = rows == 0 or bool((outcome == outcome[0]).all())
    if rows <= int(used.sum()) or (kind == "logistic" and constant):
        return results
    scaled = matrix[:, used] / size[used]
    values, variances, freedom = (_maximum_likelihood if kind == "logistic" else _least_squares)(outcome, scaled)
    for index, value, variance in zip(np.flatnonzero(used), values, variances, strict=True):
        results[index] = Estimate(float(value / size[index]), float(variance / size[index] ** 2), freedom)
    return results


def _independent_columns(scaled: Floats) -> NDArray[np.bool_]:
    """Return which columns are not a sum of earlier ones."""
    parts = np.abs(np.diag(np.linalg.qr(scaled, mode="r"))) / np.sqrt(len(scaled))
    is_own = np.zeros(scaled.shape[1], bool)
    is_own[: len(parts)] = parts > REPEATS
    return is_own


def _least_squares(outcome: Floats, matrix: Floats) -> tuple[Floats, Floats, float]:
    inverse = np.linalg.pinv(matrix.T @ matrix, hermitian=True)
    weights = inverse @ (matrix.T @ outcome)
    freedom = len(outcome) - matrix.shape[1]
    variance = float(((outcome - matrix @ weights) ** 2).sum()) / freedom
    return weights, variance * np.diag(inverse), float(freedom)


def _maximum_likelihood(outcome: Floats, matrix: Floats) -> tuple[Floats, Floats, float]:
    weights = fit_logistic(matrix, outcome, ridge=1e-8)
    chance = expit(matrix @ weights)
    curve = (matrix * (chance * (1 - chance))[:, None]).T @ matrix
    return weights, np.clip(np.diag(np.linalg.pinv(curve, hermitian=True)), 0, None), float("inf")


def fit_logistic(matrix: Floats, label: Floats, *, ridge: float) -> Floats:
    """Return the coefficients that maximize the likelihood with a ridge penalty on all but the intercept.

    Newton's steps are halved while they do not help. With the ridge there is exactly one maximum, even for separated rows.
    """
    penalty = np.full(matrix.shape[1], ridge)
    penalty[0] = 1e-12
    weights = np.zeros(matrix.shape[1])
    value = _objective(matrix, label, weights, penalty)
    for _ in range(STEPS):
        chance = expit(matrix @ weights)
        slope = matrix.T @ (label - chance) - penalty * weights
        curve = (matrix * (chance * (1 - chance))[:, None]).T @ matrix
        curve[np.diag_indices_from(curve)] += penalty + 1e-12
        step = np.linalg.lstsq(curve, slope, rcond=None)[0]
        next_weights, next_value = _line_search(matrix, label, weights, step, penalty, value)
        if next_value - value <= ENOUGH * len(label):
            return next_weights
        weights, value = next_weights, next_value
    return weights


def _line_search(
    matrix: Floats, label: Floats, weights: Floats, step: Floats, penalty: Floats, value: float
) -> tuple[Floats, float]:
    for part in (1.0, 0.5, 0.25, 0.0625, 0.01):
        candidate = weights + part * step
        next_value = _objective(matrix, label, candidate, penalty)
        if next_value >= value:
            return candidate, next_value
    return weights, value


def _objective(matrix: Floats, label: Floats, weights: Floats, penalty: Floats) -> float:
    line = matrix @ weights
    return float(label @ line - np.logaddexp(0, line).sum() - (penalty * weights**2).sum() / 2)


def _estimate_dict(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    low, high = estimate.interval()
    return {"estimate": estimate.value, "standard_error": estimate.error, "low": low, "high": high}
