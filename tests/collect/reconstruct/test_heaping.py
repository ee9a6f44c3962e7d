"""Rounded numbers: the test detects them, the model covers them, and unrounded numbers are left alone."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from collect.surveys import open_survey

from tidegate.collect.client import Client
from tidegate.collect.reconstruct import Reconstruction, build_channel, reconstruct
from tidegate.collect.reconstruct.heaping import (
    DETECTED,
    HeapedReconstruction,
    heaping_score,
    misfit,
    rounding,
    with_heaping,
)
from tidegate.operators import SquareWave
from tidegate.operators.exact_draws import SeededBytes
from tidegate.policy import Collection, Integer, Question

SEED = int.from_bytes(os.urandom(4)) if os.environ.get("TIDEGATE_SEED") == "fresh" else 20261117
NUMBERS = list(range(18, 91))
SIZE = len(NUMBERS)


def smooth_truth() -> np.ndarray:
    ages = np.array(NUMBERS)
    density = np.exp(-(((ages - 34) / 9) ** 2) / 2) / 9 + np.exp(-(((ages - 60) / 13) ** 2) / 2) / 13
    return density / density.sum()


def simulated(epsilon: int, share: float, base: int, *, people: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return counts of reports and the true distribution of the rounded numbers."""
    matrix = channel_matrix(epsilon)
    true = rounding(NUMBERS, base, share) @ smooth_truth()
    expected = matrix @ true
    rng = np.random.default_rng([SEED, seed])
    return rng.multinomial(people, expected / expected.sum()).astype(np.float64), true


def channel_matrix(epsilon: int) -> np.ndarray:
    return SquareWave(SIZE, epsilon=Fraction(epsilon)).channel_array()


def reconstructed(counts: np.ndarray, epsilon: int) -> tuple[Reconstruction, Reconstruction]:
    channel = build_channel(SquareWave(SIZE, epsilon=Fraction(epsilon)).channel())
    plain = reconstruct(counts, channel)
    return plain, with_heaping(plain, counts, channel, NUMBERS)


def covered(estimate: Reconstruction, true: np.ndarray) -> float:
    band = estimate.band()
    return float(np.mean((band.low <= true + 1e-12) & (true <= band.high + 1e-12)))


def test_rounding_moves_the_stated_share_to_the_nearest_multiple() -> None:
    for base in (5, 10):
        matrix = rounding(NUMBERS, base, 0.6)
        assert np.allclose(matrix.sum(axis=0), 1)
        for index, number in enumerate(NUMBERS):
            targets = {NUMBERS[row] for row in np.flatnonzero(matrix[:, index])} - {number}
            nearest = min(abs(number - multiple) for multiple in range(0, 101, base))
            assert all(target % base == 0 and abs(target - number) == nearest for target in targets)
    assert rounding(NUMBERS, 10, 1.0)[[2, 12], 7].tolist() == [0.5, 0.5], "25 is as near to 20 as to 30"
    assert rounding([17, 18, 19], 10, 1.0)[:, 0].tolist() == [1, 0, 0], "20 is outside of the grid"


@pytest.mark.long  # 3 s
@pytest.mark.claim
def test_heaped_numbers_are_detected_with_their_base() -> None:
    """Held-out seeds, epsilon 4: 12 of 12 detected (z of 8.7 or more), with base 5, and an error below .6 of the plain one.

    Coverage of a single data set is not asserted: 7 of 72 measured ones were below .9. See the long test for the mean.
    """
    counts, true = simulated(4, 0.6, 5, people=40_000, seed=1)
    plain, heaped = reconstructed(counts, 4)
    assert isinstance(heaped, HeapedReconstruction)
    assert heaped.best.base == 5
    assert np.abs(heaped.masses - true).sum() < 0.6 * np.abs(plain.masses - true).sum()
    assert any(text.startswith("People rounded their answers") for text in heaped.warnings)
    check_union(heaped)


@pytest.mark.long
@pytest.mark.claim
def test_bands_of_heaped_numbers_cover_most_bins_on_average() -> None:
    """Measured .98 over 24 data sets, with single ones down to .62: a mean of 12 below .85 would be a change."""
    coverage = []
    for seed in range(12):
        counts, true = simulated(2, 0.6, 5, people=20_000, seed=200 + seed)
        coverage.append(covered(reconstructed(counts, 2)[1], true))
    assert np.mean(coverage) >= 0.85


@pytest.mark.claim
def test_unheaped_numbers_keep_their_estimate() -> None:
    """Scores of unheaped data have a mean near 0 and a deviation below 1: one above 3 has a chance of 0.0013 or less."""
    for epsilon in (1, 2, 4):
        counts, _ = simulated(epsilon, 0.0, 5, people=20_000, seed=epsilon)
        plain, same = reconstructed(counts, epsilon)
        assert not isinstance(same, HeapedReconstruction)
        assert (same.masses == plain.masses).all()


def test_score_equals_the_slope_of_the_likelihood() -> None:
    counts, _ = simulated(2, 0.3, 5, people=5_000, seed=9)
    matrix, masses = channel_matrix(2), smooth_truth()

    def likelihood(share: float) -> float:
        return float(counts @ np.log(matrix @ (rounding(NUMBERS, 5, share) @ masses)))

    slope = (likelihood(1e-6) - likelihood(0)) / 1e-6
    moved = matrix @ (rounding(NUMBERS, 5, 1.0) @ masses - masses)
    information = counts.sum() * float((moved**2 / (matrix @ masses)).sum())
    assert heaping_score(counts, matrix, masses, NUMBERS, 5) == pytest.approx(slope / np.sqrt(information), rel=1e-3)
    multiples = [5 * number for number in NUMBERS]
    assert heaping_score(counts, matrix, masses, multiples, 5) == 0, "nothing can be rounded"


def test_misfit_has_the_tail_of_chi_square() -> None:
    rng = np.random.default_rng(2)
    expected = rng.random(40) + 0.5
    expected /= expected.sum()
    p_values = [misfit(rng.multinomial(5000, expected).astype(float), expected, 1.0) for _ in range(400)]
    assert 0.4 < np.mean(p_values) < 0.6
    other = np.roll(expected, 1)
    assert misfit(rng.multinomial(5000, other).astype(float), expected, 1.0) < 1e-6
    assert 0 <= misfit(np.array([1.0, 2.0]), np.array([0.5, 0.5]), 0.0) <= 1


def check_union(heaped: HeapedReconstruction) -> None:
    """The band is the union over all shares of rounded values that the reports allow."""
    band = heaped.band()
    for fitted in heaped._fits:
        inner = fitted.inner.band(of=fitted.rounding)
        assert (band.low <= inner.low).all()
        assert (inner.high <= band.high).all()
        assert 2 * (heaped.best.score - fitted.score) <= 3.84
    assert heaped.band(of="cdf").high[-1] == pytest.approx(1)
    ages = np.array(NUMBERS, np.float64)
    mean = heaped.band(of=ages)
    assert mean.low[0] <= ages @ heaped.masses <= mean.high[0]
    assert heaped.band("strict", of=ages).kind == "strict"


def test_suspicion_and_misfit_are_warnings() -> None:
    class Fixed:
        values = SIZE

        def __init__(self, matrix: np.ndarray) -> None:
            self.matrix = matrix

        def columns(self, chosen: np.ndarray) -> Fixed:
            return self

    matrix, masses = channel_matrix(2), smooth_truth()
    plain = Reconstruction(masses, "bank", 1e4, 10)
    moved = matrix @ (rounding(NUMBERS, 5, 1.0) @ masses - masses)
    step = 2.5 / np.sqrt(1e4 * float((moved**2 / (matrix @ masses)).sum()))
    counts = 1e4 * (matrix @ masses + step * moved)
    warned = with_heaping(plain, counts, Fixed(matrix), NUMBERS)  # type: ignore[arg-type]
    assert warned.warnings == (
        "Some people may have rounded to multiples of 5 (score 2.5): the bands may be too narrow.",
    )
    odd = 1e4 * np.roll(matrix @ masses, 9)
    texts = with_heaping(plain, odd, Fixed(matrix), NUMBERS).warnings  # type: ignore[arg-type]
    assert "The model does not fit the reports; use the strict band." in texts
    assert with_heaping(Reconstruction(masses, "em", 1e4, 10), counts, Fixed(matrix), NUMBERS).warnings == ()  # type: ignore[arg-type]


@pytest.mark.long
@pytest.mark.claim
def test_survey_models_rounded_ages(tmp_path: Path) -> None:
    collection = Collection("ages", {"age": Question("age", Integer(18, 90), "square-wave", epsilon=3)})
    session, survey = open_survey(f"{tmp_path}/l.ledger", tmp_path / "r", collection)
    rng = np.random.default_rng(4)
    ages = rng.choice(NUMBERS, size=4000, p=rounding(NUMBERS, 5, 0.9) @ smooth_truth())
    with session:
        clients = (Client(collection, source=SeededBytes(f"age {number}")) for number in range(4000))
        survey.submit([client.randomize({"age": int(age)}) for client, age in zip(clients, ages, strict=True)])
        result = survey.distribution("age")
        assert result.method == "bank, heaped"
        assert any("rounded their answers" in text for text in result.warnings)
        assert result.low is not None
        assert survey.distribution("age", method="em").warnings == ()
    assert DETECTED == 3
