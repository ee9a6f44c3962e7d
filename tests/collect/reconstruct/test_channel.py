"""Channels: exact chances, products by FFT, cells of neighbors, reports with the same meaning."""

from __future__ import annotations

import numpy as np
import pytest
from collect.reconstruct.simulation import channel
from golden.papers import golden, paper
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import reconstruct as slow

from tidegate.collect.reconstruct import (
    Dense,
    GaussianNoise,
    LaplaceNoise,
    Shifted,
    SquareWave,
    UniformNoise,
    atoms_channel,
    bins_channel,
    grid_channel,
    square_wave_channel,
)
from tidegate.collect.reconstruct.cells import joined, joining_starts

FACTS = golden("reconstruction")
NOISES = [UniformNoise(0.3), GaussianNoise(0.2), LaplaceNoise(0.15)]
UNEQUAL = np.array([0.0, 0.05, 0.3, 0.45, 1.0])


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
def test_probability_is_the_mean_over_the_bin_even_for_unequal_bins(noise) -> None:
    reports = np.linspace(-0.5, 1.5, 9)
    matrix = bins_channel(noise, UNEQUAL, reports, open_ends=False).matrix
    for s in range(8):
        for j in range(4):
            expected = slow.chance(noise.cumulative, reports[s], reports[s + 1], UNEQUAL[j], UNEQUAL[j + 1])
            assert matrix[s, j] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("noise", ["uniform", "gauss", "laplace", "sw"])
@pytest.mark.parametrize("centers", [True, False])
@pytest.mark.parametrize("bins", [20, 100, 1000])
def test_every_value_gives_some_report(noise, centers, bins) -> None:
    through = channel(noise, 1.0, centers=centers, bins=bins)
    assert through.back(np.ones(through.reports)) == pytest.approx(np.ones(bins), abs=1e-9)


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
def test_integral_and_density_match_the_distribution_function(noise) -> None:
    at, step = np.linspace(-0.9, 0.9, 37) + 0.003, 1e-6
    assert (noise.integral(at + step) - noise.integral(at - step)) / (2 * step) == pytest.approx(
        noise.cumulative(at), abs=1e-6
    )
    assert (noise.cumulative(at + step) - noise.cumulative(at - step)) / (2 * step) == pytest.approx(
        noise.density(at), abs=1e-5
    )
    assert noise.cumulative(np.array(-noise.reach(beyond=1e-4))) <= 1e-4


@pytest.mark.parametrize("case", FACTS["square_wave"], ids=lambda case: f"epsilon {case['eps']}")
@paper("Li et al. 2020, Section 4")
def test_square_wave_has_its_published_shape(case) -> None:
    wave = SquareWave(case["eps"])
    assert (wave.half, wave.near, wave.far) == pytest.approx((case["b"], case["p"], case["q"]), abs=1e-9)


def test_square_wave_spends_its_epsilon_in_every_report() -> None:
    matrix = square_wave_channel(SquareWave(1.0), 50, spread=False).columns(np.arange(50)).matrix
    assert np.log(matrix.max(axis=1) / matrix.min(axis=1)).max() == pytest.approx(1.0)


def shifted() -> st.SearchStrategy[Shifted]:
    chance = st.floats(0, 1)
    return st.builds(
        lambda kernel, values, clip, floor: Shifted(
            np.array(kernel) / max(sum(kernel), 1e-9),
            values,
            np.full(values + len(kernel) - 1 - 2 * min(clip, len(kernel) // 2), floor),
            min(clip, len(kernel) // 2),
        ),
        st.lists(chance, min_size=1, max_size=30),
        st.integers(2, 40),
        st.integers(0, 5),
        st.sampled_from([0.0, 0.01]),
    )


@given(through=shifted(), data=st.data())
def test_products_by_fft_equal_those_of_the_matrix(through, data) -> None:
    matrix = through.columns(np.arange(through.values)).matrix
    masses = np.array(data.draw(st.lists(st.floats(0, 1), min_size=through.values, max_size=through.values)))
    weights = np.array(data.draw(st.lists(st.floats(0, 9), min_size=through.reports, max_size=through.reports)))
    assert through.forward(masses) == pytest.approx(matrix @ masses, abs=1e-10)
    assert through.back(weights) == pytest.approx(matrix.T @ weights, abs=1e-10)
    assert through.forward(masses).min() >= 0
    assert through.back(weights).min() >= 0


@given(through=shifted(), run=st.integers(1, 7), other=st.integers(1, 7))
def test_cells_from_kernel_matrix_and_reference_agree(through, run, other) -> None:
    matrix = through.columns(np.arange(through.values)).matrix
    reports = np.append(np.arange(0, through.reports, run), through.reports)
    values = np.append(np.arange(0, through.values, other), through.values)
    slowly = slow.merge(matrix, reports, values)
    assert Dense(matrix).merged(reports, values) == pytest.approx(slowly, abs=1e-10)
    assert through.merged(reports, values) == pytest.approx(slowly, abs=1e-10)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
@pytest.mark.parametrize("spread", [True, False])
def test_long_grid_has_the_probabilities_of_a_matrix(noise, spread) -> None:
    bins = 600  # beyond the longest dense one
    through = grid_channel(noise, bins, spread=spread)
    edges = (np.arange(through.reports + 1) - (through.reports - bins) / 2) / bins
    values = np.arange(bins + 1) / bins
    centers = (values[1:] + values[:-1]) / 2
    known = bins_channel(noise, values, edges) if spread else atoms_channel(noise, centers, edges)
    assert_allclose(through.columns(np.arange(bins)).matrix, known.matrix, rtol=0, atol=1e-8)


def test_long_square_wave_has_the_probabilities_of_a_short_one() -> None:
    wave = SquareWave(1.2)  # reaches 0.2246: 135 bins of 600, 68 of 300
    long, short = square_wave_channel(wave, 600), square_wave_channel(wave, 300)
    pairs = np.append(np.concatenate([[0], np.arange(1, long.reports, 2)]), long.reports)  # one bin sticks out
    assert long.reports == 600 + 2 * 135
    assert short.reports == 300 + 2 * 68
    assert_allclose(long.merged(pairs, np.arange(0, 601, 2)), short.matrix, rtol=0, atol=1e-12)


def test_only_equivalent_reports_are_joined() -> None:
    through = channel("laplace", 1.0, centers=False)
    counts = np.random.default_rng(1).multinomial(100_000, through.forward(np.full(100, 0.01))).astype(float)
    few, matrix = joined(counts, through.matrix)
    assert few.sum() == counts.sum()
    assert matrix.sum(axis=0) == pytest.approx(np.ones(100))
    assert 98 <= few.size <= 104  # one for each place among the values, one for either tail
    even = np.full(100, 0.01)

    def information(a: np.ndarray) -> np.ndarray:
        return 1e5 * np.linalg.eigvalsh(a.T @ np.diag(1 / (a @ even)) @ a) / 100

    assert information(matrix) == pytest.approx(information(through.matrix), abs=0.1)


def test_reports_that_differ_are_never_joined() -> None:
    counts = np.array([500.0, 300, 200])
    assert joined(counts, np.eye(3))[0].tolist() == counts.tolist()
    assert joined(counts, np.full((3, 3), 1 / 3))[0].tolist() == [1000.0]


@given(
    rows=st.lists(st.lists(st.sampled_from([0.0, 0.1, 0.11, 0.4]), min_size=3, max_size=3), min_size=1, max_size=12),
    total=st.sampled_from([1.0, 100.0, 1e5]),
)
def test_joining_equals_the_reference(rows, total) -> None:
    starts = np.flatnonzero(joining_starts(np.array(rows), total, 1e-3)).tolist()
    assert starts == slow.joining_starts(rows, total, 1e-3)
