"""A tracker with overlapping queries learns no more than promised, and a repeated query returns the same answer.

Correct code is accused at most once in 1 / ALPHA runs, in each sampled test.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from audit.faults import FRESH, less_noise, long, loss_policy, people, persons, random

from tidegate.audit.answers.ask import run_mechanism
from tidegate.audit.answers.differencing import Tracker, attack_differences, repeat_query, track
from tidegate.audit.answers.situations import situations
from tidegate.audit.answers.timing import attack_timing, mann_whitney
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
OPTIONS: dict[str, Any] = {"alpha": ALPHA, "clock": long(), "doors_most": 2}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_least_squares_without_noise_name_the_right_part_of_the_column(policy: Policy) -> None:
    """The attack itself works: without noise the tracker is right."""
    (situation,) = situations(policy)
    tracker = Tracker(situation)
    for secret in range(situation.codes.size):
        answers = tracker.draw(random(1).permutation([secret]), SeededBits(1), less_noise(Fraction(1, 10**9)))
        named = int(tracker.name_values(answers)[0])
        same = [(code >= tracker.cuts).tolist() for code in (named, secret)]
        assert same[0] == same[1] if situation.attribute.kind == "integer" else named == secret


@pytest.mark.one_in(3)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_tracker_names_no_more_than_promised_with_noise(policy: Policy) -> None:
    (situation,) = situations(policy)
    finding = track(situation, random=random(2), bits=SeededBits(f"{FRESH}/t"), most=2_000, **OPTIONS)
    assert finding.verdict == "held"
    assert (finding.bound or 0) <= situation.promised


@pytest.mark.one_in(3)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_missing_composition_is_detected(policy: Policy) -> None:
    """Every answer has the noise of one that costs the whole budget, but eight or sixteen are requested."""
    (situation,) = situations(policy)
    count = len(Tracker(situation).questions)
    run, bits = less_noise(Fraction(1, 2 * count)), SeededBits(f"{FRESH}/c")
    assert track(situation, random=random(3), bits=bits, run=run, most=2_000, **OPTIONS).broken


class Quiet(Session):
    """A session that adds hardly any noise; the bare mechanism is correct."""

    def answer(self, question: Any, **options: Any) -> Any:
        from tidegate.answer.mechanisms import mechanism_for

        answer = super().answer(question, **options)
        run = less_noise(Fraction(1, 10**5))
        stored = run(mechanism_for(question), question, self.table, answer.event, SeededBits("quiet"))
        return type(answer)(answer.query, answer.policy, answer.event, stored, answer.charge)


@pytest.mark.long  # test_blackbox.py detects a fault through the front door
def test_fault_in_sessions_alone_is_detected() -> None:
    (situation,) = situations(POLICIES["categories"])
    options: dict[str, Any] = {"alpha": 1e-3, "clock": long(), "most": 500, "doors_most": 12}
    assert track(situation, random=random(4), bits=SeededBits(1), run=run_mechanism, door=Quiet, **options).broken


class Forgetful(Session):
    """A session that treats every repetition of a query as a new one."""

    times = 0

    def answer(self, question: Any, **options: Any) -> Any:
        Forgetful.times += 1
        again = question if question.condition is None else question.where(question.condition)
        for _ in range(Forgetful.times % 5):
            again = again.where(question.condition)
        return super().answer(again, **options)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("policy", [people(), persons(), loss_policy()], ids=["values", "persons", "a loss"])
def test_repeated_query_is_one_answer_and_one_charge(policy: Policy) -> None:
    finding = repeat_query(situations(policy)[0])
    assert finding.verdict == "held"
    assert "1 different answer, charged" in finding.says


def test_session_that_draws_new_noise_is_detected() -> None:
    assert repeat_query(situations(people())[0], door=Forgetful).broken


@pytest.mark.long  # test_time_that_depends_on_the_value_is_observed is cheaper
def test_whole_attack_runs_and_timing_is_only_observed() -> None:
    findings = attack_differences(people(), alpha=ALPHA, seconds=0.5, seed=FRESH)
    assert [finding.verdict for finding in findings] == ["held", "held"]
    (timing,) = attack_timing(people(), alpha=ALPHA, seconds=0.5, seed=FRESH)
    assert timing.verdict == "observed"
    assert 0 <= (timing.bound or 0) <= 1


def test_times_are_compared_by_the_mann_whitney_test() -> None:
    from scipy.stats import mannwhitneyu

    here, there = random(5).normal(size=40), random(6).normal(0.4, size=50)
    here[:5] = there[:5]
    area, chance = mann_whitney(here, there)
    theirs = mannwhitneyu(here, there, method="asymptotic", use_continuity=False)
    assert area == pytest.approx(theirs.statistic / 2000)
    assert chance == pytest.approx(theirs.pvalue, rel=1e-3)  # scipy corrects for ties


class Slow(Session):
    """A session that takes longer if the private value meets the query's condition."""

    def answer(self, question: Any, **options: Any) -> Any:
        from time import sleep

        sleep(0.25 * int(self.table.count((), where=question.condition) > 2))
        return super().answer(question, **options)


def test_time_that_depends_on_the_value_is_observed() -> None:
    (finding,) = attack_timing(people(), alpha=0.05, seconds=0.1, seed=FRESH, door=Slow)
    assert finding.verdict == "observed"
    assert (finding.bound or 0) > 0.9
    assert "unlikely by chance alone" in finding.says
