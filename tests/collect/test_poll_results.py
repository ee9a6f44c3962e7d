"""Results of polls: tables, differences, too few answers, false reports, CSV and JSON, from counted batches only."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collect.simulated_survey import SimulatedSurvey, draw, poll_of
from collect.surveys import open_survey

from tidegate.collect.client import Client
from tidegate.collect.comparison import LEAST_REPORTS
from tidegate.collect.encoding import code_of
from tidegate.collect.polls.estimates import ANYONE, estimate_question
from tidegate.collect.polls.results import COLUMNS, PollResults
from tidegate.collect.shares import decisive_reports, estimate_shares
from tidegate.collect.survey import Survey
from tidegate.errors import TidegateError, Unsupported
from tidegate.operators.exact_draws import SeededBytes
from tidegate.policy import Category, Collection, Integer, Items, Question, Text
from tidegate.policy.batches import AT_CLOSE
from tidegate.policy.collection import operator_for
from tidegate.policy.poll import Poll, Wording

DISHES = ("Curry", "Pasta", "=cmd()", "Tofu")
LABELS = {"never": {"en": "Never", "de": "Nie"}, "weekly": {"en": "Weekly", "de": "Jede Woche"}}
POLL = Poll(
    ("en", "de"),
    {"en": "Canteen", "de": "Kantine"},
    {"en": "Plan", "de": "Plan"},
    {
        "often": Wording({"en": "How often?", "de": "Wie oft?"}, LABELS),
        "dishes": Wording({"en": "Which?", "de": "Welche?"}, {dish: {"en": dish, "de": dish} for dish in DISHES}),
        "age": Wording({"en": "How old?", "de": "Wie alt?"}),
        "pay": Wording({"en": "How much?", "de": "Wie viel?"}),
    },
    "open",
    datetime(2100, 1, 1, tzinfo=UTC),  # part of the fingerprint, on which the draws depend
    accept_error=True,
)
CANTEEN = Collection(
    "canteen",
    {
        "often": Question("often", Category(("never", "weekly")), "randomized-response", random="1/3"),
        "dishes": Question("dishes", Items(DISHES), "privset", epsilon=2, choose=2),
        "age": Question("age", Integer(18, 60), "square-wave", epsilon=3),
        "pay": Question("pay", Integer(0, 100), "hybrid", epsilon=3),
    },
    repeats="once",
    holder="Works council",
    batch=AT_CLOSE,
    poll=POLL,
)


def reports(survey: Survey, count: int) -> list[dict[str, Any]]:
    answers = [
        {
            "often": "never" if n % 4 else "weekly",
            "dishes": ["Curry", "=cmd()"] if n % 2 else ["Pasta"],
            "age": 20 + n % 30,
            "pay": 40,
        }
        for n in range(count)
    ]
    source = SeededBytes("answers")  # a fixture of the module draws before the randomness of a test is fixed
    return [Client(survey.collection, memory={}, source=source).randomize(answer) for answer in answers]


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Survey, PollResults]]:
    folder = tmp_path_factory.mktemp("poll")
    session, survey = open_survey(str(folder / "poll.ledger"), folder / "reports", CANTEEN)
    with session:
        survey.receive(reports(survey, 400))
        survey.close()
        yield survey, survey.results()


def test_results_show_every_question_with_its_wording(closed: tuple[Survey, PollResults]) -> None:
    survey, results = closed
    assert [(of.question, of.kind, of.reports) for of in results] == [
        ("often", "choice", 400),
        ("dishes", "choices", 400),
        ("age", "number", 400),
        ("pay", "mean", 400),
    ]
    assert results["often"].wording("de") == "Wie oft?"
    assert results["often"].label("weekly", "de") == "Jede Woche"
    assert results["dishes"].reports == survey.asked("dishes")
    assert (results.title, results.access, results.closed) == ({"en": "Canteen", "de": "Kantine"}, "open", True)
    with pytest.raises(Unsupported, match="not a question"):
        results["oftn"]


def test_every_interval_contains_its_share_and_the_raw_estimate_is_unclipped(
    closed: tuple[Survey, PollResults],
) -> None:
    survey, results = closed
    for result in results:
        for option in result.options:
            low, share, high = float(option.low or 0), float(option.share or 0), float(option.high or 0)
            assert 0 <= low <= share <= high <= 1
    table = survey.shares("dishes")
    assert [option.raw for option in results["dishes"].options] == table.raw.tolist()
    assert table.low_poisoned is not None
    assert [option.low_poisoned for option in results["dishes"].options] == table.low_poisoned.tolist()
    mean = results["pay"].mean
    assert mean is not None
    assert float(mean.low) < 40 < float(mean.high)
    assert float(mean.low_poisoned or 0) < float(mean.estimate) < float(mean.high_poisoned or 0)
    assert results["age"].mean is not None
    assert results["age"].mean.low_poisoned is not None


def test_losses_are_local_first_and_the_record_is_named(closed: tuple[Survey, PollResults]) -> None:
    survey, results = closed
    text = results.describe()
    assert results.epsilon == pytest.approx(float(survey.respondent_loss.each_report or 0))
    assert results["often"].epsilon == pytest.approx(1.6095, abs=1e-4)  # g = 1 + 2 (1 - b) / b = 5, rounded up
    assert results.later_reader is not None
    assert text.index("One person loses") < text.index("A later reader")
    opened, counted, head = survey.entries()
    assert counted is not None
    assert results.ledger == {
        "opened": {"number": opened.number, "hash": opened.hash},
        "counted": {"number": counted.number, "hash": counted.hash},
        "head": head,
    }
    assert counted.hash in text
    assert head in text
    assert results.warnings == (ANYONE,)
    assert "any number of times" in text


def test_json_has_everything_and_reads_back(closed: tuple[Survey, PollResults]) -> None:
    _, results = closed
    again = PollResults.from_dict(json.loads(json.dumps(results.to_dict())))
    assert again.to_dict() == results.to_dict()
    assert (str(again), again._repr_html_(), again.to_csv()) == (str(results), results._repr_html_(), results.to_csv())
    assert again.to_arrow().equals(results.to_arrow())
    assert again.plot().to_dict() == results.plot().to_dict()


def test_csv_has_the_stated_columns_and_no_formula(closed: tuple[Survey, PollResults], tmp_path: Path) -> None:
    _, results = closed
    text = results.to_csv(tmp_path / "results.csv", language="de")
    assert (tmp_path / "results.csv").read_text("utf-8") == text
    lines = list(csv.DictReader(io.StringIO(text)))
    assert list(lines[0]) == list(COLUMNS)
    assert text.splitlines()[0] == "question,option,label,share,low,high,low_poisoned,high_poisoned,reports,epsilon"
    assert [line["label"] for line in lines[:2]] == ["Nie", "Jede Woche"]
    dishes = [line for line in lines if line["question"] == "dishes"]
    assert [line["option"] for line in dishes] == ["Curry", "Pasta", "'=cmd()", "Tofu"]
    assert all(not cell.startswith(("=", "+", "@")) for line in lines for cell in line.values())
    assert [line["option"] for line in lines if line["question"] == "pay"] == ["mean"]
    assert float(dishes[0]["share"]) == pytest.approx(results["dishes"].options[0].share, abs=1e-6)
    with pytest.raises(Unsupported, match='"fr"'):
        results.to_csv(language="fr")
    with pytest.raises(TidegateError, match="cannot be written"):
        results.to_csv(tmp_path / "missing" / "results.csv")


def test_charts_keep_the_order_of_the_options(closed: tuple[Survey, PollResults], tmp_path: Path) -> None:
    _, results = closed
    chart = results["often"].plot(tmp_path / "often.svg", language="de")
    assert chart.horizontal
    assert chart.x.categories == ("Nie", "Jede Woche")
    assert "Wie oft?" in (tmp_path / "often.svg").read_text("utf-8")
    assert len(results.plot().panels) == 4


def test_results_come_from_counted_batches_only(tmp_path: Path) -> None:
    """Reports that wait change nothing but their rounded number, and the status states when they are counted."""
    session, survey = open_survey(str(tmp_path / "poll.ledger"), tmp_path / "reports", CANTEEN)
    with session:
        before = survey.results()
        assert before.status.startswith("Open: no report was counted yet; the next count is at the close, on ")
        assert before.next_count == before.closes
        survey.receive(reports(survey, 40))
        waiting = survey.results()
        assert replace(waiting, ledger=before.ledger) == before
        assert all(result.too_few for result in waiting)
        survey.close()
        counted = survey.results()
        assert (counted.reports, counted.next_count) == (40, None)
        assert counted.status == "Closed: 40 reports were counted."


def test_schedule_of_batches_is_stated(tmp_path: Path) -> None:
    collection = Collection("shop", {"a": Question("a", Category(("x", "y")), "randomized-response", epsilon=1)})
    session, survey = open_survey(str(tmp_path / "shop.ledger"), tmp_path / "reports", collection)
    with session:
        assert survey.results().status.endswith("00:00 UTC if at least 100 wait.")
        assert survey.results().closes is None
        assert survey.state()["next_count"] == survey.results().next_count


@pytest.mark.parametrize("count", [0, 1, LEAST_REPORTS - 1])
def test_too_few_answers_show_no_number(count: int) -> None:
    collection = poll_of(question=(3, "randomized-response", {"epsilon": 3}))
    result = estimate_question(SimulatedSurvey(collection, {"question": {0: count}}), "question")
    assert result.too_few == f"Too few answers to say: {count} of at least {LEAST_REPORTS}."
    assert [option.option for option in result.options] == ["o0", "o1", "o2"]
    for row in result.rows():
        assert [row[name] for name in COLUMNS[3:8]] == [None] * 5
    assert not result.differences
    assert result.false_reports is None
    assert result.plot().empty == "Too few answers to say"


@pytest.mark.parametrize(
    "case",
    [
        (3, "randomized-response", {"epsilon": Fraction(1, 10)}),
        (4, "privset", {"epsilon": Fraction(1, 10), "choose": 2}),
        (3, "one-option", {"epsilon": Fraction(1, 10)}),
        (101, "hybrid", {"epsilon": Fraction(1, 20)}),
    ],
    ids=lambda case: case[1],
)
def test_wide_intervals_show_no_number(case: Any) -> None:
    collection = poll_of(question=case)
    operator = operator_for(collection.questions["question"])
    truth = {(0,): 1.0} if operator.of_sets else {0: 1.0}
    sent = draw(operator, truth, 100, np.random.default_rng(1))
    result = estimate_question(SimulatedSurvey(collection, {"question": sent}), "question")
    assert "more than 60" in result.too_few
    assert result.mean is None
    assert not any(option.share is not None for option in result.options)


def test_options_are_ranked_only_by_clear_differences() -> None:
    collection = poll_of(question=(3, "randomized-response", {"epsilon": 3}))
    level = estimate_question(SimulatedSurvey(collection, {"question": {0: 101, 1: 99, 2: 100}}), "question")
    assert not level.clear
    assert level.order_text() == ["No two options differ by more than the noise (95%, all pairs together)."]
    apart = estimate_question(SimulatedSurvey(collection, {"question": {0: 200, 1: 90, 2: 95}}), "question")
    assert {(difference.first, difference.second) for difference in apart.clear} == {("o0", "o1"), ("o0", "o2")}
    assert "o1 is more" not in "\n".join(apart.order_text())


@pytest.mark.parametrize("name", ["privset", "one-option"])
def test_decisive_number_of_false_reports_is_the_smallest(name: str) -> None:
    """Without that many of the most harmful reports the first option is not ahead; without one fewer it still is."""
    parameters = {"epsilon": 2, "choose": 2} if name == "privset" else {"epsilon": 2}
    collection = poll_of(question=(3, name, parameters))
    operator = operator_for(collection.questions["question"])
    single = [tuple(report) for report in operator.reports()] if name == "privset" else []  # type: ignore[arg-type]
    sent: dict[Any, int] = {0: 30, 1: 80, 2: 40, 3: 62, 4: 70, 5: 20}
    if name == "privset":
        sent = {report: 90 if 0 in report and 1 not in report else 60 for report in single}
    survey = SimulatedSurvey(collection, {"question": sent})
    table = estimate_shares(survey, "question")
    decisive = decisive_reports(survey, table, 0, 1)
    assert 0 < decisive < 60

    def is_ahead(without: int) -> bool:
        best = []
        helpful = [
            report
            for report in sent
            if (report == 1 or report == 2 if name == "one-option" else 0 in report and 1 not in report)
        ]
        for first in range(without + 1):
            numbers = {**sent}
            for report, removed in zip(helpful[:2], (first, without - first), strict=False):
                numbers[report] -= removed
            if min(numbers.values()) < 0:
                continue
            raw = estimate_shares(SimulatedSurvey(collection, {"question": numbers}), "question").raw
            best.append(raw[0] > raw[1] + 1e-12)
        return all(best)

    assert is_ahead(decisive - 1)
    assert not is_ahead(decisive)


def test_long_list_shows_only_options_far_above_zero() -> None:
    """1,000 options, of which two are frequent; the chance of any false one is 5% by itself, and the stream is fixed."""
    collection = poll_of(question=(1_000, "projective-geometry", {"epsilon": 4}))
    operator = operator_for(collection.questions["question"])
    rest = {value: 0.4 / 998 for value in range(1_000) if value not in (7, 500)}
    sent = draw(operator, {7: 0.4, 500: 0.2, **rest}, 5_000, np.random.default_rng(2))
    result = estimate_question(SimulatedSurvey(collection, {"question": sent}), "question")
    assert [option.option for option in result.options] == ["o7", "o500"]
    for option, share in zip(result.options, (0.4, 0.2), strict=True):
        assert float(option.low or 0) < share < float(option.high or 0)
        assert float(option.high or 0) - float(option.low or 0) > 2 * 1.96 * float(option.error or 0), (
            "wider by selection"
        )
    assert "of 1,000 options" in result.sure
    assert not result.differences


def test_frequent_texts_are_listed_in_alphabetical_order(tmp_path: Path) -> None:
    """3,000 people, 60% curry and 40% bread: shares of 4 or more standard errors are found; the stream is fixed."""
    dish = Question("dish", Text(), "prefix", epsilon=6)
    session, survey = open_survey(str(tmp_path / "l.ledger"), tmp_path / "reports", Collection("food", {"dish": dish}))
    with session:
        first = survey.client(memory={}).randomize({"dish": "curry"})
        operator, source = survey.operators["dish"], SeededBytes("texts")
        words = [code_of(dish, "curry" if n % 5 < 3 else "bread") for n in range(3_000)]
        answers = [{"dish": operator.sample(word, source)} for word in words]
        survey.submit([{**first, "answers": answer, "id": f"{n:032x}"} for n, answer in enumerate(answers)])
        result = survey.results()["dish"]
    assert (result.kind, [option.option for option in result.options]) == ("strings", ["bread", "curry"])
    assert "stay invisible" in result.sure
    assert result.options[1].low_poisoned is not None
    assert len(result.plot().marks) == 3
