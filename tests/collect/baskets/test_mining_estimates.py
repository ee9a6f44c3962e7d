"""Mining of randomized baskets: covariances exact by enumeration, estimates with honest errors, planted faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from claims.probabilities import SEED
from tidegate_papers.simulation.baskets import Baskets, randomize_baskets
from tidegate_papers.simulation.true_supports import TrueSupports
from tidegate_papers.simulation.values import BulkBits

from tidegate.collect.baskets.bitsets import Bitsets
from tidegate.collect.baskets.mining import mine
from tidegate.collect.baskets.recovery import RandomizedSupports
from tidegate.collect.baskets.rules import rules
from tidegate.errors import Unsupported
from tidegate.operators.basket_plans import SetOperator, SizePlan
from tidegate.operators.cut_and_paste import cut_and_paste
from tidegate.operators.mask import mask
from tidegate.operators.select_a_size import select_a_size

ITEMS = 5
EVERY = [frozenset(shown) for size in range(ITEMS + 1) for shown in combinations(range(ITEMS), size)]


class Expected:
    """A counter of reports with weights: with their probabilities it counts what is expected."""

    def __init__(self, reports: Iterable[tuple[frozenset[int], float]], total: int) -> None:
        self.weighed = list(reports)
        self.reports = total

    def counts(self, itemsets: np.ndarray) -> np.ndarray:
        return np.array([sum(w for shown, w in self.weighed if shown.issuperset(row)) for row in itemsets.tolist()])


PLANS = [SizePlan(3, tuple(Fraction(p, 20) for p in (2, 3, 5, 10)), Fraction(1, 5))]
OPERATORS: dict[str, SetOperator] = {
    "select-a-size": select_a_size(PLANS, vocabulary_size=ITEMS),
    "cut-and-paste": cut_and_paste(3, Fraction(1, 4), [3], vocabulary_size=ITEMS),
    "flip": mask(Fraction(3, 4), Fraction(1, 8), vocabulary_size=ITEMS),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize(("part", "whole"), [((0,), (0, 1)), ((1,), (0, 1, 2)), ((0, 3), (0, 2, 3)), ((4,), (0, 4))])
def test_covariance_of_two_supports_is_unbiased(name: str, part: tuple[int], whole: tuple[int]) -> None:
    """By enumeration of all reports of four baskets: the estimate is linear in counts, so its mean comes from mean counts."""
    operator = OPERATORS[name]
    baskets = [frozenset(basket) for basket in ((0, 1, 2), (0, 1, 3), (2, 3, 4), (0, 1, 2))]
    chances = [[float(operator.probability(shown, basket)) for shown in EVERY] for basket in baskets]
    mean = Expected([(shown, p) for each in chances for shown, p in zip(EVERY, each, strict=True)], len(baskets))
    estimate = RandomizedSupports(operator, {3: mean}).covariance(np.array([part]), np.array([whole]))[0]
    single = [RandomizedSupports(operator, {3: Expected([(shown, 1)], 1)}) for shown in EVERY]
    x, y = (np.array([source.count(np.array([items]))[0][0] for source in single]) for items in (part, whole))
    true = sum(np.dot(p, x * y) - np.dot(p, x) * np.dot(p, y) for p in map(np.array, chances)) / len(baskets) ** 2
    assert estimate == pytest.approx(true, abs=1e-12)
    assert abs(true) > 1e-4  # leaving it out would be noticed


def test_baskets_smaller_than_an_itemset_add_nothing_but_count_in_the_total() -> None:
    operator = cut_and_paste(3, Fraction(1, 4), [1, 3], vocabulary_size=ITEMS)
    true = frozenset({0, 1, 2})
    large = Expected([(shown, float(operator.probability(shown, true))) for shown in EVERY], 1)
    small = Expected([(frozenset(range(ITEMS)), 3.0)], 3)
    source = RandomizedSupports(operator, {3: large, 1: small})
    assert source.transactions == 4
    assert source.count(np.array([[0, 1]]))[0] == pytest.approx([0.25])
    assert RandomizedSupports(operator, {1: small}).count(np.array([[0, 1]]))[0].tolist() == [0.0]


def test_no_report_and_a_cutoff_below_the_itemset_are_refused() -> None:
    with pytest.raises(Unsupported, match="no report"):
        RandomizedSupports(OPERATORS["flip"], {})
    operator = cut_and_paste(1, 0, [3], vocabulary_size=ITEMS)
    source = RandomizedSupports(operator, {3: Expected([(frozenset({0}), 1.0)], 1)})
    with pytest.raises(Unsupported, match="2 items cannot be recovered"):
        source.count(np.array([[0, 1]]))


def test_itemsets_above_the_cutoff_are_not_searched_and_smaller_ones_are_found() -> None:
    operator = cut_and_paste(1, "0.01", [3], vocabulary_size=ITEMS)
    rows = randomize_baskets(operator, Baskets.of([[0, 1, 2]] * 20_000), BulkBits("cutoff"))
    mined = mine(RandomizedSupports(operator, {3: Bitsets.of(rows, vocabulary_size=ITEMS)}), min_support=0.5)
    assert [itemset.items for itemset in mined.frequent()] == [(0,), (1,), (2,)]
    assert mined.stopped is not None
    assert "2 items cannot be recovered" in mined.stopped
    nothing = cut_and_paste(0, "0.01", [3], vocabulary_size=ITEMS)
    with pytest.raises(Unsupported, match="1 items cannot be recovered"):
        mine(RandomizedSupports(nothing, {3: Bitsets.of(rows, vocabulary_size=ITEMS)}), min_support=0.5)


MANY, WIDE, LEAST = 60_000, 12, 0.02


class Seen:
    """A counter over a table of reports."""

    def __init__(self, table: np.ndarray) -> None:
        self.table = table
        self.reports = len(table)

    def counts(self, itemsets: np.ndarray) -> np.ndarray:
        return np.array([self.table[:, row].all(axis=1).sum() for row in itemsets])


def simulate(
    fault: Callable[[np.ndarray], np.ndarray] = lambda table: table,
) -> tuple[TrueSupports, RandomizedSupports]:
    """Baskets of 3 and 4 items out of 12, some items oftener, as they are and randomized."""
    random = np.random.default_rng(list(f"{SEED}/mining".encode()))
    popular = np.exp(-0.25 * np.arange(WIDE))
    order = np.argsort(random.exponential(size=(MANY, WIDE)) / popular, axis=1)
    size = random.integers(3, 5, MANY)
    baskets = Baskets.of([row[:items] for row, items in zip(order, size, strict=True)])
    operator = cut_and_paste(4, Fraction(1, 5), [3, 4], vocabulary_size=WIDE)
    words = randomize_baskets(operator, baskets, BulkBits(f"{SEED}/mining"))
    table = fault((words[:, :1] >> np.arange(WIDE, dtype=np.uint64) & np.uint64(1)).astype(bool))
    counters = {items: Seen(table[size == items]) for items in (3, 4)}
    return TrueSupports(baskets, vocabulary_size=WIDE), RandomizedSupports(operator, counters)


def scores(truth: TrueSupports, source: RandomizedSupports, size: int) -> np.ndarray:
    rows = np.array(list(combinations(range(WIDE), size)))
    estimate, error = source.count(rows)
    return np.asarray((estimate - truth.count(rows)[0]) / error)


@pytest.mark.claim
def test_estimation_errors_match_their_standard_errors() -> None:
    """No score of 298 beyond 6.2: by a normal tail (5.6e-10 each) true code fails less than once in a million runs."""
    truth, source = simulate()
    assert max(float(np.abs(scores(truth, source, size)).max()) for size in (1, 2, 3)) < 6.2


def _loses_a_tenth(table: np.ndarray) -> np.ndarray:
    return table & (np.arange(table.size).reshape(table.shape) % 10 > 0)


def _adds_to_one_item(table: np.ndarray) -> np.ndarray:
    changed = table.copy()
    changed[::20, 5] = True
    return changed


def _shows_pairs_alone(table: np.ndarray) -> np.ndarray:
    changed = table.copy()
    changed[::15, 0] = changed[::15, 1] = True
    return changed


@pytest.mark.claim
@pytest.mark.parametrize("fault", [_loses_a_tenth, _adds_to_one_item, _shows_pairs_alone])
def test_claim_detects_a_planted_fault(fault: Callable[[np.ndarray], np.ndarray]) -> None:
    truth, source = simulate(fault)
    assert np.abs(scores(truth, source, 1)).max() > 6.2


def test_randomized_baskets_give_the_true_itemsets_and_rules_except_borderline_ones() -> None:
    truth, source = simulate()
    mined, true = mine(source, min_support=LEAST, largest=3), mine(truth, min_support=LEAST, largest=3)
    for size in (1, 2, 3):
        exact = {itemset.items: itemset.support for itemset in true.frequent(size)}
        estimated = {itemset.items: itemset for itemset in mined.frequent(size)}
        sure = {items for items, share in exact.items() if share > LEAST + 6 * 0.004}
        assert sure <= set(estimated)
        assert len(set(estimated) & set(exact)) > len(exact) / 2
    exact_rules = {(rule.given, rule.then): rule.confidence for rule in rules(true, min_confidence=0)}
    estimated_rules = rules(mined, min_confidence=0.1, source=source)
    common = [rule for rule in estimated_rules if (rule.given, rule.then) in exact_rules]
    assert len(common) > 50
    assert not any(rule.bounded for rule in common)
    off = [(rule.confidence - exact_rules[rule.given, rule.then]) / rule.confidence_error for rule in common]
    assert np.abs(off).max() < 6.5
    assert all(rule.bounded for rule in rules(mined, min_confidence=0.1))
