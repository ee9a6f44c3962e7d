"""A tracker who asks about all and about all but one gets nowhere, and the same question again gives the same answer.

True code is accused at most once in 1 / ALPHA runs, in each sampled test.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from audit.faults import FRESH, less_noise, long, losing, people, persons, random

from tidegate.audit.answers.ask import honest
from tidegate.audit.answers.differencing import Tracker, asked_again, attack_differences, tracked
from tidegate.audit.answers.situations import situations
from tidegate.audit.answers.timing import attack_timing, told_apart
from tidegate.noise import SeededBits
from tidegate.policy import Category, Dataset, EachPerson, Identification, Policy
from tidegate.session import Session

pytestmark = pytest.mark.claim

ALPHA = 1e-6
GROUPS = {"g": Category(("a", "b", "c", "d")), "h": Category(("x", "y"))}
POLICIES = {
    "rows": people(rho="0.3"),
    "persons": people(rho="0.3", unit=EachPerson("person", 3)),
    "categories": Policy(Dataset("d", rows=100), GROUPS, Identification("0.5", protect=("g",))),
}
given: dict[str, Any] = {"alpha": ALPHA, "clock": long(), "doors_most": 2}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_without_noise_least_squares_name_the_right_part_of_the_column(policy: Policy) -> None:
    """He would be right if there were no noise: the attack itself works."""
    (situation,) = situations(policy)
    tracker = Tracker(situation)
    for secret in range(situation.codes.size):
        answers = tracker.drawn(random(1).permutation([secret]), SeededBits(1), less_noise(Fraction(1, 10**9)))
        named = int(tracker.named(answers)[0])
        same = [(place >= tracker.cuts).tolist() for place in (named, secret)]
        assert same[0] == same[1] if situation.attribute.kind == "integer" else named == secret


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_with_noise_he_names_no_more_than_is_promised(policy: Policy) -> None:
    (situation,) = situations(policy)
    found = tracked(situation, random=random(2), bits=SeededBits(f"{FRESH}/t"), most=2_000, **given)
    assert found.verdict == "held"
    assert (found.bound or 0) <= situation.promised


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_forgotten_composition_is_found(policy: Policy) -> None:
    """Every answer has the noise of a single one that may cost everything: he asks eight or sixteen of them."""
    (situation,) = situations(policy)
    many = len(Tracker(situation).questions)
    run, bits = less_noise(Fraction(1, 2 * many)), SeededBits(f"{FRESH}/c")
    assert tracked(situation, random=random(3), bits=bits, run=run, most=2_000, **given).broken


class Quiet(Session):
    """Adds hardly any noise, behind the door alone."""

    def answer(self, asked: Any, **wanted: Any) -> Any:
        from tidegate.answer.mechanisms import mechanism_for

        told = super().answer(asked, **wanted)
        run = less_noise(Fraction(1, 10**5))
        stored = run(mechanism_for(asked), asked, self.table, told.event, SeededBits("quiet"))
        return type(told)(told.query, told.policy, told.event, stored, told.charge)


def test_a_fault_behind_the_door_alone_is_found() -> None:
    (situation,) = situations(POLICIES["categories"])
    more: dict[str, Any] = {"alpha": 1e-3, "clock": long(), "most": 500, "doors_most": 12}
    assert tracked(situation, random=random(4), bits=SeededBits(1), run=honest, door=Quiet, **more).broken


class Forgetful(Session):
    """Does not remember what it was asked: every time is the first."""

    times = 0

    def answer(self, asked: Any, **wanted: Any) -> Any:
        Forgetful.times += 1
        again = asked if asked.condition is None else asked.where(asked.condition)
        for _ in range(Forgetful.times % 5):
            again = again.where(asked.condition)
        return super().answer(again, **wanted)


@pytest.mark.parametrize("policy", [people(), persons(), losing()], ids=["values", "persons", "a loss"])
def test_the_same_question_again_is_one_answer_and_one_charge(policy: Policy) -> None:
    found = asked_again(situations(policy)[0])
    assert found.verdict == "held"
    assert "1 different answer, charged" in found.says


def test_a_session_that_draws_anew_is_found() -> None:
    assert asked_again(situations(people())[0], door=Forgetful).broken


def test_all_of_it_runs_and_the_clock_is_told_and_not_judged() -> None:
    found = attack_differences(people(), alpha=ALPHA, seconds=0.5, seed=FRESH)
    assert [one.verdict for one in found] == ["held", "held"]
    (time,) = attack_timing(people(), alpha=ALPHA, seconds=0.5, seed=FRESH)
    assert time.verdict == "observed"
    assert 0 <= (time.bound or 0) <= 1


def test_times_are_compared_as_mann_and_whitney_do() -> None:
    from scipy.stats import mannwhitneyu

    here, there = random(5).normal(size=40), random(6).normal(0.4, size=50)
    here[:5] = there[:5]
    area, chance = told_apart(here, there)
    theirs = mannwhitneyu(here, there, method="asymptotic", use_continuity=False)
    assert area == pytest.approx(theirs.statistic / 2000)
    assert chance == pytest.approx(theirs.pvalue, rel=1e-3)  # they correct for ties


class Slow(Session):
    """Takes a while where the private value is the one that is asked about."""

    def answer(self, asked: Any, **wanted: Any) -> Any:
        from time import sleep

        sleep(0.25 * int(self.table.count((), where=asked.condition) > 2))
        return super().answer(asked, **wanted)


def test_a_time_that_tells_the_value_is_seen() -> None:
    (found,) = attack_timing(people(), alpha=0.05, seconds=0.1, seed=FRESH, door=Slow)
    assert found.verdict == "observed"
    assert (found.bound or 0) > 0.9
    assert "unlikely by chance alone" in found.says
