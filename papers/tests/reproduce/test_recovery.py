"""Generated baskets, randomized and mined: what is frequent comes back."""

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


def test_baskets_are_parted_by_their_size_and_none_is_lost() -> None:
    parts = by_size(Baskets.of([[1, 2], [3], [], [0, 4], [2]]))
    rows = {size: [row.tolist() for row in np.split(some.items, some.starts[1:-1])] for size, some in parts.items()}
    assert rows == {0: [[]], 1: [[3], [2]], 2: [[1, 2], [0, 4]]}


def test_maximum_supports_are_those_of_the_baskets_of_each_size() -> None:
    parts = by_size(Baskets.of([[0], [0], [1], [0, 1], [0, 2]]))
    assert maximum_supports(parts, vocabulary_size=3) == {1: (1, Fraction(2, 3)), 2: (1, 1, Fraction(1, 2))}


def test_most_frequent_itemsets_come_back_from_a_mild_operator() -> None:
    """150,000 baskets; pairs are counted all at once and triples one by one."""
    shop = Shop(items=200, patterns=200)
    made = generate(shop, 150_000, seed=1)
    operator = cut_and_paste(10, Fraction(1, 50), range(11), vocabulary_size=200)
    truth, source = TrueSupports(made, vocabulary_size=200), randomized(operator, made, seed=f"{SEED}/mild")
    true, told = (mine(one, min_support=0.005, largest=3) for one in (truth, source))
    for one in compare(true, told, source):
        assert abs(one.score_mean) < 0.6
        assert 0.5 < one.score_deviation < 1.5
        assert one.recovered > one.true / 2
        assert one.sigma < 0.0025


def test_pairs_counted_all_at_once_are_those_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made = generate(Shop(items=30, patterns=40), 3_000, seed=1)
    source = randomized(cut_and_paste(10, Fraction(1, 10), range(11), vocabulary_size=30), made, seed="pairs")
    pairs = np.array([(j, i) for i in range(30) for j in range(i)])[::-1]
    one_by_one = source.count(pairs)
    monkeypatch.setattr("tidegate.collect.baskets.recovery.MANY_PAIRS", 0)
    assert np.array_equal(source.count(pairs), one_by_one)


@pytest.mark.long
def test_five_million_baskets_at_a_breach_level_of_half_give_back_the_majority() -> None:
    """Evfimievski et al. 2002: most of 1-, 2- and 3-itemsets at 0.2%, a deviation of 0.07% at most. Needs 1 GB, minutes."""
    many, least, shop = 5_000_000, Fraction(1, 500), Shop()
    made = generate(shop, many, seed=1)
    parts = by_size(made)
    shares = {size: Fraction(len(some), many) for size, some in parts.items()}
    most = maximum_supports(parts, vocabulary_size=shop.items)
    designed = design(
        Wishes(items=shop.items, clients=many, min_support=least, breach=Fraction(1, 2), sizes=shares, maximum=most)
    )
    truth = TrueSupports(made, vocabulary_size=shop.items)
    source = randomized(designed.operator, made, seed=f"{SEED}/five million")
    found = compare(*(mine(one, min_support=float(least), largest=3) for one in (truth, source)), source)
    assert [one.size for one in found] == [1, 2, 3]
    for one in found:
        assert one.recovered > one.true / 2
        assert one.sigma <= 0.0007
        assert one.sigma == pytest.approx(designed.sigma(one.size), rel=0.25)
        assert designed.sigma(one.size) < designed.rival_sigma(one.size)
