"""The charts of a poll: horizontal bars with intervals, in the order of the options, and nothing where there are too few answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.charts import Axis, Bar, Chart, Interval, Table, numbers
from tidegate.collect.polls.respondent_texts import in_language
from tidegate.collect.polls.text import percent
from tidegate.exact import say

if TYPE_CHECKING:
    from tidegate.collect.polls.question_result import QuestionResult
    from tidegate.collect.polls.results import PollResults

ROW = 26  # pixels for each bar


def poll_chart(results: PollResults, language: str) -> Chart:
    """Return a chart with a panel for each question."""
    panels = tuple(question_chart(question, language) for question in results.questions)
    title = f"{in_language(results.title, language)}: {results.status}"
    return panels[0] if len(panels) == 1 else Chart(title, panels=panels, notes=results.warnings)


def question_chart(result: QuestionResult, language: str = "") -> Chart:
    """Return the bars of one question, or the interval of a mean alone; a text if there are too few answers."""
    title = f"{result.wording(language)} ({result.reports:,} answers)"
    if result.too_few:
        return Chart(title, empty="Too few answers to say", height=60, notes=(result.too_few,))
    if not result.options:
        return _mean_chart(result, title)
    positions = numbers(range(len(result.options)))
    marks: list[Any] = [Bar("share", positions, numbers(option.share for option in result.options))]
    if any(option.low_poisoned is not None for option in result.options):
        low, high = _ends(result, "low_poisoned"), _ends(result, "high_poisoned")
        marks.append(Interval("range if 1% of the reports were false", positions, low, high, tone="limit", shift=0.22))
    interval = f"{say(100 * result.confidence)}% interval"
    marks.append(Interval(interval, positions, _ends(result, "low"), _ends(result, "high")))
    labels = tuple(in_language(option.label, language) for option in result.options)
    return Chart(
        title,
        tuple(marks),
        Axis("", "category", labels),
        Axis("share", low=0, format="percent"),
        _table(result, labels),
        horizontal=True,
        height=max(60, ROW * len(labels)),
        notes=(*([str(result.mean)] if result.mean else []), *result.warnings),
    )


def _mean_chart(result: QuestionResult, title: str) -> Chart:
    mean = result.mean
    if mean is None or isinstance(mean.estimate, str):
        return Chart(title, empty=f"Mean: {mean.estimate}" if mean else "No text is frequent", height=60)
    ends = {name: numbers([value]) for name, value in mean.to_dict().items()}
    marks = [Interval(f"{say(100 * result.confidence)}% interval", (0.0,), ends["low"], ends["high"], ends["estimate"])]
    if mean.low_poisoned is not None:
        low, high = ends["low_poisoned"], ends["high_poisoned"]
        marks.append(Interval("range if 1% of the reports were false", (0.0,), low, high, tone="limit", shift=0.22))
    row = ("mean", *(say(value) if isinstance(value, float) else value for value in mean.to_dict().values()))
    values = [end for pair in ends.values() for end in pair]
    axis = Axis("mean", low=min(values), high=max(values))
    table = Table(("", "estimate", "low", "high", "low if 1% were false", "high if 1% were false"), (row,))
    return Chart(
        title,
        tuple(marks),
        Axis("", "category", ("mean",)),
        axis,
        table,
        horizontal=True,
        height=60,
        notes=(str(mean), *result.warnings),
    )


def _ends(result: QuestionResult, name: str) -> tuple[float, ...]:
    return numbers(getattr(option, name) for option in result.options)


def _table(result: QuestionResult, labels: tuple[str, ...]) -> Table:
    columns = ("answer", "share", "low", "high", "low if 1% were false", "high if 1% were false")
    names = ("share", "low", "high", "low_poisoned", "high_poisoned")
    rows = (
        (label, *(percent(getattr(option, name)) for name in names))
        for label, option in zip(labels, result.options, strict=True)
    )
    return Table(columns, tuple(rows))
