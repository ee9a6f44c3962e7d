"""Sampled claims about permute-and-flip: the sampler has the exact probabilities, and each planted fault is detected.

Correct code fails with probability at most ALPHA in each of 4 tests, so 4e-6 for the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from claims.probabilities import bits, chance
from reference.laplace import coins
from reference.permute_and_flip import choose, probabilities

from tidegate.noise import SeededBits, exponential_choice, permute_and_flip
from tidegate.noise.bernoulli import exp_minus_ratio

pytestmark = pytest.mark.claim

ALPHA, DRAWS = 1e-6, 10_000
CASES = [([0, 0], Fraction(1)), ([0, 1, 3], Fraction(1, 2)), ([2, -1, 0, 2, 1], Fraction(2, 3))]
Sampler = Callable[..., int]


def frequencies(sampler: Sampler, scores: list[int], rate: Fraction) -> float:
    stream = bits(f"permute and flip {scores} {rate}")
    drawn = [sampler(np.array(scores), rate, bits=stream) for _ in range(DRAWS)]
    exact = np.array([float(p) for p in probabilities(scores, rate)])
    return chance(np.bincount(drawn, minlength=len(scores)), exact)


class Slow:
    """The reference implementation, with its coins one after the other."""

    def __init__(self) -> None:
        self._coin: Iterator[int] | None = None

    def __call__(self, scores: np.ndarray, rate: Fraction, *, bits: SeededBits) -> int:
        self._coin = self._coin or coins(bits)
        return choose(scores.tolist(), rate, self._coin)


def twice_the_rate(scores: np.ndarray, rate: Fraction, *, bits: SeededBits) -> int:
    return permute_and_flip(scores, 2 * rate, bits=bits)


def never_permuted(scores: np.ndarray, rate: Fraction, *, bits: SeededBits) -> int:
    return int(np.argmax(exp_minus_ratio(scores.max() - scores, rate, bits=bits)))


def best_of_all(scores: np.ndarray, rate: Fraction, *, bits: SeededBits) -> int:
    heads = exp_minus_ratio(scores.max() - scores, rate, bits=bits)
    return int(np.argmax(np.where(heads, scores, scores.min() - 1)))


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("scores", "rate"), CASES)
def test_choices_have_the_probabilities_of_permute_and_flip(scores: list[int], rate: Fraction) -> None:
    assert frequencies(permute_and_flip, scores, rate) > ALPHA


@pytest.mark.parametrize(("scores", "rate"), CASES[2:])
def test_reference_has_the_same_probabilities(scores: list[int], rate: Fraction) -> None:
    assert frequencies(Slow(), scores, rate) > ALPHA


@pytest.mark.one_in(3)
@pytest.mark.parametrize("fault", [exponential_choice, twice_the_rate, never_permuted, best_of_all])
@pytest.mark.parametrize(("scores", "rate"), CASES[2:])
def test_planted_fault_in_permute_and_flip_is_detected(fault: Sampler, scores: list[int], rate: Fraction) -> None:
    assert frequencies(fault, scores, rate) < ALPHA
