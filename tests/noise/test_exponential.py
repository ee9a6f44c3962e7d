"""Refusals of the exponential mechanism, and inputs that it must always accept."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.exponential import probabilities

from tidegate.noise import SecureBits, SeededBits, exponential_choice

rates = st.builds(Fraction, st.integers(1, 2**20), st.integers(1, 2**62))


@given(st.integers(-(2**62), 2**62), st.integers(1, 2**62))
def test_single_candidate_is_chosen(score: int, denominator: int) -> None:
    assert exponential_choice(np.array([score]), Fraction(1, denominator), bits=SecureBits()) == 0


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=20), rates)
def test_choice_is_never_a_hopeless_candidate(scores: list[int], rate: Fraction) -> None:
    chosen = exponential_choice(np.array(scores), rate, bits=SecureBits())
    assert probabilities(scores, rate)[chosen] > 1e-12  # at most 20 such: a false alarm once in 5e10 lists


@given(st.lists(st.integers(-100, 100), min_size=1, max_size=20), rates, st.integers(-(2**61), 2**61))
def test_shift_of_all_scores_keeps_the_choice(scores: list[int], rate: Fraction, shift: int) -> None:
    moved = exponential_choice(np.array(scores) + shift, rate, bits=SeededBits(3))
    assert moved == exponential_choice(np.array(scores), rate, bits=SeededBits(3))


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32])
def test_scores_of_any_integer_type_are_compared_as_numbers(kind: type) -> None:
    ends = np.iinfo(kind) if kind != np.int64 else np.iinfo(np.int32)
    assert exponential_choice(np.array([ends.min, ends.max], kind), Fraction(1), bits=SeededBits(4)) == 1


@pytest.mark.parametrize(
    ("scores", "rate"),
    [
        pytest.param(np.array([], np.int64), Fraction(1), id="no score"),
        pytest.param(np.array([0.5, 1.0]), Fraction(1), id="scores that are not whole"),
        pytest.param(np.array([1, 2]), Fraction(0), id="no rate"),
        pytest.param(np.array([1, 2]), Fraction(-1), id="negative rate"),
        pytest.param(np.array([1, 2]), Fraction(1, 2**62 + 1), id="rate too fine"),
    ],
)
def test_inexact_input_is_refused(scores: np.ndarray, rate: Fraction) -> None:
    with pytest.raises(ValueError, match=r"scores|rate"):
        exponential_choice(scores, rate, bits=SeededBits(5))


@pytest.mark.parametrize(
    ("scores", "rate"),
    [
        pytest.param(np.array([1, 2]), Fraction(2**64), id="a rate beyond 64 bits"),
        pytest.param(np.array([0, 2**61]), Fraction(2), id="scores and rate together beyond 62 bits"),
        pytest.param(np.array([-(2**63), 2**63 - 1]), Fraction(1), id="scores at the ends of 64 bits"),
        pytest.param(np.array([0, 2**64 - 1], np.uint64), Fraction(1), id="unsigned scores"),
        pytest.param(np.array([0, 2000]), Fraction(0.1), id="a rate with a long numerator"),
    ],
)
def test_success_never_depends_on_the_scores(scores: np.ndarray, rate: Fraction) -> None:
    assert exponential_choice(scores, rate, bits=SeededBits(5)) == 1
