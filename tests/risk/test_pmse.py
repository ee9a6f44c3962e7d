"""pMSE and total variation: their values, their sensitivity to one row (enumerated in fractions), and their null."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from claims.probabilities import bits
from golden.papers import golden, paper
from hypothesis import given
from hypothesis import strategies as st
from reference import pmse as reference

from tidegate.risk.pmse import (
    null_logistic,
    pmae,
    pmae_exactly,
    pmse,
    pmse_exactly,
    sensitivity,
    squares_exactly,
    total_variation,
    total_variation_exactly,
    variation_sensitivity,
)

SIZES = [(n, ns) for n in range(1, 6) for ns in range(1, 9)]
count = st.integers(0, 30)
pairs = st.lists(st.tuples(count, count), min_size=1, max_size=7).filter(
    lambda cells: sum(a for a, _ in cells) > 0 and sum(b for _, b in cells) > 0
)


@given(pairs)
def test_values_follow_their_definitions(cells) -> None:
    a, b = zip(*cells, strict=True)
    assert pmse_exactly(a, b) == reference.pmse(a, b)
    assert pmse(a, b) == pytest.approx(float(pmse_exactly(a, b)), rel=1e-12, abs=1e-15)
    assert total_variation_exactly(a, b) == reference.total_variation(a, b)
    assert total_variation(a, b) == pytest.approx(float(total_variation_exactly(a, b)), rel=1e-12)
    assert pmae(a, b) == pytest.approx(float(pmae_exactly(a, b)), rel=1e-12)


@given(pairs)
def test_pmae_is_the_mean_absolute_distance_of_the_shares(cells) -> None:
    a, b = zip(*cells, strict=True)
    total = sum(a) + sum(b)
    c = Fraction(sum(a), total)
    assert pmae_exactly(a, b) == sum(abs(x - c * (x + y)) for x, y in cells) / total


@paper("values of a second implementation")
def test_golden_partitions() -> None:
    known = golden("pmse")["pmse"]
    assert pmse([3, 1, 0, 0], [1, 1, 1, 1]) == known["3100 against 1111"]
    assert pmse([4, 0], [0, 4]) == known["disjoint"]
    assert pmse([2, 3], [2, 3]) == known["equal"]


@paper("exact sensitivities of a second implementation")
@pytest.mark.parametrize(("n", "ns", "value"), golden("pmse")["sensitivity"])
def test_golden_sensitivities(n, ns, value) -> None:
    assert sensitivity(n, ns) == Fraction(value)


@pytest.mark.parametrize(("n", "ns"), SIZES)
def test_one_row_changes_pmse_by_at_most_the_sensitivity(n, ns) -> None:
    """All tables with up to three cells, all neighbors: the largest change equals the bound."""
    assert largest(n, ns, cells=3, score=pmse_exactly) == sensitivity(n, ns)


@pytest.mark.parametrize(("n", "ns"), [(n, ns) for n, ns in SIZES if ns <= 5])
def test_one_row_changes_the_total_variation_by_at_most_1_over_n(n, ns) -> None:
    assert largest(n, ns, cells=3, score=total_variation_exactly) == variation_sensitivity(n)


def largest(n, ns, *, cells, score) -> Fraction:
    """Return the largest change over all counts and all changes of one original row."""
    cached_score = cache(score)
    return max(
        abs(cached_score(a, b) - cached_score(a, moved))
        for a in reference.tables(ns, cells)
        for b in reference.tables(n, cells)
        for moved in reference.neighbors(b)
    )


def best_tree(a, b, leaf_cost=0, least_total=0, least_synthetic=0) -> Fraction:
    """Return the maximum over all cuts of a line of (N pMSE - cost per leaf), with restricted leaves."""
    return max(
        (
            squares_exactly(reference.merge(a, runs), reference.merge(b, runs)) - leaf_cost * len(runs)
            for runs in reference.intervals(len(a))
            if len(runs) == 1
            or all(
                x + y >= least_total and x >= least_synthetic
                for x, y in zip(reference.merge(a, runs), reference.merge(b, runs), strict=True)
            )
        ),
        default=Fraction(0),
    )


def largest_tree_change(n, ns, cells, **restricted) -> Fraction:
    return largest(n, ns, cells=cells, score=lambda a, b: best_tree(a, b, **restricted)) / (n + ns)


@pytest.mark.parametrize(("n", "ns"), [(1, 1), (2, 3), (3, 2), (3, 3), (3, 5)])
def test_optimal_trees_on_one_column_keep_the_bound(n, ns) -> None:
    assert largest_tree_change(n, ns, 4) == sensitivity(n, ns)


@pytest.mark.parametrize("cost", [Fraction(1, 5), Fraction(1, 2), Fraction(1)])
def test_penalty_per_leaf_keeps_the_bound(cost) -> None:
    assert 0 < largest_tree_change(3, 3, 4, leaf_cost=cost) <= sensitivity(3, 3)


@pytest.mark.parametrize("least", [1, 2])
def test_minimum_of_synthetic_rows_keeps_the_bound(least) -> None:
    assert 0 < largest_tree_change(3, 4, 4, least_synthetic=least) <= sensitivity(3, 4)


def test_minimum_of_all_rows_violates_the_bound() -> None:
    """The planted fault: leaves counted on both tables make the family depend on the private rows."""
    assert largest_tree_change(3, 4, 4, least_total=3) > sensitivity(3, 4)


@pytest.mark.parametrize(("n", "ns"), [(2, 2), (3, 2), (2, 3)])
def test_best_partition_of_a_grid_keeps_the_bound(n, ns) -> None:
    """2 x 2 cells, every guillotine partition: whole, halves, thirds, all four."""
    partitions = [
        [(0, 1, 2, 3)],
        [(0, 1), (2, 3)],
        [(0, 2), (1, 3)],
        [(0,), (1,), (2, 3)],
        [(0, 1), (2,), (3,)],
        [(0,), (2,), (1, 3)],
        [(0, 2), (1,), (3,)],
        [(0,), (1,), (2,), (3,)],
    ]

    def score(a, b) -> Fraction:
        return max(
            pmse_exactly([sum(a[i] for i in cell) for cell in cells], [sum(b[i] for i in cell) for cell in cells])
            for cells in partitions
        )

    assert largest(n, ns, cells=4, score=score) == sensitivity(n, ns)


def test_published_example_attains_the_bound() -> None:
    known = golden("pmse")["attained"]
    a, b, moved = known["synthetic"], known["original"], known["neighbour"]
    assert [str(squares_exactly(a, b)), str(squares_exactly(a, moved))] == known["squares"]
    assert pmse_exactly(a, moved) - pmse_exactly(a, b) == Fraction(known["change"]) == sensitivity(3, 3)


@pytest.mark.parametrize("n", [1, 2, 4, 100])
@pytest.mark.parametrize("ns", [Fraction(1, 3), Fraction(5, 2), 7, 200])
def test_real_valued_synthetic_mass_attains_the_same_formula(n, ns) -> None:
    change = pmse_exactly([ns, 0], [0, n]) - pmse_exactly([ns, 0], [1, n - 1])
    assert change == sensitivity(n, ns)


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 12), st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=5
    )
)
def test_rows_spread_over_cells_keep_the_bound(cells) -> None:
    """Real synthetic mass a / 7, other rows b, one row spread as w and then as v: all in fractions."""
    mass, others, here, there = ([Fraction(x) for x in column] for column in zip(*cells, strict=True))
    if not (sum(mass) and sum(here) and sum(there)):
        return
    mass = [a / 7 for a in mass]
    with_here = [b + w / sum(here) for b, w in zip(others, here, strict=True)]
    with_there = [b + w / sum(there) for b, w in zip(others, there, strict=True)]
    change = abs(pmse_exactly(mass, with_here) - pmse_exactly(mass, with_there))
    assert change <= sensitivity(sum(others) + 1, sum(mass))
    moved = abs(total_variation_exactly(mass, with_here) - total_variation_exactly(mass, with_there))
    assert moved <= variation_sensitivity(int(sum(others)) + 1)


@pytest.mark.parametrize(("n", "ns"), [(3, 3), (4, 2)])
def test_half_the_bound_is_refuted(n, ns) -> None:
    """The planted fault: a bound that is too small by any factor is detected, because the largest change equals it."""
    assert largest(n, ns, cells=2, score=pmse_exactly) > sensitivity(n, ns) * Fraction(999, 1000)


def test_adding_an_original_row_only_lowers_the_squares() -> None:
    for a, b in product(reference.tables(4, 3), reference.tables(3, 3)):
        for k in range(3):
            more = [count + (i == k) for i, count in enumerate(b)]
            change = squares_exactly(a, b) - squares_exactly(a, more)
            assert 0 <= change <= Fraction(4, 5)


def test_second_order_signal_per_sensitivity_is_greatest_at_weight_two() -> None:
    known = golden("pmse")["second_order_gain"]

    def gain(weight: int) -> float:
        """Return the second derivative of pMSE in a misfit of one cell, per sensitivity, for n original rows and mass weight n."""
        n, cells, step = 1000, 4, Fraction(1, 10)
        mass = [Fraction(weight * n, cells)] * cells
        b = [Fraction(n, cells) + (step if i == 0 else -step if i == 1 else 0) for i in range(cells)]
        return float(pmse_exactly(mass, b) / sensitivity(n, weight * n))

    assert gain(2) / gain(1) == pytest.approx(known["2"] / known["1"], rel=1e-3)
    assert gain(2) > gain(3)


def propensity_pmse(original: np.ndarray, synthetic: np.ndarray) -> float:
    """Return the pMSE of a logistic regression, by Newton's method."""
    rows = np.vstack([synthetic, original])
    design = np.column_stack([np.ones(len(rows)), rows])
    label = np.repeat([1.0, 0.0], [len(synthetic), len(original)])
    theta = np.zeros(design.shape[1])
    for _ in range(12):
        p = 1 / (1 + np.exp(-design @ theta))
        theta += np.linalg.solve(design.T @ (design * (p * (1 - p))[:, None]), design.T @ (label - p))
    p = 1 / (1 + np.exp(-design @ theta))
    return float(np.mean((p - label.mean()) ** 2))


@pytest.mark.claim
@pytest.mark.parametrize("origin", ["fitted", "fresh"])
@pytest.mark.parametrize("ns", [300, 900])
def test_logistic_null_is_the_mean_of_correct_models(origin, ns) -> None:
    """400 right models with 4 parameters; the mean is within 5 standard errors + 3% (samples are finite): alpha 6e-7."""
    random = np.random.default_rng(int(bits(f"logistic null {origin} {ns}").words(1)[0]))
    n, scores = 300, []
    for _ in range(400):
        original = random.normal(size=(n, 3))
        center = original.mean(0) if origin == "fitted" else 0.0
        scores.append(propensity_pmse(original, center + random.normal(size=(ns, 3))))
    known = null_logistic(4, rows=n, synthetic=ns, origin=origin)
    assert abs(np.mean(scores) - known) < 5 * np.std(scores) / math.sqrt(400) + 0.03 * known
    other = null_logistic(4, rows=n, synthetic=ns, origin="fresh" if origin == "fitted" else "fitted")
    assert abs(np.mean(scores) - other) > 5 * np.std(scores) / math.sqrt(400) + 0.03 * other
