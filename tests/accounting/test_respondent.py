"""The loss of one respondent: the sum over the questions, with the largest ratio of reports for baskets."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.accounting.respondent import RespondentLoss, respondent_loss
from tidegate.operators import BasketOperator
from tidegate.operators.basket_loss import STEP, basket_loss, exponential_below, largest_ratio
from tidegate.operators.basket_plans import SetOperator
from tidegate.policy import Collection, Integer, Question
from tidegate.policy.attributes import Items
from tidegate.policy.collection import operator_for, set_operator

F = Fraction
SIX = Items(tuple("abcdef"))
MANY = Items(tuple(f"i{index}" for index in range(500)))
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


def enumerate_largest_ratio(operator: SetOperator) -> Fraction:
    """The largest ratio over every report and every two baskets, of one size if sizes are sent."""
    every = [set(some) for size in range(7) for some in combinations(range(6), size)]
    taken = [basket for basket in every if len(basket) in operator.taken_sizes]
    worst = F(1)
    for report in every:
        by_size: dict[int, list[Fraction]] = {}
        for basket in taken:
            size = len(basket) if operator.needs_size else 0
            by_size.setdefault(size, []).append(operator.probability(report, basket))
        worst = max([worst, *(max(chances) / min(chances) for chances in by_size.values())])
    return worst


@pytest.mark.parametrize("name", QUESTIONS)
def test_basket_loss_is_full_enumeration_rounded_up(name: str) -> None:
    operator, loss = set_operator(question(name)), basket_loss(set_operator(question(name)))
    ratio = enumerate_largest_ratio(operator)
    assert loss is not None
    assert largest_ratio(operator) == ratio <= exponential_below(loss)
    assert float(loss - STEP) < math.log(ratio) < float(loss) + 1e-12


@pytest.mark.parametrize("items", [SIX, MANY], ids=["6 items", "500 items"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_accounting_and_client_use_the_same_operator(name: str, items: Items) -> None:
    operator, loss = operator_for(question(name, items)), basket_loss(set_operator(question(name, items)))
    assert isinstance(operator, BasketOperator)
    assert operator.operator == set_operator(question(name, items))
    assert loss is not None
    assert operator.epsilon <= float(loss) < operator.epsilon + 2e-6
    assert operator.lifetime_epsilon == operator.epsilon


def test_loss_of_thousands_does_not_overflow() -> None:
    loss = basket_loss(set_operator(Question("basket", MANY, "mask", keep="0.9")))
    assert loss == pytest.approx(500 * math.log(9), abs=2e-6)


def test_respondent_loss_adds_baskets_and_names_sizes_in_clear() -> None:
    questions = {"age": Question("age", Integer(16, 60), "square-wave", epsilon=2), "bought": question("cut-and-paste")}
    loss = respondent_loss(Collection("shop", questions))
    bought = basket_loss(set_operator(questions["bought"]))
    assert bought is not None
    assert loss.in_all == 2 + bought
    assert loss.in_clear == ("bought",)
    assert "the number of items in bought is sent in clear" in str(loss)
    assert loss.to_dict()["size_in_clear"] == ["bought"]


@pytest.mark.parametrize("name", ["mask", "padded cut-and-paste", "padded select-a-size"])
def test_respondent_loss_omits_sizes_that_are_not_sent(name: str) -> None:
    loss = respondent_loss(Collection("shop", {"bought": question(name)}))
    assert loss.in_clear == ()
    assert "clear" not in str(loss)
    assert set(loss.to_dict()) == {"questions", "in_all", "each_report"}


@pytest.mark.parametrize(
    "parameters",
    [
        {"operator": "mask", "keep": 1},
        {"operator": "mask", "keep": "0.5", "insert": 0},
        {"operator": "cut-and-paste", "cutoff": 1, "rho": 0, "largest": 2},
        {"operator": "select-a-size", "plans": [{"size": 2, "keep": [0, 0, 1], "insert": "0.4"}]},
    ],
)
def test_report_that_excludes_baskets_has_unlimited_loss(parameters: dict[str, Any]) -> None:
    loss = respondent_loss(Collection("shop", {"bought": Question("basket", SIX, **parameters)}))
    assert loss.in_all is None
    assert "an unlimited amount" in str(loss)


@given(power=st.fractions(0, 60, max_denominator=1000))
def test_exponential_below_is_a_tight_lower_bound(power: Fraction) -> None:
    assert math.exp(power) * (1 - 1e-12) < exponential_below(power)
    assert exponential_below(power) < exponential_below(power + F(1, 2**60))


@given(loss=st.fractions(F(1, 1000), 2000, max_denominator=10**6))
def test_printed_maximum_is_never_below_the_loss(loss: Fraction) -> None:
    text = str(RespondentLoss({"bought": loss}, loss, "once"))
    printed = F(text.removeprefix("one person loses at most epsilon ").split("," + " once")[0].replace(",", ""))
    assert loss <= printed < loss + F(1, 500)


@pytest.mark.parametrize(
    ("loss", "digits"), [("4.7126", "4.713"), ("2.5", "2.5"), ("6", "6"), ("1098.612289", "1,098.613")]
)
def test_loss_prints_few_digits(loss: str, digits: str) -> None:
    assert f"at most epsilon {digits}, once" in str(RespondentLoss({"bought": F(loss)}, F(loss), "once"))


def test_loss_is_computed_once_for_equal_operators_and_again_for_others() -> None:
    first, second = set_operator(question("mask")), set_operator(question("mask"))
    other = set_operator(Question("basket", SIX, "mask", keep="0.875", insert="0.0625"))
    basket_loss.cache_clear()
    assert basket_loss(first) == basket_loss(second) != basket_loss(other)
    assert (basket_loss.cache_info().hits, basket_loss.cache_info().misses) == (1, 2)
