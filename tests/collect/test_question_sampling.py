"""How many of several questions to ask each person: the numbers of the formula, and the command."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from tidegate.collect.adviser import best_question
from tidegate.collect.question_sampling import (
    category_variance,
    mean_variance,
    plan_means,
    plan_poll,
    plan_questions,
    plan_units,
)
from tidegate.errors import Unsupported
from tidegate.policy import Category, Integer, Items

GOLDEN = [  # questions, values, epsilon, best number per person, its error, the error of asking all; N = 2,000
    (6, 4, 2, 1, 3.54, 10.19),
    (6, 4, 6, 2, 1.93, 2.99),
    (6, 4, 12, 4, 1.36, 1.44),
    (10, 2, 1, 1, 7.65, 22.4),
    (2, 2, 4, 2, 1.47, 1.47),
    (4, 10, 4, 1, 1.50, 3.82),
]


@pytest.mark.parametrize(("questions", "values", "epsilon", "each", "error", "split"), GOLDEN)
def test_best_number_of_questions(
    questions: int, values: int, epsilon: int, each: int, error: float, split: float
) -> None:
    plan = plan_questions(questions, values, epsilon=epsilon, clients=2_000)
    assert (plan.each, plan.epsilon_each * each) == (each, epsilon)
    assert (100 * plan.error, 100 * plan.errors[-1]) == pytest.approx((error, split), abs=0.05)
    assert plan.to_dict()["errors"] == list(plan.errors)
    assert f"Ask each person {each} of {questions}" in str(plan)


def test_means_have_their_own_numbers() -> None:
    assert [mean_variance(epsilon) for epsilon in (1, 2, 4)] == pytest.approx([4.29, 1.04, 0.219], abs=0.005)
    plan = plan_means(6, epsilon=4, clients=1)
    assert plan.each == 2
    assert (plan.errors[0], plan.errors[1], plan.errors[-1]) == pytest.approx((2.70, 2.48, 3.25), abs=0.005)


def test_published_rule_is_within_ten_percent() -> None:
    """Wang et al. 2019: s = max(1, min(d, floor(epsilon / 2.5)))."""
    for questions in (2, 5, 10, 20):
        for epsilon in (0.5, 1, 2, 4, 6, 8, 10):
            plan = plan_means(questions, epsilon=epsilon, clients=1)
            published = max(1, min(questions, math.floor(epsilon / 2.5)))
            assert plan.errors[published - 1] <= 1.1 * plan.error


def test_impossible_numbers_are_refused() -> None:
    with pytest.raises(Unsupported, match="at least 1 question"):
        plan_questions(0, 2, epsilon=1, clients=1)
    with pytest.raises(Unsupported, match="above 0"):
        plan_means(1, epsilon=0, clients=1)


@pytest.mark.parametrize(("questions", "values", "epsilon", "each", "error", "split"), GOLDEN)
def test_units_of_one_kind_have_the_same_plan(
    questions: int, values: int, epsilon: int, each: int, error: float, split: float
) -> None:
    share = 1 / values

    def variance(part: Fraction) -> float:
        return category_variance(values, part) + share * (1 - share)

    plan = plan_units([variance] * questions, epsilon=epsilon, clients=2_000)
    assert (plan.each, plan.epsilon_each * each) == (each, epsilon)
    assert 100 * plan.errors["1"] == pytest.approx(error, abs=0.05)
    assert 100 * plan.split[str(questions)] == pytest.approx(split, abs=0.05)


def test_units_of_different_kinds_are_compared_with_their_own_best() -> None:
    """One unit is best asked of everybody, the other of half: the number with the smaller loss for the worse of both wins."""
    free = plan_units([lambda epsilon: 1.0, lambda epsilon: 1.0], epsilon=1, clients=100)
    assert (free.each, free.errors) == (2, {"1": 0.1, "2": 0.1})
    noisy = plan_units([lambda epsilon: 1.0, lambda epsilon: float(epsilon) ** -4], epsilon=1, clients=100)
    assert (noisy.each, noisy.errors["1"]) == (1, pytest.approx(math.sqrt(0.02)))
    assert "Ask each person 1 of 2 questions with epsilon 1 each" in str(noisy)
    assert noisy.to_dict()["by_count"][1] == list(noisy.by_count[1])
    with pytest.raises(Unsupported, match="at least 1 question"):
        plan_units([], epsilon=1, clients=1)


def test_plan_of_a_poll_mixes_numbers_categories_and_sets() -> None:
    questions = {
        "age": lambda epsilon: best_question("age", Integer(18, 65), epsilon=epsilon, mean=True),
        "commute": lambda epsilon: best_question("commute", Category(tuple("abcd")), epsilon=epsilon),
        "dishes": lambda epsilon: best_question("dishes", Items(tuple("abcde")), epsilon=epsilon, choose=2),
    }
    plan = plan_poll(questions, epsilon=2, clients=2_000)
    assert (plan.each, tuple(plan.errors)) == (1, tuple(questions))
    assert all(error < plan.split[name] for name, error in plan.errors.items())
    rich = plan_poll(questions, epsilon=40, clients=2_000)
    assert rich.each == 3
