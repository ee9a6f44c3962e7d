"""The loss that answers prove by themselves: never more than they cost, unless a fault is planted.

True code is accused at most once in 1 / ALPHA runs, in each sampled test.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from audit.faults import FRESH, float_noise, less_noise, long, losing, people, surer

from tidegate.audit.answers.ask import whole
from tidegate.audit.answers.black_box import Pair, Tables, attack_losses, low_bits, measured, pairs, through_the_door
from tidegate.audit.fake_data import copy_of
from tidegate.noise import SeededBits
from tidegate.policy import Category, Dataset, EachPerson, Key, Loss, Policy
from tidegate.session import Session

pytestmark = pytest.mark.claim

ALPHA = 1e-6
POLICY = copy_of(losing("40"), units=6)
TABLES = Tables(POLICY)
RANKED = ("quantile", "min", "max")
PAIRS = {pair.query.says(): pair for pair in pairs(POLICY)}


def proven(pair: Pair, *, tables: Tables = TABLES, epsilon: int = 1, most: int = 5_000, **more: Any) -> Any:
    few = dict.fromkeys(RANKED, most // 10).get(pair.query.statistic, most)
    few = most // 20 if pair.query.statistic == "regression" else few
    bits = SeededBits(f"{FRESH}/{pair.query.says()}")
    given = {"epsilon": Fraction(epsilon), "alpha": ALPHA, "clock": long(), "bits": bits, "most": few}
    return measured(tables, pair, **{**given, **more})


def test_every_mechanism_is_asked() -> None:
    asked = {pair.query.statistic for pair in PAIRS.values()}
    assert asked == {"count", "histogram", "sum", "mean", "variance", "std", *RANKED, "regression"}
    assert {pair.query.method for pair in PAIRS.values() if pair.query.terms} == {"k-norm", "functional"}
    assert any(pair.query.groups for pair in PAIRS.values())


def test_a_policy_of_categories_alone_can_be_asked() -> None:
    policy = Policy(Dataset("d"), {"k": Key(), "g": Category((1, 2, 3)), "h": Category((True, False))}, None, Loss(1))
    assert [pair.query.statistic for pair in pairs(copy_of(policy, units=6))] == ["count", "histogram", "count"]


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_no_answer_proves_more_than_it_costs(pair: Pair) -> None:
    found = proven(pair)
    assert found.verdict == "held"
    assert found.promised == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("says", ["the number of rows where age = 9", "the number of rows by sex", "the mean of age"])
def test_what_it_proves_comes_near_to_what_it_costs(says: str) -> None:
    assert proven(PAIRS[says]).bound > 0.6


# Teeth. Of choices and of box noise the price is not met by any two neighbours here, so their faults must be larger.


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_too_little_noise_is_found_in_every_mechanism(pair: Pair) -> None:
    fault = surer(8) if pair.query.statistic in RANKED else less_noise(Fraction(1, 3))
    fault = less_noise(Fraction(1, 8)) if pair.query.statistic == "regression" else fault
    most = 20_000 if pair.query.statistic == "regression" else 6_000
    assert proven(pair, run=fault, most=most).broken


def test_a_group_mean_charged_as_if_nobody_could_change_groups_is_found() -> None:
    assert proven(PAIRS["the mean of age by sex"], run=less_noise(Fraction(1, 2)), most=20_000).broken


def test_rows_beyond_those_that_count_are_found() -> None:
    """Noise for one row a person, although three count."""
    tables = Tables(copy_of(losing("4", EachPerson("person", 3)), units=6))
    pair = pairs(tables.policy)[0]
    assert not proven(pair, tables=tables).broken
    assert proven(pair, tables=tables, run=less_noise(Fraction(1, 3))).broken


def test_floating_point_is_found_by_its_bits_alone() -> None:
    asked = list(PAIRS.values())
    given: dict[str, Any] = {"epsilon": Fraction(1), "bits": SeededBits(f"{FRESH}/bits")}
    assert low_bits(TABLES, asked, **given).verdict == "held"
    assert low_bits(TABLES, asked, run=float_noise, **given).broken
    assert whole({"cells": [1, [2, None]]})
    assert not whole({"cells": [1, [2.0]]})


class Undercharging(Session):
    """Asks for thirty times the loss that it tells."""

    def answer(self, asked: Any, **wanted: Any) -> Any:
        told = super().answer(asked, epsilon=30 * wanted["epsilon"])
        shown = type(told.charge)(**{**told.charge.__dict__, "cost": type(told.cost).up(wanted["epsilon"])})
        return type(told)(told.query, told.policy, told.event, told.stored, shown)


def test_an_answer_that_cost_more_than_it_says_is_found_through_the_front_door() -> None:
    given: dict[str, Any] = {"epsilon": Fraction(1), "alpha": 1e-3, "clock": long(), "most": 60}
    pair = PAIRS["the number of rows where age = 9"]
    assert through_the_door(TABLES, pair, **given).verdict == "held"
    assert through_the_door(TABLES, pair, door=Undercharging, **given).broken


def test_few_answers_are_not_said_to_hold_anything() -> None:
    given: dict[str, Any] = {"epsilon": Fraction(1), "alpha": ALPHA, "clock": long(), "most": 4}
    found = through_the_door(TABLES, PAIRS["the mean of age"], **given)
    assert found.verdict == "not tried"
    assert found.says.startswith("Too few")


def test_all_of_it_runs_and_keeps_its_alpha() -> None:
    found = attack_losses(people(), alpha=ALPHA, seconds=0.5, seed=FRESH)
    assert {one.verdict for one in found} <= {"held", "not tried"}
    assert len(found) == len(PAIRS) + 2
    assert sum(one.alpha or 0.0 for one in found) <= ALPHA * (1 + 1e-9)
