"""Every score equals its reference implementation, and published or independently computed numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from golden.papers import golden, paper
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import scores as reference
from tidegate_papers.baselines.rounds import Scale, misfit_scale, variation_scale
from tidegate_papers.baselines.scores import (
    code_shares,
    dyadic_scale,
    dyadic_score,
    fraction_bits,
    grid_scale,
    grid_score,
    interval_shares,
    misfit_score,
    pair_tables,
    sequential_codes,
    sequential_scale,
    sequential_scores,
    spread_tables,
    variation_score,
)
from tidegate_papers.baselines.trees import depth2_scale, depth2_score, threshold_codes

from tidegate.errors import Unsupported
from tidegate.risk.pmse import pmse_exactly, total_variation_exactly

KNOWN = golden("pmse")
counts = st.lists(st.integers(0, 40), min_size=2, max_size=9).filter(sum)


@given(counts)
def test_variation_is_rows_times_total_variation(cells) -> None:
    score, scale = variation_score(np.array(cells)), variation_scale(cells=len(cells))
    assert score == reference.variation(cells)
    assert scale.value(score) == sum(cells) * total_variation_exactly([1] * len(cells), cells)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), min_size=2, max_size=9))
def test_misfit_is_rows_times_total_variation_for_unequal_cells(cells) -> None:
    b, expected = (list(column) for column in zip(*cells, strict=True))
    if sum(b) and sum(expected):
        score = misfit_score(np.array(b), np.array(expected))
        assert misfit_scale(parts=sum(expected)).value(score) == sum(b) * total_variation_exactly(expected, b)


@given(counts, st.sampled_from([1, 2]))
def test_grid_is_pmse_except_for_truncated_places(cells, weight) -> None:
    n, k = sum(cells), len(cells)
    score, scale = grid_score(np.array(cells), rows=n, weight=weight), grid_scale(cells=k, rows=n, weight=weight)
    assert score == reference.grid(cells, weight * n, fraction_bits(weight * n))
    exact = (1 + weight) * n * pmse_exactly([Fraction(weight * n, k)] * k, cells)
    assert 0 <= exact - scale.value(score) < Fraction(k, scale.denominator)


tables = st.integers(0, 2).flatmap(
    lambda k: st.lists(st.lists(st.integers(0, 6), min_size=2**k, max_size=2**k), min_size=2**k, max_size=2**k)
)


@pytest.mark.long
@settings(max_examples=60)
@given(st.data(), st.sampled_from([Fraction(0), Fraction(1, 4), Fraction(2, 3), Fraction(3)]), st.booleans())
def test_dyadic_is_the_best_of_all_dyadic_trees(data, penalty, counted) -> None:
    original = data.draw(tables.filter(lambda table: sum(map(sum, table)) > 0))
    side, n = len(original), sum(map(sum, original))
    row = st.lists(st.integers(0, 5), min_size=side, max_size=side)
    drawn = data.draw(st.lists(row, min_size=side, max_size=side).filter(lambda table: sum(map(sum, table)) > 0))
    synthetic = np.array(drawn) if counted else None
    mass = sum(map(sum, drawn)) if counted else n
    places = fraction_bits(mass)
    ours = dyadic_score(np.array(original), rows=n, penalty=penalty, synthetic=synthetic)
    cells = drawn if counted else [[Fraction(n, side * side)] * side] * side
    assert ours == reference.dyadic(cells, original, places, round(penalty * 2**places))


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["pmse", "variation"]))
def test_depth_2_is_the_best_of_all_trees_of_depth_two(data, measure) -> None:
    columns = data.draw(st.integers(1, 3))
    row = st.lists(st.sampled_from([0.0, 1.0, 1.5, 2.0, 7.0]), min_size=columns, max_size=columns)
    original, synthetic = (data.draw(st.lists(row, min_size=1, max_size=9)) for _ in range(2))
    thresholds = [data.draw(st.sampled_from([[0.5], [0.5, 1.5], [1.0, 1.2, 6.0]])) for _ in range(columns)]
    n, ns = len(original), len(synthetic)
    places = fraction_bits(ns)
    leaf = {"pmse": lambda a, b: reference.square(a, b, places), "variation": lambda a, b: abs(a * n - ns * b)}[measure]
    codes = [threshold_codes(np.array(rows), [np.array(cuts) for cuts in thresholds]) for rows in (original, synthetic)]
    assert depth2_score(*codes, bins=4, measure=measure) == reference.depth2(original, synthetic, thresholds, leaf)


@settings(max_examples=60)
@given(st.data(), st.sampled_from([2, 4, 8]), st.integers(1, 4))
def test_sequential_scores_equal_those_of_the_reference(data, cells, columns) -> None:
    value = st.floats(-5, 5) | st.sampled_from([np.nan, 1e300, -1e300])
    rows = data.draw(st.lists(st.lists(value, min_size=columns, max_size=columns), min_size=1, max_size=12))
    theta = data.draw(
        st.lists(st.floats(-2, 2), min_size=columns * (columns + 3) // 2, max_size=columns * (columns + 3) // 2)
    )
    codes = reference.residual_codes(rows, theta, cells)
    ours = sequential_codes(np.array(rows), theta, cells=cells)
    if ours.T.tolist() != codes:  # a residual within rounding of a cut may fall on either side
        return
    known = reference.pair_counts(codes, cells)
    arguments = {"rows": np.array(rows), "thetas": np.array([theta]), "cells": cells}
    assert sequential_scores(**arguments)[0] == sum(map(reference.variation, known))
    places = fraction_bits(2 * len(rows))
    assert sequential_scores(**arguments, kind="grid", weight=2)[0] == sum(
        reference.grid(t, 2 * len(rows), places) for t in known
    )
    if columns > 1:
        tables = pair_tables(ours, cells=cells)
        assert tables.reshape(len(known), -1).tolist() == known
        whole = dyadic_score(tables, rows=len(rows), penalty=Fraction(1, 3))
        assert sequential_scores(**arguments, kind="dyadic", penalty=Fraction(1, 3))[0] == whole


def test_codes_equal_those_of_the_reference_without_rounding() -> None:
    """The test above accepts rounding; this one does not."""
    random = np.random.default_rng(3)
    rows, theta = random.normal(2, 3, (1100, 3)), random.normal(0, 1, 9)  # more rows than one block
    assert sequential_codes(rows, theta).T.tolist() == reference.residual_codes(rows.tolist(), theta.tolist(), 16)
    known = reference.pair_counts(reference.residual_codes(rows.tolist(), theta.tolist(), 8), 8)
    assert sequential_scores(rows, theta[None])[0] == sum(map(reference.variation, known))


def test_thetas_score_alike_together_or_alone_and_in_any_row_order() -> None:
    random = np.random.default_rng(4)
    rows, thetas = random.normal(size=(700, 4)), random.normal(0, 0.3, (6, 14))
    together = sequential_scores(rows, thetas)
    assert together.tolist() == [int(sequential_scores(rows, theta[None])[0]) for theta in thetas]
    assert together.tolist() == sequential_scores(random.permutation(rows), thetas).tolist()


@given(st.integers(0, 12), st.integers(0, 12), st.sampled_from([2, 3, 8]), st.sampled_from([5, 64, 4096]))
def test_shares_are_the_overlap_and_add_up(low, length, cells, shares) -> None:
    start, end = Fraction(low, 24), Fraction(low + length, 24)
    parts = interval_shares(np.array([float(start)]), np.array([float(end)]), cells=cells, shares=shares)[0].tolist()
    assert sum(parts) == shares
    if length:
        assert all(
            abs(f - shares * o) <= 1 + 1e-6 for f, o in zip(parts, reference.overlap(start, end, cells), strict=True)
        )
    else:
        assert max(parts) == shares


@pytest.mark.parametrize("low", [np.nan, -np.inf, np.inf, -3.0, 0.0, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("high", [np.nan, -np.inf, np.inf, -3.0, 0.0, 0.3, 1.0, 5.0])
def test_shares_of_any_interval_add_up(low, high) -> None:
    parts = interval_shares(np.array([low]), np.array([high]), cells=8, shares=100)
    assert parts.min() >= 0
    assert parts.sum() == 100


def test_spread_tables_of_codes_equal_pair_tables_in_parts() -> None:
    codes = np.random.default_rng(1).integers(0, 8, (3, 50)).astype(np.uint8)
    spread = spread_tables([code_shares(column, shares=10) for column in codes])
    assert (spread == 100 * pair_tables(codes, cells=8)).all()


def test_discrete_column_under_its_true_model_fills_all_cells_equally() -> None:
    """Values 0 and 1 in the proportion of their chances, beside an independent column: what is left is rounding."""
    low, high = (np.repeat(ends, [600, 200]) for ends in ([0.0, 0.75], [0.75, 1.0]))
    axes = [interval_shares(low, high), code_shares(np.tile(np.arange(8), 100).astype(np.uint8))]
    scale = sequential_scale(rows=800, columns=2, shares=4096)
    assert scale.value(variation_score(spread_tables(axes))) < 1
    wrong = [interval_shares(np.where(low > 0, 0.5, 0.0), np.where(low > 0, 1.0, 0.5)), axes[1]]
    assert scale.value(variation_score(spread_tables(wrong))) == 800 * Fraction(1, 4)


@paper("values of a second implementation")
def test_golden_residuals() -> None:
    known = KNOWN["rosenblatt"]
    rows, theta = np.array(known["rows"]), np.array([known["theta"]])
    assert sorted(sequential_codes(rows, theta[0]).T.tolist()) == sorted(known["nonzero"])
    for cells in (4, 8):
        scale = sequential_scale(rows=8, columns=2, cells=cells)
        assert scale.value(sequential_scores(rows, theta, cells=cells)[0]) / 8 == Fraction(known[f"tv{cells}"])
    for weight in (1, 2):
        scale = sequential_scale(rows=8, columns=2, kind="grid", weight=weight)
        value = scale.value(sequential_scores(rows, theta, kind="grid", weight=weight)[0])
        assert float(value) / (8 * (1 + weight)) == pytest.approx(known[f"grid8_pmse_r{weight}"], abs=64 / 2**20)
    scale = sequential_scale(rows=8, columns=2, kind="dyadic")
    value = scale.value(sequential_scores(rows, theta, kind="dyadic")[0])
    assert float(value) / 16 == pytest.approx(known["odc16_pmse"], abs=256 / 2**20)


@paper("values of a second implementation")
@pytest.mark.parametrize("penalty", [0, 0.5])
def test_golden_dyadic(penalty) -> None:
    synthetic, original = (np.array(KNOWN["dyadic"][name]) for name in ("synthetic", "original"))
    score = dyadic_score(original, rows=int(original.sum()), synthetic=synthetic, penalty=Fraction(penalty))
    scale = dyadic_scale(side=4, rows=int(original.sum()), synthetic=int(synthetic.sum()))
    assert float(scale.value(score)) == pytest.approx(KNOWN["dyadic"][f"penalty {penalty}"], abs=16 / 2**20)


@paper("values of a second implementation")
@pytest.mark.parametrize("measure", ["pmse", "variation"])
def test_golden_depth_2(measure) -> None:
    known = KNOWN["depth_2"]
    cuts = [np.array(some) for some in known["thresholds"]]
    original, synthetic = (threshold_codes(np.array(known[name]), cuts) for name in ("original", "synthetic"))
    score = depth2_score(original, synthetic, bins=8, measure=measure)
    value = depth2_scale(rows=20, synthetic=20, measure=measure).value(score)
    assert float(value) == pytest.approx(known["n_pmse" if measure == "pmse" else "n_pmae"], abs=4 / 2**20)


def test_scale_gives_the_rate_of_the_exponential_mechanism() -> None:
    scale = Scale("rows x total variation", denominator=128, sensitivity=128)
    assert scale.rate(Fraction(1)) == Fraction(1, 256)
    assert scale.rate(Fraction(1), reach=3) == Fraction(1, 768)


@pytest.mark.parametrize("mass", [1, 2, 100, 5_000, 10**6, 2**28])
def test_squares_of_the_largest_table_fit_64_bits(mass) -> None:
    """All rows in one cell, or none: the largest numerator and the largest denominator."""
    places = fraction_bits(mass)
    assert mass * mass * 2**places < 2**62
    for counts in ([0, 0, 0, mass], [0, 0, 0, 0]):
        assert grid_score(np.array(counts), rows=mass) == reference.grid(counts, mass, places)


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(Unsupported, match="does not fit 64 bits"):
        grid_scale(cells=64, rows=2**30)
    with pytest.raises(Unsupported, match="4,096 cells"):
        dyadic_scale(side=64, rows=100_000, shares=4096**2)
    with pytest.raises(ValueError, match="thresholds"):
        threshold_codes(np.zeros((1, 1)), [np.arange(300.0)])


def test_arguments_that_kernels_do_not_check_are_refused() -> None:
    rows, codes = np.zeros((3, 2)), np.full((2, 3), 8, np.uint8)
    with pytest.raises(ValueError, match="2 columns need 5 parameters, not 4"):
        sequential_scores(rows, np.zeros((1, 4)))
    with pytest.raises(ValueError, match="need 5 parameters"):
        sequential_codes(rows, np.zeros(6))
    with pytest.raises(ValueError, match="at least two columns"):
        sequential_scores(rows[:, :1], np.zeros((1, 2)), kind="dyadic")
    with pytest.raises(ValueError, match="below 8"):
        pair_tables(codes, cells=8)
    with pytest.raises(ValueError, match="below 8"):
        depth2_score(codes, codes, bins=8)
    with pytest.raises(ValueError, match="2 to 256 cells"):
        sequential_codes(rows, np.zeros(5), cells=300)
