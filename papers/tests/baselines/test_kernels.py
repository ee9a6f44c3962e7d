"""Compiled misfits compared with the reference implementations, with the scores, and with their sensitivity."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.parametric import level_misfit, linear_misfit, margin_misfit
from tidegate_papers.baselines._regression_kernels import level_misfits, linear_misfits, margin_misfits
from tidegate_papers.baselines.rounds import misfit_scale, normal_cuts, variation_scale
from tidegate_papers.baselines.scores import sequential_scores

SEEDS = st.integers(0, 10**6)


def case(seed: int, rows: int = 30, parents: int = 2, groups: int = 4) -> tuple:
    random = np.random.default_rng(seed)
    values, features = random.standard_normal(rows), np.vstack([np.ones(rows), random.standard_normal((2, rows))])
    cells = random.choice([*range(groups), 255], (parents, rows)).astype(np.uint8)
    parts = np.stack([random.multinomial(64, np.full(groups, 1 / groups)) for _ in range(parents)])
    return values, features, cells, parts, random.standard_normal((5, 3)), np.exp(random.standard_normal(5))


@given(SEEDS)
def test_margin_misfits_equal_the_reference(seed: int) -> None:
    random = np.random.default_rng(seed)
    values, centers, scales = random.standard_normal(20), random.standard_normal(4), np.exp(random.standard_normal(4))
    misfits = margin_misfits(np.sort(values), 25, centers, scales, normal_cuts(16))
    assert misfits.tolist() == [margin_misfit(values, 25, c, s, 16) for c, s in zip(centers, scales, strict=True)]


@settings(max_examples=30)
@given(SEEDS)
def test_linear_misfits_equal_the_reference(seed: int) -> None:
    values, features, cells, parts, weights, scales = case(seed)
    misfits = linear_misfits(values, features, cells, parts, 30, weights, scales, normal_cuts(8))
    expected = [
        linear_misfit(values, features, cells, parts, 30, w, s, 8) for w, s in zip(weights, scales, strict=True)
    ]
    assert misfits.tolist() == expected


@settings(max_examples=20)
@given(SEEDS)
def test_level_misfits_equal_the_reference(seed: int) -> None:
    random = np.random.default_rng(seed)
    _, features, cells, _, candidates, _ = case(seed)
    counts, logits = random.integers(0, 9, (2, 4, 3)), random.standard_normal((3, 3))
    misfits = level_misfits(counts, features, cells, 47, logits, 1, candidates)
    for candidate, misfit in zip(candidates, misfits, strict=True):
        logits[1] = candidate
        assert misfit == level_misfit(counts, features, cells, 47, logits)


@pytest.mark.long  # compiles a kernel
def test_linear_misfit_of_two_numbers_equals_the_published_score() -> None:
    """The pair's misfit is the total variation of `sequential_scores`, in finer units."""
    random = np.random.default_rng(4)
    x = random.standard_normal(200)
    y = 0.5 * x + random.standard_normal(200)
    theta = np.array([0.1, -0.2, 0.3, 0.4, 0.05])
    z = (x - theta[0]) / np.exp(theta[1])
    cells = np.searchsorted(normal_cuts(8), z).astype(np.uint8)[None]
    weights = np.array([[theta[2], theta[3]]])
    parts = np.full((1, 8), 16)
    misfits = linear_misfits(
        y, np.vstack([np.ones(200), x]), cells, parts, 200, weights, np.exp(theta[4:]), normal_cuts(8)
    )
    assert misfits[0] == 16 * sequential_scores(np.column_stack([x, y]), theta)[0]


@settings(max_examples=60)
@given(SEEDS)
def test_replaced_row_changes_no_misfit_by_more_than_its_sensitivity(seed: int) -> None:
    random = np.random.default_rng(seed)
    values, features, cells, parts, weights, scales = case(seed)
    other = [values.copy(), features.copy(), cells.copy()]
    other[0][3], other[1][1:, 3], other[2][:, 3] = random.normal(0, 5), random.normal(0, 5, 2), random.integers(0, 4, 2)
    here, there = (
        linear_misfits(v, f, c, parts, 30, weights, scales, normal_cuts(8))
        for v, f, c in ((values, features, cells), other)
    )
    assert np.abs(here - there).max() <= 2 * misfit_scale(parts=8 * 64).sensitivity
    on_axis = [
        margin_misfits(np.sort(v), 30, weights[:, 0].copy(), scales, normal_cuts(16)) for v in (values, other[0])
    ]
    assert np.abs(on_axis[0] - on_axis[1]).max() <= variation_scale(cells=16).sensitivity


@pytest.mark.parametrize("shares", [1, 4])
def test_margin_sensitivity_is_attained(shares: int) -> None:
    """Move a row from the fullest cell into an empty one."""
    values = np.zeros(40 * shares)
    other = np.concatenate([np.full(shares, 3.0), np.zeros(39 * shares)])
    misfits = [
        margin_misfits(np.sort(v), 40 * shares, np.zeros(1), np.ones(1), normal_cuts(16)) for v in (values, other)
    ]
    assert abs(int(misfits[0][0] - misfits[1][0])) == variation_scale(cells=16, shares=shares).sensitivity
