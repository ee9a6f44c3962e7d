"""Permute-and-flip: refusals, exact probabilities, and its loss by enumeration."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from noise.test_references import outcomes
from reference.permute_and_flip import choose, of_all_heads, probabilities

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
def test_uniform_draw_of_all_heads_has_the_probabilities_of_permute_and_flip(scores: list[int], rate: Fraction) -> None:
    published, ours = probabilities(scores, rate), of_all_heads(scores, rate)
    assert mpmath.fsum(published) == pytest.approx(1, abs=1e-30)
    assert all(abs(p - q) < 1e-30 for p, q in zip(published, ours, strict=True))


@pytest.mark.parametrize(("scores", "rate"), TINY)
def test_reference_has_the_probabilities_of_permute_and_flip(scores: list[int], rate: Fraction) -> None:
    counts, undecided = outcomes(lambda coin: choose(scores, rate, coin))
    assert all(counts[i] <= p <= counts[i] + undecided for i, p in enumerate(probabilities(scores, rate)))
    assert undecided < 0.5


def with_replacement(scores: list[int], rate: Fraction, coin: Iterator[int]) -> int:
    """The planted fault: a rejected candidate can be proposed again (this is the exponential mechanism)."""
    from reference.exponential import choose as exponential

    return exponential(scores, rate, coin)


def test_proposing_candidates_again_is_detected() -> None:
    scores, rate = [0, 1, 3], Fraction(1, 2)
    counts, undecided = outcomes(lambda coin: with_replacement(scores, rate, coin), flips=15)
    assert any(not counts[i] <= p <= counts[i] + undecided for i, p in enumerate(probabilities(scores, rate)))


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
def test_loss_equals_epsilon_if_scores_change_by_one(epsilon: Fraction) -> None:
    assert abs(loss(rate_for(1, epsilon)) - mpmath.mpf(epsilon.numerator) / epsilon.denominator) < 1e-12


def test_scores_that_change_by_two_are_detected() -> None:
    assert loss(rate_for(1, Fraction(1)), move=2) > 1.9


@given(st.integers(1, 1000), st.fractions(Fraction(1, 2**70), 100))
def test_rate_never_costs_more_than_epsilon(sensitivity: int, epsilon: Fraction) -> None:
    rate = rate_for(sensitivity, epsilon)
    assert 2 * sensitivity * rate <= epsilon
    assert rate.denominator <= 2**62
    assert epsilon / (2 * sensitivity) - rate < Fraction(1, 2**62)


@given(st.integers(-(2**62), 2**62), rates)
def test_single_candidate_is_chosen(score: int, rate: Fraction) -> None:
    assert permute_and_flip(np.array([score]), rate, bits=SecureBits()) == 0


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=20), rates)
def test_choice_is_never_a_hopeless_candidate(scores: list[int], rate: Fraction) -> None:
    chosen = permute_and_flip(np.array(scores), rate, bits=SecureBits())
    assert rate * (max(scores) - scores[chosen]) < 40  # a coin of exp(-40) falls on heads once in 1e17


@given(st.lists(st.integers(-100, 100), min_size=1, max_size=20), rates, st.integers(-(2**61), 2**61))
def test_shift_of_all_scores_keeps_the_choice(scores: list[int], rate: Fraction, shift: int) -> None:
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
def test_inexact_input_is_refused(scores: np.ndarray, rate: Fraction) -> None:
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
def test_success_never_depends_on_the_scores(scores: np.ndarray, rate: Fraction) -> None:
    assert permute_and_flip(scores, rate, bits=SeededBits(5)) == 1
