"""A collection in the policy file: it survives, its fingerprint names its promise, what is wrong is said."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy.strategies import categories, grids, integers

from tidegate.errors import PolicyLoosened, PolicyUnreadable, UnknownColumn
from tidegate.operators import VALUE_OPERATORS
from tidegate.policy import Category, Collection, Dataset, Grid, Integer, Policy, Question, parse_policy, write_policy
from tidegate.policy.changes import changes, refuse_loosening
from tidegate.policy.collection import has_mean
from tidegate.policy.toml import collection_from_dict, policy_from_dict

SHOPPERS = """
[dataset]
name = "shoppers"
unit = "row"

[attributes]
name = { kind = "key" }
age  = { kind = "integer", from = 16, to = 60 }
town = { kind = "category", values = ["north", "south"], missing = "value" }
basket = { kind = "items", vocabulary = ["milk", "bread"] }

[collection.shoppers]                  # randomized at home
questions.age  = { attribute = "age", operator = "square-wave", epsilon = 2.0 }
questions.town = { attribute = "town", operator = "unary", epsilon = 1.5 }
repeats = "memoised"
clients = 5000
"""


@st.composite
def collections(draw: Any) -> tuple[Policy, Collection]:
    """A policy with a collection of random questions."""
    questions, attributes = {}, {}
    for index in range(draw(st.integers(1, 3))):
        operator = draw(st.sampled_from(sorted(VALUE_OPERATORS)))
        kinds = [integers(), grids()] if VALUE_OPERATORS[operator].ordered else [integers(), categories()]
        only_mean = VALUE_OPERATORS[operator].only_mean
        candidates = st.one_of(kinds).filter(lambda candidate: question_size(candidate) >= 2)
        universe = draw(candidates.filter(has_mean) if only_mean else candidates)
        required = [parameter.name for parameter in VALUE_OPERATORS[operator].parameters if not parameter.optional]
        parameter = draw(st.sampled_from(required))
        value = draw(st.fractions(Fraction(1, 100), 3, max_denominator=100))
        if parameter in ("sigma", "half_width"):
            value = (value + Fraction(1, 4)) * (1 if universe.cuts else universe.width)
        if parameter == "random":
            value /= 4
        attributes[f"a{index}"] = universe
        questions[f"q{index}"] = Question(f"a{index}", universe, operator, **{parameter: value})
    collection = Collection(
        "shoppers",
        questions,
        draw(st.sampled_from(["memoised", "once"])),
        draw(st.integers(1, 9)),
        draw(st.booleans()),
        50,
        ask=draw(st.integers(1, len(questions) - 1)) if len(questions) > 1 and draw(st.booleans()) else None,
    )
    return Policy(Dataset("people"), attributes, collections={"shoppers": collection}), collection


def question_size(universe: Any) -> int:
    if isinstance(universe, Category):
        return universe.size + (universe.missing == "value")
    return len(universe.bin_starts())


@given(collections())
def test_collection_survives_toml_ledger_and_client_description(both: tuple[Policy, Collection]) -> None:
    policy, collection = both
    assert parse_policy(write_policy(policy)) == policy
    assert policy_from_dict(policy.public_dict()).fingerprint == policy.fingerprint
    arrived = collection_from_dict(json.loads(json.dumps(collection.public_dict())))
    assert arrived.fingerprint == collection.fingerprint
    assert arrived.questions == collection.questions


def test_example_of_the_design_is_readable() -> None:
    collection = parse_policy(SHOPPERS).collections["shoppers"]
    assert collection.questions["age"].parameters == {"epsilon": 2}
    assert (collection.repeats, collection.version, collection.closed, collection.clients) == (
        "memoised",
        1,
        False,
        5000,
    )
    assert (collection.questions["age"].size, collection.questions["town"].size) == (45, 3)


def test_fingerprint_covers_exactly_the_promise_to_respondents() -> None:
    collection = parse_policy(SHOPPERS).collections["shoppers"]
    same = [replace(collection, closed=True), replace(collection, clients=9)]
    age = collection.questions["age"]
    other = [
        replace(collection, version=2),
        replace(collection, repeats="once"),
        replace(collection, name="others"),
        replace(collection, questions={"age": age}),
        replace(
            collection,
            questions={**collection.questions, "age": Question("age", age.universe, "square-wave", epsilon=3)},
        ),
        replace(
            collection,
            questions={**collection.questions, "age": Question("age", Integer(16, 61), "square-wave", epsilon=2)},
        ),
    ]
    assert {each.fingerprint for each in same} == {collection.fingerprint}
    assert len({each.fingerprint for each in [collection, *other]}) == 7


def test_bins_replace_values_in_collections() -> None:
    assert Question("age", Integer(16, 60, (18, 30)), "square-wave", epsilon=1).size == 3
    assert Question("pay", Grid(0, 10, "0.5"), "square-wave", epsilon=1).step == Fraction(1, 2)


WRONG = {
    "an unknown operator": ('"square-wave"', '"square"', 'Did you mean "square-wave"'),
    "no parameter": (", epsilon = 2.0", "", "needs one parameter"),
    "a strange parameter": ("epsilon = 2.0", "privacy = 1.0", "square-wave has no parameter privacy"),
    "a misspelt parameter": ("epsilon = 2.0", "epsilom = 2.0", 'Did you mean "epsilon"'),
    "too much": ("epsilon = 2.0", "epsilon = 21", "from 0.001 to 20"),
    "too little": ("epsilon = 2.0", "epsilon = 0", "from 0.001 to 20"),
    "noise of nothing": ('"square-wave", epsilon = 2.0', '"gaussian-noise", sigma = 0.1', "must be from 0.25 to 4,500"),
    "numbers needed": ('"unary"', '"square-wave"', "square-wave needs numbers"),
    "a key": ('attribute = "town"', 'attribute = "name"', "is a key"),
    "a set": ('attribute = "town"', 'attribute = "basket"', "a set of items needs one of"),
    "a set operator": ('"unary"', '"select-a-size"', "only a set of items has"),
    "items of a file": ('attribute = "town"', 'items = "items.txt"', "attribute is missing"),
    "repeats": ('"memoised"', '"always"', "one of memoised, once, two-layers"),
    "closed": ("clients = 5000", 'closed = "yes"', "true or false is required"),
    "version": ("clients = 5000", "version = 0", "at least 1"),
    "one layer of two": ('"memoised"', '"two-layers"', "must be used together"),
    "each without layers": ("epsilon = 1.5", "epsilon = 1.5, each = 1", "must be used together"),
    "each above": ("epsilon = 1.5", "epsilon = 1.5, each = 1.5", "must be below epsilon"),
    "a strange name": ("questions.town", 'questions."a/b"', "must be a letter followed by"),
    "no question": ("questions.age  =", "questionss =", "collection.shoppers"),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_in_a_collection_are_reported(case: str) -> None:
    old, new, message = WRONG[case]
    assert old in SHOPPERS
    with pytest.raises(PolicyUnreadable) as raised:
        parse_policy(SHOPPERS.replace(old, new, 1))
    assert message in str(raised.value)


def test_unknown_attribute_suggests_the_nearest() -> None:
    with pytest.raises(UnknownColumn, match='Did you mean "age"'):
        parse_policy(SHOPPERS.replace('attribute = "age"', 'attribute = "ages"'))


def test_collection_of_another_universe_is_refused() -> None:
    policy = parse_policy(SHOPPERS)
    strange = Collection("shoppers", {"age": Question("age", Integer(0, 9), "square-wave", epsilon=1)})
    with pytest.raises(PolicyUnreadable, match="does not fit this policy"):
        replace(policy, collections={"shoppers": strange})
    with pytest.raises(PolicyUnreadable, match="does not fit this policy"):
        replace(policy, collections={"other": policy.collections["shoppers"]})


def test_other_questions_need_a_new_version() -> None:
    old = parse_policy(SHOPPERS)
    weaker = SHOPPERS.replace("epsilon = 2.0", "epsilon = 3.0")
    with pytest.raises(PolicyLoosened, match="shoppers would change without a new version"):
        refuse_loosening(old, parse_policy(weaker))
    refuse_loosening(old, parse_policy(weaker.replace("clients = 5000", "version = 2")))
    refuse_loosening(old, parse_policy(SHOPPERS.replace("clients = 5000", "closed = true")))
    descriptions = changes(old, parse_policy(weaker.replace("clients = 5000", "version = 2")))
    assert any("collection shoppers" in line for line in descriptions)
