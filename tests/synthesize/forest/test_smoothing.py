"""Margins: measured counts are kept, noise is smoothed, and shares stay on the simplex."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import forest as slow

from tidegate.synthesize.facts import Column
from tidegate.synthesize.mechanisms.forest import margins
from tidegate.synthesize.mechanisms.forest.margins import Margin, shrink

AGE, LIST = Column("age", 60, tuple(range(60))), Column("town", 60, tuple(range(60)), ordered=False)
seeds = st.integers(0, 2**32 - 1)


def test_long_lists_are_shrunk_to_their_posterior_means(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(margins, "SHAPES", (0.3,))
    values = np.array([-150.0, -20.0, 0.0, 35.0, 90.0, 170.0, 400.0])
    deviation = np.array([100.0, 100.0, 100.0, 80.0, 100.0, 120.0, 100.0])
    assert shrink(values, deviation**2, 700.0) == pytest.approx(
        slow.shrink(values, deviation, 0.3, 700.0), rel=0.02, abs=0.5
    )


@pytest.mark.parametrize("column", [AGE, LIST], ids=["ordered", "a list"])
def test_smoothing_halves_the_noise_of_a_flat_column_and_keeps_clear_counts(column: Column) -> None:
    generator = np.random.default_rng(6)
    truth = np.full(60, 100.0)
    truth[7] = 30_000
    noisy = truth + generator.laplace(0, 60, 60)
    rows = int(truth.sum())
    shares = Margin.from_counts(column, rows, noisy, 60.0).shares() * rows
    assert np.abs(shares - truth).sum() < 0.5 * np.abs(noisy - truth).sum()
    assert shares[7] == pytest.approx(truth[7], abs=300)


@given(seeds, st.integers(1, 70), st.integers(0, 10_000), st.booleans(), st.floats(1e-9, 1e9))
def test_shares_are_a_distribution_for_any_counts(
    seed: int, cells: int, rows: int, ordered: bool, scale: float
) -> None:
    column = Column("x", cells, tuple(range(cells)), ordered=ordered)
    noisy = np.random.default_rng(seed).laplace(0, scale, cells).round()
    shares = Margin.from_counts(column, rows, noisy, scale).shares()
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)


@given(seeds, st.integers(2, 12), st.integers(1, 4))
def test_update_is_the_weighted_mean_of_two_measurements(seed: int, cells: int, groups: int) -> None:
    """Compared with least squares on the whole design, before any other update."""
    generator = np.random.default_rng(seed)
    column = Column("x", cells, tuple(range(cells)))
    labels = np.concatenate([np.arange(groups), generator.integers(0, groups, cells)])[:cells]
    labels = np.unique(labels, return_inverse=True)[1]
    first, sums = generator.normal(50, 20, cells), generator.normal(100, 30, labels.max() + 1)
    margin = Margin(column, 1000, first, np.full(cells, 400.0)).update(labels, sums, 250.0)
    design = np.vstack([np.eye(cells) / 20, (labels == np.arange(labels.max() + 1)[:, None]) / 250**0.5])
    expected = np.linalg.lstsq(design, np.concatenate([first / 20, sums / 250**0.5]), rcond=None)[0]
    assert margin.estimate == pytest.approx(expected)
    assert margin.variance == pytest.approx(np.diag(np.linalg.inv(design.T @ design)))


@pytest.mark.parametrize(("total", "share"), [(10_000, 1.0), (10_150, 1.0), (6_000, 0.6), (-50, 0.05), (20_000, 1.0)])
def test_missing_rows_are_assumed_only_if_the_total_is_clearly_low(total: int, share: float) -> None:
    noisy = np.full(10, total / 10)
    assert Margin.from_counts(Column("x", 10, tuple(range(10))), 10_000, noisy, 20.0).listed == pytest.approx(share)
