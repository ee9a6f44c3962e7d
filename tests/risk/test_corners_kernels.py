"""Kernels in cases that random tables rarely reach: two children pruned in turn, many targets, many records."""

from __future__ import annotations

import numpy as np
import pytest
from reference import cart as reference

from tidegate.risk._cumulants import GROUPS, Cumulants, _group_weights, spaced, total_cumulants, total_mean
from tidegate.risk.cart import leaves_greedy


def pair(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.integers(0, 12, (rows, 2)) * 1.0, random.integers(0, 12, (rows, 2)) * 1.0


RARE = {  # seed, rows
    "the right child is pruned because the left one was": (42, 45),
    "the left child is pruned because the right one was": (55, 45),
    "the gain of the left child bounds the right one": (2857, 45),
}


@pytest.mark.parametrize("case", RARE)
def test_trees_equal_the_reference_in_rare_cases(case: str) -> None:
    """Seeds for which an implementation without this step has other leaves: one in dozens to thousands."""
    original, synthetic = pair(*RARE[case])
    settings = {"cp": 1 / 32, "minsplit": 4, "minbucket": 1, "max_depth": 6, "method": "class"}
    ours = leaves_greedy(original, synthetic, **settings)
    assert [tuple(leaf) for leaf in ours.tolist()] == reference.leaves(
        original.tolist(), synthetic.tolist(), **settings
    )


def test_sizes_are_consecutive_then_in_steps() -> None:
    assert spaced(1, 50, dense=5, ratio=2.0).tolist() == [1, 2, 3, 4, 5, 10, 20, 40, 50]
    assert spaced(3, 4, dense=5, ratio=2.0).tolist() == [3, 4]
    assert spaced(7, 30, dense=5, ratio=2.0).tolist() == [7, 14, 28, 30]
    assert spaced(4, 3, dense=5, ratio=2.0).tolist() == []


def squares(size: int, about: float) -> Cumulants:
    """Return a column whose mean is a parabola around a number of records, so that averages are variances."""
    numbers = np.arange(1, size + 1)
    return Cumulants(numbers, (numbers - about) ** 2, np.ones(size), np.ones(size))


@pytest.mark.parametrize("size", [400, 20_000])
def test_average_over_targets_covers_the_whole_binomial(size: int) -> None:
    """Two equal targets: E (n - N/2)^2 is N/4 for each. A range of a few records around N/2 would lose nearly all of it."""
    means = total_mean(np.array([size]), np.array([0.5, 0.5]), squares(size, size / 2))
    assert means[0] == pytest.approx(2 * size / 4, rel=1e-6)


def test_cumulants_cover_one_and_several_targets() -> None:
    sizes, column = np.array([10, 40]), squares(60, 0.0)
    alone = total_cumulants(sizes, np.ones(1), column)
    assert alone.mean.tolist() == [100, 1600]
    assert (alone.variance.tolist(), alone.third.tolist()) == ([1, 1], [1, 1])
    several = total_mean(sizes, np.array([0.25, 0.75]), column)
    assert several == pytest.approx([sum(n * p * (1 - p) + (n * p) ** 2 for p in (0.25, 0.75)) for n in (10, 40)])


@pytest.mark.parametrize("count", [2, GROUPS, GROUPS + 1, 3000])
def test_grouped_weights_keep_their_count_and_sum(count: int) -> None:
    weights = np.linspace(1, 9, count) / np.linspace(1, 9, count).sum()
    shares, times = _group_weights(weights)
    assert times.sum() == count
    assert shares @ times == pytest.approx(1)
    assert np.repeat(np.sort(shares), times[np.argsort(shares)]) == pytest.approx(np.sort(weights), rel=0.021)
    assert (shares.size == count) is (count <= GROUPS)


def test_grouping_keeps_the_mean_of_many_targets() -> None:
    weights = np.linspace(1, 3, 200) / np.linspace(1, 3, 200).sum()
    means = total_mean(np.array([2000]), weights, squares(2000, 0.0))
    assert means[0] == pytest.approx(sum(2000 * p * (1 - p) + (2000 * p) ** 2 for p in weights), rel=1e-3)
