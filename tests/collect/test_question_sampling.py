"""How many of several questions to ask each person: the numbers of the formula, and the command."""

from __future__ import annotations

import math

import pytest

from tidegate.collect.question_sampling import mean_variance, plan_means, plan_questions
from tidegate.errors import Unsupported

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
