"""The adviser keeps what was wanted, in every measure, and says what it costs."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pytest

from tidegate.collect.adviser import advise, best_question, mean_error, plain_universe, share_error
from tidegate.collect.choices import advise_choices
from tidegate.collect.measures import measure
from tidegate.collect.rounds import advise_rounds
from tidegate.errors import Unsupported
from tidegate.policy import Category, Date, Grid, Integer, Items, Question
from tidegate.policy.collection import operator_for

AGE, TOWN = Integer(16, 60), Category(tuple("abcdefgh"))


def measures_of(option: Any) -> tuple[float, float, float]:
    assert option.measures is not None
    return option.measures.epsilon, option.measures.privacy or math.inf, option.measures.entropy.loss


MONTHS = Date(dt.date(2023, 1, 1), dt.date(2024, 12, 31), "month")
UNIVERSES = {"numbers": AGE, "categories": TOWN, "a long grid": Grid(0, 100, "0.25"), "months": MONTHS}
TARGETS: list[dict[str, Any]] = [{"epsilon": 1}, {"breach": ("0.05", "0.5")}, {"loss": "0.3"}, {"interval": 1}]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("universe", "target"),
    [
        pytest.param(universe, target, id=f"{next(iter(target))}-{name}")
        for target in TARGETS
        for name, universe in UNIVERSES.items()
        if not ("interval" in target and universe is TOWN)  # a category has no interval
    ],
)
def test_every_option_meets_the_target_and_the_next_weaker_does_not(universe: Any, target: dict[str, Any]) -> None:
    advice = advise(universe, clients=10_000, **target)
    possible = [option for option in advice.options if option.measures]
    assert possible[0] is advice.best
    for option in possible:
        assert meets(target, option)
        if next(iter(target)) in ("loss", "interval"):
            assert not meets(target, weaker(universe, option))


def meets(target: dict[str, Any], option: Any) -> bool:
    epsilon, privacy, loss = measures_of(option)
    if "epsilon" in target:
        return epsilon <= 1 + 1e-12
    if "breach" in target:
        return epsilon < math.log(19) and option.measures.breach_limit < 0.5
    return loss <= 0.3 if "loss" in target else privacy >= 1


def weaker(universe: Any, option: Any) -> Any:
    from dataclasses import replace
    from fractions import Fraction

    name, value = option.parameter
    step = Fraction(3, 100) if name == "epsilon" else Fraction(-3, 100)
    operator = operator_for(Question("it", universe, option.operator, **{name: value + step}))
    return replace(option, measures=measure(operator))


def test_options_with_a_guarantee_come_first_and_impossible_ones_last() -> None:
    interval = advise(AGE, clients=10_000, interval=1)
    losses = [option.measures.epsilon for option in interval.options if option.measures]
    assert interval.best.operator == "square-wave"
    assert losses.index(math.inf) == 2
    epsilon = advise(AGE, clients=10_000, epsilon=1)
    assert [option.operator for option in epsilon.options if not option.measures] == ["uniform-noise", "gaussian-noise"]
    assert "unlimited" in epsilon.options[-1].why_not


@pytest.mark.parametrize(("values", "best"), [(3, {"randomized-response"}), (200, {"projective-geometry"})])
def test_category_options_are_ranked_by_exact_variance(values: int, best: set[str]) -> None:
    advice = advise(plain_universe(values, ordered=False), clients=5_000, epsilon=1)
    errors = {option.operator: option.error for option in advice.options}
    assert advice.best.operator in best
    assert advice.best.error <= 1.05 * min(errors.values())  # of those, the shortest report
    others = [round(option.error, 9) for option in advice.options[1:]]
    assert others == sorted(others)
    operator = operator_for(Question("it", plain_universe(values, ordered=False), advice.best.operator, epsilon=1))
    assert advice.best.error == pytest.approx(1.959964 * math.sqrt(operator.variance(1 / values) / 5_000), rel=1e-6)
    assert share_error(operator, 20_000) == pytest.approx(share_error(operator, 5_000) / 2)


def test_more_clients_show_more_and_the_line_fits_the_policy_file() -> None:
    small, large = (advise(AGE, clients=clients, epsilon=1) for clients in (200, 200_000))
    assert small.best.features < large.best.features
    assert "not identified" in str(small)
    assert 'operator = "square-wave", epsilon = 1' in str(large)
    assert large.to_dict()["recommended"] == 'operator = "square-wave", epsilon = 1'
    operator = operator_for(Question("age", AGE, "square-wave", epsilon=1))
    assert large.best.error == pytest.approx(mean_error(operator, 200_000))


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "nothing wanted": ({}, "Exactly one privacy target"),
    "two things wanted": ({"epsilon": 1, "loss": "0.1"}, "Exactly one privacy target"),
    "no clients": ({"epsilon": 1, "clients": 0}, "1 or more"),
    "epsilon above": ({"epsilon": 30}, "from 0.001 to 20"),
    "a breach the wrong way": ({"breach": ("0.5", "0.05")}, "a probability and a larger one"),
    "a breach too near": ({"breach": ("0.5", "0.5001")}, "too close"),
    "a loss of all": ({"loss": 1}, "between 0 and 1"),
    "an interval of nothing": ({"interval": 0}, "share of the range"),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_target_is_refused(case: str) -> None:
    options, says = WRONG[case]
    with pytest.raises(Unsupported, match=says):
        advise(AGE, **{"clients": 100, **options})
    with pytest.raises(Unsupported, match="no interval"):
        advise(TOWN, clients=100, interval=1)


def test_best_question_has_the_operator_of_the_guide() -> None:
    items = Items(tuple("abcdefgh"))
    towns = [plain_universe(size, ordered=False) for size in (4, 20, 200)]
    assert best_question("age", AGE, epsilon=2).operator == "square-wave"
    assert best_question("age", AGE, epsilon=2, mean=True).operator == "hybrid"
    assert [best_question("town", town, epsilon=2).operator for town in towns] == [
        "randomized-response",
        "subset",  # up to 3 e**2 + 2 = 24 values
        "projective-geometry",
    ]
    assert best_question("town", towns[1], epsilon="0.5").operator == "projective-geometry"
    assert best_question("dishes", items, epsilon=2).operator == "one-option"
    limited = best_question("dishes", items, epsilon=2, choose=3)
    assert (limited.operator, limited.parameters["choose"]) == ("privset", 3)
    rounds = [best_question("town", town, epsilon=2, each=1) for town in towns]
    assert [question.operator for question in rounds] == ["randomized-response", "hash-response", "hash-response"]


def test_rounds_are_advised_by_the_number_of_values() -> None:
    few, more = (advise_rounds(values, clients=2_000, epsilon=2, each=1) for values in (4, 20))
    assert [option.operator for option in few.options] == ["randomized-response", "unary", "hash-response"]
    assert (more.options[0].operator, more.options[0].lifetime, more.options[-1].lifetime) == ("hash-response", 4, 40)
    assert "use at most epsilon 4" in str(more)
    assert more.to_dict()["options"][0]["lifetime_epsilon"] == 4
    with pytest.raises(Unsupported, match="below `epsilon`"):
        advise_rounds(4, clients=10, epsilon=1, each=1)
    with pytest.raises(Unsupported, match="at least 2 values"):
        advise_rounds(1, clients=10, epsilon=1, each="0.5")


def test_free_choice_asks_for_a_limit_first() -> None:
    assert "choose = 3 the errors are 3.7 and 6.12" in str(advise_choices(8, clients=2_000, epsilon=2))
    assert "First decide" not in str(advise_choices(8, clients=2_000, epsilon=2, choose=3))
