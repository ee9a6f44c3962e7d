"""The client: what it sends and stores, what repeated reports reveal, and that it runs on a small device."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy.test_collection import collections

from tidegate.collect.client import Client
from tidegate.collect.encoding import code_of
from tidegate.collect.memory import question_key
from tidegate.collect.request import identity_of, refusal
from tidegate.errors import PolicyUnreadable, SourceUnreadable, Unsupported
from tidegate.operators.exact_draws import SeededBytes
from tidegate.policy import Category, Collection, Date, Integer, Question, Text, Timestamp
from tidegate.policy.collection import operator_for

AGE, TOWN = Integer(16, 60), Category(("north", "south"), "value")
SHOPPERS = Collection(
    "shoppers",
    {"age": Question("age", AGE, "square-wave", epsilon=2), "town": Question("town", TOWN, "unary", epsilon=1)},
)
TRUE = {"age": 34, "town": "north"}


def client(collection: Collection = SHOPPERS, memory: Any = None, seed: str = "test") -> Client:
    return Client(collection, memory=memory, source=SeededBytes(seed))


def test_client_imports_neither_numpy_nor_an_engine() -> None:
    """In a process of its own: after a whole report none of them was imported."""
    program = (
        "import json, sys; from tidegate.collect.client import Client; client = Client(json.load(sys.stdin));"
        "client.randomize({'age': 34, 'town': 'north'}); client.tell({'age': 30, 'town': None}); client.given();"
        "print([name for name in ('numpy', 'numba', 'scipy', 'pandas', 'ibis', 'duckdb', 'pyarrow', 'sqlalchemy') if name in sys.modules])"
    )
    process = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(SHOPPERS.public_dict()),
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.strip() == "[]"


def test_report_contains_randomized_answers_and_nothing_else() -> None:
    report = client().randomize(TRUE)
    assert set(report) == {"collection", "fingerprint", "version", "answers", "id"}
    assert report["fingerprint"] == SHOPPERS.fingerprint
    operators = {name: operator_for(question) for name, question in SHOPPERS.questions.items()}
    assert refusal(json.loads(json.dumps(report)), SHOPPERS, operators) is None


def test_repeated_answer_gives_the_same_report() -> None:
    memory: dict[str, Any] = {}
    first = client(memory=memory).randomize(TRUE)
    assert all(client(memory=memory, seed=str(again)).randomize(TRUE) == first for again in range(20))


def test_changed_value_has_its_own_answer_and_the_old_value_keeps_the_old_one() -> None:
    memory: dict[str, Any] = {}
    first = client(memory=memory).randomize(TRUE)
    other = client(memory=memory).randomize({**TRUE, "age": 35})
    assert other["id"] != first["id"]
    assert other["answers"]["town"] == first["answers"]["town"]
    assert client(memory=memory).randomize(TRUE) == first


def test_losses_add_up_over_values_and_versions() -> None:
    memory: dict[str, Any] = {}
    for age in (34, 35, 34):
        client(memory=memory).randomize({**TRUE, "age": age})
    assert [(loss.answered, loss.epsilon) for loss in client(memory=memory).given()] == [
        (2, pytest.approx(4)),
        (1, pytest.approx(1)),
    ]
    assert client(memory=memory).given_in_all() == pytest.approx(5)
    later = client(replace(SHOPPERS, version=2), memory=memory)
    later.randomize(TRUE)
    assert [loss.answered for loss in later.given()] == [2, 1], "the same question in another version gives nothing new"
    assert "together they reveal epsilon at most 4" in str(later.given()[0])
    assert str(later.account()) == "Your answers to shoppers have used 5.0 of 6.0."


def test_unlimited_loss_is_stated() -> None:
    noisy = Collection("noisy", {"age": Question("age", AGE, "uniform-noise", privacy=1)})
    respondent = client(noisy)
    assert respondent.given()[0].epsilon == 0
    respondent.randomize({"age": 20})
    assert math.isinf(respondent.given()[0].epsilon)
    assert "unlimited" in str(respondent.given()[0])


def test_once_allows_one_report() -> None:
    memory: dict[str, Any] = {}
    once = replace(SHOPPERS, repeats="once")
    first = client(once, memory).randomize(TRUE)
    assert client(once, memory).randomize(TRUE) == first
    with pytest.raises(Unsupported, match="accepts one report"):
        client(once, memory).randomize({**TRUE, "age": 35})
    assert client(once, memory).randomize(TRUE) == first


def test_interrupted_single_report_can_be_finished() -> None:
    once = replace(SHOPPERS, repeats="once")
    memory = Failing(fails=f"answer/{question_key('', SHOPPERS.questions['town'])}")
    with pytest.raises(OSError):  # noqa: PT011
        client(once, memory).randomize(TRUE)
    assert any(key.startswith(f"answer/{question_key('', SHOPPERS.questions['age'])}") for key in memory)
    memory.fails = "nothing"
    assert client(once, memory).randomize(TRUE) == client(once, memory).randomize(TRUE)


def test_two_layers_draw_fresh_reports_of_one_stored_answer() -> None:
    twice = Collection(
        "twice", {"town": Question("town", TOWN, "randomized-response", epsilon=3, each="0.5")}, repeats="two-layers"
    )
    memory: dict[str, Any] = {}
    respondent = client(twice, memory)
    reports = [respondent.randomize({"town": "north"}) for _ in range(60)]
    assert len({report["id"] for report in reports}) == 60
    assert len({report["answers"]["town"] for report in reports}) == 3
    assert sum(key.startswith("answer/") for key in memory) == 1
    assert not any("/draft/" in key for key in memory)
    assert respondent.given()[0].epsilon == pytest.approx(3)


def test_memory_file_outlives_the_client_and_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    first = client(memory=file).randomize(TRUE)
    assert client(memory=str(file), seed="other").randomize(TRUE) == first
    assert all(os.stat(path).st_mode & 0o077 == 0 for path in tmp_path.iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.json", "answers.json.lock"]


@pytest.mark.parametrize("content", ["", "{", "[]", "\x00"])
def test_damaged_memory_is_refused_and_never_replaced(tmp_path: Path, content: str) -> None:
    file = tmp_path / "answers.json"
    file.write_text(content)
    with pytest.raises(SourceUnreadable, match="Nothing was randomized"):
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

    def update(self, *changes: Any, **more: Any) -> None:
        for key, value in dict(*changes, **more).items():
            self[key] = value


def test_no_report_leaves_before_its_answer_is_remembered() -> None:
    with pytest.raises(OSError):  # noqa: PT011
        client(memory=Failing("answer/")).randomize(TRUE)


def test_no_report_leaves_before_it_is_charged() -> None:
    with pytest.raises(OSError):  # noqa: PT011
        client(memory=Failing("holder/")).randomize(TRUE)


# Memory by question, and the lifetime

DVD = Question("dvd", Category(("no", "yes")), "randomized-response", epsilon=1)
ASKED = Collection("asked", {"dvd": DVD})


def test_thirty_versions_of_one_question_give_one_answer() -> None:
    """Else a majority of 30 independent draws at epsilon 1 names the true value in 996 of 1,000 cases."""
    memory: dict[str, Any] = {}
    versions = [replace(ASKED, version=number) for number in range(1, 31)]
    reports = [client(version, memory, seed=version.fingerprint).randomize({"dvd": "yes"}) for version in versions]
    assert {report["answers"]["dvd"] for report in reports} == {reports[0]["answers"]["dvd"]}
    assert len({report["id"] for report in reports}) == 30, (
        "reports of different versions cannot be linked by their ids"
    )
    assert client(versions[-1], memory).account().spent == 1


def test_question_key_depends_only_on_what_is_asked_and_how() -> None:
    key = question_key("", SHOPPERS.questions["age"])
    moved = Collection("other", {"years": SHOPPERS.questions["age"]}, version=9, closed=True)
    assert question_key("", moved.questions["years"]) == key
    assert question_key("", Question("age", AGE, "square-wave", epsilon="2.0")) == key
    others = [
        Question("years", AGE, "square-wave", epsilon=2),
        Question("age", Integer(16, 61), "square-wave", epsilon=2),
        Question("age", Integer(16, 60, (30,)), "square-wave", epsilon=2),
        Question("age", Integer(16, 60, (), "lowest"), "square-wave", epsilon=2),
        Question("age", AGE, "laplace-noise", epsilon=2),
        Question("age", AGE, "square-wave", epsilon="2.01"),
    ]
    assert (
        len({key, question_key("Works council", SHOPPERS.questions["age"]), *(question_key("", q) for q in others)})
        == 8
    )


def hostile_versions() -> list[Collection]:
    """One question again and again, under another name, epsilon, or list each time, with ever more room asked for."""
    values = Category(("no", "yes"))
    renamed = [Question(f"dvd{n}", values, "randomized-response", epsilon=1) for n in range(10)]
    nudged = [Question("dvd", values, "randomized-response", epsilon=1 + Fraction(n, 1000)) for n in range(1, 11)]
    longer = [Question("dvd", Category((*values.values, f"{n}")), "randomized-response", epsilon=1) for n in range(10)]
    questions = [DVD, *renamed, *nudged, *longer]
    return [Collection("asked", {"it": q}, version=n, lifetime=Fraction(2 + n)) for n, q in enumerate(questions, 1)]


def test_lifetime_stops_a_holder_who_renames_the_question() -> None:
    memory: dict[str, Any] = {}
    first, second, third, *others = hostile_versions()
    for version in (first, second, third):
        client(version, memory).randomize({"it": "yes"})
    for version in others:
        with pytest.raises(Unsupported, match=r"Your answers to asked have used 3\.0 of 3\.0"):
            client(version, memory).randomize({"it": "yes"})
    assert len([key for key in memory if key.startswith("answer/")]) == 3


def test_answers_beyond_the_lifetime_are_refused_with_the_numbers() -> None:
    memory: dict[str, Any] = {}
    council = replace(ASKED, holder="Works council", lifetime=Fraction(2))
    client(council, memory).randomize({"dvd": "yes"})
    client(council, memory).randomize({"dvd": "no"})
    renamed = replace(council, name="next", questions={"dvd": replace_epsilon(DVD, 2)})
    before = dict(memory)
    for work in (client(renamed, memory).randomize, client(renamed, memory).draft, client(renamed, memory).tell):
        with pytest.raises(Unsupported) as refused:
            work({"dvd": "yes"})
        assert refused.value.what == (
            "Your answers to Works council have used 2.0 of 2.0. This question would need 2.0 more. Nothing was sent."
        )
    assert memory == before
    assert client(council, memory).randomize({"dvd": "yes"})["answers"], "what was sent before costs nothing"


def replace_epsilon(question: Question, epsilon: int) -> Question:
    return Question(question.attribute, question.universe, question.operator, epsilon=epsilon)


def test_later_lifetime_can_lower_the_first_one_but_not_raise_it() -> None:
    memory: dict[str, Any] = {}
    stated = [Fraction(4), Fraction(9), Fraction(2), Fraction(3)]
    lifetimes = []
    for number, lifetime in enumerate(stated, 1):
        respondent = client(replace(ASKED, version=number, lifetime=lifetime), memory)
        respondent.draft({"dvd": "yes"})
        lifetimes.append(respondent.account().lifetime)
    assert lifetimes == [4, 4, 2, 2]


def test_collections_of_a_named_holder_share_a_lifetime_and_others_do_not() -> None:
    memory: dict[str, Any] = {}
    first = replace(ASKED, holder="Works council", lifetime=Fraction(1))
    client(first, memory).randomize({"dvd": "yes"})
    other = Collection("other", {"age": Question("age", AGE, "square-wave", epsilon=1)}, holder="Works council")
    with pytest.raises(Unsupported, match="Works council have used"):
        client(other, memory).randomize({"age": 30})
    client(replace(other, holder="Landlord"), memory).randomize({"age": 30})


@pytest.mark.parametrize(("repeats", "lifetime"), [("once", 3), ("memoised", 6)])
def test_collection_without_a_stated_lifetime_has_a_limited_one(repeats: Any, lifetime: int) -> None:
    assert client(replace(SHOPPERS, repeats=repeats)).account().lifetime == lifetime


def test_collection_with_unlimited_loss_has_an_unlimited_lifetime_and_cannot_state_another() -> None:
    noisy = Collection("noisy", {"age": Question("age", AGE, "uniform-noise", privacy=1)})
    respondent = client(noisy)
    respondent.randomize({"age": 20})
    assert str(respondent.account()) == "Your answers to noisy have used unlimited of unlimited."
    with pytest.raises(PolicyUnreadable, match="has unlimited loss"):
        replace(noisy, lifetime=Fraction(5))


@pytest.mark.parametrize("lifetime", ["0", "-1", "2.9"])
def test_lifetime_below_one_report_is_refused(lifetime: str) -> None:
    with pytest.raises(PolicyUnreadable, match="lifetime"):
        replace(SHOPPERS, lifetime=Fraction(lifetime))


def test_stated_holder_and_lifetime_are_part_of_the_promise() -> None:
    stated = replace(SHOPPERS, holder="Works council", lifetime=Fraction("4.5"))
    assert Client(json.loads(json.dumps(stated.public_dict()))).collection == stated
    assert len({SHOPPERS.fingerprint, stated.fingerprint, replace(stated, lifetime=Fraction(5)).fingerprint}) == 3
    assert not {"holder", "lifetime"} & set(SHOPPERS.public_dict())
    with pytest.raises(PolicyUnreadable, match="printable"):
        replace(SHOPPERS, holder="two\nlines")


# Draft, sending, sent


def test_preview_charges_and_locks_nothing() -> None:
    memory: dict[str, Any] = {}
    once = replace(SHOPPERS, repeats="once")
    for age in (34, 35, 36, 37):
        client(once, memory).tell({**TRUE, "age": age})
    assert client(once, memory).account().spent == 0
    assert [loss.answered for loss in client(once, memory).given()] == [0, 0]
    shown = client(once, memory).draft({**TRUE, "age": 35})
    assert client(once, memory).randomize({**TRUE, "age": 35}) == shown
    with pytest.raises(Unsupported, match="yours was already sent"):
        client(once, memory).tell({**TRUE, "age": 34})


@pytest.mark.parametrize("repeats", ["memoised", "once", "two-layers"])
def test_draft_is_permanent_whatever_is_previewed_between(repeats: Any) -> None:
    each: dict[str, Any] = {"each": "0.5"} if repeats == "two-layers" else {}
    collection = Collection("asked", {"town": Question("town", TOWN, "unary", epsilon=2, **each)}, repeats=repeats)
    memory: dict[str, Any] = {}
    towns = ("north", "south", "north", "south", "north")
    drafts = [client(collection, memory, seed=str(n)).draft({"town": town}) for n, town in enumerate(towns)]
    assert drafts[0] == drafts[2] == drafts[4]
    assert drafts[1] == drafts[3]
    assert client(collection, memory, seed="later").start({"town": "north"}) == drafts[0]


@pytest.mark.parametrize("repeats", ["once", "two-layers"])
def test_lost_response_is_retried_with_the_same_bytes_and_stays_charged(repeats: Any) -> None:
    each: dict[str, Any] = {"each": "0.5"} if repeats == "two-layers" else {}
    collection = Collection("asked", {"town": Question("town", TOWN, "unary", epsilon=2, **each)}, repeats=repeats)
    memory: dict[str, Any] = {}
    first = client(collection, memory).start({"town": "north"})
    assert client(collection, memory).account().spent == 2, "charged before anything is known of the response"
    assert client(collection, memory, seed="later").start({"town": "north"}) == first
    assert client(collection, memory).account().spent == 2
    if repeats == "once":
        with pytest.raises(Unsupported, match="accepts one report"):
            client(collection, memory).start({"town": "south"})
    client(collection, memory).confirm({"town": "north"})
    again = client(collection, memory, seed="later").start({"town": "north"})
    assert (again == first) == (repeats == "once"), "a confirmed report of two layers is followed by a fresh one"
    assert client(collection, memory).account().spent == 2


def test_confirmed_answer_is_stored_as_sent_and_a_draft_is_not_confirmed() -> None:
    memory: dict[str, Any] = {}
    respondent = client(ASKED, memory)
    respondent.draft({"dvd": "no"})
    respondent.confirm({"dvd": "no"})
    respondent.start({"dvd": "yes"})
    states = {key.rpartition("/")[2]: record["state"] for key, record in memory.items() if key.startswith("answer/")}
    assert states == {"0": {}, "1": {"asked": "sending"}}
    respondent.confirm({"dvd": "yes"})
    assert memory[f"answer/{question_key('', DVD)}/1"]["state"] == {"asked": "sent"}


def test_forgetting_removes_answers_and_keeps_the_used_lifetime() -> None:
    memory: dict[str, Any] = {}
    once = replace(SHOPPERS, name="other", repeats="once")
    client(once, memory).randomize(TRUE)
    client(memory=memory).randomize(TRUE)
    client(memory=memory).draft({**TRUE, "age": 50})
    client(memory=memory).forget()
    assert set(memory) == {"holder/other", "holder/shoppers", f"{once.fingerprint}/once"}
    assert client(memory=memory).account().spent == 3
    client(memory=memory, seed="anew").randomize(TRUE)
    assert client(memory=memory).account().spent == 6, "drawn anew, and charged anew"
    with pytest.raises(Unsupported, match="accepts one report"):
        client(once, memory).draft(TRUE)


def test_forgetting_everything_starts_limits_over() -> None:
    memory: dict[str, Any] = {}
    client(replace(SHOPPERS, repeats="once"), memory).randomize(TRUE)
    client(memory=memory).forget_everything()
    assert memory == {}
    client(replace(SHOPPERS, repeats="once"), memory, seed="anew").randomize({**TRUE, "age": 50})


def earlier_memory(collection: Collection, codes: dict[str, list[int]], **reports: Any) -> dict[str, Any]:
    """A memory as clients wrote it before answers were remembered by question."""
    start = collection.fingerprint
    epsilons = {name: operator_for(question).lifetime_epsilon for name, question in collection.questions.items()}
    memory: dict[str, Any] = {"seal": "ab" * 32}
    memory[f"{start}/about"] = {"collection": collection.name, "version": collection.version, "epsilons": epsilons}
    for name, values in codes.items():
        memory |= {f"{start}/answer/{name}/{code}": reports[name] for code in values}
    return memory


def test_answers_of_an_earlier_memory_are_not_drawn_again_and_stay_in_the_account() -> None:
    memory = earlier_memory(SHOPPERS, {"age": [18, 19], "town": [0]}, age=3, town=[1, 2])
    identity = identity_of(memory["seal"], SHOPPERS.fingerprint, 18, 0)
    report = client(memory=memory).randomize(TRUE)
    assert (report["answers"], report["id"]) == ({"age": 3, "town": [1, 2]}, identity)
    assert client(memory=memory).account().spent == 5
    assert [loss.answered for loss in client(memory=memory).given()] == [2, 1]
    assert not any("/about" in key or "/answer/" in key for key in memory)
    later = client(replace(SHOPPERS, version=2), memory).randomize(TRUE)
    assert later["answers"] == report["answers"]


def test_earlier_version_in_an_earlier_memory_counts_once() -> None:
    memory = earlier_memory(SHOPPERS, {"age": [18], "town": [0]}, age=3, town=[1, 2])
    changed = replace(SHOPPERS, version=2, questions={"age": Question("age", AGE, "square-wave", epsilon=1)})
    for _ in range(3):
        assert client(changed, memory).account().spent == 3
    assert client(memory=memory).randomize(TRUE)["answers"] == {"age": 3, "town": [1, 2]}
    assert client(memory=memory).account().spent == 3


def test_single_report_of_an_earlier_memory_stays_the_only_one() -> None:
    once = replace(SHOPPERS, repeats="once")
    memory = earlier_memory(once, {"age": [18], "town": [0]}, age=3, town=[1, 2])
    with pytest.raises(Unsupported, match="accepts one report"):
        client(once, memory).draft({**TRUE, "age": 35})
    assert client(once, memory).randomize(TRUE)["answers"] == {"age": 3, "town": [1, 2]}


def test_description_changed_in_transit_is_refused() -> None:
    description = json.loads(json.dumps(SHOPPERS.public_dict()))
    description["questions"]["age"]["epsilon"] = 20
    with pytest.raises(PolicyUnreadable, match="changed in transit"):
        Client(description)
    with pytest.raises(Unsupported, match="fingerprint that you were given"):
        Client(SHOPPERS.public_dict(), fingerprint="0" * 64)
    assert Client(SHOPPERS.public_dict(), fingerprint=SHOPPERS.fingerprint).collection == SHOPPERS


@settings(max_examples=40)
@given(collections(), st.data())
def test_every_random_question_is_answered_and_accepted(both: tuple[Any, Collection], data: st.DataObject) -> None:
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
    respondent = client(collection)
    assert refusal(respondent.randomize(answers), collection, respondent.operators) is None
    assert len(respondent.tell(answers)) == len(respondent.asked)


SECRET = "1234567"
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a number left empty": ({**TRUE, "age": None}, "needs a number; it was left empty"),
    "not a number": ({**TRUE, "age": float("nan")}, "left empty"),
    "a word": ({**TRUE, "age": SECRET + "x"}, "needs a number"),
    "true": ({**TRUE, "age": True}, "needs a number"),
    "a question left out": ({"age": 34}, "Questions without an answer: town"),
    "a question not asked": ({**TRUE, "tow": 1}, "not a question of this collection"),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_answers_are_refused_without_quoting_the_value(case: str) -> None:
    answers, says = WRONG[case]
    memory: dict[str, Any] = {}
    with pytest.raises(Unsupported, match=says) as refused:
        client(memory=memory).randomize(answers)
    assert SECRET not in str(refused.value)
    assert memory == {}


def test_unlisted_category_is_missing_or_refused() -> None:
    strict = Collection("s", {"town": Question("town", Category(("north", "south")), "unary", epsilon=1)})
    with pytest.raises(Unsupported, match="one of its 2 listed values") as refused:
        client(strict).randomize({"town": SECRET})
    assert SECRET not in str(refused.value)
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
def test_value_has_its_code_in_the_public_universe(case: str) -> None:
    universe, value, code = CODES[case]
    assert code_of(Question("it", universe, "randomized-response", epsilon=1), value) == code


def test_report_is_explained_before_it_is_sent() -> None:
    memory: dict[str, Any] = {}
    explanations = client(memory=memory).tell({"age": 34, "town": "north"})
    sent = client(memory=memory).randomize({"age": 34, "town": "north"})["answers"]
    half = operator_for(SHOPPERS.questions["age"]).half
    assert explanations[0].startswith(f"age: We will send {sent['age'] - half + 16}. ")
    assert 'conclude that your "age" is between' in explanations[0]
    assert 'your "town" is' in explanations[1]


def test_text_names_the_narrowest_range_of_95_percent() -> None:
    from tidegate.collect.explain import read_aloud

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
    "an id that is not valid": ({"id": "abc"}, "32 hexadecimal digits"),
    "an answer outside": ({"answers": {"age": 10**6, "town": []}}, 'answer to "age" is outside'),
    "a set with a stranger": ({"answers": {"age": 0, "town": [0, 7]}}, 'answer to "town" is outside'),
    "an answer missing": ({"answers": {"age": 0}}, "must answer age, town"),
    "one key more": ({"name": "me"}, "and nothing else"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_report_is_refused_with_its_reason(case: str) -> None:
    change, says = REFUSED[case]
    operators = {name: operator_for(question) for name, question in SHOPPERS.questions.items()}
    reason = refusal({**client().randomize(TRUE), **change}, SHOPPERS, operators)
    assert reason is not None
    assert says in reason


def test_closed_collection_accepts_no_report() -> None:
    closed = replace(SHOPPERS, closed=True)
    operators = {name: operator_for(question) for name, question in SHOPPERS.questions.items()}
    assert closed.fingerprint == SHOPPERS.fingerprint
    assert refusal(client().randomize(TRUE), closed, operators) == 'the collection "shoppers" is closed'
    assert refusal([], SHOPPERS, operators) is not None


YEAR = (dt.date(2024, 1, 1), dt.date(2024, 12, 31))


def test_dates_of_other_years_are_stored_under_other_keys() -> None:
    """Code 5 is another day in each: an answer to one must not be sent for the other."""
    later = dt.date(2025, 1, 1), dt.date(2025, 12, 31)
    kinds = [Date(*YEAR), Date(*later), Date(*YEAR, "week"), Date(*YEAR, outside="clamp")]
    kinds += [Timestamp(*YEAR, "hour"), Timestamp(*YEAR, "hour", "UTC"), Timestamp(*YEAR, "hour", "Europe/Paris")]
    questions = [Question("it", kind, "randomized-response", epsilon=1) for kind in kinds]
    assert len({question_key("", question) for question in questions}) == len(kinds)


@pytest.mark.parametrize("value", [dt.date(2023, 12, 31), "2025-01-01"])
def test_date_outside_the_range_is_refused_clamped_or_counts_as_the_lowest(value: Any) -> None:
    refusing, clamping = Date(*YEAR), Date(*YEAR, outside="clamp")
    with pytest.raises(Unsupported) as refused:
        code_of(Question("it", refusing, "unary", epsilon=1), value)
    assert refused.value.what == '"it" is outside its range.'
    assert str(value) not in str(refused.value)
    assert code_of(Question("it", clamping, "unary", epsilon=1), value) == (0 if str(value) < "2024" else 365)
    assert code_of(Question("it", Date(*YEAR, missing="lowest"), "unary", epsilon=1), value) == 0


def test_number_beyond_its_bounds_is_refused_where_it_is_missing() -> None:
    question = Question("it", Integer(16, 60, outside="missing"), "unary", epsilon=1)
    assert [code_of(question, value) for value in (16, "60", 59.6)] == [0, 44, 44]
    for value in (15, 60.2, 10**9):
        with pytest.raises(Unsupported, match="outside its range"):
            code_of(question, value)


def test_unlisted_value_has_the_code_of_others() -> None:
    question = Question("it", Category(("a", "b"), "value", "other"), "unary", epsilon=1)
    assert [code_of(question, value) for value in ("a", "c", 7, "(other)", None)] == [0, 2, 2, 2, 3]


def test_text_is_not_collected() -> None:
    with pytest.raises(PolicyUnreadable, match='"it" is text, which is never collected'):
        Question("it", Text(buckets=64), "unary", epsilon=1)
