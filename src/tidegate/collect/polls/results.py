"""The results of a poll: for every question what can be said, with an interval, and nothing where there are too few answers.

results = survey.results()                           from counted batches only
print(results)                                       a table for each question
results["often"].differences                         which options differ: options are never ranked by their estimates alone
results.to_csv("results.csv", language="de")
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate.collect.polls.question_result import NUMBERS, QuestionResult, saved_chart
from tidegate.collect.polls.respondent_texts import Texts
from tidegate.errors import TidegateError, Unsupported, did_you_mean
from tidegate.frames import Row, Rows, safe_cell

if TYPE_CHECKING:
    from tidegate.charts import Chart

COLUMNS = ("question", "option", "label", *NUMBERS, "reports", "epsilon")
DIGITS = 6  # decimals in a CSV file


@dataclass(frozen=True)
class PollResults(Rows):
    """The results of all questions, and what they rest on.

    Guarantee:
        They come from counted batches only: nothing changes between two batches, so no report can be tied to its time.

    Args:
        title: By language; the name of a collection that is not a poll.
        access: "invited" or "open"; empty for a collection that is not a poll.
        reports: The number of counted reports.
        waiting: The number of others, rounded down to the policy's minimum.
        closes: When the poll closes, ISO 8601; None if it has no such date.
        next_count: When waiting reports are counted next; None after the close, or if they are counted at a close without a date.
        epsilon: The local loss of one report, always stated first; None if it is unlimited.
        loss: The same as a sentence.
        later_reader: The claim for a later reader of the ledger, for the smallest batch; None if there is none.
        ledger: The entry that opened the collection, that of the last batch, and the hash of the last entry of the ledger.
    """

    collection: str
    version: int
    fingerprint: str
    holder: str
    title: Texts
    languages: tuple[str, ...]
    access: str
    confidence: float
    closed: bool
    closes: str | None
    reports: int
    waiting: int
    next_count: str | None
    status: str
    epsilon: float | None
    loss: str
    later_reader: Mapping[str, Any] | None
    ledger: Mapping[str, Any]
    questions: tuple[QuestionResult, ...]
    warnings: tuple[str, ...] = ()

    def __getitem__(self, question: str) -> QuestionResult:
        for result in self.questions:
            if result.question == question:
                return result
        names = [result.question for result in self.questions]
        raise Unsupported(f'"{question}" is not a question of this collection.', did_you_mean(question, names))

    def __iter__(self) -> Iterator[QuestionResult]:
        return iter(self.questions)

    def __len__(self) -> int:
        return len(self.questions)

    def checked(self, language: str) -> str:
        """Return a language of the poll, the first one if it is empty; refuse any other."""
        if language and language not in self.languages:
            raise Unsupported(f'The poll has no texts in "{language}".', f"Choose one of: {', '.join(self.languages)}.")
        return language or self.languages[0]

    def rows(self, language: str = "") -> list[Row]:
        """Return one dictionary per option of every question, and one per mean; numbers are None if there are too few answers."""
        chosen = self.checked(language)
        return [row for question in self.questions for row in question.rows(chosen)]

    def _kinds(self) -> dict[str, type]:
        numbers = dict.fromkeys((*NUMBERS, "epsilon"), float)
        return {name: {**numbers, "reports": int}.get(name, str) for name in COLUMNS}

    def to_csv(self, path: str | Path | None = None, *, language: str = "") -> str:
        """Return the rows as CSV that is safe to open in a spreadsheet; also write them to `path`."""
        file = io.StringIO()
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(COLUMNS)
        for row in self.rows(language):
            lines.writerow([_cell(row[name]) for name in COLUMNS])
        if path is not None:
            _write(Path(path), file.getvalue())
        return file.getvalue()

    def privacy_text(self) -> list[str]:
        """Return the local loss, and after it the claim for a later reader."""
        return [self.loss, *([self.later_reader["says"]] if self.later_reader else [])]

    def record_text(self) -> str:
        """Return the ledger entries that the results rest on."""
        counted, head = self.ledger["counted"], self.ledger["head"]
        entry = f"Counted in ledger entry {counted['number']:,} ({counted['hash']}); " if counted else ""
        return f"{entry}{'h' if entry else 'H'}ash of the last entry: {head}."

    def describe(self, language: str = "") -> str:
        """Return the results as text: a table for each question."""
        from tidegate.collect.polls.text import describe

        return describe(self, self.checked(language))

    def __str__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        from tidegate.collect.polls.text import notebook_html

        return notebook_html(self, self.languages[0])

    def plot(self, path: str | Path | None = None, *, language: str = "") -> Chart:
        """Return a chart with a panel for each question; also write it to `path` (.svg or .png)."""
        from tidegate.collect.polls.charts import poll_chart

        return saved_chart(poll_chart(self, self.checked(language)), path)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            **self.__dict__,
            "title": dict(self.title),
            "languages": list(self.languages),
            "later_reader": dict(self.later_reader) if self.later_reader else None,
            "ledger": dict(self.ledger),
            "questions": [question.to_dict() for question in self.questions],
            "warnings": list(self.warnings),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Any = None) -> PollResults:
        """Return what `to_dict` wrote."""
        questions = tuple(QuestionResult.from_dict(question) for question in data["questions"])
        lists = {name: tuple(data[name]) for name in ("languages", "warnings")}
        return cls(**{**{name: data[name] for name in cls.__dataclass_fields__}, **lists, "questions": questions})


def _cell(value: Any) -> Any:
    return round(value, DIGITS) if isinstance(value, float) else safe_cell(value)


def _write(path: Path, text: str) -> None:
    problem = ""
    try:
        path.write_text(text, "utf-8", newline="")
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise TidegateError(f'"{path}" cannot be written: {problem}.', "Choose another file.")
