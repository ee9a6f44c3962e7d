"""The mean of a question about a number, with its interval and the range if some reports were false."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.arrays import Floats
from tidegate.collect.poisoning import SHARE, Scores, honest_range
from tidegate.errors import Unsupported
from tidegate.exact import say
from tidegate.extras import extra
from tidegate.frames import Row, Rows
from tidegate.operators import Hybrid, Operator
from tidegate.policy.attributes import Numeric
from tidegate.policy.calendar import Moment

with extra("collect", "Estimating from randomized reports"):
    from scipy.special import ndtri  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from tidegate.collect.survey import Survey

NEARLY = 1e-6  # steps by which an expected report can differ from a line


@dataclass(frozen=True)
class Mean(Rows):
    """An estimated mean, in the attribute's units; of dates and times as ISO 8601 text.

    low_poisoned, high_poisoned    the range of the honest reports' mean if 1% of the reports were false; None if unknown
    """

    question: str
    attribute: str
    reports: int
    confidence: float
    estimate: float | str
    low: float | str
    high: float | str
    low_poisoned: float | str | None = None
    high_poisoned: float | str | None = None

    def __str__(self) -> str:
        estimate, low, high = (
            end if isinstance(end, str) else say(end) for end in (self.estimate, self.low, self.high)
        )
        confidence = f"{say(100 * self.confidence)}%, {self.reports:,} reports"
        return f"The mean {self.attribute} is {estimate}, between {low} and {high} ({confidence})."

    def rows(self) -> list[Row]:
        """Return one dictionary with all fields."""
        return [self.to_dict()]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return dict(self.__dict__)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Mean:
        """Return the mean that `to_dict` wrote."""
        return cls(**data)


def estimate_mean(survey: Survey, name: str, *, confidence: float = 0.95) -> Mean:
    """Estimate the mean of a question about a number.

    Reports whose expectation is linear in the value (of hybrid and the square wave) have unbiased scores: the estimate is their
    mean, with its interval for a population that the respondents are a sample of, whatever its distribution. For other operators,
    the mean is that of the reconstructed distribution.
    """
    if not 0 < confidence < 1:
        raise Unsupported(f"`confidence` must be between 0 and 1; it is {confidence:g}.", "Use 0.95, for example.")
    question, operator = survey.collection.questions[name], survey.operators[name]
    if not operator.ordered:
        raise Unsupported(f'"{name}" is not about a number, so it has no mean.', "Name a question about a number.")
    total = survey.asked(name)
    if not total:
        raise Unsupported(f'There is no counted report yet, so the mean of "{name}" cannot be estimated.')
    grid = question.universe
    scores = mean_scores(operator) if isinstance(grid, Numeric) and not grid.cuts else None
    if scores is None:
        mean = survey.distribution(name, confidence=confidence).mean
        if mean is None:
            raise Unsupported(f'"{name}" has bins, so it has no mean.', f'Call survey.distribution("{name}").')
        return Mean(name, question.attribute, total, confidence, *mean)
    counts = survey.counts(name)
    estimate = float(scores @ counts) / total
    spread = float((scores - estimate) ** 2 @ counts) / max(total - 1, 1)
    wide = float(ndtri((1 + confidence) / 2)) * sqrt(max(spread, operator.variance() if total < 2 else 0.0) / total)
    steps = (estimate, estimate - wide, estimate + wide, *_false_range(operator, scores, total, estimate))
    return Mean(name, question.attribute, total, confidence, *(_in_units(grid, step) for step in steps))


def mean_scores(operator: Operator) -> Floats | None:
    """Return the unbiased estimate of the value from each report, in steps; None if it is not linear in the report.

    The expected report of an operator that adds noise, or sends something near the value, is linear in the value.
    """
    if isinstance(operator, Hybrid):
        return operator.scores()
    if not operator.ordered or operator.form != "code":
        return None
    codes, last = np.arange(operator.report_size), operator.values - 1
    values = sorted({0, last // 4, last // 2, 3 * last // 4, last})
    expected = np.array([float(codes @ operator.column(value)) for value in values])
    slope = (expected[-1] - expected[0]) / max(last, 1)
    if slope <= 0 or np.abs(expected - expected[0] - slope * np.array(values)).max() > NEARLY * slope:
        return None
    return np.asarray((codes - expected[0]) / slope)


def _false_range(operator: Operator, scores: Floats, reports: int, estimate: float) -> tuple[float, float]:
    """Return the range of the honest reports' mean in steps, clipped to the values."""
    limits = Scores(float(scores.max()), float(scores.min()))
    low, high = honest_range(np.array([estimate]), reports, ceil(SHARE * reports), limits)
    return float(np.clip(low[0], 0, operator.values - 1)), float(np.clip(high[0], 0, operator.values - 1))


def _in_units(grid: Any, step: float) -> float | str:
    if isinstance(grid, Moment):
        return str(grid.shown(step))
    return float(grid.low) + float(grid.width) * step
