"""The result of one question of a poll: its options or its mean, with intervals, and what can be said about their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tidegate.collect.comparison import Difference
from tidegate.collect.poisoning import lead_text
from tidegate.collect.polls.respondent_texts import Texts, in_language
from tidegate.exact import say
from tidegate.frames import Row

if TYPE_CHECKING:
    from tidegate.charts import Chart

Kind = Literal["choice", "choices", "number", "mean", "strings"]
NUMBERS = ("share", "low", "high", "low_poisoned", "high_poisoned")
MEAN = "mean"  # the option of the row of a mean
SAID = 6  # clear differences in a text


@dataclass(frozen=True)
class OptionResult:
    """One option, or one bin of a number. All numbers are None if there are too few answers.

    share                          the estimate, between 0 and 1          raw    the unbiased one, which can be outside
    low, high                      its interval                           error  its standard error, where there is one
    low_poisoned, high_poisoned    the range of the honest reports' share if 1% of the reports were false; None if unknown
    """

    option: str
    label: Texts
    share: float | None = None
    low: float | None = None
    high: float | None = None
    low_poisoned: float | None = None
    high_poisoned: float | None = None
    raw: float | None = None
    error: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {**self.__dict__, "label": dict(self.label)}


@dataclass(frozen=True)
class MeanResult:
    """The mean of a number in its units (ISO 8601 text for dates and times), and the range if 1% of the reports were false."""

    estimate: float | str
    low: float | str
    high: float | str
    low_poisoned: float | str | None = None
    high_poisoned: float | str | None = None

    def __str__(self) -> str:
        ends = f"The mean is {_said(self.estimate)}, between {_said(self.low)} and {_said(self.high)}"
        if self.low_poisoned is None:
            return f"{ends}."
        return f"{ends} ({_said(self.low_poisoned)} to {_said(self.high_poisoned)} if 1% of the reports were false)."

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return dict(self.__dict__)


@dataclass(frozen=True)
class FalseReports:
    """How many false reports are assumed, and how many could have put `first` ahead of `second`, the two largest shares."""

    assumed: int
    first: str
    second: str
    decisive: int

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return dict(self.__dict__)


@dataclass(frozen=True)
class QuestionResult:
    """What the counted reports say about one question.

    kind          "choice": one of several options; "choices": a set of them; "number": bins and a mean; "mean": a mean alone;
                  "strings": frequent texts
    reports       the number of people who were asked and whose report was counted
    too_few       why nothing can be said; empty if there are enough answers
    differences   of all pairs of options, the larger estimate first; only the clear ones can be called an order
    epsilon       the local loss of an answer; None if it is unlimited
    """

    question: str
    kind: Kind
    text: Texts
    operator: str
    epsilon: float | None
    reports: int
    confidence: float
    too_few: str = ""
    options: tuple[OptionResult, ...] = ()
    mean: MeanResult | None = None
    differences: tuple[Difference, ...] = ()
    false_reports: FalseReports | None = None
    sure: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def clear(self) -> list[Difference]:
        """The differences whose interval excludes 0."""
        return [difference for difference in self.differences if difference.is_clear]

    def wording(self, language: str = "") -> str:
        """Return the question in a language of the poll."""
        return in_language(self.text, language)

    def label(self, option: str, language: str = "") -> str:
        """Return the label of an option in a language of the poll."""
        labels = next((known.label for known in self.options if known.option == option), {})
        return in_language(labels, language) or option

    def order_text(self, language: str = "") -> list[str]:
        """Return sentences on which options differ; the first one says so if none do."""
        if not self.differences:
            return []
        if not self.clear:
            return ["No two options differ by more than the noise (95%, all pairs together)."]
        lines = [
            f"{self.label(difference.first, language)} is more frequent than {self.label(difference.second, language)} by "
            f"{say(100 * difference.low)} to {say(100 * difference.high)} points."
            for difference in self.clear[:SAID]
        ]
        rest = [f"and {len(self.clear) - SAID:,} more."] if len(self.clear) > SAID else []
        return ["Clear differences (95%, all pairs together):", *lines, *rest]

    def false_text(self, language: str = "") -> str:
        """Return what false reports could have done, as a sentence."""
        if self.false_reports is None:
            return ""
        assumed, decisive = self.false_reports.assumed, self.false_reports.decisive
        first, second = (self.label(name, language) for name in (self.false_reports.first, self.false_reports.second))
        ahead = lead_text(first, second, decisive)
        return f"The range for false reports assumes that 1% of the reports ({assumed:,}) are false; {ahead}."

    def rows(self, language: str = "") -> list[Row]:
        """Return one dictionary per option, and one for the mean, with the columns of a CSV file."""
        about = {"reports": self.reports, "epsilon": self.epsilon}
        rows = [
            {
                "question": self.question,
                "option": option.option,
                "label": in_language(option.label, language),
                **{name: getattr(option, name) for name in NUMBERS},
                **about,
            }
            for option in self.options
        ]
        if self.mean is None and self.kind != "mean":
            return rows
        ends = dict(zip(NUMBERS, self.mean.to_dict().values(), strict=True)) if self.mean else dict.fromkeys(NUMBERS)
        return [*rows, {"question": self.question, "option": MEAN, "label": self.wording(language), **ends, **about}]

    def plot(self, path: str | Path | None = None, *, language: str = "") -> Chart:
        """Return horizontal bars with intervals in the order of the options; also write it to `path` (.svg or .png)."""
        from tidegate.collect.polls.charts import question_chart

        return saved_chart(question_chart(self, language), path)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "question": self.question,
            "kind": self.kind,
            "text": dict(self.text),
            "operator": self.operator,
            "epsilon": self.epsilon,
            "reports": self.reports,
            "confidence": self.confidence,
            "too_few": self.too_few or None,
            "options": [option.to_dict() for option in self.options],
            "mean": self.mean.to_dict() if self.mean else None,
            "differences": [difference.to_dict() for difference in self.differences],
            "false_reports": self.false_reports.to_dict() if self.false_reports else None,
            "sure": self.sure,
            "warnings": list(self.warnings),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> QuestionResult:
        """Return what `to_dict` wrote."""
        return cls(
            **{
                name: data[name]
                for name in ("question", "kind", "text", "operator", "epsilon", "reports", "confidence")
            },
            too_few=data["too_few"] or "",
            options=tuple(OptionResult(**option) for option in data["options"]),
            mean=MeanResult(**data["mean"]) if data["mean"] else None,
            differences=tuple(Difference.from_dict(difference) for difference in data["differences"]),
            false_reports=FalseReports(**data["false_reports"]) if data["false_reports"] else None,
            sure=data["sure"],
            warnings=tuple(data["warnings"]),
        )


def _said(number: float | str | None) -> str:
    return number if isinstance(number, str) else "" if number is None else say(number)


def saved_chart(chart: Chart, path: str | Path | None) -> Chart:
    """Return a chart, after writing it to a file if one is named."""
    if path is not None:
        chart.save(path)
    return chart
