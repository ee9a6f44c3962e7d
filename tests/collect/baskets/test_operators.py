"""Operators on baskets: probabilities and losses equal full enumeration; bulk reports equal the reference implementation."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations
from math import isclose, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import baskets as slow
from tidegate_papers.simulation.baskets import Baskets, randomize_baskets
from tidegate_papers.simulation.values import BulkBits

from tidegate.collect.baskets import SetOperator, SizePlan, cut_and_paste, mask, select_a_size
from tidegate.errors import Unsupported
from tidegate.operators.basket_loss import largest_ratio
from tidegate.operators.cut_and_paste import CutAndPaste, cut_and_paste_keep
from tidegate.operators.exact_draws import WHOLE, SeededBytes
from tidegate.operators.mask import Mask
from tidegate.operators.select_a_size import SelectASize

F = Fraction
PLAN = SizePlan(3, (F(1, 8), F(1, 4), F(1, 2), F(1, 8)), F(1, 4))
PLANS = {
    "three of six": (PLAN, 6),
    "two of five": (SizePlan(2, (F(1, 2), F(0), F(1, 2)), F(3, 8)), 5),
    "four of five": (SizePlan(4, (F(1, 16), F(3, 16), F(1, 4), F(1, 4), F(1, 4)), F(1, 8)), 5),
    "nothing of four": (SizePlan(0, (F(1),), F(1, 16)), 4),
    "never put in": (SizePlan(2, (F(1, 4), F(1, 4), F(1, 2)), F(0)), 4),
    "always put in": (SizePlan(2, (F(1, 4), F(1, 4), F(1, 2)), F(1)), 4),
}


@pytest.mark.parametrize(("plan", "items"), PLANS.values(), ids=PLANS)
def test_probability_of_every_report_equals_full_enumeration(plan: SizePlan, items: int) -> None:
    operator = select_a_size([plan], vocabulary_size=items)
    for basket in combinations(range(items), plan.size):
        listed = slow.select_a_size(plan, basket, items)
        assert all(operator.probability(report, basket) == listed[report] for report in slow.subsets(range(items)))


def test_padded_and_cut_baskets_follow_full_enumeration() -> None:
    operator = select_a_size([PLAN], vocabulary_size=5, fixed=3)
    for basket in slow.subsets(range(5)):
        listed = slow.resize_and_select(PLAN, basket, 5)
        assert all(operator.probability(report, basket) == listed[report] for report in slow.subsets(range(5)))


@pytest.mark.parametrize(("size", "cutoff"), [(3, 1), (3, 2), (3, 3), (2, 4), (4, 2), (1, 0)])
def test_cut_and_paste_equals_its_published_steps(size: int, cutoff: int) -> None:
    rho = F(1, 8)
    plan = SizePlan(size, cut_and_paste_keep(size, cutoff, rho), rho)
    basket = tuple(range(size))
    listed = slow.cut_and_paste_by_steps(cutoff, rho, basket, 6)
    operator = select_a_size([plan], vocabulary_size=6)
    assert all(operator.probability(report, basket) == listed[report] for report in slow.subsets(range(6)))


@pytest.mark.parametrize(("keep", "insert"), [(F(7, 8), F(1, 8)), (F(3, 4), F(1, 16)), (F(1, 8), F(1, 2))])
def test_flip_is_the_product_of_its_coins_for_every_size(keep: Fraction, insert: Fraction) -> None:
    operator = mask(keep, insert, vocabulary_size=5)
    for basket in slow.subsets(range(5)):
        listed = slow.flip_items(keep, insert, basket, 5)
        assert all(operator.probability(report, basket) == listed[report] for report in slow.subsets(range(5)))


def ratio_by_listing(operator: SetOperator, groups: list[list[tuple[int, ...]]]) -> Fraction | None:
    worst = F(1)
    for baskets in groups:
        for report in slow.subsets(range(operator.vocabulary_size)):
            chances = [operator.probability(report, basket) for basket in baskets]
            if max(chances) and not min(chances):
                return None
            worst = max(worst, max(chances) / min(chances) if max(chances) else F(1))
    return worst


@pytest.mark.parametrize(("plan", "items"), PLANS.values(), ids=PLANS)
def test_loss_of_one_size_equals_full_enumeration(plan: SizePlan, items: int) -> None:
    operator = select_a_size([plan], vocabulary_size=items)
    assert largest_ratio(operator) == ratio_by_listing(operator, [list(combinations(range(items), plan.size))])


@pytest.mark.parametrize("items", [4, 6])
def test_loss_of_padded_baskets_covers_all_sizes(items: int) -> None:
    operator = select_a_size([PLAN], vocabulary_size=items, fixed=3)
    ratio = ratio_by_listing(operator, [list(slow.subsets(range(items)))])
    assert ratio is not None
    assert largest_ratio(operator) == ratio


@pytest.mark.parametrize("largest", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("keep", "insert"), [(F(7, 8), F(1, 8)), (F(3, 4), F(1, 16)), (F(1, 8), F(1, 2)), (F(1), F(1, 2))]
)
def test_loss_of_a_flip_covers_all_accepted_baskets(keep: Fraction, insert: Fraction, largest: int) -> None:
    operator = mask(keep, insert, vocabulary_size=5, largest=largest)
    taken = [basket for basket in slow.subsets(range(5)) if len(basket) <= largest]
    assert largest_ratio(operator) == ratio_by_listing(operator, [taken])


CUT_AND_PASTE = {"A": (5, 3, "0.2", 5.049856007249537), "B": (3, 1, "0.1", 2.3978952727983707)}


@pytest.mark.parametrize(("size", "cutoff", "rho", "epsilon"), CUT_AND_PASTE.values(), ids=CUT_AND_PASTE)
def test_cut_and_paste_has_the_closed_forms_loss(size: int, cutoff: int, rho: str, epsilon: float) -> None:
    ratio = largest_ratio(cut_and_paste(cutoff, rho, [size], vocabulary_size=20))
    assert ratio is not None
    assert isclose(log(ratio), epsilon, abs_tol=1e-9)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=12).filter(any), st.fractions(0, 1))
def test_rounded_plan_is_drawable_and_close(parts: list[int], insert: Fraction) -> None:
    target = [F(part, sum(parts)) for part in parts]
    plan = SizePlan.rounded(len(parts) - 1, target, insert)
    assert plan.drawable
    assert all(abs(rounded - exact) <= F(len(parts), WHOLE) for rounded, exact in zip(plan.keep, target, strict=True))
    assert all(rounded > 0 for rounded, exact in zip(plan.keep, target, strict=True) if exact)


OPERATORS = {
    "select-a-size": SelectASize(select_a_size([PLAN, SizePlan(1, (F(1, 4), F(3, 4)), F(1, 2))], vocabulary_size=5)),
    "one size": SelectASize(select_a_size([PLAN], vocabulary_size=5, fixed=3)),
    "cut-and-paste": CutAndPaste(5, cutoff=2, rho="0.1", sizes=[1, 3]),
    "mask": Mask(5, keep="0.9"),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("basket", [(2,), (0, 2, 4)])
def test_client_probabilities_sum_to_one_over_accepted_reports(name: str, basket: tuple[int, ...]) -> None:
    operator = OPERATORS[name]
    assert all(map(operator.accepts, operator.reports()))
    assert sum(operator.probability_of(report, basket) for report in operator.reports()) == 1
    for seed in range(20):
        assert operator.probability_of(operator.sample_basket(basket, SeededBytes(f"{seed}")), basket) > 0


@pytest.mark.parametrize("name", OPERATORS)
def test_recipe_contains_only_integers(name: str) -> None:
    assert json.loads(json.dumps(OPERATORS[name].recipe())) == OPERATORS[name].recipe()


BAD = {"unknown": [0, 5], "negative": [-1], "twice": [1, 1]}


@pytest.mark.parametrize("basket", BAD.values(), ids=BAD)
@pytest.mark.parametrize("name", OPERATORS)
def test_invalid_basket_is_refused_without_naming_its_items(name: str, basket: list[int]) -> None:
    with pytest.raises(Unsupported, match="must name each item once"):
        OPERATORS[name].sample_basket(basket, SeededBytes("x"))
    with pytest.raises(Unsupported):
        randomize_baskets(OPERATORS[name].operator, Baskets.of([[0], basket]), BulkBits("x"))


def test_basket_above_the_largest_planned_size_is_refused_with_that_size() -> None:
    with pytest.raises(Unsupported, match="the largest planned size is 3"):
        OPERATORS["select-a-size"].sample_basket([0, 1, 2, 3], SeededBytes("x"))
    assert OPERATORS["one size"].sample_basket([0, 1, 2, 3], SeededBytes("x")) is not None


@pytest.mark.parametrize(
    ("size", "keep", "insert"),
    [(2, (F(1),), F(0)), (1, (F(1), F(1)), F(0)), (1, (F(2), F(-1)), F(0)), (0, (F(1),), F(2))],
)
def test_invalid_plan_is_refused(size: int, keep: tuple[Fraction, ...], insert: Fraction) -> None:
    with pytest.raises(Unsupported):
        SizePlan(size, keep, insert)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("rho", [0.05, 0.4, 0.5, 0, 1])
@pytest.mark.parametrize("items", [5, 64, 100, 600])
def test_bulk_reports_equal_the_reference(items: int, rho: float) -> None:
    random = np.random.default_rng(7)
    baskets = [random.choice(items, random.integers(0, 5), replace=False).tolist() for _ in range(40)]
    for operator in (
        cut_and_paste(2, rho, range(5), vocabulary_size=items),
        cut_and_paste(2, rho, [3], vocabulary_size=items, fixed=3),
        mask("0.9", rho, vocabulary_size=items),
    ):
        rows = randomize_baskets(operator, Baskets.of(baskets), BulkBits("twin"))
        assert slow.members(rows) == slow.randomize(operator, baskets, "twin")


@settings(deadline=None, max_examples=20)
@given(st.lists(st.sets(st.integers(0, 69), max_size=6), max_size=30))
def test_true_baskets_survive_the_conversion_to_rows(baskets: list[set[int]]) -> None:
    assert slow.members(Baskets.of([sorted(basket) for basket in baskets]).rows(2)) == [sorted(b) for b in baskets]
