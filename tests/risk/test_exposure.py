"""Distances between released counts and the baseline: each equals its reference implementation."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import exposure as reference

from tidegate.risk.exposure import (
    divergence,
    dixon_coefficient,
    fit_baseline,
    kullback_leibler,
    merge_sparse_bins,
    mutual_information,
    pearson,
)

RULES = ["forward", "smaller-neighbour", "smallest-first"]


@st.composite
def baselines(draw: st.DrawFn, least: int = 2, most: int = 8) -> list[Fraction]:
    parts = draw(st.lists(st.integers(1, 1000), min_size=least, max_size=most))
    return [Fraction(part, sum(parts)) for part in parts]


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, list[Fraction]]:
    baseline = draw(baselines())
    column = st.lists(st.integers(0, 60), min_size=len(baseline), max_size=len(baseline))
    columns = draw(st.lists(column, min_size=1, max_size=5))
    return np.array(columns, np.int64).T, baseline


@given(tables())
def test_distances_follow_their_definitions(table) -> None:
    counts, baseline = table
    columns = counts.T.tolist()
    ours = kullback_leibler(counts, baseline)
    for column, distance in zip(columns, ours, strict=True):
        if sum(column):
            assert distance == pytest.approx(reference.kullback_leibler(column, baseline), rel=1e-9, abs=1e-12)
        else:
            assert math.isnan(distance)
    if counts.sum():
        expected = reference.mutual_information(columns, baseline)
        assert mutual_information(counts, baseline) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_empty_release_reveals_nothing() -> None:
    assert mutual_information(np.zeros((3, 2), np.int64), [0.5, 0.25, 0.25]) == 0


@given(baselines(), st.data(), st.sampled_from([10, 10**4, 10**9]))
def test_divergence_keeps_its_digits(baseline, data, scale) -> None:
    column = data.draw(st.lists(st.integers(0, scale), min_size=len(baseline), max_size=len(baseline)).filter(any))
    exact = reference.divergence(column, baseline)
    assert abs(divergence(column, baseline) - exact) <= 1e-15 * (4 * math.sqrt(sum(column)) + 8 * abs(exact))


def test_divergence_near_the_baseline_survives_rounding() -> None:
    baseline = [Fraction(1, 3), Fraction(2, 3)]
    column = [10**12 + 10**6, 2 * 10**12 - 10**6]  # the terms are 1e13 times larger than their sum
    exact = reference.divergence(column, baseline)
    assert divergence(column, baseline) == pytest.approx(float(exact), abs=1e-9)
    tabulated = math.fsum(c * math.log(c) - c * math.log(b) for c, b in zip(column, baseline, strict=True))
    n = sum(column)
    assert 2 * (tabulated - n * math.log(n)) != pytest.approx(float(exact), abs=1e-9)  # as a fast decision forms it


def test_impossible_value_is_infinitely_far() -> None:
    assert divergence([1, 0], [0.0, 1.0]) == math.inf
    assert divergence([0, 3], [0.0, 1.0]) == 0


@pytest.mark.parametrize("rule", RULES)
@given(table=tables(), least=st.integers(1, 30))
def test_bins_are_merged_by_the_rule(rule, table, least) -> None:
    counts, baseline = table
    for column in counts.T.tolist():
        starts = merge_sparse_bins(column, rule=rule, least=least)
        assert starts == [each[0] for each in reference.merge(column, rule, least)]
        sizes = [sum(column[a:b]) for a, b in zip(starts, [*starts[1:], len(column)], strict=True)]
        assert len(sizes) == 1 or min(sizes) >= least
        statistic, freedom = pearson(column, baseline, rule=rule, least=least)
        expected, degrees = reference.pearson(column, baseline, rule, least)
        assert freedom == degrees
        assert statistic == pytest.approx(float(expected), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("column", "rule", "starts"),
    [
        ([2, 2, 1, 9, 4], "forward", [0, 3]),
        ([2, 9, 4, 4, 9], "smaller-neighbour", [0, 2, 4]),
        ([9, 4, 9, 9], "smaller-neighbour", [0, 1, 3]),  # equal neighbors: the right one
        ([4, 6, 1, 5], "smaller-neighbour", [0, 2]),
        ([2, 3, 1, 4], "smaller-neighbour", [0, 2]),
        ([2, 3, 1, 4], "smallest-first", [0]),
        ([1, 1, 1], "forward", [0]),
        ([0, 0, 0], "smallest-first", [0]),
    ],
)
def test_ties_and_remainders_follow_the_documentation(column, rule, starts) -> None:
    assert merge_sparse_bins(column, rule=rule) == starts


def test_one_bin_is_safe() -> None:
    assert pearson([1, 1, 1], [0.2, 0.3, 0.5], rule="forward") == (0.0, 0)
    assert pearson([0, 0, 0], [0.2, 0.3, 0.5], rule="smaller-neighbour") == (0.0, 0)


@pytest.mark.parametrize(
    ("distances", "coefficient", "number"),
    [
        ([0.0, 1.0, 4.0], 0.75, 3),
        ([4.0, math.nan, 0.0, 1.0], 0.75, 3),
        ([0.0, 1.0, 4.0, 4.0 + 1e-14], 0.0, 3),
        ([1.0, 1.0 + 1e-13], 0.0, 1),
        ([1.0, 2.0], 1.0, 2),
        ([math.nan], 0.0, 0),
        ([], 0.0, 0),
    ],
)
def test_dixon_uses_the_largest_of_distinct_distances(distances, coefficient, number) -> None:
    ours, distinct = dixon_coefficient(distances)
    assert ours == pytest.approx(coefficient, abs=1e-12)
    assert distinct == number


@given(tables())
def test_rarest_value_limits_the_release(table) -> None:
    counts, baseline = table
    for column, most in zip(counts.T.tolist(), fit_baseline(counts, baseline), strict=True):
        shares = [(count, most * float(share)) for count, share in zip(column, baseline, strict=True)]
        assert all(need <= count + 1e-9 for count, need in shares)  # it fits,
        assert any(need == pytest.approx(count, abs=1e-9) for count, need in shares)  # and no larger one would
