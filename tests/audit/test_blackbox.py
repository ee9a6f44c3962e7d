"""The loss that answers alone prove is never more than they cost, unless a fault is planted.

Correct code is accused at most once in 1 / ALPHA runs, in each sampled test.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from audit.faults import FRESH, days, float_noise, less_noise, long, loss_policy, people, surer

from tidegate.accounting import Amount
from tidegate.answer.spending import RequestedLoss
from tidegate.audit.answers.ask import is_whole
from tidegate.audit.answers.black_box import (
    Pair,
    Tables,
    attack_losses,
    low_bits,
    measure_in_sessions,
    measure_loss,
    pairs,
)
from tidegate.audit.fake_data import copy_policy
from tidegate.noise import SeededBits
from tidegate.policy import Category, Dataset, EachPerson, Key, Loss, Policy
from tidegate.session import Session

pytestmark = pytest.mark.claim

ALPHA = 1e-6
POLICY = copy_policy(loss_policy("40"), units=6)
TABLES = Tables(POLICY)
RANKED = ("quantile", "min", "max")
PAIRS = {pair.query.says(): pair for pair in pairs(POLICY)}


def measure_pair(pair: Pair, *, tables: Tables = TABLES, epsilon: int = 1, most: int = 5_000, **more: Any) -> Any:
    few = dict.fromkeys(RANKED, most // 10).get(pair.query.statistic, most)
    few = most // 20 if pair.query.statistic == "regression" else few
    bits = SeededBits(f"{FRESH}/{pair.query.says()}")
    options = {"loss": RequestedLoss(Fraction(epsilon)), "alpha": ALPHA, "clock": long(), "bits": bits, "most": few}
    return measure_loss(tables, pair, **{**options, **more})


def test_every_mechanism_is_queried() -> None:
    statistics = {pair.query.statistic for pair in PAIRS.values()}
    assert statistics == {"count", "histogram", "sum", "mean", "variance", "std", *RANKED, "regression"}
    assert {pair.query.method for pair in PAIRS.values() if pair.query.terms} == {"k-norm", "functional"}
    assert any(pair.query.groups for pair in PAIRS.values())


def test_a_policy_of_categories_alone_can_be_attacked() -> None:
    policy = Policy(Dataset("d"), {"k": Key(), "g": Category((1, 2, 3)), "h": Category((True, False))}, None, Loss(1))
    assert [pair.query.statistic for pair in pairs(copy_policy(policy, units=6))] == ["count", "histogram", "count"]


def test_a_sum_is_requested_of_a_number_if_dates_come_first() -> None:
    tables = Tables(copy_policy(days(), units=6))
    cases = {pair.query.says(): pair for pair in pairs(tables.policy)}
    assert [says for says in cases if "sum" in says] == ["the sum of age", "the sum of age where sex = 'm'"]
    assert {pair.query.statistic for pair in cases.values()} == {pair.query.statistic for pair in PAIRS.values()}
    mean = cases["the mean of day"]
    assert measure_pair(mean, tables=tables).verdict == "held"
    assert measure_pair(mean, tables=tables, run=less_noise(Fraction(1, 3))).broken


@pytest.mark.one_in(4)
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_no_answer_proves_more_than_it_costs(pair: Pair) -> None:
    finding = measure_pair(pair)
    assert finding.verdict == "held"
    assert finding.promised == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("says", ["the number of rows where age = 9", "the number of rows by sex", "the mean of age"])
def test_proven_loss_is_close_to_the_cost(says: str) -> None:
    assert measure_pair(PAIRS[says]).bound > 0.55


# Planted faults. No two neighbors here reach the price of choices and box noise, so their faults must be larger.


def as_case(name: str) -> Any:
    """Return a pair as a test case. Of the two regressions, that by the functional mechanism is in every run."""
    marks = [pytest.mark.long] if name == "the regression of age on pay" else []
    return pytest.param(PAIRS[name], id=name, marks=marks)


@pytest.mark.long_for("regression")
@pytest.mark.parametrize("pair", [as_case(name) for name in PAIRS])
def test_too_little_noise_is_detected_in_every_mechanism(pair: Pair) -> None:
    fault = surer(8) if pair.query.statistic in RANKED else less_noise(Fraction(1, 3))
    fault = less_noise(Fraction(1, 8)) if pair.query.statistic == "regression" else fault
    most = 20_000 if pair.query.statistic == "regression" else 6_000
    assert measure_pair(pair, run=fault, most=most).broken


def test_group_mean_charged_as_if_groups_were_fixed_is_detected() -> None:
    assert measure_pair(PAIRS["the mean of age by sex"], run=less_noise(Fraction(1, 2)), most=20_000).broken


def test_noise_for_one_row_of_a_person_with_three_is_detected() -> None:
    """Noise for one row per person, although three count."""
    tables = Tables(copy_policy(loss_policy("4", EachPerson("person", 3)), units=6))
    pair = pairs(tables.policy)[0]
    assert not measure_pair(pair, tables=tables).broken
    assert measure_pair(pair, tables=tables, run=less_noise(Fraction(1, 3))).broken


def test_floating_point_noise_is_detected_by_its_low_bits() -> None:
    cases = list(PAIRS.values())
    options: dict[str, Any] = {"loss": RequestedLoss(Fraction(1)), "bits": SeededBits(f"{FRESH}/bits")}
    assert low_bits(TABLES, cases, **options).verdict == "held"
    assert low_bits(TABLES, cases, run=float_noise, **options).broken
    assert is_whole({"cells": [1, [2, None]]})
    assert not is_whole({"cells": [1, [2.0]]})


class Undercharging(Session):
    """A session that spends thirty times the loss that it reports."""

    def answer(self, question: Any, **options: Any) -> Any:
        answer = super().answer(question, epsilon=30 * options["epsilon"])
        cost = Amount.up(options["epsilon"])
        charge = replace(answer.charge, cost=cost, price=replace(answer.charge.price, pure=cost))
        return type(answer)(answer.query, answer.policy, answer.event, answer.stored, charge)


def test_undercharged_answer_is_detected_through_the_front_door() -> None:
    options: dict[str, Any] = {"loss": RequestedLoss(Fraction(1)), "alpha": 1e-3, "clock": long(), "most": 60}
    pair = PAIRS["the number of rows where age = 9"]
    assert measure_in_sessions(TABLES, pair, **options).verdict == "held"
    assert measure_in_sessions(TABLES, pair, door=Undercharging, **options).broken


def test_too_few_answers_are_reported_as_not_tried() -> None:
    options: dict[str, Any] = {"loss": RequestedLoss(Fraction(1)), "alpha": ALPHA, "clock": long(), "most": 4}
    finding = measure_in_sessions(TABLES, PAIRS["the mean of age"], **options)
    assert finding.verdict == "not tried"
    assert finding.says.startswith("Too few")


@pytest.mark.long  # test_informed_adversary.py and test_average.py run whole attacks
def test_the_whole_attack_runs_and_keeps_its_alpha() -> None:
    findings = attack_losses(people(), alpha=ALPHA, seconds=0.5, seed=FRESH)
    assert {finding.verdict for finding in findings} <= {"held", "not tried"}
    assert len(findings) == len(PAIRS) + 2
    assert sum(finding.alpha or 0.0 for finding in findings) <= ALPHA * (1 + 1e-9)
