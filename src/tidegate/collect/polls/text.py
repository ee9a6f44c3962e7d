"""The results of a poll as text for a terminal, and as HTML for a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.collect.polls.respondent_texts import in_language
from tidegate.exact import say
from tidegate.html.notebook import Cell, Table, show

if TYPE_CHECKING:
    from tidegate.collect.polls.question_result import QuestionResult
    from tidegate.collect.polls.results import PollResults

WIDEST = 40  # characters of a label in a table of text


def describe(results: PollResults, language: str) -> str:
    """Return all results in a language, one table for each question."""
    lines = [
        f"{in_language(results.title, language)} ({results.collection}, version {results.version}). {results.status}"
    ]
    lines += results.warnings
    for question in results.questions:
        lines += ["", *describe_question(question, language)]
    return "\n".join([*lines, "", *results.privacy_text(), results.record_text()])


def describe_question(result: QuestionResult, language: str) -> list[str]:
    """Return the lines of one question."""
    head = f"{result.wording(language)} ({_answers(result)})"
    if result.too_few:
        return [head, result.too_few]
    lines = [head, *([str(result.mean)] if result.mean else [])]
    headers, rows = table(result, language)
    if rows:
        widths = [max(len(row[column]) for row in [headers, *rows]) for column in range(len(headers))]
        lines += [_line(row, widths) for row in [headers, ["-" * width for width in widths], *rows]]
    if result.kind == "strings" and not rows:
        lines.append("No text is frequent enough to be found.")
    lines += [f"{result.sure[0].upper()}{result.sure[1:]}."] if result.sure else []
    lines += [line for line in (result.false_text(language), *result.order_text(language)) if line]
    return [*lines, *result.warnings]


def table(result: QuestionResult, language: str) -> tuple[list[str], list[list[str]]]:
    """Return the headers and the rows of a table of shares, in the order of the options."""
    is_poisoned = any(option.low_poisoned is not None for option in result.options)
    headers = ["answer", "share", f"{say(100 * result.confidence)}% interval", "if 1% were false"][: 3 + is_poisoned]
    return headers, [
        [
            in_language(option.label, language)[:WIDEST],
            percent(option.share),
            f"{percent(option.low)} to {percent(option.high)}",
            f"{percent(option.low_poisoned)} to {percent(option.high_poisoned)}",
        ][: len(headers)]
        for option in result.options
    ]


def notebook_html(results: PollResults, language: str) -> str:
    """Return the results for a notebook."""
    parts = [_question_html(question, language) for question in results.questions]
    head = {"title": in_language(results.title, language), "caption": results.status}
    notes = [*results.warnings, *results.privacy_text(), results.record_text()]
    return "".join([show({**head, "notes": notes}), *parts])


def _question_html(result: QuestionResult, language: str) -> str:
    head = {"title": result.wording(language), "caption": result.too_few or _answers(result)}
    if result.too_few:
        return show(head)
    headers, rows = table(result, language)
    cells: list[Table] = [(headers, [[Cell(row[0]), *(Cell(text, True) for text in row[1:])] for row in rows])]
    notes = [str(result.mean)] if result.mean else []
    notes += [line for line in (result.false_text(language), *result.order_text(language), *result.warnings) if line]
    return show({**head, "tables": cells if rows else (), "notes": notes})


def percent(share: float | None) -> str:
    """Return a share in percent with one decimal."""
    return "" if share is None else f"{100 * share:.1f}%"


def _answers(result: QuestionResult) -> str:
    return f"{result.reports:,} answer{'' if result.reports == 1 else 's'}"


def _line(cells: list[str], widths: list[int]) -> str:
    first, *numbers = (
        cell.ljust(width) if not column else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join(["", first, *numbers]).rstrip()
