"""A difference between groups is claimed only if its interval, corrected for all comparisons, excludes 0."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.laplace import DIGITS, probability

from tidegate.accounting import DiscreteLaplace
from tidegate.answer import Query, count, mean, sum
from tidegate.answer.comparison import Comparison, compare
from tidegate.answer.run import plan
from tidegate.answer.spending import RequestedLoss
from tidegate.noise.differences import ALLOWED
from tidegate.noise.laplace import difference_quantile, difference_tail
from tidegate.policy import Category, Dataset, EachRow, Grid, Integer, Loss, Policy
from tidegate.session import Session

ATTRIBUTES: dict[str, Any] = {
    "age": Integer(18, 90),
    "pay": Grid("-0.5", "9.5", "0.25"),
    "sex": Category(("male", "female")),
    "town": Category(("Aby", "Berg", "Ceder", "Dal")),
}
PEOPLE = Policy(Dataset("people", unit=EachRow(), rows=100_000), ATTRIBUTES, None, Loss(100))
SCALES = [Fraction(1, 3), Fraction(1), Fraction(20, 3), Fraction(40)]


def convolve(scale: Fraction, least: int) -> Any:
    """Return P(Z - Z' >= least) as a sum of products of both probabilities."""
    reach = int(60 * scale) + 60
    with mpmath.workdps(DIGITS):
        each = {z: probability(scale, z) for z in range(-2 * reach - least, 2 * reach + least + 1)}
        return mpmath.fsum(
            each[z] * each[z - k]
            for k in range(least, least + reach)
            for z in range(-reach, reach + 1)
            if z - k in each
        )


@pytest.mark.one_in(5)
@pytest.mark.parametrize("scale", SCALES[:3], ids=str)
@pytest.mark.parametrize("least", [1, 2, 7])
def test_tail_of_a_difference_is_the_sum_over_both_draws(scale: Fraction, least: int) -> None:
    assert difference_tail(scale, least) == pytest.approx(float(convolve(scale, least)), rel=1e-9)


@given(scale=st.fractions("1/50", 10**6), tail=st.floats(1e-9, 0.4))
def test_quantile_of_a_difference_is_the_smallest_that_keeps_the_tail(scale: Fraction, tail: float) -> None:
    q = difference_quantile(scale, tail)
    assert difference_tail(scale, q + 1) <= tail
    assert q == 0 or difference_tail(scale, q) > tail * (1 - 1e-9)


def compare_counts(cells: list[int], *, scale: Fraction, query: Query | None = None) -> Comparison:
    labels = [{"group": f"g{number}"} for number in range(len(cells))]
    comparison = compare(
        query or count().by("town"), PEOPLE, DiscreteLaplace(Fraction(2), scale), {"cells": cells}, labels=labels
    )
    assert comparison is not None
    return comparison


def test_overlapping_intervals_claim_no_difference() -> None:
    assert (
        compare_counts([100, 130], scale=Fraction(20)).says()
        == "The noise could explain all differences between groups"
    )


def test_claim_begins_exactly_where_the_tail_allows_it() -> None:
    scale = Fraction(20)
    least = difference_quantile(scale, ALLOWED / 2) + 1
    assert compare_counts([0, least - 1], scale=scale).differences == ()
    comparison = compare_counts([1000, 1000 + least], scale=scale)
    assert comparison.says() == f"g1 is higher than g0 (difference {least}, 95% interval 1 to {2 * least - 1})"
    assert comparison.method == "exact"


def test_more_groups_need_a_larger_difference() -> None:
    scale = Fraction(20)
    least = difference_quantile(scale, ALLOWED / 2) + 1
    assert compare_counts([1000, 1000 + least, 1000, 1000], scale=scale).differences == ()
    corrected = difference_quantile(scale, ALLOWED / 12) + 1
    comparison = compare_counts([1000, 1000 + corrected, 1000, 1000], scale=scale)
    assert len(comparison.differences) == 3
    assert comparison.says().startswith("g1 is higher than g0 (")
    assert comparison.says().endswith("; 2 more of 6 pairs differ")


def holm_by_definition(cells: list[int], scale: Fraction) -> set[tuple[int, int]]:
    """Return the claims of Holm's procedure on sorted probabilities, one for each ordered pair."""
    pairs = [(i, j) for i in range(len(cells)) for j in range(len(cells)) if i != j]
    tail = {(i, j): difference_tail(scale, cells[i] - cells[j]) if cells[i] > cells[j] else 1.0 for i, j in pairs}
    claimed: set[tuple[int, int]] = set()
    for step, pair in enumerate(sorted(pairs, key=lambda ordered: tail[ordered])):
        if tail[pair] > ALLOWED / (len(pairs) - step) * (1 - 1e-12):
            break
        claimed.add(pair)
    return claimed


@settings(max_examples=200, deadline=None)
@given(cells=st.lists(st.integers(-50, 300), min_size=2, max_size=6), scale=st.sampled_from(SCALES))
def test_claims_are_those_of_holm_over_both_directions(cells: list[int], scale: Fraction) -> None:
    comparison = compare_counts(cells, scale=scale)
    claimed = {(int(d.higher["group"][1:]), int(d.lower["group"][1:])) for d in comparison.differences}
    assert claimed == holm_by_definition(cells, scale)
    for item in comparison.differences:
        assert 0 < item.low <= item.difference <= item.high


def test_false_claims_among_equal_groups_are_rare() -> None:
    """Four equal groups, 4,000 draws: at most 5% of them can claim anything; 3 standard errors are allowed."""
    scale, draw = Fraction(20), np.random.default_rng(7)
    r = np.exp(-1 / float(scale))
    noise = draw.geometric(1 - r, (4000, 4)) - draw.geometric(1 - r, (4000, 4))
    wrong = np.mean([bool(compare_counts((500 + draws).tolist(), scale=scale).differences) for draws in noise])
    assert 0.01 < wrong <= 0.05 + 3 * (0.05 * 0.95 / 4000) ** 0.5


def test_sums_are_compared_in_their_own_unit() -> None:
    query = sum("pay").by("sex")
    event: Any = plan((query,), PEOPLE, loss=RequestedLoss(Fraction(1)))[0]
    least = difference_quantile(event.scales[1], ALLOWED / 2) + 1
    labels = [{"sex": "male"}, {"sex": "female"}]
    near = compare(query, PEOPLE, event, {"moments": [None, [40_000, 40_000 + least - 1], None]}, labels=labels)
    apart = compare(query, PEOPLE, event, {"moments": [None, [40_000, 40_000 + least], None]}, labels=labels)
    assert near is not None
    assert near.differences == ()
    assert apart is not None
    assert apart.differences[0].low == pytest.approx(0.25)
    assert apart.method == "exact"


def test_means_are_compared_by_the_intervals_of_both() -> None:
    query = mean("age").by("sex")
    event: Any = plan((query,), PEOPLE, loss=RequestedLoss(Fraction(1)))[0]
    labels = [{"sex": "male"}, {"sex": "female"}]
    near = {"moments": [[1000, 1000], [0, 10], None]}
    apart = {"moments": [[1000, 1000], [-20 * 1000, 20 * 1000], None]}
    equal, different = (compare(query, PEOPLE, event, stored, labels=labels) for stored in (near, apart))
    assert equal is not None
    assert equal.says() == "The noise could explain all differences between groups"
    assert different is not None
    assert different.method == "bound"
    assert different.differences[0].higher == {"sex": "female"}
    assert different.differences[0].low > 0


def test_answers_state_their_comparison_everywhere(open_session: Callable[..., Session]) -> None:
    session = open_session()
    answer = session.answer(count().by("sex"), epsilon=1)
    content = answer.to_dict()["comparison"]
    assert content["says"] == answer.comparison.says()
    assert content["pairs"] == 1
    assert content["says"] in str(answer)
    assert content["says"] in answer.plot().title
    assert content["says"] in answer._repr_html_()
    assert session.answer(count(), epsilon="0.1").to_dict()["comparison"] is None
