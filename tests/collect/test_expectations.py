"""Reconstruction uses exactly the channel that the client draws, and its predicted errors hold."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from claims.probabilities import SEED, at_least
from golden.papers import golden
from hypothesis import given
from hypothesis import strategies as st
from tidegate_papers.simulation.values import BulkBits, sample_many

from tidegate.collect.adviser import features_of, share_error
from tidegate.collect.reconstruct import build_channel, reconstruct, shares
from tidegate.errors import Unsupported
from tidegate.operators import (
    GaussianNoise,
    LaplaceNoise,
    Operator,
    RandomizedResponse,
    SquareWave,
    SubsetSelection,
    Unary,
    UniformNoise,
)

F = Fraction
ORDERED = [
    UniformNoise(30, half_width=9),
    GaussianNoise(30, sigma=F(4)),
    LaplaceNoise(30, epsilon=F(3)),
    SquareWave(30, epsilon=F(1)),
]


@pytest.mark.parametrize("operator", ORDERED, ids=lambda operator: operator.name)
def test_long_grid_without_a_matrix_is_the_same_channel(operator: Operator) -> None:
    dense, long = build_channel(operator.channel()), build_channel(operator.long_channel())
    masses, weights = np.random.default_rng(1).random(30), np.random.default_rng(2).random(operator.report_size)
    assert (long.reports, long.values) == (operator.report_size, 30)
    assert np.allclose(long.forward(masses), dense.forward(masses), atol=1e-12)
    assert np.allclose(long.back(weights), dense.back(weights), atol=1e-12)


@given(st.sampled_from([RandomizedResponse, Unary, SubsetSelection]), st.integers(2, 6), st.integers(1, 30))
def test_single_and_pair_supports_equal_those_of_the_channel(kind: type, values: int, tenths: int) -> None:
    operator = kind(values, epsilon=F(tenths, 10))
    ours = operator.support()
    singles = np.zeros(values)
    pairs = np.zeros((values, values))
    for report, row in zip(operator.reports(), operator.exact_channel(), strict=True):
        member = np.isin(np.arange(values), report)
        singles += member * float(row[0])
        pairs += np.outer(member, member) * float(row[0])
    assert singles == pytest.approx([ours.true, *[ours.false] * (values - 1)], abs=1e-12)
    assert pairs[0, 1] == pytest.approx(ours.pair_with_true, abs=1e-12)
    if values > 2:
        assert pairs[1, 2] == pytest.approx(ours.pair_without, abs=1e-12)


def test_noise_operator_does_not_support_single_values() -> None:
    with pytest.raises(Unsupported, match="does not support single values"):
        ORDERED[0].support()


@pytest.mark.parametrize("epsilon", golden("operators")["features_at_100_000"]["square-wave"])
def test_square_wave_on_a_grid_is_as_informative_as_the_continuous_one(epsilon: str) -> None:
    continuous = golden("operators")["features_at_100_000"]["square-wave"][epsilon]
    assert continuous <= features_of(SquareWave(100, epsilon=F(epsilon)), 100_000) <= 99


def supports(operator: Operator, reports: np.ndarray) -> np.ndarray:
    if operator.form == "code":
        return np.bincount(reports, minlength=operator.values)
    return np.unpackbits(reports.view(np.uint8), axis=1, bitorder="little")[:, : operator.values].sum(axis=0)


VALUES, CLIENTS, TOO_MANY = 200, 200_000, 30


def farther_off(kind: type, clients: int) -> int:
    """Count how many of 200 shares are farther off than predicted for this many clients, with 200,000."""
    operator = kind(VALUES, epsilon=F(2))
    reports = sample_many(operator, np.arange(CLIENTS) % VALUES, BulkBits(f"{SEED}/shares {kind.__name__}"))
    estimate = shares(supports(operator, reports).astype(float), total=CLIENTS, support=operator.support())
    return int((np.abs(estimate.raw - 1 / VALUES) > share_error(operator, clients)).sum())


@pytest.mark.claim
@pytest.mark.parametrize("kind", [RandomizedResponse, Unary, SubsetSelection])
def test_shares_are_recovered_within_the_predicted_error(kind: type) -> None:
    """5% are farther off; 30 of 200 or more by a chance of 9e-8 (shares taken as independent)."""
    assert at_least(TOO_MANY, VALUES, 0.05) < 1e-6
    assert farther_off(kind, CLIENTS) < TOO_MANY


@pytest.mark.claim
@pytest.mark.parametrize("kind", [RandomizedResponse, Unary, SubsetSelection])
def test_halved_error_is_detected(kind: type) -> None:
    assert farther_off(kind, 4 * CLIENTS) >= TOO_MANY


@pytest.mark.parametrize(
    "operator", [UniformNoise(60, half_width=31), SquareWave(60, epsilon=F(3))], ids=lambda o: o.name
)
def test_distribution_is_recovered_from_bulk_reports(operator: Operator) -> None:
    """The whole way: codes, reports, counts, channel, reconstruction; a grid that is off by one is farther away."""
    true = np.exp(-(((np.arange(60) - 20) / 6) ** 2))
    true /= true.sum()
    codes = np.random.default_rng(5).choice(60, 200_000, p=true)
    counts = np.bincount(sample_many(operator, codes, BulkBits("back")), minlength=operator.report_size)
    masses = reconstruct(counts, build_channel(operator.channel())).masses
    assert np.abs(masses - true).sum() < 0.08
    assert np.abs(masses - np.roll(true, 1)).sum() > 0.12
