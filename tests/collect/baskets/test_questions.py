"""Questions about a basket: written, read back, asked at the client; what is wrong is said without a word about the basket."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidegate.collect.client import Client
from tidegate.errors import PolicyUnreadable, Unsupported
from tidegate.operators.exact_draws import SeededBytes
from tidegate.policy import Items, Question
from tidegate.policy.collection import Collection
from tidegate.policy.toml import collection_from_dict

BASKET = Items(("milk", "bread", "beer", "tea", "jam"))
PLANS = [
    {"size": 2, "keep": ["0.1", "0.2", "0.7"], "insert": "0.05"},
    {"size": 1, "keep": ["0.5", "0.5"], "insert": "1/3"},
]
QUESTIONS: dict[str, dict[str, Any]] = {
    "mask": {"operator": "mask", "keep": "0.9", "largest": 2},
    "asymmetric": {"operator": "mask", "keep": "0.9", "insert": "0.05", "largest": 2},
    "cut-and-paste": {"operator": "cut-and-paste", "cutoff": 2, "rho": "0.1", "largest": 2},
    "to one size": {"operator": "cut-and-paste", "cutoff": 2, "rho": "0.1", "largest": 2, "fixed": 2},
    "select-a-size": {"operator": "select-a-size", "plans": PLANS},
}


def collection_for(name: str) -> Collection:
    parameters = dict(QUESTIONS[name])
    return Collection("shop", {"basket": Question("basket", BASKET, parameters.pop("operator"), **parameters)})


@pytest.mark.parametrize("name", QUESTIONS)
def test_question_survives_a_round_trip_through_its_description(name: str) -> None:
    collection = collection_for(name)
    assert collection_from_dict(json.loads(json.dumps(collection.public_dict()))) == collection


@pytest.mark.parametrize("name", QUESTIONS)
def test_basket_gives_the_same_report_in_any_order(name: str) -> None:
    client = Client(collection_for(name), source=SeededBytes("basket"))
    first = client.randomize({"basket": ["tea", "milk"]})
    assert client.operators["basket"].accepts(first["answers"]["basket"])
    assert client.randomize({"basket": ["milk", "tea"]}) == first


@pytest.mark.parametrize("name", QUESTIONS)
def test_text_states_whether_the_number_of_items_is_sent(name: str) -> None:
    explanation = Client(collection_for(name), source=SeededBytes("basket")).tell({"basket": ["milk"]})[0]
    assert ("number of your items is sent" in explanation) == (name in ("cut-and-paste", "select-a-size"))


WRONG = {
    "unknown": (["beef"], "is not one of its 5"),
    "twice": (["milk", "milk"], "names an item twice"),
    "nothing": (None, "needs a list of items"),
    "a word": ("milk", "needs a list of items"),
    "too many": (["milk", "tea", "jam"], "the largest planned size is 2"),
}


@pytest.mark.parametrize(("basket", "says"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("name", ["mask", "cut-and-paste", "select-a-size"])
def test_invalid_basket_is_refused_without_quoting_it(name: str, basket: Any, says: str) -> None:
    with pytest.raises(Unsupported, match=says) as refused:
        Client(collection_for(name)).randomize({"basket": basket})
    assert "beef" not in str(refused.value)
    assert "milk" not in str(refused.value)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no rho": ({"operator": "cut-and-paste", "cutoff": 2, "largest": 2}, "needs rho"),
    "strange": ({"operator": "mask", "keep": "0.9", "epsilon": 1}, "has no parameter epsilon"),
    "no plans": ({"operator": "select-a-size"}, "needs plans"),
    "plans": ({"operator": "mask", "keep": "0.9", "plans": PLANS}, "does not accept plans"),
    "no probability": ({"operator": "mask", "keep": 2}, "must be a probability"),
    "half an item": ({"operator": "mask", "keep": "0.9", "largest": "1.5"}, "must be a whole number"),
    "sum": ({"operator": "select-a-size", "plans": [{"size": 1, "keep": ["0.5", "0.4"], "insert": 0}]}, "add up to 1"),
    "two of one size": ({"operator": "select-a-size", "plans": [PLANS[0], PLANS[0]]}, "different sizes"),
    "no plan for it": ({"operator": "select-a-size", "plans": PLANS, "fixed": 3}, "no plan has that size"),
    "not for sets": ({"operator": "unary", "epsilon": 1}, "a set of items needs one of"),
}


@pytest.mark.parametrize(("parameters", "says"), REFUSED.values(), ids=REFUSED)
def test_invalid_question_is_refused_with_its_reason(parameters: dict[str, Any], says: str) -> None:
    parameters = dict(parameters)
    with pytest.raises(PolicyUnreadable, match=says):
        Question("basket", BASKET, parameters.pop("operator"), **parameters)
