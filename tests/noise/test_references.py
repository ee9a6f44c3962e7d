"""Reference implementations against the exact probabilities, over every sequence of coins (no sampling)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction

import mpmath
import pytest
from reference.exponential import choose, probabilities
from reference.laplace import bernoulli, bernoulli_exp, draw, probability, uniform

FLIPS = 13


def outcomes(sampler: Callable[[Iterator[int]], int], flips: int = FLIPS) -> tuple[Counter, Fraction]:
    """The probability of each outcome over all sequences of `flips` coins, and that of no outcome yet."""
    chances, undecided, open_ends = Counter(), Fraction(0), [()]
    while open_ends:
        flipped = open_ends.pop()
        try:
            chances[sampler(iter(flipped))] += Fraction(1, 2 ** len(flipped))
        except StopIteration:
            if len(flipped) < flips:
                open_ends += [(*flipped, 0), (*flipped, 1)]
            else:
                undecided += Fraction(1, 2**flips)
    return chances, undecided


@pytest.mark.parametrize(
    "p", [Fraction(0), Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(5, 8), Fraction(6, 7)]
)
def test_fractional_coin_is_exact(p: Fraction) -> None:
    chances, undecided = outcomes(lambda coin: bernoulli(p, coin))
    assert chances[True] <= p <= chances[True] + undecided
    assert undecided <= Fraction(1, 2**FLIPS)


@pytest.mark.parametrize("n", range(1, 9))
def test_uniform_number_is_exact(n: int) -> None:
    chances, undecided = outcomes(lambda coin: uniform(n, coin))
    assert [chances[i] for i in range(n)] == [(1 - undecided) / n] * n


@pytest.mark.parametrize("gamma", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(7, 3)], ids=str)
def test_exponential_coin_is_exact(gamma: Fraction) -> None:
    chances, undecided = outcomes(lambda coin: bernoulli_exp(gamma, coin))
    assert chances[True] <= mpmath.exp(-mpmath.mpf(gamma.numerator) / gamma.denominator) <= chances[True] + undecided
    assert undecided < 0.05


@pytest.mark.one_in(2)
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(3, 2), Fraction(4)], ids=str)
def test_integers_have_their_exact_probabilities(scale: Fraction) -> None:
    chances, undecided = outcomes(lambda coin: draw(scale, coin))
    assert all(chances[z] <= probability(scale, z) <= chances[z] + undecided for z in range(-9, 10))
    assert undecided < 0.5


def minus_zero_accepted(coin: Iterator[int]) -> int:
    """The planted fault, for scale 1: zero with either sign counts as drawn."""
    v = 0
    while bernoulli_exp(Fraction(1), coin):
        v += 1
    return -v if next(coin) else v


def test_accepting_minus_zero_is_detected() -> None:
    chances, _ = outcomes(minus_zero_accepted)
    assert chances[0] > probability(Fraction(1), 0)


@pytest.mark.parametrize(
    ("scores", "rate"), [([0, 0], Fraction(1)), ([0, 1, 3], Fraction(1, 2)), ([2, -1, 0, 2, 1], Fraction(2, 3))]
)
def test_indexes_have_their_exact_probabilities(scores: list[int], rate: Fraction) -> None:
    chances, undecided = outcomes(lambda coin: choose(scores, rate, coin))
    assert all(chances[i] <= p <= chances[i] + undecided for i, p in enumerate(probabilities(scores, rate)))
    assert undecided < 0.5
