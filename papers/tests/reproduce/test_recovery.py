"""Generated baskets, randomized and mined: frequent itemsets are recovered."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from claims.probabilities import SEED
from tidegate_papers.randomization.basket_data import Shop, by_size, compare, generate, maximum_supports, randomized
from tidegate_papers.simulation.baskets import Baskets
from tidegate_papers.simulation.true_supports import TrueSupports

from tidegate.collect.baskets.design import Wishes, design
from tidegate.collect.baskets.mining import mine
from tidegate.operators.cut_and_paste import cut_and_paste


def test_baskets_are_grouped_by_size_and_none_is_lost() -> None:
    parts = by_size(Baskets.of([[1, 2], [3], [], [0, 4], [2]]))
    rows = {size: [row.tolist() for row in np.split(some.items, some.starts[1:-1])] for size, some in parts.items()}
    assert rows == {0: [[]], 1: [[3], [2]], 2: [[1, 2], [0, 4]]}


def test_maximum_supports_are_computed_for_each_size() -> None:
    parts = by_size(Baskets.of([[0], [0], [1], [0, 1], [0, 2]]))
    assert maximum_supports(parts, vocabulary_size=3) == {1: (1, Fraction(2, 3)), 2: (1, 1, Fraction(1, 2))}


def test_most_frequent_itemsets_are_recovered_from_a_mild_operator() -> None:
    """150,000 baskets; pairs are counted all at once and triples one by one."""
    shop = Shop(items=200, patterns=200)
    baskets = generate(shop, 150_000, seed=1)
    operator = cut_and_paste(10, Fraction(1, 50), range(11), vocabulary_size=200)
    truth, source = TrueSupports(baskets, vocabulary_size=200), randomized(operator, baskets, seed=f"{SEED}/mild")
    true, mined = (mine(supports, min_support=0.005, largest=3) for supports in (truth, source))
    for row in compare(true, mined, source):
        assert abs(row.score_mean) < 0.6
        assert 0.5 < row.score_deviation < 1.5
        assert row.recovered > row.true / 2
        assert row.sigma < 0.0025


def test_pairs_counted_together_equal_those_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    baskets = generate(Shop(items=30, patterns=40), 3_000, seed=1)
    source = randomized(cut_and_paste(10, Fraction(1, 10), range(11), vocabulary_size=30), baskets, seed="pairs")
    pairs = np.array([(j, i) for i in range(30) for j in range(i)])[::-1]
    one_by_one = source.count(pairs)
    monkeypatch.setattr("tidegate.collect.baskets.recovery.MANY_PAIRS", 0)
    assert np.array_equal(source.count(pairs), one_by_one)


@pytest.mark.long
def test_majority_is_recovered_from_five_million_baskets_at_a_breach_level_of_half() -> None:
    """Evfimievski et al. 2002: most of 1-, 2- and 3-itemsets at 0.2%, a deviation of 0.07% at most. Needs 1 GB, minutes."""
    count, least, shop = 5_000_000, Fraction(1, 500), Shop()
    baskets = generate(shop, count, seed=1)
    parts = by_size(baskets)
    shares = {size: Fraction(len(some), count) for size, some in parts.items()}
    most = maximum_supports(parts, vocabulary_size=shop.items)
    designed = design(
        Wishes(items=shop.items, clients=count, min_support=least, breach=Fraction(1, 2), sizes=shares, maximum=most)
    )
    truth = TrueSupports(baskets, vocabulary_size=shop.items)
    source = randomized(designed.operator, baskets, seed=f"{SEED}/five million")
    comparisons = compare(
        *(mine(supports, min_support=float(least), largest=3) for supports in (truth, source)), source
    )
    assert [row.size for row in comparisons] == [1, 2, 3]
    for row in comparisons:
        assert row.recovered > row.true / 2
        assert row.sigma <= 0.0007
        assert row.sigma == pytest.approx(designed.sigma(row.size), rel=0.25)
        assert designed.sigma(row.size) < designed.rival_sigma(row.size)
