"""The published methods give the numbers of a second implementation, step by step."""

from __future__ import annotations

import numpy as np
import pytest
from collect.reconstruct.simulation import channel, l1_distance, reports, truth
from golden.papers import golden, paper
from hypothesis import given
from hypothesis import strategies as st
from reference import reconstruct as slow

from tidegate.collect.reconstruct import GaussianNoise, UniformNoise, bins_channel, reconstruct
from tidegate.collect.reconstruct.em import bayes, chi_square_stop, em, em_step, log_likelihood, most_likely, smoothed

FACTS = golden("reconstruction")
EVEN = np.full(4, 0.25)
QUARTERS = np.arange(5) / 4


def small_case() -> tuple[np.ndarray, object]:
    case = FACTS["em_small"]
    return np.array(case["counts"]), bins_channel(UniformNoise(case["alpha"]), QUARTERS, np.array(case["z_edges"]))


@pytest.mark.parametrize("steps", [1, 2, 10, 100])
@paper("Agrawal & Aggarwal 2001, grouped")
def test_em_takes_the_published_steps(steps) -> None:
    counts, through = small_case()
    assert through.matrix == pytest.approx(np.array(FACTS["em_small"]["A"]), abs=1e-15)
    estimate = em(counts, through, start=EVEN, least=steps, most=steps)
    assert estimate.masses == pytest.approx(np.array(FACTS["em_small"]["p_after"][str(steps)]), abs=1e-10)


@pytest.mark.parametrize("steps", [1, 2, 10, 100])
@paper("Agrawal & Srikant 2000, Section 3, between midpoints")
def test_bayes_update_takes_the_published_steps(steps) -> None:
    estimate = bayes(*small_case(), start=EVEN, least=steps, most=steps)
    assert estimate.masses == pytest.approx(np.array(FACTS["bayes_small"][str(steps)]), abs=1e-10)


@paper("Agrawal & Srikant 2000: 1% of the chi-square threshold")
def test_em_stops_by_the_published_rule() -> None:
    case = FACTS["em_gauss_small"]
    through = bins_channel(GaussianNoise(case["sigma"]), QUARTERS, np.array(case["z_edges"]), open_ends=False)
    estimate = em(np.array(case["counts"]), through, start=EVEN)
    assert estimate.steps == case["chi2_stop"]["it"]
    assert estimate.masses == pytest.approx(np.array(case["chi2_stop"]["p"]), abs=1e-10)
    assert chi_square_stop(100) == pytest.approx(FACTS["chi_square_stop_100"], abs=1e-9)


def test_published_rule_stops_at_once_if_the_likelihood_is_flat() -> None:
    through = channel("gauss", 2.0)
    counts = reports(truth("two-tri"), through, total=100_000, rng=np.random.default_rng(7))
    estimate = reconstruct(counts, through, method="em")
    assert estimate.steps <= 3
    assert l1_distance(estimate.masses, np.full(100, 0.01)) < 0.05
    assert any("not identified" in warning for warning in estimate.warnings)


@given(st.lists(st.integers(0, 50), min_size=8, max_size=8).filter(any))
def test_em_step_equals_the_reference_and_never_lowers_the_likelihood(counts) -> None:
    counts, (_, through) = np.array(counts, float), small_case()
    start = np.array([0.1, 0.2, 0.3, 0.4])
    updated = em_step(counts, through, start)
    assert updated == pytest.approx(slow.em_step(counts, through.matrix.tolist(), start), abs=1e-12)
    assert log_likelihood(counts, through, updated) >= log_likelihood(counts, through, start) - 1e-9


@pytest.mark.long
@given(st.lists(st.integers(0, 50), min_size=8, max_size=8).filter(any))
def test_extrapolated_em_reaches_the_limit_of_plain_em(counts) -> None:
    counts, (_, through) = np.array(counts, float), small_case()
    fast = most_likely(counts, through, start=EVEN, gain=1e-9)
    patient = em(counts, through, start=EVEN, least=2000, most=2000)
    reached = log_likelihood(counts, through, fast.masses)
    assert reached >= log_likelihood(counts, through, patient.masses) - 1e-3


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_smoothing_keeps_mass_and_the_even_distribution(masses) -> None:
    assert smoothed(np.array(masses)).sum() == pytest.approx(sum(masses))
    assert smoothed(np.full(9, 0.1)) == pytest.approx(np.full(9, 0.1))


@pytest.mark.parametrize("method", ["bayes", "em", "em-smoothed"])
def test_unequal_and_equal_bins_agree(method) -> None:
    """Bins of .01 and .02 by turns: the estimate of an even distribution is even per width."""
    edges = np.concatenate([[0.0], np.cumsum(np.tile([0.01, 0.02], 33))])
    edges /= edges[-1]
    through = bins_channel(GaussianNoise(0.05), edges, np.linspace(-0.3, 1.3, 120))
    known = np.diff(edges)
    counts = 100_000 * through.forward(known)
    estimate = reconstruct(counts, through, method=method, widths=known)
    assert l1_distance(estimate.masses, known) < (
        0.4 if method == "em-smoothed" else 0.06 if method == "bayes" else 1e-6
    )
