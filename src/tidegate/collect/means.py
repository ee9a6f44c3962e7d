"""The mean of a question about a number, with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

from tidegate.errors import Unsupported
from tidegate.exact import say
from tidegate.extras import extra
from tidegate.frames import Row, Rows
from tidegate.operators import Hybrid
from tidegate.policy.attributes import Numeric

with extra("collect", "Estimating from randomized reports"):
    from scipy.special import ndtri  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from tidegate.collect.survey import Survey


@dataclass(frozen=True)
class Mean(Rows):
    """An estimated mean, in the attribute's units; of dates and times as ISO 8601 text."""

    question: str
    attribute: str
    reports: int
    confidence: float
    estimate: float | str
    low: float | str
    high: float | str

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

    Reports of `hybrid` have unbiased scores: the interval is that of their mean, for a population that the respondents are
    a sample of. For other operators, the mean is that of the reconstructed distribution.
    """
    if not 0 < confidence < 1:
        raise Unsupported(f"`confidence` must be between 0 and 1; it is {confidence:g}.", "Use 0.95, for example.")
    question, operator = survey.collection.questions[name], survey.operators[name]
    if not operator.ordered:
        raise Unsupported(f'"{name}" is not about a number, so it has no mean.', "Name a question about a number.")
    if not survey.reports:
        raise Unsupported(f'There is no counted report yet, so the mean of "{name}" cannot be estimated.')
    grid = question.universe
    if not isinstance(operator, Hybrid) or not isinstance(grid, Numeric):
        mean = survey.distribution(name, confidence=confidence).mean
        if mean is None:
            raise Unsupported(f'"{name}" has bins, so it has no mean.', f'Call survey.distribution("{name}").')
        return Mean(name, question.attribute, survey.reports, confidence, *mean)
    scores, counts, total = operator.scores(), survey.counts(name), survey.reports
    estimate = float(scores @ counts) / total
    spread = float((scores - estimate) ** 2 @ counts) / max(total - 1, 1)
    wide = float(ndtri((1 + confidence) / 2)) * sqrt(max(spread, operator.variance() if total < 2 else 0.0) / total)
    ends = (float(grid.low) + float(grid.width) * step for step in (estimate, estimate - wide, estimate + wide))
    return Mean(name, question.attribute, total, confidence, *ends)
