"""A report is taken if and only if some basket gives it a chance; the server says the same of many at once."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.collect.baskets import SetOperator, SizePlan
from tidegate.collect.request import make_report
from tidegate.collect.validation import check
from tidegate.errors import Unsupported
from tidegate.operators import BasketOperator, SelectASize
from tidegate.operators.cut_and_paste import CutAndPaste
from tidegate.operators.mask import Mask
from tidegate.policy import Items, Question
from tidegate.policy.collection import Collection, operator_for

INSERTS = st.sampled_from([Fraction(0), Fraction(1, 4), Fraction(1)])


@st.composite
def plans(draw: st.DrawFn, size: int) -> SizePlan:
    indices = draw(st.sets(st.integers(0, size), min_size=1))
    first, *others = sorted(indices)  # halves, quarters, ...: what a client can draw
    keep = [Fraction(0)] * (size + 1)
    left = Fraction(1)
    for index in others:
        left /= 2
        keep[index] = left
    keep[first] = left
    return SizePlan(size, tuple(keep), draw(INSERTS))


@st.composite
def operators(draw: st.DrawFn) -> BasketOperator:
    items = draw(st.integers(1, 5))
    kind = draw(st.sampled_from(["mask", "cut-and-paste", "select-a-size", "to one size"]))
    if kind == "mask":
        chance = st.sampled_from(["0", "1", "0.75"])
        return Mask(items, keep=draw(chance), insert=draw(chance), largest=draw(st.integers(0, items)))
    if kind == "cut-and-paste":
        fixed = draw(st.none() | st.integers(0, items + 2))
        sizes = [fixed] if fixed is not None else range(draw(st.integers(0, items)) + 1)
        rho = draw(st.sampled_from(["0", "0.25", "1"]))
        return CutAndPaste(items, cutoff=draw(st.integers(0, 3)), rho=rho, sizes=sizes, fixed=fixed)
    if kind == "to one size":
        fixed = draw(st.integers(0, items + 2))
        return SelectASize(SetOperator(items, {fixed: draw(plans(fixed))}, fixed))
    sizes = draw(st.sets(st.integers(0, items), min_size=1))
    return SelectASize(SetOperator(items, {size: draw(plans(size)) for size in sizes}))


def possible(operator: BasketOperator, report: list[int]) -> bool:
    for size in range(operator.items + 1):
        if operator.operator.fixed is None and size not in operator.operator.plans:
            continue
        if any(operator.probability_of(report, basket) for basket in combinations(range(operator.items), size)):
            return True
    return False


@settings(max_examples=150, deadline=None)
@given(operators())
def test_report_is_accepted_if_and_only_if_some_basket_can_give_it(operator: BasketOperator) -> None:
    for count in range(operator.report_size + 1):
        for codes in combinations(range(operator.report_size), count):
            assert operator.accepts(list(codes)) == possible(operator, list(codes))


@settings(max_examples=60, deadline=None)
@given(operators())
def test_refused_report_has_probability_zero_for_every_basket(operator: BasketOperator) -> None:
    """Baskets of a size without a plan give no report: their likelihood is 0, and nothing breaks."""
    for said in operator.reports():
        likely = operator.likelihoods(said)
        assert len(likely) == operator.values
        assert any(likely) == operator.accepts(said)


def test_basket_without_a_plan_is_refused_with_a_message() -> None:
    operator = SelectASize(SetOperator(4, {2: SizePlan(2, (Fraction(1, 2), Fraction(0), Fraction(1, 2)), Fraction(0))}))
    with pytest.raises(Unsupported, match="There is no plan for baskets of 3 items"):
        operator.probability_of([0, 4], [0, 1, 2])
    assert operator.exact_channel()[0][0b111] == 0


QUESTIONS: dict[str, dict[str, Any]] = {
    "select-a-size": {"plans": [{"size": 2, "keep": ["0.25", "0", "0.75"], "insert": "0"}]},
    "cut-and-paste": {"cutoff": 1, "rho": "0", "largest": 2},
    "mask": {"keep": "1", "insert": "0", "largest": 2},
}


@pytest.mark.parametrize("operator", QUESTIONS)
def test_server_refuses_impossible_reports_and_accepts_the_others(operator: str) -> None:
    question = Question("basket", Items(("milk", "bread", "beer", "tea", "jam")), operator, **QUESTIONS[operator])
    collection = Collection("shop", {"basket": question})
    basket_operator = operator_for(question)
    assert isinstance(basket_operator, BasketOperator)
    answers = [list(codes) for count in range(5) for codes in combinations(range(basket_operator.report_size), count)]
    reports = [make_report(collection, {"basket": codes}, f"{number:032x}") for number, codes in enumerate(answers)]
    reasons = check(reports, collection, {"basket": basket_operator}).reasons
    assert [reason is None for reason in reasons] == [possible(basket_operator, codes) for codes in answers]
    assert 0 < sum(reason is None for reason in reasons) < len(reasons)
