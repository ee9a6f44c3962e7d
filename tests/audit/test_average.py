"""The guesser of the average guarantee does not accuse correct answers, and breaks planted faults.

Correct code is accused at most once in 1 / ALPHA runs, in each finding of the sampled tests. Planted faults are detected under
the fixed seed, and were in 40 of 40 fresh runs each; half the noise with the planned numbers of runs, for a power of 0.95,
in 37 (count) and 38 (histogram) of 40. Correct code was accused in none of 200. Rates and numbers of runs are exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
from audit.faults import COLUMNS, FRESH, less_noise, long, random
from claims.probabilities import at_least, bits

from tidegate import answer as ask
from tidegate.accounting import DiscreteGaussian, DiscreteLaplace, average_loss_for, average_yes_no, budget_of
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.run import plan
from tidegate.answer.spending import RequestedLoss
from tidegate.audit.answers.adversary import attack_answers, query_until_refused
from tidegate.audit.answers.ask import event_of
from tidegate.audit.answers.average import (
    guess_on_average,
    guess_row,
    guess_value,
    histogram_rate,
    name_cells,
    power_table,
    sum_rate,
    with_noise,
    yes_no_rate,
)
from tidegate.audit.answers.black_box import Tables, attack_losses, loss_of_one, measure_loss, pairs
from tidegate.audit.answers.differencing import attack_differences
from tidegate.audit.answers.sampling import Resources, WorldSampler, likelihood_of
from tidegate.audit.answers.situations import Situation, situations
from tidegate.audit.bounds import (
    best_distinction,
    chance_of_at_least,
    distinction_bound,
    largest_distinction,
    lower_bound,
    runs_to_detect,
)
from tidegate.audit.fake_data import MemoryTable, copy_policy, whole_budget
from tidegate.audit.run import audit
from tidegate.policy import Dataset, EachPerson, EachRow, Identification, Integer, Loss, Policy
from tidegate.session import Session

pytestmark = pytest.mark.claim

ALPHA = 1e-6


def ages(values: int, *, rho: str = "0.05", **more: Any) -> Policy:
    """Return a policy that protects an age on average: a random guess is right with probability 1 / values."""
    promise = Identification(rho, protect=("age",), guarantee="average", **more)
    return Policy(Dataset("people", rows=6), {"age": Integer(0, values - 1, missing="lowest")}, promise)


def people(*, rho: str = "0.4", unit: Any = None, loss: Loss | None = None, **more: Any) -> Policy:
    """Return the policy of the other attacks' tests, on average."""
    promise = Identification(rho, protect=("age",), guarantee="average", **more)
    return Policy(Dataset("people", unit=unit or EachRow(), rows=1000), COLUMNS, promise, loss)


def persons(known: int | None = None, rho: str = "0.3") -> Policy:
    """Return a policy that protects persons with three rows each, among 31 candidates."""
    promise = Identification(rho, worlds="persons", population=1030, known=known, guarantee="average")
    return Policy(Dataset("persons", unit=EachPerson("person", 3), rows=1000), COLUMNS, promise)


POLICIES = {
    "values": people(),
    "a prior": people(prior={"age": "0.3"}, rho="0.6"),
    "all priors": people(prior={"age": ("0.3", "0.2", *["0.0625"] * 8)}, rho="0.6"),
    "a window": people(within={"age": 1}, rho="0.5"),
    "persons' values": people(unit=EachPerson("person", 3)),
    "persons": persons(),
    "two unknown persons": persons(known=998, rho="0.4"),
    "a loss beside it": people(loss=Loss("1.5")),
}


def resources(name: object, *, most: int = 20_000, **more: Any) -> Resources:
    return Resources(ALPHA, long(), random(20), bits(f"average/{name}"), most=most, **more)


def situation_of(policy: Policy) -> Situation:
    return situations(policy)[0]


# Exact rates


def exact_histogram_rate(sigma: Fraction, cells: int) -> mpmath.mpf:
    """Return how often the cell with one row more has the largest noisy count, in 40 digits; ties are broken evenly."""
    with mpmath.workdps(40):
        deviation, reach = mpmath.mpf(sigma.numerator) / sigma.denominator, int(30 * sigma) + 3
        weights = {x: mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * deviation**2)) for x in range(-reach - 1, reach + 1)}
        total, rate, below = mpmath.fsum(weights.values()), mpmath.mpf(0), mpmath.mpf(0)
        for x in range(-reach, reach + 1):
            here = weights[x] / total
            rate += weights[x - 1] / total * ((below + here) ** cells - below**cells) / (cells * here)
            below += here
        return rate


def gaussian(sigma: Fraction) -> DiscreteGaussian:
    return DiscreteGaussian(Fraction(1), Fraction(1), sigma)


def chances(event: Any, reach: int) -> dict[int, float]:
    size = float(getattr(event, "sigma", 0) or event.scale)
    power = 2 if isinstance(event, DiscreteGaussian) else 1
    weights = {x: math.exp(-((abs(x) / size) ** power) / power) for x in range(-reach, reach + 1)}
    return {x: weight / sum(weights.values()) for x, weight in weights.items()}


@pytest.mark.parametrize("cells", [2, 45, 1000])
def test_histogram_rate_equals_a_sum_in_40_digits(cells: int) -> None:
    for sigma in (Fraction(1, 2), Fraction(17, 10), Fraction(9)):
        assert histogram_rate(gaussian(sigma), cells) == pytest.approx(
            float(exact_histogram_rate(sigma, cells)), rel=1e-14
        )


@pytest.mark.parametrize("event", [gaussian(Fraction(4, 5)), DiscreteLaplace(Fraction(2), Fraction(3, 4))])
@pytest.mark.parametrize("rows", [1, 2])
def test_rates_equal_an_enumeration_of_all_answers(event: Any, rows: int) -> None:
    """Three cells and two rows: the success is the mean of the largest posterior over all answers."""
    law = chances(event, 12)
    numbers = range(-9, 12)

    def likelihood(answer: tuple[int, ...], world: int) -> float:
        return math.prod(law.get(x - rows * (cell == world), 0.0) for cell, x in enumerate(answer))

    cells = sum(max(likelihood(answer, world) for world in range(3)) for answer in product(numbers, repeat=3)) / 3
    assert histogram_rate(event, 3, rows=rows) == pytest.approx(cells, abs=2e-5)
    two = sum(max(law.get(x, 0.0), law.get(x - rows, 0.0)) for x in range(-12, 15)) / 2
    assert yes_no_rate([event], rows=rows) == pytest.approx(two, abs=1e-6)


def test_rate_of_several_counts_equals_an_enumeration() -> None:
    event = gaussian(Fraction(6, 5))
    law = chances(event, 9)
    two = 0.0
    for answer in product(range(-8, 10), repeat=3):
        two += max(math.prod(law.get(x - shift, 0.0) for x in answer) for shift in (0, 1)) / 2
    assert yes_no_rate([event] * 3) == pytest.approx(two, abs=1e-7)
    with pytest.raises(ValueError, match="same discrete Gaussian"):
        yes_no_rate([event, gaussian(Fraction(1))])


def test_rate_of_a_sum_equals_an_enumeration() -> None:
    policy = ages(7, rho="0.2")
    event: Any = event_of(ask.sum("age"), policy, loss=whole_budget(policy))
    law = chances(gaussian(event.sigmas[1]), 300)
    best = sum(max(law.get(x - value, 0.0) for value in range(7)) for x in range(-290, 297)) / 7
    assert sum_rate(event, 7) == pytest.approx(best, rel=1e-9)


# Power


@pytest.mark.parametrize(("honest", "faulty"), [(0.05, 0.1), (0.7, 0.9), (0.3, 0.31)])
def test_number_of_runs_is_the_least_with_the_power(honest: float, faulty: float) -> None:
    def power(n: int) -> float:
        critical = next(k for k in range(n + 2) if k > n or at_least(k, n, honest) <= 1e-3)
        return at_least(critical, n, faulty) if critical <= n else 0.0

    runs = runs_to_detect(honest, faulty, alpha=1e-3)
    if runs is None or runs > 1000:
        assert honest == 0.3
        return
    assert power(runs) >= 0.95
    assert all(power(n) < 0.95 for n in range(1, runs))


def test_the_test_of_counts_is_the_bound_of_the_rate() -> None:
    """A rate is rejected at level alpha if and only if the lower bound is above it."""
    for hits in range(1, 40):
        rejected = chance_of_at_least(hits, 40, 0.4) <= 1e-3
        assert rejected == (lower_bound(hits, 40, alpha=1e-3) >= 0.4)
        assert chance_of_at_least(hits, 40, 0.4) == pytest.approx(at_least(hits, 40, 0.4), rel=1e-9)
    assert runs_to_detect(0.05, 0.05, alpha=1e-3) is None


# values: histogram against rho, histogram against its rate, sum against its rate, yes/no against its rate
SPECIFIED = {
    45: (1_950, 1_124, 21_476, 314),
    73: (892, 509, 16_863, 106),
    99: (607, 357, 16_990, 67),
    1000: (8_372, 637, 53_208, 185),
}
LEAST = {
    45: (1_948, 1_106, 21_351, 314),
    73: (865, 496, 16_732, 106),
    99: (595, 345, 16_718, 67),
    1000: (8_371, 635, 53_197, 185),
}


@pytest.mark.parametrize("values", SPECIFIED)
def test_power_table_equals_that_of_the_specification(values: int) -> None:
    """The specification's numbers are up to 3.5% above the least ones; the tolerance was set after that was seen.

    Power is not monotonic in the runs, which explains most of the differences: a search can stop at a later crossing. It does
    not explain 892 (73 values): the last crossing there is at 889.
    """
    table = power_table(values, Fraction(1, 20))
    histogram, total, count = table["histogram"], table["sum"], table["yes/no"]
    runs = (histogram.against_rho, histogram.against_honest, total.against_honest, count.against_honest)
    assert runs == LEAST[values]
    for least, specified in zip(LEAST[values], SPECIFIED[values], strict=True):
        assert least <= specified <= 1.035 * least
    assert total.against_rho is None
    assert total.faulty < 0.05 < histogram.faulty


def test_rates_of_99_values_are_those_of_the_specification() -> None:
    histogram = power_table(99, Fraction(1, 20))["histogram"]
    assert histogram.honest == pytest.approx(0.03772, abs=5e-6)
    assert histogram.faulty == pytest.approx(0.0998, abs=5e-5)


# What is attacked


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_simulated_data_set_has_the_limits_of_the_policy(policy: Policy) -> None:
    copied = copy_policy(policy, units=6)
    assert budget_of(copied).ceilings == budget_of(policy).ceilings
    event = event_of(ask.histogram("age"), copied, loss=whole_budget(copied))
    limits = budget_of(policy).ceilings
    assert limits.z is not None
    assert Fraction(99, 100) * limits.z.value < event.price.z.value <= limits.z.value or limits.pure is not None


def test_copies_keep_windows_and_the_version() -> None:
    wide = {"age": Integer(0, 999, missing="lowest")}
    promise = Identification("0.2", protect=("age",), guarantee="average", within={"age": 40})
    for policy in (
        Policy(Dataset("d", rows=9), wide, promise),
        Policy(Dataset("d", rows=9), wide, replace_within(promise), version=1),
        Policy(Dataset("d", rows=9), wide, Identification("0.2", protect=("age",)), version=1),
    ):
        assert budget_of(copy_policy(policy, units=6)).ceilings == budget_of(policy).ceilings
        assert situation_of(policy).random_guess == pytest.approx(float(budget_of(policy).targets[0].random_guess))


def replace_within(promise: Identification) -> Identification:
    return Identification(promise.rho, protect=promise.protect, guarantee=promise.guarantee)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_prior_of_the_adversary_is_at_most_that_of_the_promise(policy: Policy) -> None:
    situation, (target,) = situation_of(policy), budget_of(policy).targets
    assert situation.prior.sum() == pytest.approx(1)
    assert situation.random_guess <= float(target.random_guess) / target.guesses * (1 + 1e-9)
    assert situation.random_guess >= 0.8 * float(target.random_guess) / target.guesses


@pytest.mark.parametrize("name", ["values", "persons' values", "a loss beside it"])
def test_likelihoods_equal_those_of_an_enumeration(name: str) -> None:
    """For every query: the ratio of the probabilities of its noise, from the exact numbers of every world."""
    situation = situation_of(POLICIES[name])
    for query in situation.questions():
        if query.statistic == "quantile":
            continue
        event: Any = event_of(query, situation.policy, loss=whole_budget(situation.policy))
        mechanism: Any = mechanism_for(query)
        worlds = [situation.world(index) for index in range(situation.codes.size)]
        parts = [mechanism.exact(query, world).numbers for world in worlds]
        exact = np.array([np.hstack([np.ravel(part) for part in world]) for world in parts], np.float64)
        sizes = getattr(event, "sigmas", None) or getattr(event, "scales", None) or [_size(event)]
        noises = np.array([float(size) for size in sizes if size is not None])
        power = 1 if hasattr(event, "scale") or hasattr(event, "scales") else 2
        answer = np.round(exact[0] + np.linspace(-3, 3, exact.shape[1]) * noises)
        expected = -(np.abs((answer - exact) / noises) ** power / power).sum(axis=1)
        likelihoods = likelihood_of(situation, query, event)(answer[None])[0]
        np.testing.assert_allclose(likelihoods - likelihoods[0], expected - expected[0], atol=1e-9)


def _size(event: Any) -> Any:
    return event.sigma if isinstance(event, DiscreteGaussian) else event.scale


# Correct code is not accused


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", POLICIES)
def test_correct_answers_are_not_accused(name: str) -> None:
    findings = guess_on_average(situation_of(POLICIES[name]), resources(name, most=3_000))
    assert {finding.verdict for finding in findings[1:]} <= {"held", "not tried"}
    assert findings[0].verdict == "not tried"
    assert findings[1].verdict == "held"
    assert all(finding.alpha == ALPHA for finding in findings if finding.verdict == "held")


def test_rates_of_the_guesser_equal_the_exact_ones() -> None:
    """Two-sided, six standard errors: 2e-9 each."""
    situation = situation_of(people())
    for parts in (1, 4):
        sampler = WorldSampler(situation, [ask.histogram("age")] * parts, resources(f"rate {parts}"))
        rate = histogram_rate(with_noise(sampler.events[0], 1 / Fraction(parts**0.5)), 10)
        right = sampler.count_right(4_000) / 4_000
        slack = 0.0 if parts == 1 else 0.002  # a mean of discrete noise is not discrete noise of that size
        assert abs(right - rate) < 6 * math.sqrt(rate * (1 - rate) / 4_000) + slack


def test_finding_states_its_level_its_runs_and_its_power() -> None:
    finding = guess_value(situation_of(people()), resources("states"))
    assert "exact binomial test, level 1e-06" in finding.says
    assert f"{finding.tries:,} runs detect half the noise" in finding.says
    assert "Not tried here" in finding.says
    assert finding.promised == 0.4


def test_too_few_runs_are_reported_as_not_tried() -> None:
    finding = guess_value(situation_of(people()), resources("few"), runs=10)
    assert finding.verdict == "not tried"
    assert finding.says.startswith("Too few runs")


# Planted faults


def forget_composition(queries: Sequence[Any], policy: Policy, *, loss: RequestedLoss) -> list[Any]:
    """Price every answer as if it were the only one."""
    return [plan([query], policy, loss=loss)[0] for query in queries]


def count_window_as_zero(queries: Sequence[Any], policy: Policy, *, loss: RequestedLoss) -> Sequence[Any]:
    """Spend what the promise would allow if only the exact value counted."""
    (target,) = budget_of(policy).targets
    size = policy.attribute(target.name).size
    return plan(queries, policy, loss=RequestedLoss(average_loss_for(target.rho, Fraction(1, size)).value, "z"))


@pytest.mark.parametrize("name", ["values", "persons' values", "persons", "a loss beside it"])
def test_half_the_noise_is_detected_by_a_count(name: str) -> None:
    half = less_noise(Fraction(1, 2))
    finding = guess_row(situation_of(POLICIES[name]), resources(f"half {name}", run=half), runs=1_000)
    assert finding.broken


@pytest.mark.long  # test_informed_adversary.py detects half the noise
@pytest.mark.parametrize("policy", [people(), ages(99)], ids=["values", "99 values"])
def test_half_the_noise_is_detected_by_histograms_against_rho(policy: Policy) -> None:
    half = less_noise(Fraction(1, 2))
    assert guess_value(situation_of(policy), resources("half", run=half), runs=3_000).broken


def test_forgotten_composition_is_detected() -> None:
    situation = situation_of(people())
    for attack in (guess_row, guess_value):
        options: dict[str, Any] = {"parts": 4, "runs": 1_000}
        assert not attack(situation, resources("composed"), **options).broken
        assert attack(situation, resources("forgotten"), price=forget_composition, **options).broken


def test_window_counted_as_zero_is_detected() -> None:
    situation = situation_of(people(within={"age": 1}, rho="0.5"))
    assert not guess_value(situation, resources("window"), runs=1_000).broken
    assert guess_value(situation, resources("no window"), price=count_window_as_zero, runs=5_000).broken


def around_the_true_row(mechanism: Any, query: Any, table: Any, event: Any, bits: Any) -> Any:
    """Take the distance of the row that is there from the middle of the range for the radius: a reference by world.

    At the ends of the range the noise is right; in the middle there is hardly any.
    """
    exact = mechanism.exact(query, table)
    row = int(np.ravel(exact.numbers[0])[0]) - 2 * 9  # without the two known rows at the upper end
    share = max(abs(Fraction(2 * row, 9) - 1), Fraction(1, 100))
    return mechanism.perturb(exact, with_noise(event, share), bits=bits)


def test_radius_around_the_true_row_is_detected() -> None:
    tables = Tables(copy_policy(people(), units=6))
    ends, middle = (pair for pair in pairs(tables.policy) if pair.query == ask.sum("age"))
    options: dict[str, Any] = {"loss": loss_of_one(tables.policy), "alpha": ALPHA, "clock": long(), "most": 4_000}
    for pair in (ends, middle):
        assert measure_loss(tables, pair, bits=bits("around all"), **options).verdict == "held"
    fault = measure_loss(tables, middle, bits=bits("around one"), run=around_the_true_row, **options)
    assert fault.broken


@pytest.mark.parametrize("statistic", ["count", "sum", "mean"])
def test_little_noise_is_detected_by_the_black_box(statistic: str) -> None:
    tables = Tables(copy_policy(people(), units=6))
    pair = next(pair for pair in pairs(tables.policy) if pair.query.statistic == statistic)
    options: dict[str, Any] = {"loss": loss_of_one(tables.policy), "alpha": ALPHA, "clock": long(), "most": 6_000}
    run = less_noise(Fraction(1, 3))
    finding = measure_loss(tables, pair, bits=bits(f"black box {statistic}"), run=run, **options)
    assert finding.broken
    assert finding.unit == "probability"


class Generous(Session):
    """A session whose ledger allows the budget of a larger rho."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(replace(policy, identification=Identification("0.9", protect=("age",), guarantee="average")))


def test_exceeded_budget_is_detected_at_once() -> None:
    situation = situation_of(people())
    options: dict[str, Any] = {"alpha": ALPHA, "clock": long(), "random": random(21), "most": 1}
    assert query_until_refused(situation, **options).verdict == "held"
    finding = query_until_refused(situation, door=Generous, **options)
    assert finding.broken
    assert "released more than the policy allows" in finding.says


# The best event of two equally likely data sets


def test_named_data_set_is_bounded_from_below() -> None:
    assert distinction_bound(1000, 1000, 0, 1000, alpha=1e-3) > 0.99
    assert distinction_bound(500, 1000, 500, 1000, alpha=1e-3) == 0.5
    generator = random(22)
    here, there = generator.normal(size=20_000), generator.normal(1.0, size=20_000)
    bound, event = best_distinction(here, there, alpha=ALPHA)
    assert 0.66 < bound < 0.6915  # the standard normal distribution function at 1/2
    assert event.startswith("it ")
    assert best_distinction([], [], alpha=ALPHA) == (0.5, "no event")


def ball_noise(radius: str, diameter: str, sigma: int) -> DiscreteGaussian:
    """Return Gaussian noise on numbers within a ball of squared radius and diameter."""
    return DiscreteGaussian(Fraction(radius), Fraction(diameter), Fraction(sigma))


@pytest.mark.parametrize("sigma", [1, 2, 5])
def test_largest_distinction_is_above_the_exact_rate_of_gaussian_noise(sigma: int) -> None:
    """Two counts that differ by 1, or a count and its reference in the middle, by sums over the discrete distribution."""
    for event, shift in ((ball_noise("1", "2", sigma), 2), (ball_noise("1/4", "1", sigma), 1)):
        numbers = np.arange(-30 * sigma, 30 * sigma + 1)
        noise = np.exp(-(numbers**2) / (2 * sigma**2))
        single = noise / noise.sum()
        joint = np.multiply.outer(single, single)
        here = np.roll(single, 1) if shift == 1 else np.roll(joint, 1, axis=0)
        there = single if shift == 1 else np.roll(joint, 1, axis=1)
        exact = np.maximum(here, there).sum() / 2
        limit = largest_distinction(event.price.z, event.price.zcdp)
        assert exact < limit < 0.5 + 1.6 * (exact - 0.5) + 0.05
    assert largest_distinction(event.price.z, event.price.zcdp) <= float(average_yes_no(event.price.z))


# The whole attack


def test_whole_attack_runs_and_keeps_its_alpha() -> None:
    findings = attack_answers(people(), alpha=ALPHA, seconds=0.5, seed=FRESH)
    assert {finding.verdict for finding in findings} <= {"held", "not tried"}
    assert sum(finding.alpha or 0.0 for finding in findings) <= ALPHA * (1 + 1e-9)


@pytest.mark.long  # test_whole_attack_runs_and_keeps_its_alpha stays
@pytest.mark.parametrize("attack", [attack_losses, attack_differences])
def test_other_attacks_run_and_keep_their_alpha(attack: Any) -> None:
    findings = attack(people(), alpha=ALPHA, seconds=0.5, seed=FRESH)
    assert {finding.verdict for finding in findings} <= {"held", "not tried"}
    assert sum(finding.alpha or 0.0 for finding in findings) <= ALPHA * (1 + 1e-9)


@pytest.mark.parametrize("runs", [80, pytest.param(300, marks=pytest.mark.long)])
def test_long_column_is_guessed_by_its_cells(runs: int) -> None:
    """101 cells of 10,000 values, windows of 10,001: a random guess is right with probability about 0.01."""
    column = Integer(0, 1_000_000, bins=tuple(range(10_000, 1_000_001, 10_000)), missing="lowest")
    promise = Identification("0.05", protect=("income",), guarantee="average", within={"income": 5_000})
    situation = situation_of(Policy(Dataset("d", rows=6), {"income": column}, promise))
    cells = name_cells(situation)
    assert cells.codes.size == 101
    assert cells.prior.sum() == pytest.approx(1)
    assert 0.99 * situation.random_guess <= cells.random_guess <= situation.random_guess
    assert not guess_value(situation, resources("cells"), runs=runs).broken
    assert guess_value(situation, resources("few"), price=forget_window, runs=runs).broken


def forget_window(queries: Sequence[Any], policy: Policy, *, loss: RequestedLoss) -> Sequence[Any]:
    """Spend what a million values would allow."""
    return plan(queries, policy, loss=RequestedLoss(average_loss_for(Fraction(1, 20), Fraction(1, 10**6)).value, "z"))


def test_loss_beside_the_promise_is_attacked_as_a_loss() -> None:
    targets = situations(POLICIES["a loss beside it"])
    assert [(target.target, target.guarantee) for target in targets] == [("age", "average"), ("loss", "worst-case")]


@pytest.mark.long  # test_whole_attack_runs_and_keeps_its_alpha stays
@pytest.mark.parametrize("name", POLICIES)
def test_audit_of_an_average_policy_breaks_nothing(name: str) -> None:
    report = audit(POLICIES[name], seconds=12, seed=FRESH)
    assert not report.broken, report.lines()
    assert any("does not limit a single response" in note for note in report.untried())
    assert report.chance <= report.alpha


# The sampler


RUNS, AT_ONCE = 1_000_000, 4_000
LIMITS = (36_789, 38_652)  # of right guesses: outside with probability 9.97e-7 if the rate is exact


@pytest.mark.long
def test_histogram_is_guessed_at_its_exact_rate_in_a_million_runs() -> None:
    """q = 1/99, rho = 0.05, the whole budget, the product's own noise; two-sided, alpha 1e-6, limits set beforehand."""
    policy = ages(99)
    query, stream = ask.histogram("age"), bits("a million histograms")
    mechanism: Any = mechanism_for(query)
    event = mechanism.average_event(query, policy, z=budget_of(policy).ceiling.value)
    rate = float(exact_histogram_rate(event.sigma, 99))
    assert rate == pytest.approx(0.0377170397743907, rel=1e-13)
    known = np.bincount([0, 0, 0, 98, 98], minlength=99)
    random, right = np.random.default_rng(9), 0
    for batch in range(RUNS // AT_ONCE):
        secret = batch % 99
        world = MemoryTable(policy, tuple({"age": code} for code in (0, 0, 0, 98, 98, secret)))
        stored = mechanism.perturb(mechanism.exact(query, world), event, bits=stream, size=AT_ONCE)
        noisy = np.array(stored["cells"], np.int64)[:, :99] - known
        guesses = np.argmax(noisy + random.random(noisy.shape), axis=1)
        right += int((guesses == secret).sum())
    score = (right - RUNS * rate) / np.sqrt(RUNS * rate * (1 - rate))
    print(f"{right:,} of {RUNS:,} right: {right / RUNS:.6f}, exact {rate:.6f}, z-score {score:+.2f}")
    assert LIMITS[0] <= right <= LIMITS[1]
