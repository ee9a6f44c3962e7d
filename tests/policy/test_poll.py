"""A poll in a few lines of TOML: what it expands to, what it refuses, and how many questions each person is asked."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from fractions import Fraction as F
from pathlib import Path

import pytest
from web.polls import DISHES, OFTEN

from tidegate.accounting.respondent import respondent_loss
from tidegate.collect.memory import question_key
from tidegate.errors import PolicyLoosened, PolicyUnreadable
from tidegate.policy import Collection, Policy, parse_policy, read_policy, write_policy
from tidegate.policy.changes import refuse_loosening
from tidegate.policy.collection import operator_for
from tidegate.policy.poll import Poll
from tidegate.policy.toml import collection_from_dict, policy_from_dict

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
KEY = urlsafe_b64encode(b"\xc3" + bytes(254) + b"\x01").rstrip(b"=").decode()
HEAD = """
[poll.canteen]
holder = "Works council, Example Ltd"
purpose = { en = "Plan the menu for spring", de = "Speiseplan für das Frühjahr" }
title = { en = "Canteen", de = "Kantine" }
closes = 2026-12-01T18:00:00+01:00
"""
EXAMPLE = HEAD + 'lifetime = 2.2\nask = "best"\n' + OFTEN + DISHES


def poll_of(content: str) -> tuple[Collection, Poll]:
    collection = parse_policy(content).collections["canteen"]
    assert collection.poll is not None
    return collection, collection.poll


def questions(count: int, options: int) -> str:
    words = ", ".join(f'"o{option}"' for option in range(options))
    return "".join(
        f'\n[poll.canteen.questions.q{number}]\ntext = "Which?"\noptions = [{words}]\n' for number in range(count)
    )


# What it expands to


def test_the_example_of_the_guide() -> None:
    collection, poll = poll_of(EXAMPLE)
    often, dishes = collection.questions.values()
    assert (often.operator, often.parameters) == ("randomized-response", {"random": F(1, 3)})
    assert (dishes.operator, dishes.parameters) == ("privset", {"epsilon": F(3, 2), "choose": 2})
    assert collection.ask == 1, "both together need 3.45, and the lifetime is 2.2"
    assert respondent_loss(collection).in_all == F(1945911, 10**6), "ln 7, rounded up"
    assert (poll.access, collection.repeats, poll.languages) == ("invited", "once", ("en", "de"))
    assert poll.closes == datetime(2026, 12, 1, 17, tzinfo=UTC)
    assert poll.questions["often"].label("daily", "de") == "Täglich"
    assert poll.questions["dishes"].label("Tofu", "de") == "Tofu", "a plain list: the same words in all languages"


def test_a_file_with_polls_alone_is_a_policy_named_after_the_file(tmp_path: Path) -> None:
    (tmp_path / "2026 canteen.toml").write_text(EXAMPLE, "utf-8")
    policy = read_policy(tmp_path / "2026 canteen.toml")
    assert (policy.dataset.name, policy.attributes, list(policy.polls)) == ("canteen", {}, ["canteen"])


def test_it_survives_file_ledger_and_description() -> None:
    policy = parse_policy(EXAMPLE)
    assert parse_policy(write_policy(policy)) == policy
    assert policy_from_dict(policy.public_dict()).fingerprint == policy.fingerprint
    collection = policy.collections["canteen"]
    assert collection_from_dict(collection.public_dict()).fingerprint == collection.fingerprint


def listed(count: int) -> str:
    return ", ".join(f'"{option}"' for option in range(count))


OPERATORS = {
    "square-wave": "from = 0\nto = 100\nepsilon = 1",
    "hybrid": 'from = 0\nto = 1\nstep = 0.1\nwant = "mean"\nepsilon = 1',
    "one-option": 'options = ["a", "b", "c"]\nchoose = "any"\nepsilon = 1',
    "randomized-response": 'options = ["a", "b"]\nepsilon = 1',
    "unary": 'options = ["a", "b"]\nepsilon = 1\noperator = "unary"',
    "subset": f"options = [{listed(20)}]\nepsilon = 1",
    "prefix": "free_text = true\nepsilon = 4",
    "hash-response": f"options = [{listed(9)}]\nepsilon = 2\neach = 1",
    "projective-geometry": f"options = [{listed(2000)}]\nepsilon = 1",
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_operator_follows_from_what_is_asked(operator: str) -> None:
    content = f'{HEAD}[poll.canteen.questions.one]\ntext = "Which?"\n{OPERATORS[operator]}\n'
    content = content.replace("closes", "rounds = 52\ncloses") if "each" in content else content
    policy = parse_policy(content)
    assert policy.collections["canteen"].questions["one"].operator == operator
    assert parse_policy(write_policy(policy)) == policy


@pytest.mark.parametrize("share", [F(1, 2), F(1, 3), F(1, 4)])
@pytest.mark.parametrize("options", [2, 4, 5])
def test_a_share_of_random_answers_is_an_exact_ratio(options: int, share: F) -> None:
    words = ", ".join(f'"{option}"' for option in range(options))
    line = f'\n[poll.canteen.questions.one]\ntext = "Which?"\noptions = [{words}]\nrandom = "{share}"\n'
    collection, _ = poll_of(HEAD + line)
    ratio = operator_for(collection.questions["one"]).gamma
    exact = 1 + options * (1 - share) / share
    assert ratio is not None
    assert exact * (1 - F(1, 10**12)) < ratio <= exact


# How many questions each person is asked (section 7 of the design: the best number of Q at a total epsilon)


@pytest.mark.parametrize(
    ("count", "options", "epsilon", "best"), [(6, 4, 2, 1), (6, 4, 6, 2), (6, 4, 12, 4), (10, 2, 1, 1), (4, 10, 4, 1)]
)
def test_the_best_number_of_questions(count: int, options: int, epsilon: int, best: int) -> None:
    collection, _ = poll_of(f"{HEAD}epsilon = {epsilon}\n{questions(count, options)}")
    assert collection.ask == best
    assert {question.parameters["epsilon"] for question in collection.questions.values()} == {F(epsilon, best)}
    assert respondent_loss(collection).in_all == epsilon


def test_all_questions_are_asked_if_that_is_best() -> None:
    collection, _ = poll_of(f"{HEAD}epsilon = 4\n{questions(2, 2)}")
    assert collection.ask is None
    assert respondent_loss(collection).in_all == 4


def test_questions_that_are_asked_together_are_one_unit() -> None:
    collection, _ = poll_of(f'{HEAD}epsilon = 2\nask = 1\ntogether = [["q0", "q2"]]\n{questions(4, 3)}')
    assert collection.units == (("q0", "q2"), ("q1",), ("q3",))
    assert collection.questions["q0"].parameters["epsilon"] == 1
    assert collection.questions["q1"].parameters["epsilon"] == 2
    assert respondent_loss(collection).in_all == 2
    possible = [("q0", "q2"), ("q1",), ("q3",)]
    for names in (("q0",), ("q0", "q1"), ("q0", "q2", "q1"), (), ("q4",), *possible):
        assert collection.answers_units(names) == (names in possible)


# What identifies it


def test_wording_is_part_of_the_fingerprint_and_not_of_the_memory() -> None:
    before, _ = poll_of(EXAMPLE)
    for old, new in (("Nie", "Niemals"), ("Kantine", "Küche"), ("18:00:00", "19:00:00"), ("for spring", "for summer")):
        after, _ = poll_of(EXAMPLE.replace(old, new))
        assert after.fingerprint != before.fingerprint, old
        for name in before.questions:
            assert question_key(after.holder, after.questions[name]) == question_key(
                before.holder, before.questions[name]
            )
    other, _ = poll_of(EXAMPLE.replace("weekly", "monthly"))
    assert question_key(other.holder, other.questions["often"]) != question_key(
        before.holder, before.questions["often"]
    )


def test_the_key_of_invitations_is_part_of_the_fingerprint() -> None:
    before, _ = poll_of(EXAMPLE)
    after, _ = poll_of(EXAMPLE.replace("closes", f'invitation_key = "{KEY}"\ncloses'))
    assert before.fingerprint != after.fingerprint


def test_a_key_can_be_added_before_a_poll_is_opened_and_never_after() -> None:
    draft = parse_policy(EXAMPLE)
    opened = parse_policy(EXAMPLE.replace("closes", f'invitation_key = "{KEY}"\ncloses'))
    refuse_loosening(draft, opened)
    with pytest.raises(PolicyLoosened, match="without a new version"):
        refuse_loosening(opened, draft)


# What is refused


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (EXAMPLE.replace(', de = "Kantine"', ""), "every text in each language; title has no text in de"),
        (HEAD, "has no questions|questions\\] is missing"),
        (HEAD + questions(1, 1).replace("[poll", "epsilon = 1\n[poll", 1), "at least 2 options"),
        (EXAMPLE.replace("18:00:00+01:00", "18:00:00"), "time with a zone"),
        (EXAMPLE.replace("lifetime = 2.2", "lifetime = 1.2"), "one question needs 1.95"),
        (EXAMPLE.replace('"best"', '"all"'), "lifetime .* is epsilon 2.2, but one report needs 3.45"),
        (EXAMPLE.replace('"best"', "3"), "`ask` .* must be from 1 to 2"),
        (EXAMPLE.replace("lifetime = 2.2", "epsilon = 2"), "an epsilon for all questions, and some"),
        (EXAMPLE.replace('random = "1/3"\n', ""), "states no loss"),
        (EXAMPLE.replace('random = "1/3"', 'random = "3/2"'), "must be a probability from 0.001 to 0.999"),
        (EXAMPLE.replace("lifetime", 'invitation_key = "short"\nlifetime'), "not an RSA modulus"),
        (EXAMPLE.replace("lifetime", f'access = "open"\ninvitation_key = "{KEY}"\nlifetime'), "no invitation key"),
        (EXAMPLE.replace("lifetime", "at_most = 5\nlifetime"), "`at_most` limits the reports of an open poll"),
        (EXAMPLE.replace("lifetime", 'together = [["often", "nobody"]]\nlifetime'), 'unknown question: "nobody"'),
        (EXAMPLE.replace('["Curry", "Pasta"', '["Curry", "Curry"'), "each option must be listed once"),
        (EXAMPLE.replace("lifetime", 'colour = "red"\nlifetime'), "Unknown key: poll.canteen.colour"),
    ],
    ids=lambda value: value if "\n" not in value else "",
)
def test_what_does_not_make_a_poll_is_refused_when_it_is_read(content: str, words: str) -> None:
    with pytest.raises(PolicyUnreadable, match=words):
        parse_policy(content)


def test_what_is_refused_when_it_is_opened() -> None:
    collection, _ = poll_of(EXAMPLE)
    with pytest.raises(PolicyUnreadable, match="needs a key for its invitations"):
        collection.refuse_new(NOW)
    opened = EXAMPLE.replace("closes", 'access = "open"\ncloses')
    poll_of(opened)[0].refuse_new(NOW)
    with pytest.raises(PolicyUnreadable, match="which has passed"):
        poll_of(opened)[0].refuse_new(datetime(2026, 12, 1, 17, tzinfo=UTC))
    few = opened.replace("lifetime", "clients = 250\nlifetime")
    with pytest.raises(
        PolicyUnreadable, match='With 250 people, the expected error of "dishes" is 13 percentage points'
    ):
        poll_of(few)[0].refuse_new(NOW)
    poll_of(few.replace("clients", "accept_error = true\nclients"))[0].refuse_new(NOW)
    poll_of(few.replace("250", "500"))[0].refuse_new(NOW)


def test_a_policy_without_a_table_promises_nothing_about_one() -> None:
    assert isinstance(parse_policy('[dataset]\nname = "polls"\n'), Policy)
    with pytest.raises(PolicyUnreadable, match="attributes"):
        parse_policy('[dataset]\nname = "people"\nsource = "people.csv"\nunit = "row"\n')
    with pytest.raises(PolicyUnreadable, match="attributes"):
        parse_policy('[dataset]\nname = "people"\nunit = "row"\n[promise.loss]\nepsilon = 1\n')
