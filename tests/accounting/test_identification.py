"""rho <-> epsilon: the published numbers, the rounding, and several targets at once."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from people import people_policy

from tidegate.accounting import Amount, Target, budget_of, identification_after, loss_for
from tidegate.errors import Infeasible
from tidegate.policy import Category, Dataset, Identification, Integer, Loss, Policy

rhos = st.fractions(Fraction(1, 10**6), Fraction(999_999, 10**6))
worlds = st.fractions(Fraction(3, 2), 10**9)


@given(rhos, worlds)
def test_the_loss_that_rho_allows_is_rounded_down_by_less_than_a_grain(rho: Fraction, many: Fraction) -> None:
    assume(rho * many > 1)
    with mpmath.workdps(120):
        odds = (many - 1) * rho / (1 - rho)
        true = mpmath.log(mpmath.mpf(odds.numerator) / odds.denominator)
        found = mpmath.mpf(loss_for(rho, many).grains) / mpmath.mpf(10) ** 30
        assert 0 <= true - found < mpmath.mpf("1.001e-30")


@given(rhos, worlds)
def test_spending_all_that_rho_allows_keeps_the_promise(rho: Fraction, many: Fraction) -> None:
    assume(rho * many > 1)
    after = identification_after(loss_for(rho, many), many)
    assert after <= Decimal(rho.numerator) / Decimal(rho.denominator) + Decimal("1e-27")
    assert after > 1 / (Decimal(many.numerator) / Decimal(many.denominator)) - Decimal("1e-27")


@given(st.integers(0, 10**32), worlds)
def test_identification_is_rounded_up(grains: int, many: Fraction) -> None:
    with mpmath.workdps(120):
        loss = mpmath.mpf(grains) / mpmath.mpf(10) ** 30
        true = 1 / (1 + (mpmath.mpf(many.numerator) / many.denominator - 1) * mpmath.exp(-loss))
        found = mpmath.mpf(str(identification_after(Amount(grains), many)))
        assert -mpmath.mpf("1e-60") <= found - true < mpmath.mpf("1e-50")


@given(rhos, rhos, worlds)
def test_a_larger_rho_never_allows_less(one: Fraction, other: Fraction, many: Fraction) -> None:
    low, high = sorted((one, other))
    assume(low * many > 1)
    assert loss_for(low, many) <= loss_for(high, many)


PUBLISHED = {
    "age": (74, "2.093"),
    "education": (16, "0.511"),
    "gain": (100_000, "9.316"),
    "loss": (4357, "6.182"),
    "hours": (99, "2.388"),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_budgets_of_the_adult_attributes_at_a_tenth(name: str) -> None:
    """Lee & Clifton 2012, equation (15) with the value universes of their Table 3 and rho = 0.1."""
    many, epsilon = PUBLISHED[name]
    assert round(float(loss_for(Fraction(1, 10), Fraction(many))), 3) == float(epsilon)


def test_two_and_three_full_answers_about_hours_leave_more_risk() -> None:
    full = loss_for(Fraction(1, 10), Fraction(99))
    assert float(identification_after(full + full, Fraction(99))) == pytest.approx(0.5475, abs=5e-5)
    assert float(identification_after(full + full + full, Fraction(99))) == pytest.approx(0.9294, abs=5e-5)


@pytest.mark.parametrize("many", [10, 20])
def test_a_rho_no_better_than_a_blind_guess_is_refused_with_the_numbers(many: int) -> None:
    with pytest.raises(Infeasible) as told:
        Target("town", Fraction(many), Fraction(1, 20)).refuse()
    assert told.value.facts["smallest_rho"] == 1 / many
    assert told.value.facts["worlds_needed"] == 21
    assert "0.05 cannot be promised" in str(told.value)


def test_the_ceiling_is_the_lowest_of_all_targets_and_the_loss() -> None:
    attributes = {"age": Integer(17, 90), "education": Integer(1, 16), "sex": Category(("f", "m"))}
    both = Identification("0.1", protect=("age", "education"))
    budget = budget_of(Policy(Dataset("d"), attributes, both))
    assert budget.ceiling == loss_for(Fraction(1, 10), Fraction(16))
    assert budget_of(Policy(Dataset("d"), attributes, both, Loss("0.25"))).ceiling == Amount.up("0.25")
    assert not budget_of(Policy(Dataset("d"), attributes)).ceiling


def test_a_prior_counts_as_one_over_its_largest_probability() -> None:
    policy = Policy(
        Dataset("d"), {"town": Category(tuple("abcd"))}, Identification("0.6", protect=("town",), prior={"town": "0.5"})
    )
    assert budget_of(policy).targets[0].worlds == 2
    flat = Policy(
        Dataset("d"), {"town": Category(tuple("abcd"))}, Identification("0.6", protect=("town",), prior={"town": "0.1"})
    )
    assert budget_of(flat).targets[0].worlds == 4  # a prior below one over the number of values says nothing


def test_an_adversary_who_knows_fewer_rows_faces_fewer_worlds_for_each_place() -> None:
    """(population - known) / (rows - known): 10 persons, 3 rows (spec: 8 worlds informed; 9/2 with one known; 10/3 with none)."""
    for known, many in ((None, Fraction(8)), (1, Fraction(9, 2)), (0, Fraction(10, 3))):
        promise = Identification("0.4", worlds="persons", population=10, known=known)
        assert budget_of(Policy(Dataset("d", rows=3), {"age": Integer(1, 9)}, promise)).targets[0].worlds == many


def test_the_identification_of_every_target_follows_from_one_total() -> None:
    budget = budget_of(people_policy())
    assert float(budget.identification(budget.ceiling)["age"]) == pytest.approx(0.1, abs=1e-12)
    assert float(budget.identification(Amount(0))["age"]) == pytest.approx(1 / 74)
