"""The coefficients of one regression, original beside synthetic: whether an analysis would come to the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats
from tidegate.extras import extra
from tidegate.policy import Category
from tidegate.synthesize.quality.codes import Coded
from tidegate.synthesize.quality.combine import Estimate, Rule, combine, overlap, rule_for
from tidegate.synthesize.quality.formula import Formula, column_names, matrices
from tidegate.synthesize.quality.logistic import fit

with extra("synthesize", "Making synthetic tables"):
    from scipy.special import expit  # type: ignore[import-untyped]

REPEATS = 1e-7  # a column with less than this part of its own is a sum of earlier ones


@dataclass(frozen=True)
class Coefficient:
    """One coefficient. None where a table cannot tell it (its column is constant there, or a sum of others)."""

    name: str
    original: Estimate | None
    synthetic: Estimate | None

    @property
    def overlap(self) -> float | None:
        """How far the 95% intervals overlap."""
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
            "original": _told(self.original),
            "synthetic": _told(self.synthetic),
            "interval_overlap": self.overlap,
            "difference_in_standard_errors": self.difference,
        }


@dataclass(frozen=True)
class Regression:
    """A regression on both sides. `rule` says how the synthetic tables were combined."""

    formula: Formula
    kind: str
    rule: str
    coefficients: tuple[Coefficient, ...]
    rows: tuple[int, int]

    @property
    def overlap(self) -> float | None:
        """The mean overlap of the intervals, intercept left out."""
        found = [one.overlap for one in self.coefficients[1:] if one.overlap is not None]
        return float(np.mean(found)) if found else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "formula": str(self.formula),
            "kind": self.kind,
            "combining_rule": self.rule,
            "rows": {"original": self.rows[0], "synthetic": self.rows[1]},
            "mean_interval_overlap": self.overlap,
            "coefficients": [one.to_dict() for one in self.coefficients],
        }


def regress(formula: Formula, original: Coded, synthetic: Sequence[Coded], *, rule: Rule = "auto") -> Regression:
    """Fit a formula to every table and combine the synthetic ones."""
    kind = "logistic" if isinstance(original.attributes[formula.outcome], Category) else "linear"
    chosen = rule_for(len(synthetic), rule)
    pairs = [matrices(formula, table) for table in (original, *synthetic)]
    fits = [estimates(outcome, matrix, kind) for outcome, matrix in pairs]
    rows, made = len(pairs[0][0]), len(pairs[1][0])
    coefficients = []
    for place, name in enumerate(column_names(formula, original.attributes)):
        found = [one[place] for one in fits[1:]]
        told = [one for one in found if one is not None]
        whole = combine(told, rows=rows, synthetic=made, rule=rule) if len(told) == len(found) and rows else None
        coefficients.append(Coefficient(name, fits[0][place], whole))
    return Regression(formula, kind, chosen, tuple(coefficients), (rows, made))


def estimates(outcome: Floats, matrix: Floats, kind: str) -> list[Estimate | None]:
    """Each coefficient by least squares or maximum likelihood, with its large-sample variance."""
    rows = len(outcome)
    size = np.sqrt((matrix**2).mean(axis=0)) if rows else np.zeros(matrix.shape[1])
    kept = _own(matrix / np.where(size > 0, size, 1.0)) if rows else np.zeros(matrix.shape[1], bool)
    found: list[Estimate | None] = [None] * matrix.shape[1]
    constant = rows == 0 or bool((outcome == outcome[0]).all())
    if rows <= int(kept.sum()) or (kind == "logistic" and constant):
        return found
    scaled = matrix[:, kept] / size[kept]
    values, variances, freedom = (_likely if kind == "logistic" else _squares)(outcome, scaled)
    for place, value, variance in zip(np.flatnonzero(kept), values, variances, strict=True):
        found[place] = Estimate(float(value / size[place]), float(variance / size[place] ** 2), freedom)
    return found


def _own(scaled: Floats) -> NDArray[np.bool_]:
    """Which columns are no sum of earlier ones."""
    parts = np.abs(np.diag(np.linalg.qr(scaled, mode="r"))) / np.sqrt(len(scaled))
    kept = np.zeros(scaled.shape[1], bool)
    kept[: len(parts)] = parts > REPEATS
    return kept


def _squares(outcome: Floats, matrix: Floats) -> tuple[Floats, Floats, float]:
    inverse = np.linalg.pinv(matrix.T @ matrix, hermitian=True)
    found = inverse @ (matrix.T @ outcome)
    freedom = len(outcome) - matrix.shape[1]
    left = float(((outcome - matrix @ found) ** 2).sum()) / freedom
    return found, left * np.diag(inverse), float(freedom)


def _likely(outcome: Floats, matrix: Floats) -> tuple[Floats, Floats, float]:
    found = fit(matrix, outcome, ridge=1e-8)
    chance = expit(matrix @ found)
    curve = (matrix * (chance * (1 - chance))[:, None]).T @ matrix
    return found, np.clip(np.diag(np.linalg.pinv(curve, hermitian=True)), 0, None), float("inf")


def _told(one: Estimate | None) -> dict[str, Any] | None:
    if one is None:
        return None
    low, high = one.interval()
    return {"estimate": one.value, "standard_error": one.error, "low": low, "high": high}
