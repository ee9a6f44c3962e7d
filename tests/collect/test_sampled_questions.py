"""Questions that each person's device draws: once, before an answer, and counted for those who were asked."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collect.surveys import open_survey

from tidegate.collect.client import Client
from tidegate.errors import Unsupported
from tidegate.operators.exact_draws import SeededBytes
from tidegate.policy import Category, Collection, Integer, Items, Question

TOWN, DISH = Category(("north", "south", "east")), Items(("curry", "pasta", "sushi", "pizza"))
CANTEEN = Collection(
    "canteen",
    {
        "town": Question("town", TOWN, "randomized-response", random="1/3"),
        "dish": Question("dish", DISH, "privset", epsilon=2, choose=2),
        "again": Question("again", TOWN, "subset", epsilon=2),
        "age": Question("age", Integer(16, 60), "square-wave", epsilon=2),
    },
    holder="Works council",
    ask=2,
)
ANSWERS: dict[str, Any] = {"town": "east", "dish": ["curry", "pizza"], "again": "north", "age": 34}


def everyone(count: int, collection: Collection = CANTEEN) -> list[dict[str, Any]]:
    chance = random.Random(7)
    people = []
    for number in range(count):
        client = Client(collection, source=SeededBytes(f"person {number}"))
        town = chance.choice(["north", "south", "south", "east"])
        answers = {**ANSWERS, "town": town, "again": town, "dish": [] if town == "north" else ["curry"]}
        people.append(client.randomize(answers))
    return people


# The device


def test_they_are_drawn_once_and_every_pair_is_equally_likely() -> None:
    drawn = Counter(Client(CANTEEN, source=SeededBytes(f"draw {number}")).asked for number in range(3_000))
    expected = 3_000 / 6
    assert len(drawn) == 6
    distance = sum((count - expected) ** 2 / expected for count in drawn.values())
    assert distance < 20.5, "chi-square with 5 degrees of freedom: 1 in 1,000 false alarms over seeds"
    memory: dict[str, Any] = {}
    first = Client(CANTEEN, memory=memory).asked
    assert all(Client(CANTEEN, memory=memory).asked == first for _ in range(30))


def test_versions_wording_and_order_do_not_draw_again_and_forgetting_does_not() -> None:
    memory: dict[str, Any] = {}
    client = Client(CANTEEN, memory=memory)
    first = set(client.asked)
    client.randomize(ANSWERS)
    client.forget()
    for version in range(2, 32):
        turned = dict(random.Random(version).sample(list(CANTEEN.questions.items()), 4))
        assert set(Client(replace(CANTEEN, version=version, questions=turned), memory=memory).asked) == first


def test_they_are_stored_before_an_answer_exists() -> None:
    memory: dict[str, Any] = {}
    drawn = Client(CANTEEN, memory=memory).asked
    [(key, stored)] = memory.items()
    assert key.startswith("chosen/")
    assert len(stored) == len(drawn) == 2


def test_a_report_has_answers_to_these_alone() -> None:
    client = Client(CANTEEN)
    report = client.randomize(ANSWERS)
    assert set(report["answers"]) == set(client.asked)
    assert [line.partition(":")[0] for line in client.tell(ANSWERS)] == list(client.asked)
    with pytest.raises(Unsupported, match="Questions without an answer"):
        client.randomize({client.asked[0]: ANSWERS[client.asked[0]]})


def test_together_means_both_or_neither() -> None:
    pair = replace(CANTEEN, together=(("town", "again"),), ask=1)
    drawn = {Client(pair, source=SeededBytes(f"unit {number}")).asked for number in range(100)}
    assert drawn == {("town", "again"), ("dish",), ("age",)}


def test_the_lifetime_covers_the_most_expensive_questions_of_one_person() -> None:
    client = Client(CANTEEN)
    account = client.account()
    assert account.lifetime is not None
    assert account.lifetime == 2 * 4, "twice the two largest of 1.95, 2, 2 and 2"
    client.randomize(ANSWERS)
    spent = client.account().spent
    assert spent == sum(CANTEEN.questions[name].loss or 0 for name in client.asked)


# The server


@pytest.fixture
def survey(tmp_path: Path) -> Any:
    session, opened = open_survey(f"sqlite:///{tmp_path / 'l.db'}", tmp_path / "reports", CANTEEN)
    yield opened
    session.close()


def test_every_question_counts_those_who_were_asked(survey: Any) -> None:
    reports = everyone(400)
    assert survey.submit(reports[:250]).accepted == 250
    assert survey.submit(reports[250:]).accepted == 150
    for name in CANTEEN.questions:
        answers = [report["answers"][name] for report in reports if name in report["answers"]]
        assert survey.asked(name) == len(answers)
        codes = Counter(code for answer in answers for code in (answer if isinstance(answer, list) else [answer]))
        assert survey.counts(name).tolist() == [codes[code] for code in range(survey.operators[name].report_size)]
        assert np.array_equal(survey.recount()[name], survey.counts(name))
    assert survey.reports == 400
    assert sum(map(survey.asked, CANTEEN.questions)) == 2 * 400
    assert survey.verify() == []
    assert survey._ledger.verify().holds


def test_joint_reports_are_those_of_people_who_were_asked_both(survey: Any) -> None:
    reports = everyone(400)
    survey.submit(reports)
    both = [report["answers"] for report in reports if {"town", "dish"} <= report["answers"].keys()]
    codes = survey.codes("town", "dish")
    sets = np.unpackbits(codes["dish"], axis=1, bitorder="little")
    pairs = sorted((int(code), np.flatnonzero(row).tolist()) for code, row in zip(codes["town"], sets, strict=True))
    assert pairs == sorted((answer["town"], answer["dish"]) for answer in both)


@pytest.mark.parametrize(
    "names", [(), ("town",), ("town", "dish", "age"), ("town", "dish", "again", "age"), ("town", "nobody")]
)
def test_other_sets_of_questions_are_refused(survey: Any, names: tuple[str, ...]) -> None:
    report = everyone(1)[0]
    answers = {name: Client(replace(CANTEEN, ask=None)).randomize(ANSWERS)["answers"].get(name, 0) for name in names}
    result = survey.submit([{**report, "answers": answers}, everyone(2)[1]])
    assert result.accepted == 1
    assert result.reasons[0] == "malformed: it must answer 2 of town, dish, again, age"


def test_waiting_reports_are_counted_the_same_way(survey: Any) -> None:
    reports = everyone(120)
    assert survey.receive(reports).accepted == 120
    survey.close()
    assert sum(map(survey.asked, CANTEEN.questions)) == 2 * 120
    assert survey.verify() == []


def test_estimates_are_those_of_the_people_who_were_asked(survey: Any) -> None:
    survey.submit(everyone(3_000))
    truth = {"north": 0.25, "south": 0.5, "east": 0.25}
    for name in ("town", "again"):
        result = survey.distribution(name)
        errors = np.abs(result.masses - list(truth.values())) / 0.025
        assert errors.max() < 4.5, "standard error 2.3 points; false alarms below 1 in 10,000 over seeds"
    table = survey.shares("dish")
    assert abs(table.raw[0] - 0.75) < 4.5 * table.errors[0]
    assert table.reports == survey.asked("dish")
