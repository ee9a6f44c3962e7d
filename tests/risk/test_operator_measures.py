"""Measures of randomized reports: the published numbers, and a second calculation if there is one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from golden.papers import golden, paper
from hypothesis import given
from hypothesis import strategies as st

from tidegate.risk import entropy, interval, local
from tidegate.risk import local as breach

FACTS = golden("operators")
SURVEY = FACTS["paper"]


@paper(SURVEY)
def test_two_pieces_follow_the_entropies_not_the_misprint() -> None:
    facts = FACTS["pieces"]
    ours = entropy.uniform_in_uniform(1, half_width=1, pieces=2)
    assert ours.privacy_before == pytest.approx(facts["privacy_before"], abs=1e-12)
    assert ours.before - ours.information == pytest.approx(facts["entropy_after_bits"], abs=1e-9)
    assert ours.information == pytest.approx(facts["told_bits"], abs=1e-9)
    assert ours.privacy_after == pytest.approx(facts["privacy_after"], abs=1e-9)
    assert ours.loss == pytest.approx(facts["loss"], abs=1e-9)
    nats_as_bits = (ours.before - ours.information) * math.log(2)
    assert 2**nats_as_bits == pytest.approx(facts["printed_privacy_after"], abs=5e-3)
    assert 1 - 2 ** (nats_as_bits - ours.before) == pytest.approx(facts["printed_loss"], abs=5e-3)


def test_two_pieces_on_a_fine_grid_agree() -> None:
    """Return the result of a second calculation: the exact discrete channel, without an integral."""
    fine = 200
    values = [*range(fine), *range(4 * fine, 5 * fine)]
    channel = np.zeros((7 * fine + 1, len(values)))
    for column, value in enumerate(values):
        channel[value : value + 2 * fine + 1, column] = 1 / (2 * fine + 1)
    seen = entropy.entropy_privacy(channel, np.full(len(values), 1 / len(values)), step=1 / fine)
    assert seen.privacy_before == pytest.approx(2, abs=1e-9)
    assert seen.privacy_after == pytest.approx(FACTS["pieces"]["privacy_after"], abs=5e-3)


@paper(SURVEY)
@pytest.mark.parametrize("row", FACTS["uniform_in_uniform"], ids=str)
def test_uniform_value_in_uniform_noise(row: dict[str, float]) -> None:
    ours = entropy.uniform_in_uniform(row["length"], half_width=row["half_width"])
    assert ours.privacy_after == pytest.approx(row["privacy_after"], abs=1e-9)


@paper("Agrawal, Aggarwal 2001")
@pytest.mark.parametrize("row", FACTS["gaussian_in_gaussian"], ids=str)
def test_gaussian_value_in_gaussian_noise(row: dict[str, float]) -> None:
    ours = entropy.gaussian_in_gaussian(row["deviation"], sigma=row["sigma"])
    assert (ours.information, ours.loss, ours.privacy_before) == pytest.approx(
        (row["told"], row["loss"], row["privacy_before"]), abs=1e-9
    )


@paper("Agrawal, Srikant 2000; their 6.8 at 99.9% is wrong")
@pytest.mark.parametrize("name", FACTS["widths"])
def test_interval_widths_of_the_published_noises(name: str) -> None:
    kind, confidence = name.split()
    width = {"uniform": interval.uniform_width, "gaussian": interval.gaussian_width}[kind]
    assert width(1, confidence=float(confidence)) == pytest.approx(FACTS["widths"][name], abs=1e-6)


@paper("Agrawal, Srikant 2000")
def test_noise_for_one_hundred_percent_privacy() -> None:
    ours = interval.noise_for_privacy(1)
    for name, value in FACTS["noise_for_100_percent"].items():
        assert ours[name] == pytest.approx(value, abs=1e-9)
    assert interval.laplace_width(ours["scale"]) == pytest.approx(1)


@pytest.mark.parametrize("reports", FACTS["averaged_widths"])
def test_fresh_uniform_reports_narrow_the_interval(reports: str) -> None:
    expected = FACTS["averaged_widths"][reports]
    assert interval.averaged_width(1, reports=int(reports)) == pytest.approx(expected, abs=1e-12)


@paper("Evfimievski, Gehrke, Srikant 2003")
def test_gamma_limits_breaches() -> None:
    facts = FACTS["gamma"]
    assert breach.gamma_allowed(facts["before"], facts["after"]) == pytest.approx(facts["gamma"], abs=1e-9)
    assert math.log(facts["gamma"]) == pytest.approx(facts["epsilon"], abs=1e-9)
    assert breach.posterior_limit(facts["before"], gamma=facts["gamma"]) == pytest.approx(facts["after"])
    assert breach.posterior_limit(0.05, gamma=math.inf) == 1


def test_losses_of_independent_repeats_add_up() -> None:
    facts = FACTS["repeated_mask"]
    first = math.log(facts["p"] / (1 - facts["p"]))
    assert local.composed_epsilon(first, times=facts["reports"]) == pytest.approx(facts["epsilon"], abs=1e-12)


channels = st.integers(2, 5).flatmap(
    lambda values: st.lists(
        st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any), min_size=values, max_size=values
    )
)


def as_channel(columns: list[list[int]]) -> np.ndarray:
    return np.array([np.array(column) / sum(column) for column in columns]).T


@given(channels)
def test_local_loss_is_the_worst_pair(columns: list[list[int]]) -> None:
    channel = as_channel(columns)
    worst = 1.0
    for row in channel:
        for first, second in itertools.permutations(row, 2):
            worst = max(worst, 0 if first == 0 else math.inf if second == 0 else first / second)
    assert local.largest_ratio(channel) == pytest.approx(worst)


@given(channels, st.floats(0.05, 0.9))
def test_no_property_exceeds_the_worst_posterior(columns: list[list[int]], before: float) -> None:
    """By listing every property: exact for a uniform prior, an upper bound for any other."""
    channel = as_channel(columns)
    for prior in (np.full(channel.shape[1], 1 / channel.shape[1]), np.arange(1, channel.shape[1] + 1.0)):
        belief = prior / prior.sum()
        worst = listed_worst(channel, belief, before)
        ours = breach.worst_posterior(channel, belief, before)
        assert ours >= worst - 1e-9
        if prior[0] != 1:
            assert ours == pytest.approx(worst, abs=1e-9)
        gamma = local.largest_ratio(channel)
        likely = [belief[list(some)].sum() for some in properties(belief, before)]
        if likely:
            assert worst <= breach.posterior_limit(max(likely), gamma=gamma) + 1e-9


def properties(prior: np.ndarray, before: float) -> list[tuple[int, ...]]:
    every = itertools.chain.from_iterable(itertools.combinations(range(prior.size), n) for n in range(1, prior.size))
    return [some for some in every if prior[list(some)].sum() <= before + 1e-9 * prior.min()]


def listed_worst(channel: np.ndarray, prior: np.ndarray, before: float) -> float:
    after = breach.posteriors(channel, prior)
    return max((after[:, list(some)].sum(axis=1).max() for some in properties(prior, before)), default=0.0)


@given(channels)
def test_information_agrees_with_a_second_formula(columns: list[list[int]]) -> None:
    channel = as_channel(columns)
    prior = np.full(channel.shape[1], 1 / channel.shape[1])
    joint = channel * prior
    outer = joint.sum(axis=1, keepdims=True) * prior
    some = joint > 0
    expected = float((joint[some] * np.log2(joint[some] / outer[some])).sum())
    ours = entropy.entropy_privacy(channel, prior)
    assert ours.information == pytest.approx(expected, abs=1e-9)
    assert ours.loss == pytest.approx(1 - ours.privacy_after / ours.privacy_before, abs=1e-9)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=9).filter(any), st.sampled_from([0.3, 0.5, 0.95, 1.0]))
def test_shortest_run_is_minimal(weights: list[int], confidence: float) -> None:
    first, last = interval.shortest_run(np.array(weights, float), confidence=confidence)
    enough = confidence * sum(weights) - 1e-9
    lengths = [b - a for a in range(len(weights)) for b in range(a, len(weights)) if sum(weights[a : b + 1]) >= enough]
    assert sum(weights[first : last + 1]) >= enough
    assert last - first == min(lengths)


def test_most_revealing_report_is_returned() -> None:
    channel = np.array([[0.5, 0.1, 0.1], [0.4, 0.8, 0.1], [0.1, 0.1, 0.8]])
    revealing = breach.most_revealing(channel, np.array([0.2, 0.2, 0.6]))
    assert (revealing.report, revealing.value) == (2, 2)
    assert revealing.after == pytest.approx(0.48 / (0.02 + 0.02 + 0.48))
