"""Basket losses with a small vocabulary, impossible reports, and uninformative reports."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

from tidegate.operators.basket_loss import basket_loss, exponential_below, largest_ratio
from tidegate.operators.basket_plans import SetOperator
from tidegate.policy import Question
from tidegate.policy.attributes import Items
from tidegate.policy.collection import set_operator

F = Fraction


def question(letters: str, **parameters: Any) -> Question:
    return Question("basket", Items(tuple(letters)), **parameters)


def enumerate_largest_ratio(operator: SetOperator) -> Fraction | None:
    """The largest ratio over every report and every two baskets of one size; None if only one of them is zero."""
    codes = range(operator.vocabulary_size)
    every = [set(some) for size in range(len(codes) + 1) for some in combinations(codes, size)]
    worst = F(1)
    for report in every:
        for size in operator.sizes:
            chances = [operator.probability(report, basket) for basket in every if len(basket) == size]
            if max(chances) > 0 and min(chances) == 0:
                return None
            worst = max(worst, max(chances) / min(chances)) if max(chances) else worst
    return worst


CROWDED: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "2 of 3": ("abc", [{"size": 2, "keep": ["0.2", "0.3", "0.5"], "insert": "0.3"}]),
    "3 of 4": ("abcd", [{"size": 3, "keep": ["0.1", "0.2", "0.3", "0.4"], "insert": "0.4"}]),
    "likely others": ("abcd", [{"size": 3, "keep": ["0.7", "0.1", "0.1", "0.1"], "insert": "0.9"}]),
    "all of them": ("abc", [{"size": 3, "keep": ["0.1", "0.2", "0.3", "0.4"], "insert": "0.4"}]),
    "nothing inserted": ("abc", [{"size": 2, "keep": ["0.2", "0.3", "0.5"], "insert": 0}]),
    "all inserted": ("abc", [{"size": 2, "keep": ["0.2", "0.3", "0.5"], "insert": 1}]),
    "silent": ("abc", [{"size": 2, "keep": [1, 0, 0], "insert": 0}]),
}


@pytest.mark.parametrize("name", CROWDED)
def test_loss_of_overlapping_baskets_equals_full_enumeration(name: str) -> None:
    letters, plans = CROWDED[name]
    operator = set_operator(question(letters, operator="select-a-size", plans=plans))
    assert largest_ratio(operator) == enumerate_largest_ratio(operator)


def test_uninformative_reports_lose_nothing() -> None:
    silent = question("abc", operator="select-a-size", plans=[{"size": 2, "keep": [1, 0, 0], "insert": 0}])
    assert basket_loss(set_operator(silent)) == 0
    assert basket_loss(set_operator(question("abc", operator="mask", keep="0.4", insert="0.4"))) == 0


@pytest.mark.parametrize(("keep", "insert"), [(1, "0.5"), (0, "0.5"), ("0.5", 1), ("0.5", 0)])
def test_deterministic_coin_has_unlimited_loss(keep: Any, insert: Any) -> None:
    assert basket_loss(set_operator(question("abc", operator="mask", keep=keep, insert=insert))) is None


@pytest.mark.parametrize("largest", [1, 2, 3, 4])
@pytest.mark.parametrize(("keep", "insert"), [("0.75", "0.125"), ("0.875", "0.25"), ("0.25", "0.875")])
def test_loss_of_a_mask_counts_the_items_that_can_differ(largest: int, keep: str, insert: str) -> None:
    flip = question("abcd", operator="mask", keep=keep, insert=insert, largest=largest)
    operator = set_operator(flip)
    every = [set(some) for size in range(5) for some in combinations(range(4), size)]
    baskets = [basket for basket in every if len(basket) <= largest]
    worst = max(
        operator.probability(report, basket) / operator.probability(report, other)
        for report in every
        for basket in baskets
        for other in baskets
    )
    assert largest_ratio(operator) == worst


@pytest.mark.parametrize(("above", "loss"), [(-5e-10, F(3, 10)), (5e-10, F(300_001, 1_000_000))])
def test_loss_is_rounded_up_to_the_next_step(above: float, loss: Fraction) -> None:
    """One item, inserted by a fair coin: the ratio of a report without it is just around e**0.3."""
    keep = f"{1 - math.exp(-0.3 - above) / 2:.17f}"
    assert basket_loss(set_operator(question("a", operator="mask", keep=keep, insert="0.5"))) == loss


@pytest.mark.parametrize("power", [F(0), F(1, 3), F(1), F(7, 2), F(40)])
def test_exponential_below_is_never_above_the_exponential(power: Fraction) -> None:
    """Against the alternating series of 1 / e^power, cut off after a subtracted term: that is below, its inverse above."""
    term, low, number = F(1), F(0), 0
    while number < 40 + 12 * power or number % 2:
        low += term
        number += 1
        term = -term * power / number
    assert 0 < low <= 1
    assert exponential_below(power) <= 1 / low < exponential_below(power) * (1 + F(1, 10**9))
