"""Mining: true data equal the reference implementation, estimates use lowered thresholds, rules have errors."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.mining import all_rules, frequent_itemsets, support
from tidegate_papers.simulation.baskets import Baskets
from tidegate_papers.simulation.true_supports import TrueSupports, read_baskets

from tidegate.collect.baskets.mining import Lattice, mine
from tidegate.collect.baskets.rules import confidence_errors, rules
from tidegate.errors import SourceMissing, SourceUnreadable, Unsupported

BASKETS = st.lists(st.sets(st.integers(0, 7)), min_size=1, max_size=90).filter(any)
SHARES = st.fractions(Fraction(1, 50), 1, max_denominator=50)


def true_source(baskets: list[set[int]]) -> TrueSupports:
    return TrueSupports(Baskets.of([sorted(basket) for basket in baskets]))


@pytest.mark.long
@given(BASKETS, SHARES)
@settings(max_examples=80)
def test_mining_true_baskets_equals_the_reference(baskets: list[set[int]], least: Fraction) -> None:
    mined = mine(true_source(baskets), min_support=float(least))
    expected = frequent_itemsets(baskets, min_support=Fraction(float(least)))
    assert {itemset.items: itemset.support for itemset in mined.frequent()} == {
        items: float(share) for items, share in expected.items()
    }
    assert mined.stopped is None
    assert all(itemset.error == 0 for itemset in mined.frequent())


@given(st.lists(st.sets(st.integers(0, 4)), min_size=1, max_size=40).filter(any), SHARES, SHARES)
@settings(max_examples=60)
def test_rules_equal_the_reference(baskets: list[set[int]], least: Fraction, sure: Fraction) -> None:
    mined_rules = rules(mine(true_source(baskets), min_support=float(least)), min_confidence=float(sure) * 0.999999)
    expected = all_rules(baskets, min_support=Fraction(float(least)), min_confidence=Fraction(float(sure) * 0.999999))
    assert {(rule.given, rule.then): rule.confidence for rule in mined_rules} == pytest.approx(
        {split: float(confidence) for split, confidence in expected.items()}
    )
    assert all(rule.confidence_error == 0 and not rule.bounded for rule in mined_rules)


@given(st.lists(st.sets(st.integers(0, 99), max_size=30), min_size=1, max_size=200), st.data())
@settings(max_examples=40)
def test_itemset_counts_of_any_size_equal_the_reference(baskets: list[set[int]], data: st.DataObject) -> None:
    """In any order, often or once, over more baskets than a word has bits."""
    size = data.draw(st.integers(1, 4))
    itemsets = data.draw(st.lists(st.sets(st.integers(0, 99), min_size=size, max_size=size), min_size=1, max_size=150))
    rows = np.array([sorted(items) for items in itemsets])
    source = TrueSupports(Baskets.of([sorted(basket) for basket in baskets]), vocabulary_size=100)
    assert source.count(rows)[0] == pytest.approx([float(support(items, baskets)) for items in itemsets])


@given(st.sets(st.frozensets(st.integers(0, 6), min_size=2, max_size=2)))
def test_only_itemsets_whose_parts_were_all_retained_are_candidates(pairs: set[frozenset[int]]) -> None:
    lattice = Lattice(7)
    lattice.add(np.arange(7)[:, None])
    lattice.add(np.array(sorted(sorted(pair) for pair in pairs), np.int64).reshape(-1, 2))
    following = lattice.following(1000)
    assert following is not None
    expected = [c for c in combinations(range(7), 3) if all(frozenset(part) in pairs for part in combinations(c, 2))]
    assert [tuple(row) for row in following.tolist()] == expected


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("name", "least", "by_size"),
    [
        ("retail", 0.01, (70, 58, 25, 6)),
        ("retail", 0.002, (956, 1133, 504, 91, 7)),
        ("T10I4D100K", 0.01, (375, 9, 1)),
        ("T10I4D100K", 0.005, (569, 342, 110, 43, 9)),
    ],
)
def test_public_data_has_its_known_number_of_frequent_itemsets(
    public_data: Path, name: str, least: float, by_size: tuple[int, ...]
) -> None:
    """159 of retail and 385 of T10I4D100K at 1% are the counts known from the FIMI repository."""
    path = public_data / f"{name}.dat"
    if not path.exists():
        pytest.skip(f"TIDEGATE_DATA has no {name}.dat (FIMI repository)")
    assert mine(TrueSupports(read_baskets(path).baskets), min_support=least).by_size == by_size


class Noisy:
    """Two sure items and their pair, one that is nearly frequent, one that is far from it; all with one standard error."""

    transactions = 1000
    vocabulary_size = 4
    TRUE = ((0, 0.30), (1, 0.20), (2, 0.09), (3, 0.05))

    def __init__(self, *errors: float) -> None:
        self.errors = errors
        self.asked: list[int] = []

    def count(self, itemsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.asked.append(len(itemsets))
        single = dict(self.TRUE)
        supports = np.array([min(single[item] for item in row) for row in itemsets.tolist()])
        return supports, np.full(len(itemsets), self.errors[itemsets.shape[1] - 1])


def test_candidate_within_a_standard_error_is_retained_but_not_reported() -> None:
    mined = mine(Noisy(0.02, 0.02, 0.02), min_support=0.1)
    assert [level.itemsets.tolist() for level in mined.levels[:2]] == [[[0], [1], [2]], [[0, 1], [0, 2], [1, 2]]]
    assert [itemset.items for itemset in mined.frequent()] == [(0,), (1,), (0, 1)]
    strict = mine(Noisy(0.02, 0.02, 0.02), min_support=0.1, slack=0)
    assert [level.itemsets.tolist() for level in strict.levels] == [[[0], [1]], [[0, 1]]]


def test_size_is_not_searched_if_its_error_exceeds_half_the_threshold() -> None:
    source = Noisy(0.02, 0.051, 0.1)
    mined = mine(source, min_support=0.1)
    assert len(mined.levels) == 1
    assert mined.stopped is not None
    assert "Itemsets of 2 were not searched" in mined.stopped
    assert "5.1%" in mined.stopped
    assert mine(Noisy(0.02, 0.049, 0.049), min_support=0.1).stopped is None  # just below a half


def test_too_many_candidates_are_reported_and_not_counted() -> None:
    source = Noisy(0.0, 0.0)
    mined = mine(source, min_support=0.01, most_candidates=5)
    assert (
        mined.stopped
        == "Itemsets of 2 were not searched: there are more than 5 candidates. Use a larger minimum support."
    )
    assert source.asked == [4, 4]


def test_error_of_a_confidence_equals_that_of_a_simulated_ratio() -> None:
    """Correlated Gaussian errors, 200,000 draws: the spread of the ratio is within 3% of the delta method's."""
    random = np.random.default_rng(5)
    for correlation in (-0.9, 0.0, 0.9):
        spread = np.array([[0.004**2, correlation * 0.004 * 0.003], [correlation * 0.004 * 0.003, 0.003**2]])
        whole, part = random.multivariate_normal([0.1, 0.2], spread, 200_000).T
        errors = confidence_errors(*map(np.atleast_1d, (0.5, 0.004, 0.2, 0.003, spread[0, 1])))
        assert (whole / part).std() == pytest.approx(errors[0], rel=0.03)
        assert confidence_errors(*map(np.atleast_1d, (0.5, 0.004, 0.2, 0.003)), None)[0] >= errors[0]


def test_rule_with_an_uncertain_base_is_left_out() -> None:
    mined_rules = rules(mine(Noisy(0.04, 0.04, 0.04), min_support=0.1, slack=1), min_confidence=0)
    assert [(rule.given, rule.then) for rule in mined_rules] == [
        ((1,), (0,)),
        ((0,), (1,)),
    ]  # 2 is within three errors of zero
    assert all(rule.bounded and rule.confidence_error > 0 for rule in mined_rules)
    assert json.loads(json.dumps(mined_rules[0].to_dict()))["error_is"] == "at most"


def test_file_of_baskets_is_read_and_an_invalid_one_refused(tmp_path: Path) -> None:
    path = tmp_path / "baskets.dat"
    path.write_text("30 10 10\n\n7\t30 \r\n10")
    read = read_baskets(path)
    assert read.names.tolist() == [7, 10, 30]
    assert read.baskets.starts.tolist() == [0, 2, 2, 4, 5]
    assert read.baskets.items.tolist() == [1, 2, 0, 2, 1]
    for strange in ("1 -2\n", "milk\n", "1.5\n", "1234567890123456789\n"):
        path.write_text(strange)
        with pytest.raises(SourceUnreadable, match="integers and spaces"):
            read_baskets(path)
    with pytest.raises(SourceMissing):
        read_baskets(tmp_path / "nothing.dat")
    path.write_text("")
    assert mine(TrueSupports(read_baskets(path).baskets), min_support=0.1).levels == ()


def test_invalid_questions_are_refused_with_a_message() -> None:
    source = true_source([{0, 1}])
    for wrong in (
        {"min_support": 0},
        {"min_support": 1.5},
        {"min_support": 0.1, "slack": -1},
        {"min_support": 0.1, "largest": 0},
    ):
        with pytest.raises(Unsupported, match="`min_support` must be above 0"):
            mine(source, **wrong)
    with pytest.raises(Unsupported, match="`min_confidence` must be"):
        rules(mine(source, min_support=0.1), min_confidence=2)
    with pytest.raises(Unsupported, match="codes from 0 to 0"):
        TrueSupports(source.baskets, vocabulary_size=1)
