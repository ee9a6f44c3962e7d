"""Permute-and-flip: what it refuses, what it must always answer, its exact probabilities and its loss by enumeration."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.permute_and_flip import choose, of_all_heads, probabilities
from noise.test_twins import outcomes

from tidegate.noise import SecureBits, SeededBits, permute_and_flip, rate_for

rates = st.builds(Fraction, st.integers(0, 2**20), st.integers(1, 2**62))
TINY = [
    ([0], Fraction(1)),
    ([0, 0], Fraction(1)),
    ([0, 1, 3], Fraction(1, 2)),
    ([2, -1, 0, 2, 1], Fraction(2, 3)),
    ([0, 5, 5, -3, 1, 2], Fraction(1, 7)),
    ([4, 0, 1], Fraction(0)),
]


@pytest.mark.parametrize(("scores", "rate"), TINY)
def test_an_even_draw_of_all_heads_has_the_probabilities_of_permute_and_flip(scores: list[int], rate: Fraction) -> None:
    published, ours = probabilities(scores, rate), of_all_heads(scores, rate)
    assert mpmath.fsum(published) == pytest.approx(1, abs=1e-30)
    assert all(abs(p - q) < 1e-30 for p, q in zip(published, ours, strict=True))


@pytest.mark.parametrize(("scores", "rate"), TINY)
def test_the_slow_twin_has_the_probabilities_of_permute_and_flip(scores: list[int], rate: Fraction) -> None:
    found, undecided = outcomes(lambda coin: choose(scores, rate, coin))
    assert all(found[i] <= p <= found[i] + undecided for i, p in enumerate(probabilities(scores, rate)))
    assert undecided < 0.5


def with_replacement(scores: list[int], rate: Fraction, coin: Iterator[int]) -> int:
    """The planted fault: a candidate that fell may be proposed again (this is the exponential mechanism)."""
    from naive.exponential import choose as exponential

    return exponential(scores, rate, coin)


def test_candidates_proposed_again_would_be_seen() -> None:
    scores, rate = [0, 1, 3], Fraction(1, 2)
    found, undecided = outcomes(lambda coin: with_replacement(scores, rate, coin), flips=15)
    assert any(not found[i] <= p <= found[i] + undecided for i, p in enumerate(probabilities(scores, rate)))


def loss(rate: Fraction, *, move: int = 1) -> mpmath.mpf:
    """The largest log ratio over all lists of three scores from 0 to 3 and all moves of each by at most `move`."""
    known = {scores: probabilities(scores, rate) for scores in product(range(4 + 2 * move), repeat=3)}
    largest = mpmath.mpf(0)
    for scores in product(range(move, 4 + move), repeat=3):
        for moves in product(range(-move, move + 1), repeat=3):
            there = known[tuple(a + b for a, b in zip(scores, moves, strict=True))]
            largest = max(largest, *(abs(mpmath.log(p / q)) for p, q in zip(known[scores], there, strict=True)))
    return largest


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_it_loses_its_epsilon_and_not_more_where_scores_move_by_one(epsilon: Fraction) -> None:
    assert abs(loss(rate_for(1, epsilon)) - mpmath.mpf(epsilon.numerator) / epsilon.denominator) < 1e-12


def test_scores_that_move_by_two_would_be_seen() -> None:
    assert loss(rate_for(1, Fraction(1)), move=2) > 1.9


@given(st.integers(1, 1000), st.fractions(Fraction(1, 2**70), 100))
def test_a_rate_never_costs_more_than_was_asked(sensitivity: int, epsilon: Fraction) -> None:
    rate = rate_for(sensitivity, epsilon)
    assert 2 * sensitivity * rate <= epsilon
    assert rate.denominator <= 2**62
    assert epsilon / (2 * sensitivity) - rate < Fraction(1, 2**62)


@given(st.integers(-(2**62), 2**62), rates)
def test_the_only_one_is_chosen(score: int, rate: Fraction) -> None:
    assert permute_and_flip(np.array([score]), rate, bits=SecureBits()) == 0


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=20), rates)
def test_a_choice_is_one_of_the_list_and_never_one_that_is_hopeless(scores: list[int], rate: Fraction) -> None:
    chosen = permute_and_flip(np.array(scores), rate, bits=SecureBits())
    assert rate * (max(scores) - scores[chosen]) < 40  # a coin of exp(-40) falls on heads once in 1e17


@given(st.lists(st.integers(-100, 100), min_size=1, max_size=20), rates, st.integers(-(2**61), 2**61))
def test_a_shift_of_all_scores_changes_nothing(scores: list[int], rate: Fraction, shift: int) -> None:
    moved = permute_and_flip(np.array(scores) + shift, rate, bits=SeededBits(3))
    assert moved == permute_and_flip(np.array(scores), rate, bits=SeededBits(3))


@pytest.mark.parametrize(
    ("scores", "rate"),
    [
        pytest.param(np.array([], np.int64), Fraction(1), id="no score"),
        pytest.param(np.array([0.5, 1.0]), Fraction(1), id="scores that are not whole"),
        pytest.param(np.array([1, 2]), Fraction(-1), id="negative rate"),
        pytest.param(np.array([1, 2]), Fraction(1, 2**62 + 1), id="rate too fine"),
    ],
)
def test_what_would_not_be_exact_is_refused(scores: np.ndarray, rate: Fraction) -> None:
    with pytest.raises(ValueError, match=r"scores|rate"):
        permute_and_flip(scores, rate, bits=SeededBits(5))


@pytest.mark.parametrize(
    ("scores", "rate"),
    [
        pytest.param(np.array([1, 2]), Fraction(2**64), id="a rate beyond 64 bits"),
        pytest.param(np.array([0, 2**61]), Fraction(2), id="scores and rate together beyond 62 bits"),
        pytest.param(np.array([-(2**63), 2**63 - 1]), Fraction(1), id="scores at the ends of 64 bits"),
        pytest.param(np.array([0, 2000]), Fraction(0.1), id="a rate with a long numerator"),
    ],
)
def test_whether_it_runs_never_depends_on_the_scores(scores: np.ndarray, rate: Fraction) -> None:
    assert permute_and_flip(scores, rate, bits=SeededBits(5)) == 1
