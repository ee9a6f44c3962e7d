"""A survey whose counts are drawn from the exact channel of its operators: hundreds of polls in a second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tidegate.collect.survey import Survey
from tidegate.ledger.counts import Counted
from tidegate.operators import ChoiceOperator, Operator
from tidegate.policy import Category, Collection, Integer, Items, Question
from tidegate.policy.collection import operator_for
from tidegate.tables.segments import Column

Reports = Sequence[Any]  # all possible reports of an operator


class SimulatedSurvey(Survey):
    """The estimates of a survey, from the number of people who sent each possible report of each question."""

    def __init__(self, collection: Collection, sent: Mapping[str, Mapping[Any, int]]) -> None:
        self.collection = collection
        self.operators = {name: operator_for(question) for name, question in collection.questions.items()}
        self.sent = dict(sent)

    @property
    def reports(self) -> int:
        return max(sum(numbers.values()) for numbers in self.sent.values())

    def _counted(self, name: str) -> Counted:
        counts = np.zeros(self.operators[name].report_size, np.int64)
        for report, number in self.sent[name].items():
            counts[list(report) if isinstance(report, tuple) else report] += number
        return Counted(sum(self.sent[name].values()), counts)

    def batches(self, *questions: str) -> Iterator[dict[str, Any]]:
        [name] = questions
        width = Column("set", self.operators[name].report_size).width
        bits = np.zeros((len(self.sent[name]), 8 * width), np.uint8)
        for row, report in enumerate(self.sent[name]):
            bits[row, list(report)] = 1
        yield {name: np.repeat(np.packbits(bits, axis=1, bitorder="little"), list(self.sent[name].values()), axis=0)}


def poll_of(**operators: Operator | tuple[int, str, dict[str, Any]]) -> Collection:
    """Return a collection with a question for each (size, operator, parameters)."""
    questions = {}
    for name, (size, operator, parameters) in operators.items():  # type: ignore[misc]
        letters = tuple(f"o{number}" for number in range(size))
        numbers = operator in ("square-wave", "hybrid", "laplace-noise")
        sets = operator in ("privset", "one-option", "mask")
        universe = Integer(0, size - 1) if numbers else Items(letters) if sets else Category(letters)
        questions[name] = Question(name, universe, operator, **parameters)
    return Collection("poll", questions)


def draw(operator: Operator, truth: Mapping[Any, float], people: int, rng: np.random.Generator) -> dict[Any, int]:
    """Return how many of `people` sent each report. `truth` has the share of each value, or of each set of options."""
    reports, channel = _channel(operator, tuple(truth))
    holders = rng.multinomial(people, list(truth.values()))
    counts = sum(rng.multinomial(number, column) for number, column in zip(holders, channel, strict=True))
    return {report: int(number) for report, number in zip(reports, counts, strict=True) if number}


def _channel(operator: Operator, values: tuple[Any, ...]) -> tuple[list[Any], np.ndarray]:
    """Return all reports, and the probability of each under each value (values, reports)."""
    known = CHANNELS.get((id(operator), values))
    if known is None:
        reports = [tuple(report) if isinstance(report, list) else report for report in operator.reports()]
        if isinstance(operator, ChoiceOperator):
            each = [[float(operator.probability_of(_plain(report), value)) for report in reports] for value in values]
        elif operator.form == "code":
            each = [operator.column(value).tolist() for value in values]
        else:
            each = [[float(operator.probability(_plain(report), value)) for report in reports] for value in values]
        chances = np.array(each)
        known = CHANNELS[id(operator), values] = reports, chances / chances.sum(axis=1, keepdims=True)
        KEPT_ALIVE.append(operator)
    return known


def _plain(report: Any) -> Any:
    return list(report) if isinstance(report, tuple) else report


CHANNELS: dict[Any, tuple[list[Any], np.ndarray]] = {}
KEPT_ALIVE: list[Operator] = []  # so that ids stay unique
