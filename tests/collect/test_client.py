"""The person's side: what leaves, what stays, what a repeat tells, and that a small device can run it."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy.test_collection import collections

from tidegate.collect._bits import SeededBytes
from tidegate.collect.client import Client
from tidegate.collect.mechanisms import operator_for
from tidegate.collect.report import refusal
from tidegate.errors import PolicyUnreadable, SourceUnreadable, Unsupported
from tidegate.policy import Category, Collection, Integer, Question

AGE, TOWN = Integer(16, 60), Category(("north", "south"), "value")
SHOPPERS = Collection(
    "shoppers",
    {"age": Question("age", AGE, "square-wave", epsilon=2), "town": Question("town", TOWN, "unary", epsilon=1)},
)
TRUE = {"age": 34, "town": "north"}


def client(collection: Collection = SHOPPERS, memory: Any = None, seed: str = "test") -> Client:
    return Client(collection, memory=memory, source=SeededBytes(seed))


def test_a_client_needs_no_arrays_and_no_engine() -> None:
    """In a process of its own: after a whole report none of them was imported."""
    program = (
        "import json, sys; from tidegate.collect.client import Client; client = Client(json.load(sys.stdin));"
        "client.randomize({'age': 34, 'town': 'north'}); client.tell({'age': 30, 'town': None}); client.given();"
        "print([name for name in ('numpy', 'numba', 'scipy', 'pandas', 'ibis', 'duckdb', 'pyarrow', 'sqlalchemy') if name in sys.modules])"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(SHOPPERS.public_dict()),
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == "[]"


def test_a_report_holds_randomized_answers_and_nothing_else() -> None:
    report = client().randomize(TRUE)
    assert set(report) == {"collection", "fingerprint", "version", "answers", "id"}
    assert report["fingerprint"] == SHOPPERS.fingerprint
    operators = {name: operator_for(question) for name, question in SHOPPERS.questions.items()}
    assert refusal(json.loads(json.dumps(report)), SHOPPERS, operators) is None


def test_a_repeat_is_the_same_report_for_ever() -> None:
    memory: dict[str, Any] = {}
    first = client(memory=memory).randomize(TRUE)
    assert all(client(memory=memory, seed=str(again)).randomize(TRUE) == first for again in range(20))


def test_a_changed_value_has_an_answer_of_its_own_and_coming_back_finds_the_old_one() -> None:
    memory: dict[str, Any] = {}
    first = client(memory=memory).randomize(TRUE)
    other = client(memory=memory).randomize({**TRUE, "age": 35})
    assert other["id"] != first["id"]
    assert other["answers"]["town"] == first["answers"]["town"]
    assert client(memory=memory).randomize(TRUE) == first


def test_what_was_given_adds_up_over_values_and_versions() -> None:
    memory: dict[str, Any] = {}
    for age in (34, 35, 34):
        client(memory=memory).randomize({**TRUE, "age": age})
    assert [(given.answered, given.epsilon) for given in client(memory=memory).given()] == [
        (2, pytest.approx(4)),
        (1, pytest.approx(1)),
    ]
    assert client(memory=memory).given_in_all() == pytest.approx(5)
    later = client(replace(SHOPPERS, version=2), memory=memory)
    later.randomize(TRUE)
    assert [given.answered for given in later.given()] == [3, 2]
    assert "together they give away epsilon at most 6" in str(later.given()[0])


def test_an_unlimited_loss_is_said_so() -> None:
    noisy = Collection("noisy", {"age": Question("age", AGE, "uniform-noise", privacy=1)})
    one = client(noisy)
    assert one.given()[0].epsilon == 0
    one.randomize({"age": 20})
    assert math.isinf(one.given()[0].epsilon)
    assert "unlimited" in str(one.given()[0])


def test_once_means_one_report() -> None:
    memory: dict[str, Any] = {}
    once = replace(SHOPPERS, repeats="once")
    first = client(once, memory).randomize(TRUE)
    assert client(once, memory).randomize(TRUE) == first
    with pytest.raises(Unsupported, match="takes one report"):
        client(once, memory).randomize({**TRUE, "age": 35})
    assert client(once, memory).randomize(TRUE) == first


def test_one_report_that_was_interrupted_can_be_finished() -> None:
    once, memory = replace(SHOPPERS, repeats="once"), Failing(fails="/town/")
    with pytest.raises(OSError):  # noqa: PT011
        client(once, memory).randomize(TRUE)
    assert any("/age/" in key for key in memory)
    memory.fails = "nothing"
    assert client(once, memory).randomize(TRUE) == client(once, memory).randomize(TRUE)


def test_two_layers_make_fresh_reports_of_one_remembered_answer() -> None:
    twice = Collection(
        "twice", {"town": Question("town", TOWN, "randomized-response", epsilon=3, each="0.5")}, repeats="two-layers"
    )
    memory: dict[str, Any] = {}
    one = client(twice, memory)
    reports = [one.randomize({"town": "north"}) for _ in range(60)]
    assert len({report["id"] for report in reports}) == 60
    assert len({report["answers"]["town"] for report in reports}) == 3
    assert sum("/answer/" in key for key in memory) == 1
    assert one.given()[0].epsilon == pytest.approx(3)


def test_a_memory_in_a_file_outlives_the_client_and_is_its_owners_only(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    first = client(memory=file).randomize(TRUE)
    assert client(memory=str(file), seed="other").randomize(TRUE) == first
    assert all(os.stat(path).st_mode & 0o077 == 0 for path in tmp_path.iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.json", "answers.json.lock"]


@pytest.mark.parametrize("content", ["", "{", "[]", "\x00"])
def test_a_broken_memory_is_refused_and_never_started_over(tmp_path: Path, content: str) -> None:
    file = tmp_path / "answers.json"
    file.write_text(content)
    with pytest.raises(SourceUnreadable, match="nothing was randomized"):
        client(memory=file)
    assert file.read_text() == content


class Failing(dict[str, Any]):
    """A memory whose disk is full when some answer is to be kept."""

    def __init__(self, fails: str) -> None:
        super().__init__()
        self.fails = fails

    def __setitem__(self, key: str, value: Any) -> None:
        if self.fails in key:
            raise OSError
        super().__setitem__(key, value)


def test_no_report_leaves_before_its_answer_is_remembered() -> None:
    with pytest.raises(OSError):  # noqa: PT011
        client(memory=Failing("/answer/")).randomize(TRUE)


def test_a_description_changed_on_its_way_is_refused() -> None:
    told = json.loads(json.dumps(SHOPPERS.public_dict()))
    told["questions"]["age"]["epsilon"] = 20
    with pytest.raises(PolicyUnreadable, match="changed on its way"):
        Client(told)
    with pytest.raises(Unsupported, match="fingerprint you were given"):
        Client(SHOPPERS.public_dict(), fingerprint="0" * 64)
    assert Client(SHOPPERS.public_dict(), fingerprint=SHOPPERS.fingerprint).collection == SHOPPERS


@settings(max_examples=40)
@given(collections(), st.data())
def test_whatever_is_asked_is_answered_and_accepted(both: tuple[Any, Collection], data: st.DataObject) -> None:
    """Any universe, operator and parameter, any true value: a report that its own collection takes."""
    collection = replace(both[1], closed=False)
    answers = {
        name: data.draw(
            st.sampled_from(question.universe.values)
            if isinstance(question.universe, Category)
            else st.fractions(question.universe.low - 5, question.universe.high + 5)
        )
        for name, question in collection.questions.items()
    }
    one = client(collection)
    assert refusal(one.randomize(answers), collection, one.operators) is None
    assert len(one.tell(answers)) == len(collection.questions)


SECRET = "1234567"
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a number left empty": ({**TRUE, "age": None}, "needs a number; it was left empty"),
    "not a number": ({**TRUE, "age": float("nan")}, "left empty"),
    "a word": ({**TRUE, "age": SECRET + "x"}, "needs a number"),
    "true": ({**TRUE, "age": True}, "needs a number"),
    "a question left out": ({"age": 34}, "not answered: town"),
    "a question not asked": ({**TRUE, "tow": 1}, "not asked here"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_answered_is_said_without_the_value(case: str) -> None:
    answers, says = WRONG[case]
    memory: dict[str, Any] = {}
    with pytest.raises(Unsupported, match=says) as told:
        client(memory=memory).randomize(answers)
    assert SECRET not in str(told.value)
    assert memory == {}


def test_a_category_outside_the_list_is_missing_or_refused() -> None:
    strict = Collection("s", {"town": Question("town", Category(("north", "south")), "unary", epsilon=1)})
    with pytest.raises(Unsupported, match="one of its 2 listed values") as told:
        client(strict).randomize({"town": SECRET})
    assert SECRET not in str(told.value)
    assert client().collection.questions["town"].size == 3


CODES = {
    "the lowest": (Integer(16, 60), 16, 0),
    "below the bounds": (Integer(16, 60), -5, 0),
    "above the bounds": (Integer(16, 60), 1000, 44),
    "between two, halves up": (Integer(16, 60), 20.5, 5),
    "as text": (Integer(16, 60), "20", 4),
    "in bins: a start": (Integer(16, 60, (18, 30)), 18, 1),
    "in bins: before a start": (Integer(16, 60, (18, 30)), 17, 0),
    "in bins: the last": (Integer(16, 60, (18, 30)), 60, 2),
    "missing as the lowest": (Integer(16, 60, (), "lowest"), None, 0),
    "a category": (Category(("a", "b")), "b", 1),
    "true is not one": (Category((1, 0), "value"), True, 2),
}


@pytest.mark.parametrize("case", CODES)
def test_a_value_has_its_place_in_the_public_universe(case: str) -> None:
    from tidegate.collect.coding import code_of

    universe, given, code = CODES[case]
    assert code_of(Question("it", universe, "randomized-response", epsilon=1), given) == code


def test_what_is_sent_is_read_aloud_before_it_is_sent() -> None:
    memory: dict[str, Any] = {}
    told = client(memory=memory).tell({"age": 34, "town": "north"})
    sent = client(memory=memory).randomize({"age": 34, "town": "north"})["answers"]
    half = operator_for(SHOPPERS.questions["age"]).half
    assert told[0].startswith(f"age: We will send {sent['age'] - half + 16}. ")
    assert 'conclude that your "age" is between' in told[0]
    assert 'your "town" is' in told[1]


def test_the_sentence_names_the_narrowest_range_of_95_percent() -> None:
    from tidegate.collect.aloud import read_aloud

    question = Question("age", Integer(0, 100), "uniform-noise", half_width=10)
    operator = operator_for(question)
    assert read_aloud(question, operator, 50 + 10).endswith('"age" is between 40 and 59 with 95% certainty.')
    assert read_aloud(question, operator, 0) == (
        'We will send -10. From it the holder can conclude that your "age" is 0 with 95% certainty.'
    )


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another collection": ({"collection": "x"}, "another collection"),
    "another version": ({"version": 2}, "version 1"),
    "true as a version": ({"version": True}, "version 1"),
    "another fingerprint": ({"fingerprint": "0" * 64}, "other questions"),
    "an id that is none": ({"id": "abc"}, "32 hexadecimal digits"),
    "an answer outside": ({"answers": {"age": 10**6, "town": []}}, 'answer to "age" is outside'),
    "a set with a stranger": ({"answers": {"age": 0, "town": [0, 7]}}, 'answer to "town" is outside'),
    "an answer missing": ({"answers": {"age": 0}}, "must answer age, town"),
    "one key more": ({"name": "me"}, "and nothing else"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_report_is_refused_with_its_reason(case: str) -> None:
    change, says = REFUSED[case]
    operators = {name: operator_for(question) for name, question in SHOPPERS.questions.items()}
    told = refusal({**client().randomize(TRUE), **change}, SHOPPERS, operators)
    assert told is not None
    assert says in told


def test_a_closed_collection_takes_no_report() -> None:
    closed = replace(SHOPPERS, closed=True)
    operators = {name: operator_for(question) for name, question in SHOPPERS.questions.items()}
    assert closed.fingerprint == SHOPPERS.fingerprint
    assert refusal(client().randomize(TRUE), closed, operators) == 'the collection "shoppers" is closed'
    assert refusal([], SHOPPERS, operators) is not None
