"""Generated baskets are sets within their sizes, the same for a seed, correlated, and corrupted as stated."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tidegate_papers.randomization.basket_data import Shop, generate, pool
from tidegate_papers.simulation.true_supports import TrueSupports

from tidegate.collect.baskets.mining import mine
from tidegate.errors import Unsupported


@pytest.mark.long
def test_baskets_are_sets_of_known_items_within_the_largest_size() -> None:
    baskets = generate(Shop(items=40, patterns=30, pattern_size=4, basket_size=6, largest=9), 5_000, seed=2)
    rows = np.split(baskets.items, baskets.starts[1:-1])
    assert len(rows) == 5_000
    assert all(len(set(row.tolist())) == row.size <= 9 for row in rows)
    assert 0 <= baskets.items.min() <= baskets.items.max() < 40


def test_same_seed_gives_the_same_baskets() -> None:
    first, again, other = (generate(Shop(), 2_000, seed=seed) for seed in (7, 7, 8))
    assert np.array_equal(first.items, again.items)
    assert np.array_equal(first.starts, again.starts)
    assert not np.array_equal(first.items[:1000], other.items[:1000])


def test_default_shop_has_frequent_items_pairs_and_triples() -> None:
    """What the experiments need at 0.2%: a few hundred items, about 100 pairs, some triples."""
    baskets = generate(Shop(), 300_000, seed=1)
    singles, pairs, triples, *_ = mine(TrueSupports(baskets, vocabulary_size=500), min_support=0.002).by_size
    assert 200 <= singles <= 450
    assert 60 <= pairs <= 200
    assert 8 <= triples <= 100
    assert (baskets.sizes <= 10).all()
    assert 1.5 < baskets.sizes.mean() < 3.5


@pytest.mark.parametrize("corruption", [0.0, 0.5, 1.0])
def test_pattern_loses_items_by_its_corruption(corruption: float) -> None:
    """One pattern of 5 items alone: it loses none with 1 - c, k with c**k (1 - c). At c = 1 nothing is ever bought."""
    shop = Shop(
        items=5, patterns=1, pattern_size=400, basket_size=0.01, largest=5, corruption=corruption, corruption_spread=0
    )
    baskets = generate(shop, 40_000, seed=3)
    bought = np.bincount(baskets.sizes, minlength=6) / 40_000
    if corruption == 1:
        assert bought[0] == 1
        return
    stays = np.array([corruption ** (5 - size) * (1 - corruption) for size in range(6)])
    stays[0] = 0  # an empty pattern is drawn again until an item remains
    assert bought == pytest.approx(stays / stays.sum(), abs=0.02)  # 8 standard errors


def test_patterns_share_items_with_the_one_before() -> None:
    def mean_overlap(correlation: float) -> float:
        starts, items, chance, _ = pool(Shop(pattern_size=6, correlation=correlation), np.random.default_rng(1))
        rows = [set(row.tolist()) for row in np.split(items, starts[1:-1])]
        assert chance.sum() == pytest.approx(1)
        return float(np.mean([len(before & after) / len(after) for before, after in pairwise(rows)]))

    assert mean_overlap(1e-9) < 0.05 < 0.3 < mean_overlap(0.5) < mean_overlap(5.0)


def test_impossible_shop_is_refused() -> None:
    with pytest.raises(Unsupported, match="A shop needs"):
        Shop(items=5, largest=6)
