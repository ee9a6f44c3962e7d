"""rho <-> epsilon: the published numbers, the rounding, and several targets at once."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.people import people_policy

from tidegate.accounting import Amount, Target, budget_of, identification_after, loss_for
from tidegate.errors import Infeasible
from tidegate.policy import Category, Dataset, Identification, Integer, Loss, Policy

rhos = st.fractions(Fraction(1, 10**6), Fraction(999_999, 10**6))
worlds = st.fractions(Fraction(3, 2), 10**9)


@given(rhos, worlds)
def test_loss_for_rho_is_rounded_down_by_less_than_a_grain(rho: Fraction, candidates: Fraction) -> None:
    assume(rho * candidates > 1)
    with mpmath.workdps(120):
        odds = (candidates - 1) * rho / (1 - rho)
        true = mpmath.log(mpmath.mpf(odds.numerator) / odds.denominator)
        computed = mpmath.mpf(loss_for(rho, candidates).grains) / mpmath.mpf(10) ** 30
        assert 0 <= true - computed < mpmath.mpf("1.001e-30")


@given(rhos, worlds)
def test_spending_the_whole_limit_keeps_the_promise(rho: Fraction, candidates: Fraction) -> None:
    assume(rho * candidates > 1)
    after = identification_after(loss_for(rho, candidates), candidates)
    assert after <= Decimal(rho.numerator) / Decimal(rho.denominator) + Decimal("1e-27")
    assert after > 1 / (Decimal(candidates.numerator) / Decimal(candidates.denominator)) - Decimal("1e-27")


@given(st.integers(0, 10**32), worlds)
def test_identification_is_rounded_up(grains: int, candidates: Fraction) -> None:
    with mpmath.workdps(120):
        loss = mpmath.mpf(grains) / mpmath.mpf(10) ** 30
        true = 1 / (1 + (mpmath.mpf(candidates.numerator) / candidates.denominator - 1) * mpmath.exp(-loss))
        computed = mpmath.mpf(str(identification_after(Amount(grains), candidates)))
        assert -mpmath.mpf("1e-60") <= computed - true < mpmath.mpf("1e-50")


@given(rhos, rhos, worlds)
def test_larger_rho_never_allows_less(first: Fraction, second: Fraction, candidates: Fraction) -> None:
    low, high = sorted((first, second))
    assume(low * candidates > 1)
    assert loss_for(low, candidates) <= loss_for(high, candidates)


PUBLISHED = {
    "age": (74, "2.093"),
    "education": (16, "0.511"),
    "gain": (100_000, "9.316"),
    "loss": (4357, "6.182"),
    "hours": (99, "2.388"),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_budgets_of_the_adult_attributes_match_the_paper(name: str) -> None:
    """Lee & Clifton 2012, equation (15) with the value universes of their Table 3 and rho = 0.1."""
    candidates, epsilon = PUBLISHED[name]
    assert round(float(loss_for(Fraction(1, 10), Fraction(candidates))), 3) == float(epsilon)


def test_repeated_full_answers_raise_identification() -> None:
    full = loss_for(Fraction(1, 10), Fraction(99))
    assert float(identification_after(full + full, Fraction(99))) == pytest.approx(0.5475, abs=5e-5)
    assert float(identification_after(full + full + full, Fraction(99))) == pytest.approx(0.9294, abs=5e-5)


@pytest.mark.parametrize("candidates", [10, 20])
def test_rho_at_or_below_a_random_guess_is_refused(candidates: int) -> None:
    with pytest.raises(Infeasible) as refusal:
        Target("town", Fraction(candidates), Fraction(1, 20)).refuse()
    assert refusal.value.facts["smallest_rho"] == 1 / candidates
    assert refusal.value.facts["worlds_needed"] == 21
    assert "0.05 cannot be promised" in str(refusal.value)


def test_limit_is_the_lowest_of_all_targets_and_the_loss() -> None:
    attributes = {"age": Integer(17, 90), "education": Integer(1, 16), "sex": Category(("f", "m"))}
    both = Identification("0.1", protect=("age", "education"))
    budget = budget_of(Policy(Dataset("d"), attributes, both))
    assert budget.ceiling == loss_for(Fraction(1, 10), Fraction(16))
    assert budget_of(Policy(Dataset("d"), attributes, both, Loss("0.25"))).ceiling == Amount.up("0.25")
    assert not budget_of(Policy(Dataset("d"), attributes)).ceiling


def test_prior_counts_as_one_over_its_largest_probability() -> None:
    policy = Policy(
        Dataset("d"), {"town": Category(tuple("abcd"))}, Identification("0.6", protect=("town",), prior={"town": "0.5"})
    )
    assert budget_of(policy).targets[0].worlds == 2
    flat = Policy(
        Dataset("d"), {"town": Category(tuple("abcd"))}, Identification("0.6", protect=("town",), prior={"town": "0.1"})
    )
    assert budget_of(flat).targets[0].worlds == 4  # a prior below one over the number of values says nothing


def test_adversary_who_knows_fewer_rows_faces_fewer_worlds() -> None:
    """(population - known) / (rows - known): 10 persons, 3 rows (spec: 8 worlds informed; 9/2 with one known; 10/3 with none)."""
    for known, candidates in ((None, Fraction(8)), (1, Fraction(9, 2)), (0, Fraction(10, 3))):
        promise = Identification("0.4", worlds="persons", population=10, known=known)
        assert budget_of(Policy(Dataset("d", rows=3), {"age": Integer(1, 9)}, promise)).targets[0].worlds == candidates


def test_identification_of_every_target_follows_from_the_total() -> None:
    budget = budget_of(people_policy())
    assert float(budget.identification(budget.ceiling)["age"]) == pytest.approx(0.1, abs=1e-12)
    assert float(budget.identification(Amount(0))["age"]) == pytest.approx(1 / 74)
