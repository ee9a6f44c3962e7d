"""The informed adversary by an explicit Bayes' rule, and the smallest noise that keeps a rho."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tidegate.risk import equation_15, posterior, tight_scale, window_scale, worst_risk


def test_posterior_follows_bayes_rule() -> None:
    outputs, prior, scale, response = [0.0, 1.0, 5.0], [0.5, 0.3, 0.2], 2.0, 1.5
    joint = [p * math.exp(-abs(response - o) / scale) / (2 * scale) for o, p in zip(outputs, prior, strict=True)]
    computed = posterior(outputs, response, scale=scale, prior=prior)
    assert computed == pytest.approx([weight / sum(joint) for weight in joint], rel=1e-12)
    flat = [math.exp(-abs(response - o) / scale) for o in outputs]
    assert posterior(outputs, response, scale=scale) == pytest.approx(
        [weight / sum(flat) for weight in flat], rel=1e-12
    )


def test_several_answers_multiply_their_likelihoods() -> None:
    worlds = np.array([[0.0, 10.0], [1.0, 30.0], [4.0, 20.0]])
    computed = posterior(worlds, np.array([1.0, 20.0]), scale=np.array([2.0, 5.0]))
    each = [math.exp(-abs(1 - a) / 2 - abs(20 - b) / 5) for a, b in worlds]
    assert computed == pytest.approx([weight / sum(each) for weight in each], rel=1e-12)


def test_distant_worlds_do_not_overflow() -> None:
    assert posterior([0.0, 1e9], 1e9, scale=1e-3) == pytest.approx([0.0, 1.0])


def test_no_response_exceeds_the_worst_risk() -> None:
    outputs, prior = [0.0, 1.0, 1.5, 6.0], [0.4, 0.3, 0.2, 0.1]
    worst = worst_risk(outputs, scale=2.0, prior=prior)
    tried = np.concatenate([np.linspace(-10, 16, 2601), outputs])
    computed = max(posterior(outputs, float(response), scale=2.0, prior=prior).max() for response in tried)
    assert computed == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize("rho", [0.3, 0.5, 0.9])
def test_equation_15_keeps_rho_for_equidistant_worlds(rho: float) -> None:
    outputs = [0.0, 7.0, 7.0, 7.0]
    scale = equation_15(7.0, worlds=4, rho=rho)
    assert posterior(outputs, 0.0, scale=scale)[0] == pytest.approx(rho, rel=1e-12)


@pytest.mark.parametrize("rho", [0.25, 0.2])
def test_equation_15_needs_infinite_noise_for_a_random_guess(rho: float) -> None:
    assert equation_15(7.0, worlds=4, rho=rho) == math.inf


UNEVEN = [0.0, 1.0, 3.0, 3.5, 10.0]


@pytest.mark.parametrize("rho", [0.25, 0.4, 0.7, 0.95])
@pytest.mark.parametrize("prior", [None, [0.1, 0.3, 0.2, 0.25, 0.15]])
def test_tight_scale_is_the_smallest_sufficient_one(rho: float, prior: list[float] | None) -> None:
    if prior and rho <= max(prior):
        assert tight_scale(UNEVEN, rho, prior=prior) == math.inf
        return
    scale = tight_scale(list(reversed(UNEVEN)), rho, prior=list(reversed(prior)) if prior else None)
    assert scale == tight_scale(UNEVEN, rho, prior=prior)
    assert worst_risk(UNEVEN, scale=scale, prior=prior) <= rho * (1 + 1e-12)
    assert worst_risk(UNEVEN, scale=scale * 0.999_999, prior=prior) > rho


def test_equal_values_need_no_noise() -> None:
    assert tight_scale([4.0, 4.0, 4.0], 0.5) == 0
    assert tight_scale([4.0, 4.0, 4.0], 0.3) == math.inf
    assert tight_scale([0.0, 0.0, 5.0, 5.0], 0.5) == 0


def in_window(worlds: int, window: int, scale: float, prior: list[float] | None = None) -> float:
    """Return the largest posterior of a run of neighboring values, over all responses on and between values."""
    values = np.arange(worlds, dtype=float)
    computed = 0.0
    for response in np.arange(-2, worlds + 2, 0.25):
        likely = posterior(values, float(response), scale=scale, prior=prior)
        computed = max(computed, *(likely[start : start + window].sum() for start in range(worlds - window + 1)))
    return computed


@pytest.mark.parametrize(("worlds", "window"), [(12, 1), (12, 3), (30, 5)])
@pytest.mark.parametrize("rho", [0.5, 0.75])
def test_window_scale_is_the_smallest_sufficient_one(worlds: int, window: int, rho: float) -> None:
    scale = window_scale(worlds, rho, window=window)
    ends = posterior(np.arange(worlds, dtype=float), 0.0, scale=scale)[:window].sum()
    assert ends == pytest.approx(rho, rel=1e-9)
    assert in_window(worlds, window, scale * 0.999_99) > rho


def test_window_as_wide_as_a_random_guess_needs_infinite_noise() -> None:
    assert window_scale(12, 0.25, window=3) == math.inf
    assert window_scale(12, 0.25 + 1e-6, window=3) < math.inf
    assert window_scale(12, 0.25, window=4) == math.inf


PRIORS = [
    ([0.5, 0.2, 0.1, 0.1, 0.1], 0.6, 5.108433, 0.783019),
    ([0.2] * 5, 0.6, 1.111428, 3.598974),
    ([0.3, *[0.1] * 7], 1 / 3, 25.438947, 0.275169),
    ([0.05, 0.05, 0.8, 0.05, 0.05], 0.9, 1.763465, 2.268262),
    ([0.4, 0.3, 0.2, 0.1], 0.5, 3.944085, 0.760633),
]


@pytest.mark.parametrize(("prior", "rho", "scale", "charge"), PRIORS)
def test_tight_scale_of_a_grid_uses_the_prior(prior: list[float], rho: float, scale: float, charge: float) -> None:
    computed = window_scale(len(prior), rho, prior=prior)
    assert computed == pytest.approx(scale, abs=1e-6)
    assert (len(prior) - 1) / computed == pytest.approx(charge, abs=1e-6)
    assert computed == pytest.approx(tight_scale(range(len(prior)), rho, prior=prior), rel=1e-9)
    assert worst_risk(range(len(prior)), scale=computed, prior=prior) <= rho
    assert worst_risk(range(len(prior)), scale=computed * 0.999_99, prior=prior) > rho


@pytest.mark.parametrize("window", [1, 2, 3])
@pytest.mark.parametrize("prior", [row[0] for row in PRIORS])
def test_window_scale_with_a_prior_bounds_every_run_at_every_response(prior: list[float], window: int) -> None:
    likeliest = max(sum(prior[start : start + window]) for start in range(len(prior) - window + 1))
    assert window_scale(len(prior), likeliest - 1e-9, window=window, prior=prior) == math.inf
    rho = (likeliest + 1) / 2
    scale = window_scale(len(prior), rho, window=window, prior=prior)
    assert in_window(len(prior), window, scale, prior) <= rho
    assert in_window(len(prior), window, scale * 0.999_99, prior) > rho
