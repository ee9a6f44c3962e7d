"""The results of a poll from its counted reports: one estimate per question, and what holds for the poll as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.collect.comparison import LEAST_REPORTS, WIDEST, too_few
from tidegate.collect.encoding import words_of
from tidegate.collect.means import mean_scores
from tidegate.collect.poisoning import SHARE
from tidegate.collect.polls.question_result import FalseReports, Kind, MeanResult, OptionResult, QuestionResult
from tidegate.collect.polls.respondent_texts import Texts
from tidegate.collect.polls.results import PollResults
from tidegate.collect.shares import ShareTable, decisive_reports, share_differences
from tidegate.collect.state import next_count, status_of, time_of
from tidegate.errors import Unsupported
from tidegate.exact import say
from tidegate.extras import extra
from tidegate.operators import BasketOperator, Pure
from tidegate.policy.attributes import Numeric
from tidegate.policy.calendar import Moment

with extra("collect", "Estimating from randomized reports"):
    from scipy.special import ndtri  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from tidegate.accounting.later_reader import LaterReader
    from tidegate.collect.result import Distribution
    from tidegate.collect.survey import Survey

ANYONE = (
    "Anyone can answer this poll any number of times: the shares are those of the reports, not of people. "
    "The column for false reports assumes that 1% of them are false; an open poll can have many more."
)
MOST_LISTED = 200  # options that are all shown
SURE = 0.95  # of the list of a long list's options
CUT = "Baskets were cut, so the shares of single items are not identified."


def estimate_poll(survey: Survey, *, confidence: float = 0.95, now: datetime | None = None) -> PollResults:
    """Estimate every question of a survey from its counted batches."""
    return assemble(survey, estimate_questions(survey, confidence=confidence), survey.weakest_reader(), now=now)


def assemble(
    survey: Survey,
    questions: Sequence[QuestionResult],
    reader: LaterReader | None,
    *,
    now: datetime | None = None,
) -> PollResults:
    """Return the results of a survey whose questions were estimated before: what changes with time is read now."""
    collection, poll, loss = survey.collection, survey.collection.poll, survey.respondent_loss
    opened, counted, head = survey.entries()
    moment = now or datetime.now(UTC)
    entries = {
        "opened": {"number": opened.number, "hash": opened.hash},
        "counted": {"number": counted.number, "hash": counted.hash} if counted else None,
    }
    return PollResults(
        collection=collection.name,
        version=collection.version,
        fingerprint=collection.fingerprint,
        holder=collection.holder,
        title=dict(poll.title) if poll else {"en": collection.name},
        languages=poll.languages if poll else ("en",),
        access=poll.access if poll else "",
        confidence=questions[0].confidence,
        closed=survey.closed,
        closes=time_of(poll.closes) if poll else None,
        reports=survey.reports,
        waiting=survey.waiting,
        next_count=next_count(survey, moment),
        status=status_of(survey, moment),
        epsilon=None if loss.each_report is None else float(loss.each_report),
        loss=f"{str(loss)[0].upper()}{str(loss)[1:]}.",
        later_reader=reader.to_dict() if reader else None,
        ledger={**entries, "head": head},
        questions=tuple(questions),
        warnings=(ANYONE,) if poll and not poll.invited else (),
    )


def estimate_questions(survey: Survey, *, confidence: float = 0.95) -> tuple[QuestionResult, ...]:
    """Estimate all questions."""
    if not 0 < confidence < 1:
        raise Unsupported(f"`confidence` must be between 0 and 1; it is {confidence:g}.", "Use 0.95, for example.")
    return tuple(estimate_question(survey, name, confidence=confidence) for name in survey.collection.questions)


def estimate_question(survey: Survey, name: str, *, confidence: float = 0.95) -> QuestionResult:
    """Estimate one question; without numbers if there are too few answers."""
    question, operator, reports = survey.collection.questions[name], survey.operators[name], survey.asked(name)
    loss = survey.respondent_loss.questions[name]
    kind = _kind(survey, name)
    result = QuestionResult(
        question=name,
        kind=kind,
        text=_wording(survey, name),
        operator=question.operator,
        epsilon=None if loss is None else float(loss),
        reports=reports,
        confidence=confidence,
        options=_empty_options(survey, name, kind),
    )
    if reports < LEAST_REPORTS:
        return replace(result, too_few=too_few(reports, 0.0))
    if kind == "choices":
        return replace(result, too_few=CUT) if question.cuts else _of_set(survey, result)
    if kind == "mean":
        return _of_mean(survey, result)
    if kind == "strings":
        return _of_strings(survey, result)
    distribution = survey.distribution(name, confidence=confidence)
    if isinstance(operator, Pure):
        return _of_choice(survey, result, distribution)
    return _of_number(survey, result, distribution)


def _of_choice(survey: Survey, result: QuestionResult, distribution: Distribution) -> QuestionResult:
    if distribution.too_few:
        return replace(result, too_few=distribution.too_few)
    false, names = distribution.poisoning, ("masses", "low", "high", "unbiased", "errors")
    columns = dict(
        zip(("share", "low", "high", "raw", "error"), (getattr(distribution, n) for n in names), strict=True)
    )
    columns |= {"low_poisoned": false.low, "high_poisoned": false.high} if false else {}
    return replace(
        _with_options(survey, result, columns),
        differences=tuple(distribution.differences()) if len(distribution.labels) <= MOST_LISTED else (),
        false_reports=FalseReports(false.false, false.first, false.second, false.decisive) if false else None,
        warnings=distribution.warnings,
        sure=distribution.sure if len(distribution.labels) <= MOST_LISTED else _selection(result, columns),
    )


def _of_set(survey: Survey, result: QuestionResult) -> QuestionResult:
    table = survey.shares(result.question, confidence=result.confidence)
    widest = 2 * float(ndtri((1 + result.confidence) / 2) * table.errors.max())
    if reason := too_few(result.reports, widest):
        return replace(result, too_few=reason)
    columns = {"share": table.shown, "low": table.low, "high": table.high, "raw": table.raw, "error": table.errors}
    if table.low_poisoned is not None and table.high_poisoned is not None:
        columns |= {"low_poisoned": table.low_poisoned, "high_poisoned": table.high_poisoned}
    is_listed = len(table.options) <= MOST_LISTED
    return replace(
        _with_options(survey, result, columns),
        differences=tuple(share_differences(survey, table)) if is_listed else (),
        false_reports=_false_reports(survey, table),
        sure=table.sure if is_listed else _selection(result, columns),
    )


def _with_options(survey: Survey, result: QuestionResult, columns: Mapping[str, Floats]) -> QuestionResult:
    """Return the result with the numbers of its options; of a long list, only of those that are far above 0.

    The intervals of R selected ones of m have the level 1 - R (1 - confidence) / m, so that at most the stated share of them miss on
    average, despite the selection.

    Reference:
        Benjamini, Yekutieli 2005, "False discovery rate-adjusted multiple confidence intervals for selected parameters".
    """
    raw, errors, shown = columns["raw"], columns["error"], dict(columns)
    chosen = _far_above_zero(raw, errors)
    if raw.size > MOST_LISTED:
        level = (1 - result.confidence) * max(chosen.size, 1) / raw.size
        wide, inside = float(ndtri(1 - level / 2)) * errors, np.clip(raw, 0, 1)
        shown["low"] = np.clip(np.minimum(raw, inside) - wide, 0, 1)
        shown["high"] = np.clip(np.maximum(raw, inside) + wide, 0, 1)
    options = []
    for index, option in zip(chosen, _options(survey, result.question, chosen), strict=True):
        numbers: dict[str, Any] = {name: float(column[index]) for name, column in shown.items()}
        options.append(replace(option, **numbers))
    return replace(result, options=tuple(options))


def _far_above_zero(raw: Floats, errors: Floats) -> Ints:
    """Return the indexes of all options, or of a long list, those that exceed 0 by more than the noise, jointly."""
    if raw.size <= MOST_LISTED:
        return np.arange(raw.size)
    return np.flatnonzero(raw > float(ndtri(1 - (1 - SURE) / raw.size)) * errors)


def _selection(result: QuestionResult, columns: Mapping[str, Floats]) -> str:
    raw, errors = columns["raw"], columns["error"]
    least = float(ndtri(1 - (1 - SURE) / raw.size) * np.median(errors))
    return (
        f"of {raw.size:,} options, those are listed whose share is above 0 by more than the noise (95%, all together); shares below about "
        f"{say(100 * least, 2)}% stay invisible; the intervals allow for the selection"
    )


def _false_reports(survey: Survey, table: ShareTable) -> FalseReports | None:
    operator = survey.operators[table.question]
    if len(table.options) < 2 or (isinstance(operator, BasketOperator) and operator.operator.needs_size):
        return None
    second, first = (int(index) for index in np.argsort(table.raw, kind="stable")[-2:])
    decisive = decisive_reports(survey, table, first, second)
    return FalseReports(ceil(SHARE * table.reports), table.options[first], table.options[second], decisive)


def _of_number(survey: Survey, result: QuestionResult, distribution: Distribution) -> QuestionResult:
    """Return the bins and the mean; a warning says so if the model does not fit the reports."""
    if distribution.too_few:
        return replace(result, too_few=distribution.too_few, options=())
    language = list(result.text)
    options = tuple(
        OptionResult(run.label, dict.fromkeys(language, run.label), run.mass, run.low, run.high, raw=run.mass)
        for run in distribution.runs()
    )
    mean = None
    if distribution.mean is not None:
        scores = mean_scores(survey.operators[result.question])
        mean = MeanResult(*distribution.mean) if scores is None else _mean_of(survey, result)
    return replace(
        result,
        options=options,
        mean=mean,
        sure=distribution.sure.rpartition("; ")[2],
        warnings=distribution.warnings,
    )


def _of_mean(survey: Survey, result: QuestionResult) -> QuestionResult:
    mean, grid = _mean_of(survey, result), _grid(survey, result.question)
    if not isinstance(mean.low, str) and not isinstance(mean.high, str) and grid is not None:
        width = (mean.high - mean.low) / float(grid.high - grid.low)
        if width > WIDEST:
            reason = (
                f"the interval of the mean spans {say(100 * width, 2)}% of the range, more than {say(100 * WIDEST)}%"
            )
            return replace(result, too_few=f"Too few answers to say: {reason}.")
    return replace(result, mean=mean)


def _of_strings(survey: Survey, result: QuestionResult) -> QuestionResult:
    """Return the frequent texts in alphabetical order: their order by share is no ranking."""
    table = survey.strings(result.question, confidence=result.confidence)
    rows = sorted(zip(table.rows(), table.errors.tolist(), strict=True), key=lambda row: str(row[0]["text"]))
    options = []
    for row, error in rows:
        text = str(row.pop("text"))
        options.append(OptionResult(text, dict.fromkeys(result.text, text), error=error, **row))
    return replace(result, options=tuple(options), sure=table.sure)


def _grid(survey: Survey, name: str) -> Any:
    universe = survey.collection.questions[name].universe
    return universe if isinstance(universe, Numeric) and not isinstance(universe, Moment) else None


def _mean_of(survey: Survey, result: QuestionResult) -> MeanResult:
    mean = survey.mean(result.question, confidence=result.confidence)
    return MeanResult(mean.estimate, mean.low, mean.high, mean.low_poisoned, mean.high_poisoned)


def _kind(survey: Survey, name: str) -> Kind:
    operator = survey.operators[name]
    if operator.of_sets:
        return "choices"
    if operator.of_texts:
        return "strings"
    if operator.only_mean:
        return "mean"
    return "choice" if isinstance(operator, Pure) else "number"


def _wording(survey: Survey, name: str) -> Texts:
    poll = survey.collection.poll
    return dict(poll.questions[name].text) if poll else {"en": name}


def _empty_options(survey: Survey, name: str, kind: Kind) -> tuple[OptionResult, ...]:
    """Return the options of a question in their order, without numbers; none for numbers and long lists."""
    size = survey.collection.questions[name].size
    return _options(survey, name, range(size)) if kind in ("choice", "choices") and size <= MOST_LISTED else ()


def _options(survey: Survey, name: str, codes: Iterable[int]) -> tuple[OptionResult, ...]:
    question, poll = survey.collection.questions[name], survey.collection.poll
    options = [words_of(question, int(code)) for code in codes]
    if poll is None:
        return tuple(OptionResult(option, {"en": option}) for option in options)
    wording = poll.questions[name]
    return tuple(
        OptionResult(option, {language: wording.label(option, language) for language in poll.languages})
        for option in options
    )
