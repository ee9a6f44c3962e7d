"""What one person gives to a collection: the sum over its questions, baskets by the largest ratio of their reports."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.accounting.baskets import STEP, basket_loss, exponential_below, largest_ratio
from tidegate.accounting.respondent import Gives, given_by_one
from tidegate.collect.mechanisms import BasketOperator, operator_for
from tidegate.policy import Collection, Integer, Question
from tidegate.policy.attributes import Items
from tidegate.policy.setplans import SetOperator, set_operator

F = Fraction
SIX = Items(tuple("abcdef"))
MANY = Items(tuple(f"i{place}" for place in range(500)))
PLANS = [
    {"size": 1, "keep": ["0.25", "0.75"], "insert": "0.2"},
    {"size": 2, "keep": ["0.2", "0.3", "0.5"], "insert": "0.3"},
]
QUESTIONS: dict[str, dict[str, Any]] = {
    "mask": {"operator": "mask", "keep": "0.8", "largest": 2},
    "asymmetric mask": {"operator": "mask", "keep": "0.7", "insert": "0.1"},
    "cut-and-paste": {"operator": "cut-and-paste", "cutoff": 2, "rho": "0.2", "largest": 3},
    "padded cut-and-paste": {"operator": "cut-and-paste", "cutoff": 2, "rho": "0.2", "largest": 3, "fixed": 3},
    "select-a-size": {"operator": "select-a-size", "plans": PLANS},
    "padded select-a-size": {"operator": "select-a-size", "plans": PLANS, "fixed": 2},
}


def question(name: str, items: Items = SIX) -> Question:
    return Question("basket", items, **QUESTIONS[name])


def enumerated(operator: SetOperator) -> Fraction:
    """The largest ratio over every report and every two baskets, of one size where sizes are told."""
    every = [set(some) for many in range(7) for some in combinations(range(6), many)]
    taken = [basket for basket in every if len(basket) in operator.taken_sizes]
    worst = F(1)
    for report in every:
        by_size: dict[int, list[Fraction]] = {}
        for basket in taken:
            told = len(basket) if operator.needs_size else 0
            by_size.setdefault(told, []).append(operator.probability(report, basket))
        worst = max([worst, *(max(chances) / min(chances) for chances in by_size.values())])
    return worst


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_loss_of_a_basket_is_that_of_full_enumeration_rounded_up(name: str) -> None:
    operator, loss = set_operator(question(name)), basket_loss(question(name))
    ratio = enumerated(operator)
    assert loss is not None
    assert largest_ratio(operator) == ratio <= exponential_below(loss)
    assert float(loss - STEP) < math.log(ratio) < float(loss) + 1e-12


@pytest.mark.parametrize("items", [SIX, MANY], ids=["6 items", "500 items"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_account_and_the_client_speak_of_the_same_operator(name: str, items: Items) -> None:
    made, loss = operator_for(question(name, items)), basket_loss(question(name, items))
    assert isinstance(made, BasketOperator)
    assert made.operator == set_operator(question(name, items))
    assert loss is not None
    assert made.epsilon <= float(loss) < made.epsilon + 2e-6
    assert made.lifetime_epsilon == made.epsilon


def test_a_loss_of_thousands_is_told_and_not_overflown() -> None:
    loss = basket_loss(Question("basket", MANY, "mask", keep="0.9"))
    assert loss == pytest.approx(500 * math.log(9), abs=2e-6)


def test_what_one_person_gives_adds_baskets_to_values_and_names_a_size_in_clear() -> None:
    asked = {"age": Question("age", Integer(16, 60), "square-wave", epsilon=2), "bought": question("cut-and-paste")}
    gives = given_by_one(Collection("shop", asked))
    bought = basket_loss(asked["bought"])
    assert bought is not None
    assert gives.in_all == 2 + bought
    assert gives.in_clear == ("bought",)
    assert "how many items bought holds is sent in clear" in str(gives)
    assert gives.to_dict()["size_in_clear"] == ["bought"]


@pytest.mark.parametrize("name", ["mask", "padded cut-and-paste", "padded select-a-size"])
def test_nothing_is_said_of_a_size_that_is_not_sent(name: str) -> None:
    gives = given_by_one(Collection("shop", {"bought": question(name)}))
    assert gives.in_clear == ()
    assert "clear" not in str(gives)
    assert set(gives.to_dict()) == {"questions", "in_all", "each_report"}


@pytest.mark.parametrize(
    "given_",
    [
        {"operator": "mask", "keep": 1},
        {"operator": "mask", "keep": "0.5", "insert": 0},
        {"operator": "cut-and-paste", "cutoff": 1, "rho": 0, "largest": 2},
        {"operator": "select-a-size", "plans": [{"size": 2, "keep": [0, 0, 1], "insert": "0.4"}]},
    ],
)
def test_a_report_that_rules_baskets_out_gives_without_limit(given_: dict[str, Any]) -> None:
    gives = given_by_one(Collection("shop", {"bought": Question("basket", SIX, **given_)}))
    assert gives.in_all is None
    assert "without limit" in str(gives)


@given(power=st.fractions(0, 60, max_denominator=1000))
def test_the_exponential_is_below_and_near(power: Fraction) -> None:
    assert math.exp(power) * (1 - 1e-12) < exponential_below(power)
    assert exponential_below(power) < exponential_below(power + F(1, 2**60))


@given(loss=st.fractions(F(1, 1000), 2000, max_denominator=10**6))
def test_what_is_said_to_be_the_most_is_never_below_it(loss: Fraction) -> None:
    said = str(Gives({"bought": loss}, loss, "once"))
    told = F(said.removeprefix("one person gives epsilon ").split()[0].replace(",", ""))
    assert loss <= told < loss + F(1, 500)


@pytest.mark.parametrize(
    ("loss", "says"), [("4.7126", "4.713"), ("2.5", "2.5"), ("6", "6"), ("1098.612289", "1,098.613")]
)
def test_a_loss_is_said_in_a_few_digits(loss: str, says: str) -> None:
    assert f"epsilon {says} at most" in str(Gives({"bought": F(loss)}, F(loss), "once"))
