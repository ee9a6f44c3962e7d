"""The informed adversary does not break what holds, and breaks what does not.

True code is accused at most once in 1 / ALPHA runs, in each of the sampled tests; planted faults are found under the fixed
seed, and were in four fresh runs. What is checked against enumeration is exact.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from audit.faults import FRESH, less_noise, long, losing, people, persons, random

from tidegate.accounting import budget_of
from tidegate.audit.answers.adversary import attack_answers, calibrated, one_by_one, together, until_refused
from tidegate.audit.answers.ask import Remembered, Run, draws, event_of, honest
from tidegate.audit.answers.black_box import attack_losses
from tidegate.audit.answers.sampling import Means, law_of, posterior_odds
from tidegate.audit.answers.situations import Situation, situations, unasked
from tidegate.audit.fake_data import Imagined, ceiling_of, copy_of, table_of
from tidegate.noise import SeededBits
from tidegate.policy import Dataset, EachPerson, Identification, Integer, Policy
from tidegate.policy.attributes import Items
from tidegate.risk import identification
from tidegate.session import Session

pytestmark = pytest.mark.claim

ALPHA = 1e-6
POLICIES = {
    "values": people(),
    "a prior": people(prior={"age": "0.3"}, rho="0.6"),
    "persons' values": people(unit=EachPerson("person", 3)),
    "persons": persons(),
    "a loss": losing(),
}
given: dict[str, Any] = {"alpha": ALPHA, "clock": long()}


@pytest.fixture(params=POLICIES, scope="module")
def situation(request: pytest.FixtureRequest) -> Situation:
    (found,) = situations(POLICIES[request.param])
    return found


# What he knows


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_a_made_up_data_set_may_lose_what_the_policy_allows(policy: Policy) -> None:
    copied = copy_of(policy, units=6)
    assert ceiling_of(copied) == budget_of(policy).ceiling
    assert copied.dataset.source == copied.dataset.ledger == ""


@pytest.mark.parametrize("policy", [people(), people(unit=EachPerson("person", 3))], ids=["rows", "persons"])
def test_numbers_worked_out_by_hand_are_those_of_the_engine(policy: Policy) -> None:
    copied = copy_of(policy, units=4)
    units = ({"age": 9, "sex": 1}, {"age": 0}, {"age": 4, "pay": 3}, {"age": 9, "pay": 4, "sex": 1})
    engine, hand = table_of(copied, units), Imagined(copied, units)
    (found,) = situations(policy)
    for query in found.questions():
        event = event_of(query, copied, epsilon=Fraction(1))
        drawn = [draws(query, table, event, times=3, bits=SeededBits(1)) for table in (engine, hand)]
        np.testing.assert_array_equal(*drawn)
    assert engine.size == hand.size


def test_his_odds_are_those_of_an_enumeration(situation: Situation) -> None:
    """Every question: likelihoods from exact numbers of every world, one by one, by `risk.identification.posterior`."""
    for query in situation.questions():
        if query.statistic == "quantile":
            continue
        event: Any = event_of(query, situation.policy, epsilon=ceiling_of(situation.policy).value)
        tiny = less_noise(Fraction(1, 10**9))
        worlds = [situation.world(place) for place in range(situation.codes.size)]
        exact = [draws(query, world, event, times=1, bits=SeededBits(2), run=tiny)[0] for world in worlds]
        answer = draws(query, worlds[0], event, times=1, bits=SeededBits(3))
        scales = [float(s) for s in getattr(event, "scales", ()) if s is not None] or [float(event.scale)] * len(
            exact[0]
        )
        after = identification.posterior(np.array(exact), answer[0], scale=np.array(scales), prior=situation.prior)
        odds = np.exp(posterior_odds(situation, law_of(situation, query, event)(answer)))[0]
        prior = situation.prior[situation.special]
        assert odds * prior / (odds * prior + 1 - prior) == pytest.approx(after[situation.special], rel=1e-9)


def test_the_law_of_a_choice_is_the_frequency_of_its_draws() -> None:
    (situation,) = situations(people())
    query = next(one for one in situation.questions() if one.statistic == "quantile")
    event = event_of(query, situation.policy, epsilon=Fraction(4))
    law = law_of(situation, query, event)
    drawn = draws(query, Remembered(situation.world(9)), event, times=4000, bits=SeededBits(f"{FRESH}/law"))
    shares = np.bincount(drawn[:, 0].astype(int), minlength=10) / 4000
    told = np.exp(law(np.arange(10.0)[:, None])[:, 9])
    assert told.sum() == pytest.approx(1)
    assert np.abs(shares - told).max() < 6 * 0.5 / np.sqrt(4000)  # six standard errors: 2e-9 each


def test_what_cannot_be_asked_about_is_said_not_to_be_tried() -> None:
    columns = {"basket": Items(("a", "b", "c")), "age": Integer(0, 3)}
    policy = Policy(Dataset("d"), columns, Identification("0.5", protect=("basket", "age")))
    assert unasked(policy) == ["basket"]
    assert [one.target for one in situations(policy)] == ["age"]
    bare = Policy(Dataset("d"), {"basket": Items(("a", "b", "c"))}, Identification("0.5", protect=("basket",)))
    (found,) = attack_answers(bare, alpha=ALPHA, seconds=0.1, seed=FRESH)
    assert found.verdict == "not tried"
    assert attack_losses(bare, alpha=ALPHA, seconds=0.1, seed=FRESH) == []


# What holds is not accused


def test_true_answers_are_not_accused(situation: Situation) -> None:
    bits, drawn = SeededBits(f"{FRESH}/{situation.target}"), random(1)
    found = one_by_one(situation, Means(random=drawn, bits=bits, most=1_000, **given))
    found.append(together(situation, Means(random=drawn, bits=bits, most=1_000, **given)))
    assert {one.verdict for one in found} == {"held"}
    assert all(one.bound is not None and one.promised == pytest.approx(situation.promised) for one in found)


def test_his_claim_comes_near_to_the_promise() -> None:
    """Otherwise nothing would be learnt from its being held: of a ceiling of 0.4 he proves more than 0.3."""
    (situation,) = situations(people())
    found = one_by_one(situation, Means(random=random(2), bits=SeededBits(f"{FRESH}/near"), most=8_000, **given))
    assert 0.3 < (found[1].bound or 0) <= 0.4


def test_the_least_noise_for_a_rho_keeps_it_and_no_more() -> None:
    """Calibrated to single values, one sum lets him come near to rho = 0.4, and not beyond."""
    (situation,) = situations(people())
    (found,) = calibrated(situation, Means(random=random(11), bits=SeededBits(f"{FRESH}/tight"), most=20_000, **given))
    assert found.verdict == "held"
    assert 0.3 < (found.bound or 0) <= 0.4


@pytest.mark.parametrize("policy", [POLICIES[name] for name in ("a prior", "persons' values", "persons", "a loss")])
def test_tight_calibration_is_attacked_only_where_it_can_be_asked_for(policy: Policy) -> None:
    (situation,) = situations(policy)
    assert calibrated(situation, Means(random=random(12), bits=SeededBits("none"), most=1, **given)) == []


def test_the_front_door_refuses_in_time(situation: Situation) -> None:
    found = until_refused(situation, random=random(3), most=2, **given)
    assert found.verdict == "held"
    assert "two answers each, then refusals" in found.says


# Teeth


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_half_the_noise_is_found(policy: Policy) -> None:
    (situation,) = situations(policy)
    run: Run = less_noise(Fraction(1, 2))
    found = one_by_one(
        situation, Means(random=random(4), bits=SeededBits(f"{FRESH}/half"), run=run, most=2_500, **given)
    )
    assert found[-1].broken


def test_a_quarter_less_noise_is_found() -> None:
    (situation,) = situations(people())
    run = less_noise(Fraction(3, 4))
    found = one_by_one(
        situation, Means(random=random(5), bits=SeededBits(f"{FRESH}/3/4"), run=run, most=8_000, **given)
    )
    assert found[1].broken


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(3, 4)])
def test_less_than_the_least_noise_for_a_rho_is_found(share: Fraction) -> None:
    (situation,) = situations(people())
    bits = SeededBits(f"{FRESH}/loose/{share}")
    (found,) = calibrated(situation, Means(random=random(13), bits=bits, run=less_noise(share), most=20_000, **given))
    assert found.broken


def test_hardly_any_noise_shows_in_his_guess_too() -> None:
    (situation,) = situations(people())
    run = less_noise(Fraction(1, 20))
    found = one_by_one(
        situation, Means(random=random(6), bits=SeededBits(f"{FRESH}/none"), run=run, most=1_000, **given)
    )
    assert [one.broken for one in found] == [True, True]
    assert together(
        situation, Means(random=random(7), bits=SeededBits(f"{FRESH}/all"), run=run, most=1_000, **given)
    ).broken


def test_a_person_whose_rows_all_count_is_found() -> None:
    """The noise is for three rows a person, but five are counted."""
    (situation,) = situations(people(unit=EachPerson("person", 3)))

    def too_many(mechanism: Any, query: Any, table: Any, event: Any, bits: Any) -> Any:
        return mechanism.perturb(mechanism.exact(query, _Fuller(table)), event, bits=bits)

    found = one_by_one(
        situation, Means(random=random(8), bits=SeededBits(f"{FRESH}/rows"), run=too_many, most=5_000, **given)
    )
    assert found[1].broken


class _Fuller:
    """A table in which everybody has five thirds of the rows that count."""

    def __init__(self, table: Any) -> None:
        self.table, self.policy, self.axis = table, table.policy, table.axis

    def count(self, *more: Any, **named: Any) -> Any:
        return self.table.count(*more, **named) * 5 // 3

    def moments(self, *more: Any, **named: Any) -> Any:
        return tuple(cells * 5 // 3 for cells in self.table.moments(*more, **named))


class Generous(Session):
    """Whose ledger allows three times as much as the policy that is attacked."""

    def __init__(self, policy: Policy) -> None:
        assert policy.loss is not None
        super().__init__(replace(policy, identification=None, loss=type(policy.loss)(3 * policy.loss.epsilon)))


def test_a_budget_that_is_not_kept_is_found_at_once(situation: Situation) -> None:
    found = until_refused(situation, random=random(9), door=Generous, most=1, **given)
    assert found.broken
    assert "released more than the policy allows" in found.says


def test_a_session_with_little_noise_is_found_through_the_front_door() -> None:
    """The fault is behind the door alone: the ledger is charged as if nothing were wrong."""
    (situation,) = situations(people(rho="0.25"))
    found = until_refused(situation, random=random(10), door=Careless, most=40, alpha=1e-3, clock=long())
    assert found.broken
    assert "then refusals" in found.says


class Careless(Session):
    """Adds a hundredth of the noise that it is charged for."""

    def answer(self, asked: Any, **wanted: Any) -> Any:
        from tidegate.answer.mechanisms import mechanism_for

        told = super().answer(asked, **wanted)
        run = less_noise(Fraction(1, 100))
        return replace(told, stored=run(mechanism_for(asked), asked, self.table, told.event, SeededBits("careless")))


def test_all_of_it_runs_within_its_time() -> None:
    found = attack_answers(people(), alpha=ALPHA, seconds=1.0, seed=FRESH, run=honest)
    assert [one.verdict for one in found] == ["held"] * 5
    assert sum(one.alpha or 0.0 for one in found) <= ALPHA * (1 + 1e-9)
