"""Observers find the sensitive group without control, and if a control has a fault.

ALPHA is the probability with which one interval is wrong. Correct code fails by chance at most that often in each of 6
sampled claims, 6e-6 for the file; that no group is significant or convinces is exact. Planted faults are detected in
(nearly) every run.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from claims.probabilities import SEED, chance

from tidegate.audit import OBSERVERS, Observation, as_text, observe, survey
from tidegate.audit.releases import observers as each
from tidegate.audit.releases.observers import area, outscored_share, relative_entropy
from tidegate.audit.releases.worlds import NOBODY, Everything, ObservedRelease, draw_pair, draw_world, observe_release
from tidegate.demo.soldiers import BASELINE, HEADQUARTERS, SHARES, concealment
from tidegate.policy import Concealment
from tidegate.release.gate import Decisions, Gate
from tidegate.release.plan import Plan, make_plan

ALPHA = 1e-6
FRESH = int.from_bytes(SEED.encode(), "big") % 2**32
SMALL: Any = {"worlds": 60, "records": 600, "confidence": 1 - ALPHA, "seed": FRESH}


def soldiers(*tests: str) -> Plan:
    return make_plan(concealment(tests=tests), BASELINE, SHARES)


def two_groups() -> Plan:
    promise = Concealment(reveals="age", about="location", tests="kullback-leibler")
    return make_plan(promise, BASELINE, (Fraction(1), Fraction(1)))


def by_observer(observations: list[Observation]) -> dict[str, Observation]:
    return {observation.observer: observation for observation in observations}


# The interval


@pytest.mark.parametrize("number", [1, 7, 40])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_interval_of_coin_tosses_misses_with_at_most_the_stated_probability(number: int, confidence: float) -> None:
    """Exactly, over all outcomes: coins have the largest variance of all shares with a given mean."""
    ends = [area([1.0] * k + [0.0] * (number - k), confidence=confidence)[1:] for k in range(number + 1)]
    for true in np.linspace(0.001, 0.999, 83):
        missed = sum(
            math.comb(number, k) * true**k * (1 - true) ** (number - k)
            for k, (low, high) in enumerate(ends)
            if not low <= true <= high
        )
        assert missed <= 1 - confidence + 1e-12


def test_half_the_width_would_miss_too_often() -> None:
    number, missed = 40, 0.0
    for k in range(number + 1):
        mean, low, high = area([1.0] * k + [0.0] * (number - k), confidence=0.95)
        inside = mean - (mean - low) / 2 <= 0.5 <= mean + (high - mean) / 2
        missed += 0 if inside else math.comb(number, k) / 2**number
    assert missed > 0.05


def test_interval_ends_follow_from_the_relative_entropy() -> None:
    mean, low, high = area([0.2, 0.9, 0.7, 0.6], confidence=0.9)
    assert mean == pytest.approx(0.6)
    for end in (low, high):
        assert relative_entropy(mean, end) == pytest.approx(math.log(20) / 4, rel=1e-9)
    assert area([1.0] * 50, confidence=0.95)[2] == 1
    assert area([1.0] * 50, confidence=0.95)[1] == pytest.approx((0.05 / 2) ** (1 / 50))


def test_outscored_share_counts_pairs_and_half_of_ties() -> None:
    assert outscored_share(2.0, np.array([1.0, 2.0, 3.0, math.nan])) == (1 + 0.5 + 0 + 0.5) / 4
    assert outscored_share(math.nan, np.array([1.0, 2.0])) == 0.5
    assert outscored_share(math.inf, np.array([1.0, math.inf])) == 0.75


# Worlds


def test_only_the_sensitive_group_follows_the_profile() -> None:
    plan, profile = soldiers("kullback-leibler"), np.array(HEADQUARTERS) / sum(HEADQUARTERS)
    profile = (profile + plan.floats) / 2  # every cell gets enough records
    drawn = draw_world(plan, profile, 1_000_000, 1, np.random.default_rng([FRESH, 1]))
    counts = np.bincount(drawn.cells, minlength=50).reshape(5, 10)
    for y, column in enumerate(counts):
        assert chance(column, profile if y == 1 else plan.floats) > ALPHA
        assert chance(column, plan.floats if y == 1 else profile) < ALPHA
    np.testing.assert_array_equal(counts.sum(axis=1), 100 * np.array(SHARES))


def test_every_group_is_sometimes_the_sensitive_one() -> None:
    plan, profile = soldiers("kullback-leibler"), np.array(HEADQUARTERS) / sum(HEADQUARTERS)
    pairs = [draw_pair(plan, profile, 50, np.random.default_rng([FRESH, 2, k])) for k in range(400)]
    assert {sensitive.sensitive for sensitive, _ in pairs} == {0, 1, 2, 3, 4}
    assert {calm.sensitive for _, calm in pairs} == {NOBODY}


def test_observed_release_contains_records_and_moments() -> None:
    plan = two_groups()
    drawn = draw_world(plan, plan.floats, 40, NOBODY, np.random.default_rng([FRESH, 3]))

    class Hesitant:
        """Releases the first record with the second request, then every one at once."""

        def __init__(self, plan: Plan) -> None: ...

        def decide(self, cells: np.ndarray, numbers: np.ndarray) -> Decisions:
            return Decisions(np.array([1, 0, *numbers[2:]]), np.array([0, *range(2, len(cells) + 1)]))

    seen = observe_release(plan, plan.floats, drawn, Hesitant)
    released = drawn.cells[[1, 0, *range(2, 40)]]
    assert (seen.targets * plan.values + seen.values).tolist() == released.tolist()
    assert seen.moments.tolist() == [1, 1, *range(2, 40)]
    assert seen.sizes.tolist() == [20, 20]


# Observers, computed by hand


def hand_made() -> ObservedRelease:
    """Groups A and B, two equally likely values; the profile prefers the first, 8 to 2."""
    promise = Concealment(reveals="x", about="y", tests="kullback-leibler")
    plan = Plan(promise, (Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 2), Fraction(1, 2)))
    return ObservedRelease(
        plan,
        np.array([0.8, 0.2]),
        values=np.array([0, 0, 1, 0, 1, 1]),
        targets=np.array([0, 0, 0, 1, 0, 1]),
        moments=np.array([0, 0, 3, 4, 4, 4]),
        sizes=np.array([5, 8]),
    )


MORE, LESS = math.log(1.6), math.log(0.4)


@pytest.mark.parametrize(
    ("observer", "scores"),
    [
        (each.likelihood_ratio, [2 * MORE + 2 * LESS, MORE + LESS]),
        (each.kullback_leibler_p_value, [0.0, 0.0]),
        (each.significant, [0.0, 0.0]),
        (each.convinced, [0.0, 0.0]),
        (each.target_shares, [1 / 5, 6 / 8]),
        (each.early_records, [2 * MORE + 2 * LESS, MORE + LESS]),
        (each.drying_up, [-(0 + 1 + 2 + 4) / 4 / 6, -(3 + 5) / 2 / 6]),
        (each.changed_values, [MORE - LESS, MORE - LESS]),
        (each.bursts, [2 / 4, 1 / 2]),
        (each.values_in_bursts, [(MORE + LESS) / 2, LESS]),
        (each.runs, [2 / 4 - 4 / 6, 0 / 1 - 2 / 6]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_observer_scores_equal_those_computed_by_hand(observer: Any, scores: list[float]) -> None:
    np.testing.assert_allclose(observer(hand_made()), scores, atol=1e-12)


def test_every_observer_is_computed_by_hand() -> None:
    marks = test_observer_scores_equal_those_computed_by_hand.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert {case[0] for case in marks} == set(OBSERVERS.values())


# The audit


@pytest.mark.claim
def test_observers_succeed_without_control() -> None:
    observations = by_observer(observe(soldiers("kullback-leibler"), HEADQUARTERS, control=Everything, **SMALL))
    for name in ("likelihood ratio", "smallest KL p-value", "significant", "convinced", "early records"):
        assert observations[name].low > 0.5, name
    assert observations["likelihood ratio"].auc > 0.99
    for name in ("shares of groups", "bursts"):  # everything is released at once, which reveals nothing
        assert observations[name].auc == 0.5
    assert {observation.test for observation in observations.values()} == {"none"}
    assert all(observation.released == 1 for observation in observations.values())


@pytest.mark.claim
@pytest.mark.parametrize("tests", [("kullback-leibler",), ("mutual-information", "kullback-leibler")])
def test_no_group_is_significant_under_the_distance_test(tests: tuple[str, ...]) -> None:
    observations = by_observer(observe(soldiers(*tests), HEADQUARTERS, **SMALL))
    assert observations["significant"].auc == 0.5
    assert observations["smallest KL p-value"].released < 1


@pytest.mark.claim
def test_no_observer_is_convinced_under_the_posterior_test() -> None:
    observations = by_observer(observe(soldiers("posterior"), HEADQUARTERS, **{**SMALL, "worlds": 120}))
    assert observations["convinced"].auc == 0.5
    assert observations["significant"].low > 0.5  # what the posterior test does not prevent


@pytest.mark.claim
def test_no_test_hides_the_group_from_an_observer_who_ranks() -> None:
    """The docs warn of this: the most suspicious group is the sensitive one, though never significant."""
    observations = by_observer(observe(soldiers("mutual-information", "kullback-leibler"), HEADQUARTERS, **SMALL))
    assert observations["likelihood ratio"].low > 0.5
    assert observations["shares of groups"].low > 0.5


@pytest.mark.claim
def test_nothing_is_found_without_a_sensitive_group() -> None:
    """Every profile is the baseline: intervals of all observers contain 1/2, together except with probability ALPHA."""
    plan = soldiers("kullback-leibler")
    for observation in observe(plan, plan.floats, **{**SMALL, "confidence": 1 - ALPHA / len(OBSERVERS)}):
        assert observation.low <= 0.5 <= observation.high, observation.observer


class IgnoresTheFirstGroup:
    """A faulty gate: records of one group are released without a test."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def decide(self, cells: np.ndarray, numbers: np.ndarray) -> Decisions:
        tested = cells >= self.plan.values
        right = Gate(self.plan).decide(cells[tested], numbers[tested])
        released: list[int] = []
        ends, decided = np.empty(len(cells), np.int64), 0
        for at, number in enumerate(numbers.tolist()):
            if tested[at]:
                released += right.after(decided).tolist()
                decided += 1
            else:
                released.append(number)
            ends[at] = len(released)
        return Decisions(np.array(released, np.int64), ends)


@pytest.mark.claim
@pytest.mark.parametrize(("fault", "worlds"), [(Everything, 60), (IgnoresTheFirstGroup, 300)])
def test_faulty_control_is_detected_by_an_observer(fault: Any, worlds: int) -> None:
    """Under the correct control this observer has no information (two tests above)."""
    options = {**SMALL, "worlds": worlds, "observers": {"significant": each.significant}}
    (right,) = observe(two_groups(), HEADQUARTERS, **{**options, "worlds": 60})
    assert right.auc == 0.5
    (wrong,) = observe(two_groups(), HEADQUARTERS, control=fault, **options)
    assert wrong.low > 0.5
    assert wrong.betrayed


def test_same_seed_gives_the_same_observations() -> None:
    size: Any = {"worlds": 5, "records": 200}
    plan = soldiers("kullback-leibler")
    once, again, other = (observe(plan, HEADQUARTERS, seed=seed, **size) for seed in (1, 1, 2))
    assert once == again
    assert once != other


def test_survey_starts_without_control_and_covers_every_promise() -> None:
    promises = [concealment(tests=tests, significance=level)
                for level in ("0.2", "0.05") for tests in (["dixon"], ["kullback-leibler", "posterior"])]  # fmt: skip
    observations = survey(promises, HEADQUARTERS, worlds=2, records=100)
    settings = list(dict.fromkeys((observation.test, observation.significance) for observation in observations))
    assert settings == [
        ("none", None),
        ("dixon", Fraction(1, 5)),
        ("kullback-leibler and posterior", Fraction(1, 5)),
        ("dixon", Fraction(1, 20)),
        ("kullback-leibler and posterior", Fraction(1, 20)),
    ]
    assert len(observations) == len(settings) * len(OBSERVERS)
    json.dumps([observation.to_dict() for observation in observations], allow_nan=False)
    table = as_text(observations).splitlines()
    assert len(table) == 1 + len(settings)
    assert all(name in table[0] for name in OBSERVERS)
