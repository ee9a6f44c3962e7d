"""Promises about released records and randomized baskets: what is refused, with what is allowed beside it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tidegate.errors import PolicyUnreadable
from tidegate.policy import Category, Concealment, Dataset, Integer, Items, Key, Policy, Question
from tidegate.policy.concealment import Profile

GOOD: dict[str, Any] = {"reveals": "sex", "about": "age"}
YOUNG = {"young": Profile(prior="0.3", values=(3, 1))}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "nothing revealed": ({"reveals": ()}, "requires columns in `reveals`"),
    "about nothing": ({"about": ()}, "requires columns in `reveals`"),
    "about what is revealed": ({"about": ("age", "sex")}, "no column can be in both"),
    "significance of nothing": ({"significance": 0}, "between 0 and 1, not 0"),
    "significance of all": ({"significance": 1}, "between 0 and 1, not 1"),
    "a test that is not there": ({"tests": ("chi-square", "luck")}, 'Unknown test: "luck"'),
    "no test": ({"tests": ()}, "at least one test"),
    "a test twice": ({"tests": ("dixon", "dixon")}, "each named once"),
    "another merging": ({"merging": "backward"}, "`merging` must be one of forward"),
    "another table": ({"dixon_table": "guessed"}, "`dixon_table` must be one of exact"),
    "other small samples": ({"small_samples": "never"}, "`small_samples` must be one of"),
    "shows something else": ({"shows": "all"}, "`shows` must be one of bins"),
    "a day that is none": ({"baseline_from_table_on": "2026-02-30"}, "must be a date such as"),
    "a day written otherwise": ({"baseline_from_table_on": "20260401"}, "must be a date such as"),
    "two baselines": ({"baseline": (1, 1), "baseline_from_table_on": "2026-04-01"}, "has two baselines"),
    "one weight": ({"baseline": (1,)}, "at least two weights"),
    "a weight below 0": ({"baseline": (1, -1)}, "none below 0"),
    "weights of nothing": ({"shares": (0, 0)}, "not all 0"),
    "a weight of 0": ({"baseline": (2, 0, 1)}, "weight 0 for value 2 of 3"),
    "rho without its test": ({"rho": "0.5"}, "require the posterior test"),
    "profiles without their test": ({"profiles": YOUNG}, "require the posterior test"),
    "the posterior without rho": ({"tests": "posterior", "profiles": YOUNG}, "requires a `rho`"),
    "the posterior without profiles": ({"tests": "posterior", "rho": "0.5"}, "at least one profile"),
    "a rho of 1": ({"tests": "posterior", "profiles": YOUNG, "rho": 1}, "between 0 and 1"),
    "a rho of 0": ({"tests": "posterior", "profiles": YOUNG, "rho": 0}, "between 0 and 1"),
    "a rho that is exceeded": ({"tests": "posterior", "profiles": YOUNG, "rho": "0.3"}, "already exceeded"),
}


@pytest.mark.parametrize("case", WRONG)
def test_meaningless_concealment_is_refused(case: str) -> None:
    parameters, message = WRONG[case]
    with pytest.raises(PolicyUnreadable) as raised:
        Concealment(**{**GOOD, **parameters})
    assert message in raised.value.what


@pytest.mark.parametrize("prior", [0, 1, "1.5"])
def test_profile_prior_is_strictly_between_0_and_1(prior: Any) -> None:
    with pytest.raises(PolicyUnreadable, match="prior of a profile"):
        Profile(prior=prior, values=(1, 1))


def test_extreme_valid_concealment_survives_serialization() -> None:
    promise = Concealment(
        **GOOD,
        tests=("posterior",),
        profiles={"young": Profile(prior="0.3", values=(1, 0))},
        rho="0.31",
        baseline_from_table_on="2026-04-01",
        shares=("0.25", "1/3"),
        merging="smallest-first",
        significance="0.05",
    )
    assert promise.to_dict() == {
        "reveals": ["sex"],
        "about": ["age"],
        "tests": ["posterior"],
        "releases": ["sex", "age"],
        "significance": Decimal("0.05"),
        "baseline_from_table_on": "2026-04-01",
        "shares": [Decimal("0.25"), "1/3"],
        "rho": Decimal("0.31"),
        "merging": "smallest-first",
        "profiles": {"young": {"prior": Decimal("0.3"), "values": [1, 0]}},
    }
    assert str(promise) == "sex must not reveal age: posterior at 5%"
    assert set(Concealment(**GOOD).to_dict()) == {"reveals", "about", "tests", "releases", "significance"}


COLUMNS = {"sex": Category(("f", "m")), "age": Integer(0, 2), "person": Key(), "goods": Items(("milk", "tea"))}
MISFITS: dict[str, tuple[dict[str, Any], str]] = {
    "a key": ({"reveals": "person", "about": "age"}, "is a key or a set"),
    "a set": ({"reveals": "sex", "about": "goods"}, "is a key or a set"),
    "too few weights": ({"reveals": "age", "about": "sex", "baseline": (1, 1)}, "baseline has 2 weights for 3 cells"),
    "too many shares": ({**GOOD, "shares": (1, 1, 1, 1)}, "shares has 4 weights for 3 cells of age"),
    "a profile of others": (
        {**GOOD, "tests": "posterior", "rho": "0.5", "profiles": {"x": Profile(prior="0.1", values=(1, 1, 1))}},
        "profiles.x has 3 weights for 2 cells of sex",
    ),
    "a column without a test": ({"reveals": "sex", "about": "age", "releases": ("sex", "goods")}, "no test covers it"),
}


@pytest.mark.parametrize("case", MISFITS)
def test_concealment_that_does_not_fit_its_columns_is_refused(case: str) -> None:
    parameters, message = MISFITS[case]
    with pytest.raises(PolicyUnreadable) as raised:
        Policy(Dataset("d"), COLUMNS, concealments={"drift": Concealment(**parameters)})
    assert message in raised.value.what


def test_key_can_be_released_with_tested_columns() -> None:
    promise = Concealment(**GOOD, releases=("sex", "person"))
    assert Policy(Dataset("d"), COLUMNS, concealments={"drift": promise}).concealments["drift"].releases[1] == "person"


GOODS = Items(tuple("abcdef"))
PLAN = {"size": 1, "keep": ["0.5", "0.5"], "insert": "0.1"}
BASKETS: dict[str, tuple[dict[str, Any], str]] = {
    "a stranger": ({"operator": "mask", "keep": "0.9", "cutoff": 2}, "has no parameter cutoff"),
    "something missing": ({"operator": "cut-and-paste", "cutoff": 2, "rho": "0.1"}, "needs largest"),
    "no plans": ({"operator": "select-a-size"}, "needs plans"),
    "plans for a coin": ({"operator": "mask", "keep": "0.9", "plans": [PLAN]}, "does not accept plans"),
    "a chance above 1": (
        {"operator": "mask", "keep": "1.1"},
        "keep of mask must be a probability from 0 to 1; it is 1.1",
    ),
    "a chance below 0": ({"operator": "mask", "keep": "-0.1"}, "from 0 to 1; it is -0.1"),
    "half an item": ({"operator": "mask", "keep": "0.9", "largest": "1.5"}, "a whole number from 0 to 6; it is 1.5"),
    "more than there are": ({"operator": "mask", "keep": "0.9", "largest": 7}, "from 0 to 6; it is 7"),
    "less than nothing": ({"operator": "mask", "keep": "0.9", "largest": -1}, "from 0 to 6; it is -1"),
    "a plan too short": ({"operator": "select-a-size", "plans": [{**PLAN, "size": 2}]}, "needs 3 probabilities"),
    "a plan above 1": ({"operator": "select-a-size", "plans": [{**PLAN, "keep": ["0.6", "0.5"]}]}, "add up to 1"),
    "a plan below 0": ({"operator": "select-a-size", "plans": [{**PLAN, "keep": ["1.5", "-0.5"]}]}, "add up to 1"),
    "an insert above 1": ({"operator": "select-a-size", "plans": [{**PLAN, "insert": 2}]}, "`insert` from 0 to 1"),
    "a plan with more": ({"operator": "select-a-size", "plans": [{**PLAN, "say": 1}]}, "size, keep and insert"),
    "two plans for a size": ({"operator": "select-a-size", "plans": [PLAN, PLAN]}, "different sizes"),
    "a size that is not there": (
        {"operator": "select-a-size", "plans": [PLAN], "fixed": 2},
        "no plan has that size",
    ),
    "a fixed above the largest": (
        {"operator": "cut-and-paste", "cutoff": 1, "rho": "0.1", "largest": 2, "fixed": 3},
        "no plan has that size",
    ),
}


@pytest.mark.parametrize("case", BASKETS)
def test_mistakes_in_basket_questions_are_reported(case: str) -> None:
    parameters, message = BASKETS[case]
    with pytest.raises(PolicyUnreadable) as raised:
        Question("basket", GOODS, **parameters)
    assert message in raised.value.what


def test_plan_for_too_many_items_is_refused() -> None:
    plan = {"size": 2, "keep": ["0.5", "0.25", "0.25"], "insert": "0.1"}
    with pytest.raises(PolicyUnreadable, match="of at most 1 items"):
        Question("basket", Items(("milk",)), "select-a-size", plans=[plan])


def test_plans_are_sorted_by_size_and_keep_their_numbers() -> None:
    none = {"size": 0, "keep": [1], "insert": "1/3"}
    question = Question("basket", GOODS, "select-a-size", plans=[PLAN, none])
    assert [plan.size for plan in question.plans] == [0, 1]
    assert question.to_dict()["plans"][0] == {"size": 0, "keep": [1], "insert": "1/3"}
    assert str(question) == "basket by select-a-size with plans for 0, 1 items"
    assert Question("basket", GOODS, "select-a-size", plans=question.plans) == question
