"""One replaced row changes no score by more than its scale states: every small table and every neighbor, in integers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import pmse as reference
from tidegate_papers.baselines.rounds import misfit_scale, variation_scale
from tidegate_papers.baselines.scores import (
    dyadic_scale,
    dyadic_score,
    fraction_bits,
    grid_scale,
    grid_score,
    interval_shares,
    misfit_score,
    sequential_scale,
    sequential_scores,
    spread_tables,
    variation_score,
)
from tidegate_papers.baselines.trees import depth2_scale, depth2_score

from tidegate.risk.pmse import squares_exactly

SIZES = [(n, k) for n in range(1, 6) for k in (2, 3)]


def largest(tables: Iterable[tuple[int, ...]], score: Callable[[Any], int]) -> int:
    """Return the largest change over all counts and all moves of one row."""
    cached_score = cache(score)
    return max(abs(cached_score(b) - cached_score(moved)) for b in tables for moved in reference.neighbors(b))


@pytest.mark.parametrize(("n", "cells"), SIZES)
def test_variation_changes_by_at_most_its_sensitivity(n, cells) -> None:
    change = largest(reference.tables(n, cells), lambda b: variation_score(np.array(b)))
    most = variation_scale(cells=cells).sensitivity
    assert change <= most
    assert change == most or n < cells  # attained: less than it would be refuted


@pytest.mark.parametrize("expected", [(1, 1), (3, 1), (0, 2), (5, 0, 2)])
@pytest.mark.parametrize("n", [1, 3, 5])
def test_misfit_changes_by_at_most_its_sensitivity(n, expected) -> None:
    change = largest(reference.tables(n, len(expected)), lambda b: misfit_score(np.array(b), np.array(expected)))
    assert change <= misfit_scale(parts=sum(expected)).sensitivity
    assert change == misfit_scale(parts=sum(expected)).sensitivity or n == 1


@pytest.mark.parametrize("weight", [1, 2])
@pytest.mark.parametrize(("n", "cells"), SIZES)
def test_grid_changes_by_at_most_its_sensitivity(n, cells, weight) -> None:
    change = largest(reference.tables(n, cells), lambda b: grid_score(np.array(b), rows=n, weight=weight))
    assert change <= grid_scale(cells=cells, rows=n, weight=weight).sensitivity
    assert change > 0 or n == 1


def test_bound_of_the_grid_cannot_be_halved() -> None:
    """2,000 rows, 10 cells, weight 2: a row that leaves its cell for a crowded one comes near it."""
    counts = [np.array([1, 1999, *[0] * 8]), np.array([0, 2000, *[0] * 8])]
    low, high = (grid_score(b, rows=2000, weight=2) for b in counts)
    assert 0.95 < (high - low) / grid_scale(cells=10, rows=2000, weight=2).sensitivity <= 1


@pytest.mark.parametrize("penalty", [Fraction(0), Fraction(1, 50), Fraction(1, 7)])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_dyadic_with_equal_mass_changes_by_at_most_its_sensitivity(n, penalty) -> None:
    def score(b: tuple[int, ...]) -> int:
        return dyadic_score(np.array(b).reshape(2, 2), rows=n, penalty=penalty)

    change = largest(reference.tables(n, 4), score)
    assert change <= dyadic_scale(side=2, rows=n).sensitivity
    assert change > 0 or n == 1


@pytest.mark.parametrize("penalty", [Fraction(0), Fraction(1, 7)])
@pytest.mark.parametrize(("n", "ns"), [(1, 1), (2, 3), (3, 2), (3, 3)])
def test_dyadic_with_counted_mass_attains_its_bound(n, ns, penalty) -> None:
    change = max(
        largest(
            reference.tables(n, 4),
            lambda b, a=a: dyadic_score(
                np.array(b).reshape(2, 2), rows=n, penalty=penalty, synthetic=np.array(a).reshape(2, 2)
            ),
        )
        for a in reference.tables(ns, 4)
    )
    assert change <= dyadic_scale(side=2, rows=n, synthetic=ns).sensitivity
    if not penalty:
        assert change == dyadic_scale(side=2, rows=n, synthetic=ns).sensitivity


def codes_of(counts: tuple[int, ...], bins: int) -> np.ndarray:
    """Rows of two columns from the counts of bins x bins cells."""
    cells = np.repeat(np.arange(len(counts)), counts)
    return np.ascontiguousarray(np.stack([cells // bins, cells % bins]).astype(np.uint8))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("measure", ["pmse", "variation"])
@pytest.mark.parametrize(("n", "ns", "bins"), [(1, 1, 2), (2, 3, 2), (3, 3, 2), (2, 2, 3)])
def test_depth_2_attains_its_bound(n, ns, bins, measure) -> None:
    change = max(
        largest(
            reference.tables(n, bins * bins),
            lambda b, a=a: depth2_score(codes_of(b, bins), codes_of(a, bins), bins=bins, measure=measure),
        )
        for a in reference.tables(ns, bins * bins)
    )
    scale = depth2_scale(rows=n, synthetic=ns, measure=measure)
    assert change <= scale.sensitivity
    assert change == scale.sensitivity or (measure == "variation" and n == 1)


def test_enumeration_detects_a_minimum_leaf_size_on_all_rows() -> None:
    """The planted fault: the same enumeration over cuts whose sides must hold two rows of either table."""

    def faulty(a: tuple[int, ...], b: tuple[int, ...], least: int) -> int:
        places = fraction_bits(sum(a))
        runs = [r for r in reference.intervals(len(a)) if len(r) <= 2]
        allowed = [
            r
            for r in runs
            if len(r) == 1
            or all(x + y >= least for x, y in zip(reference.merge(a, r), reference.merge(b, r), strict=True))
        ]
        return max(int(squares_exactly(reference.merge(a, r), reference.merge(b, r)) * 2**places) for r in allowed)

    def worst(least: int) -> int:
        return max(largest(reference.tables(3, 3), lambda b, a=a: faulty(a, b, least)) for a in reference.tables(4, 3))

    bound = depth2_scale(rows=3, synthetic=4).sensitivity
    assert worst(0) <= bound < worst(3)


KINDS = [("variation", 1), ("grid", 1), ("grid", 2), ("dyadic", 1)]


@pytest.mark.parametrize(("kind", "weight"), KINDS)
def test_sequential_scores_of_every_small_table(kind, weight) -> None:
    """Three rows of two columns with values on either side of the cuts: all tables, every replacement, four thetas."""
    places = [np.array(row) for row in product([-1.0, 0.2, np.nan], [-0.5, 3.0])]
    thetas = np.array([[0, 0, 0, 0, 0], [0.3, -1, 0.2, 1, 0.5], [-2, 1, 0, -0.7, 0], [0, 0, 5, 0, 2]], float)
    scale = sequential_scale(rows=3, columns=2, kind=kind, cells=2, weight=weight)

    def scores(chosen: tuple[int, ...]) -> np.ndarray:
        rows = np.array([places[i] for i in chosen])
        return sequential_scores(rows, thetas, kind=kind, cells=2, weight=weight)

    known = {chosen: scores(chosen) for chosen in combinations_with_replacement(range(6), 3)}
    change = max(
        int(np.abs(known[tuple(sorted((*stay, goes)))] - known[tuple(sorted((*stay, comes)))]).max())
        for stay in combinations_with_replacement(range(6), 2)
        for goes, comes in product(range(6), repeat=2)
    )
    assert 0 < change <= scale.sensitivity


@settings(max_examples=150)
@given(st.data(), st.sampled_from(KINDS), st.integers(2, 4))
def test_sequential_scores_of_larger_tables(data, kind_weight, columns) -> None:
    kind, weight = kind_weight
    row = st.lists(st.floats(-4, 4) | st.sampled_from([np.nan, np.inf, -np.inf]), min_size=columns, max_size=columns)
    rows = np.array(data.draw(st.lists(row, min_size=1, max_size=20)))
    other = rows.copy()
    other[data.draw(st.integers(0, len(rows) - 1))] = data.draw(row)
    width = columns * (columns + 3) // 2
    theta = np.array([data.draw(st.lists(st.floats(-3, 3), min_size=width, max_size=width))])
    here, there = (sequential_scores(some, theta, kind=kind, weight=weight)[0] for some in (rows, other))
    assert abs(here - there) <= sequential_scale(rows=len(rows), columns=columns, kind=kind, weight=weight).sensitivity


SPREAD = [
    ("variation", lambda tables, n, parts: variation_score(tables)),
    ("grid", lambda tables, n, parts: grid_score(tables, rows=n, shares=parts)),
    ("dyadic", lambda tables, n, parts: dyadic_score(tables, rows=n, shares=parts)),
    ("dyadic", lambda tables, n, parts: dyadic_score(tables, rows=n, shares=parts, penalty=Fraction(1, 50))),
]


@pytest.mark.parametrize(("kind", "score"), SPREAD, ids=["variation", "grid", "dyadic", "dyadic penalized"])
@pytest.mark.parametrize("shares", [3, 4])
def test_spread_rows_of_every_small_table(kind, score, shares) -> None:
    """Two rows, each with one of six intervals on both axes, cells of one half: all tables and all replacements."""
    ends = [(i / 3, j / 3) for i in range(3) for j in range(i + 1, 4)]
    low, high = (np.array(side) for side in zip(*ends, strict=True))
    pieces = interval_shares(low, high, cells=2, shares=shares)
    kinds = list(product(range(6), repeat=2))
    single = [spread_tables([pieces[[i]], pieces[[j]]]) for i, j in kinds]
    value = {
        (first, second): score(single[first] + single[second], 2, shares * shares)
        for first, second in combinations_with_replacement(range(36), 2)
    }
    scale = sequential_scale(rows=2, columns=2, kind=kind, cells=2, shares=shares)
    change = max(
        abs(value[min(stays, goes), max(stays, goes)] - value[min(stays, comes), max(stays, comes)])
        for stays, goes, comes in product(range(36), repeat=3)
    )
    assert 0 < change <= scale.sensitivity


def test_shares_that_do_not_add_up_break_the_bound() -> None:
    """The planted fault: a row that weighs more shares than it may."""
    right = interval_shares(np.array([0.0]), np.array([0.3]), cells=2, shares=4)
    wrong = interval_shares(np.array([0.7]), np.array([1.0]), cells=2, shares=6)
    rest = interval_shares(np.array([0.0] * 3), np.array([0.3] * 3), cells=2, shares=4)

    def score(row: np.ndarray) -> int:
        counts = rest.sum(0) + row[0]
        return int(np.abs(2 * counts - 4 * 4).sum())

    assert abs(score(right) - score(right[:, ::-1])) <= variation_scale(cells=2, shares=4).sensitivity
    assert abs(score(right) - score(wrong)) > variation_scale(cells=2, shares=4).sensitivity
