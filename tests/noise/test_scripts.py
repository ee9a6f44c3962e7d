"""Samplers fed with prepared words: what can be enumerated is enumerated, with exact fractions."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import chain, count, cycle, islice, product, repeat
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.noise import below, discrete_laplace, exponential_choice
from tidegate.noise.bernoulli import exp_minus_fraction

WORDS = st.integers(0, 2**64 - 1)


class Exhausted(Exception):
    """More words were requested than were prepared."""


class Script:
    """Prepared words, in order."""

    def __init__(self, words: Iterable[int]) -> None:
        self._words = iter(words)

    def words(self, count: int) -> np.ndarray:
        words = list(islice(self._words, count))
        if len(words) < count:
            raise Exhausted
        return np.array(words, np.uint64)


class WordACall(Script):
    """One prepared word fills each call: with single draws, a call is one number below a bound."""

    def words(self, count: int) -> np.ndarray:
        word = next(self._words, None)
        if word is None:
            raise Exhausted
        return np.full(count, word, np.uint64)


def top(value: int, width: int) -> int:
    return value << (64 - width)


def modulo(bound: int, *, size: int, bits: Script) -> np.ndarray:
    """The planted fault: a number that is too large is folded back, not rejected."""
    width = (bound - 1).bit_length()
    return ((bits.words(size) >> np.uint64(64 - width)) % np.uint64(bound)).astype(np.int64)


def tallies(sampler, bound: int) -> list[int]:
    """Count each number over 8 rounds of all values of the leading bits (each with other trailing bits)."""
    width = (bound - 1).bit_length()
    rounds = (top(value, width) + 977 * low for low, value in zip(count(), cycle(range(2**width)), strict=False))
    return np.bincount(sampler(bound, size=8 * bound, bits=Script(rounds)), minlength=bound).tolist()


@pytest.mark.parametrize("bound", range(2, 131))
def test_every_number_below_a_bound_is_equally_likely(bound: int) -> None:
    assert tallies(below, bound) == [8] * bound


@pytest.mark.parametrize("bound", [3, 5, 20, 100, 129])
def test_modulo_bias_is_detected(bound: int) -> None:
    assert tallies(modulo, bound) != [8] * bound


@given(st.integers(2, 2**62), st.lists(WORDS, max_size=60), st.integers(0, 40))
def test_numbers_below_a_bound_are_leading_bits_in_order(bound: int, words: list[int], size: int) -> None:
    leading = [word >> (64 - (bound - 1).bit_length()) for word in words]
    expected = [value for value in leading if value < bound] + [0] * size
    assert below(bound, size=size, bits=Script(chain(words, repeat(0)))).tolist() == expected[:size]


def test_batch_out_of_bounds_is_drawn_again() -> None:
    words = [top(7, 3), top(5, 3), top(6, 3), top(4, 3)]
    assert below(5, size=1, bits=WordACall(words)).tolist() == [4]


@pytest.mark.parametrize("bound", [-1, 0, 2**62 + 1, 2**64])
def test_bound_out_of_range_is_refused(bound: int) -> None:
    with pytest.raises(ValueError, match="bound"):
        below(bound, size=1, bits=Script([]))


def test_number_below_one_needs_no_bits() -> None:
    assert below(1, size=3, bits=Script([])).tolist() == [0, 0, 0]


@pytest.mark.parametrize("n", range(4))
def test_exponential_coin_stops_at_each_step_with_the_published_probability(n: int) -> None:
    """Algorithm 1 stops at step k with probability g**(k-1) / (k-1)! - g**k / k!, and says heads where k is odd."""
    choices = [3, 3, 2, 3, 3, 3, 4]  # numbers below 3 at steps 1 to 4, and below the step from step 2 on
    steps = {1: 1, 3: 2, 5: 3, 7: 4}  # words read, and the step that read the last
    seen = dict.fromkeys(range(1, 5), Fraction(0))
    for script in product(*map(range, choices)):
        words = (top(value, (bound - 1).bit_length()) for value, bound in zip(script, choices, strict=True))
        try:
            (heads,) = exp_minus_fraction(np.array([n]), 3, bits=WordACall(words))
        except Exhausted:
            continue
        step = steps[7 - sum(1 for _ in words)]
        assert heads == (step % 2 == 1)
        seen[step] += Fraction(1, 3 * 3 * 2 * 3 * 3 * 3 * 4)
    g = Fraction(n, 3)
    assert seen == {k: g ** (k - 1) / factorial(k - 1) - g**k / factorial(k) for k in seen}


HEADS, TAILS = [0, top(1, 2)], [top(1, 1)]  # of the coin exp(-1): go on at step 2, stop at step 3; stop at step 2
PLUS, MINUS = [0], [top(1, 1)]


@pytest.mark.parametrize(
    ("words", "drawn"),
    [
        ([*TAILS, *PLUS], 0),
        ([*HEADS, *TAILS, *PLUS], 1),
        ([*HEADS, *HEADS, *TAILS, *MINUS], -2),
        ([*TAILS, *MINUS, *TAILS, *MINUS, *HEADS, *TAILS, *MINUS], -1),  # minus zero is rejected and drawn again
    ],
)
def test_zero_has_one_sign(words: list[int], drawn: int) -> None:
    script = WordACall(words)
    assert discrete_laplace(Fraction(1), size=1, bits=script).tolist() == [drawn]
    with pytest.raises(Exhausted):
        script.words(1)


def test_draw_beyond_64_bits_is_refused() -> None:
    start = [0, 0]  # U = 0, and its coin
    last = WordACall([*start, *(HEADS * 1023), *TAILS, *MINUS])
    assert discrete_laplace(Fraction(2**52), size=1, bits=last).tolist() == [-1023 * 2**52]
    with pytest.raises(OverflowError):
        discrete_laplace(Fraction(2**52), size=1, bits=WordACall([*start, *(HEADS * 1024), *TAILS, *MINUS]))


def test_rejected_proposal_is_followed_by_a_new_one() -> None:
    first, second = [top(0, 1)], [top(1, 1)]
    scores = np.array([0, 10])
    assert exponential_choice(scores, Fraction(1), bits=WordACall([*first, *TAILS, *first, *TAILS, *second])) == 1
    assert exponential_choice(scores, Fraction(1), bits=WordACall([*first, *(HEADS * 10)])) == 0
