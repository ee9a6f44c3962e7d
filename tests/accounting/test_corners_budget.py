"""Remaining budgets, advice, and the loss that a probability allows on its own."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.accounting import ZERO, Amount, Budget, Target, budget_of, identification_after, loss_for
from tidegate.errors import Infeasible, Unsupported
from tidegate.policy import Category, Dataset, Identification, Integer, Loss, Policy

F = Fraction
TOWN = Target("town", F(20), F(1, 10))
AGE = Target("age", F(74), F(1, 10))
amounts = st.builds(Amount, st.integers(0, 10**34))


@given(amounts, amounts)
def test_remaining_budget_is_never_negative(first: Amount, second: Amount) -> None:
    low, high = sorted((first, second))
    assert high.minus(low) + low == high
    assert low.minus(high) == ZERO


@given(amounts)
def test_advised_amount_fits_and_wastes_less_than_one_percent(left: Amount) -> None:
    advised = Amount.parse(left.say_below())
    assert advised <= left
    assert left.value - advised.value <= left.value / 100
    assert len(left.say_below().strip("0.").replace(".", "")) <= 3 or left.value >= 1000


@pytest.mark.parametrize(
    ("value", "advised"),
    [("0", "0"), ("2.3899", "2.38"), ("0.019999", "0.0199"), ("12.999", "12.9"), ("4567.8", "4567")],
)
def test_advice_is_three_digits_rounded_down(value: str, advised: str) -> None:
    assert Amount.up(value).say_below() == advised


def test_amount_prints_three_digits_and_is_true_if_positive() -> None:
    assert Amount.up("2.3899").say() == "2.39"
    assert Amount(1)
    assert not ZERO
    assert float(Amount.up("0.25")) == 0.25


def test_negative_amount_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be negative"):
        Amount(-1)


@pytest.mark.parametrize(("rho", "worlds"), [("0.05", 20), ("0.04", 20), ("1", 20), ("1.5", 20)])
def test_infeasible_rho_has_no_loss(rho: str, worlds: int) -> None:
    with pytest.raises(ValueError, match="larger than the probability of a random guess"):
        loss_for(F(rho), F(worlds))


@pytest.mark.parametrize("worlds", [F(1), F(1, 2)])
def test_single_candidate_is_always_identified(worlds: Fraction) -> None:
    assert identification_after(ZERO, worlds) == 1


def test_identification_stays_a_probability_for_any_loss() -> None:
    assert identification_after(Amount.up(10**9), F(10**6)) == 1
    assert identification_after(ZERO, F(4)) >= Decimal("0.25")
    assert identification_after(ZERO, F(3, 2)) < 1


def test_infeasible_target_has_limit_zero() -> None:
    hopeless = Target("sex", F(2), F(1, 10))
    assert hopeless.limit == ZERO
    assert Budget((AGE, hopeless)).ceiling == ZERO
    with pytest.raises(Infeasible, match='"sex"'):
        Budget((AGE, hopeless)).refuse_infeasible()


def test_feasible_targets_are_accepted() -> None:
    Budget((AGE, TOWN)).refuse_infeasible()
    AGE.refuse()


@pytest.mark.parametrize(
    ("worlds", "least"), [(F(2), "0.5001"), (F(16), "0.06251"), (F(100), "0.010001"), (F(480), "0.002084")]
)
def test_advised_rho_is_the_smallest_feasible_one(worlds: Fraction, least: str) -> None:
    with pytest.raises(Infeasible) as refusal:
        Target("town", worlds, F(1, 1000)).refuse()
    assert refusal.value.do.startswith(f"Promise at least {least}, remove it from `protect`")
    assert "possibilities or more" not in str(refusal.value)
    advised = F(least)
    assert Target("town", worlds, advised).feasible
    assert not Target("town", worlds, advised - F(1, 10 ** (len(least) - 2))).feasible
    assert (refusal.value.facts["rho"], refusal.value.facts["worlds"]) == (0.001, float(worlds))


def test_no_rho_is_advised_for_a_single_value() -> None:
    with pytest.raises(Infeasible) as refusal:
        Target("town", F(1), F(1, 2)).refuse()
    assert refusal.value.do.startswith("Remove it from `protect`")


def test_loss_alone_is_the_lowest_of_all_targets() -> None:
    budget = Budget((AGE, TOWN))
    assert budget.loss_alone(F(1, 5)) == loss_for(F(1, 5), F(20))
    assert budget.ceiling == loss_for(F(1, 10), F(20))
    with pytest.raises(Infeasible, match='"town"'):
        budget.loss_alone(F(1, 20))


def test_rho_needs_targets_and_is_below_one() -> None:
    with pytest.raises(Unsupported, match="requires a policy with an identification promise"):
        Budget(()).loss_alone(F(1, 5))
    for budget in (Budget(()), Budget((AGE,))):
        with pytest.raises(Unsupported) as refusal:
            budget.loss_alone(F(1))
        assert refusal.value.what == "`rho` must be a probability below 1."


def test_loss_promise_alone_sets_the_limit() -> None:
    budget = budget_of(Policy(Dataset("d"), {"sex": Category(("f", "m"))}, None, Loss("0.7")))
    assert (budget.targets, budget.ceiling) == ((), Amount.up("0.7"))


def test_persons_are_one_target_besides_the_loss() -> None:
    promise = Identification("0.4", worlds="persons", population=10)
    budget = budget_of(Policy(Dataset("d", rows=3), {"age": Integer(1, 9)}, promise, Loss(9)))
    assert [target.name for target in budget.targets] == ["person"]
    assert budget.ceiling == loss_for(F(2, 5), F(8))
