"""Sampled claims about the noise: each true claim passes, each planted fault is detected.

A claim is a function from a sampler to a probability: of results at least as extreme, if the sampler is correct. Correct
code fails with probability at most ALPHA in each test; there are 43 such tests, so 4.3e-5 for the file. Cells expect at
least ENOUGH draws. Each planted fault was detected in 40 of 40 fresh runs (choices: 8 of 8).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from fractions import Fraction
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import mpmath
import numpy as np
import pytest
from claims.probabilities import ENOUGH, Words, at_least, beyond, bits, chance, chance_of_both, epsilon_lower_bound
from reference import exponential as slow_exponential
from reference import laplace as slow_laplace

from tidegate.noise import (
    SeededBits,
    below,
    bernoulli,
    discrete_laplace,
    exponential,
    exponential_choice,
    exponential_choices,
    laplace,
)
from tidegate.noise.bernoulli import exp_minus_fraction, exp_minus_ratio

pytestmark = pytest.mark.claim

ALPHA, DRAWS, SLOW_DRAWS = 1e-6, 100_000, 20_000

F = Fraction
SCALES = [F(1, 3), F(1), F(5), F(20, 3), F(10**6, 7), F(2**40, 3)]
Sampler = Callable[..., np.ndarray]


# ---- cells


@cache
def edges(scale: Fraction, enough: float) -> tuple[list[int], np.ndarray]:
    """Return the last integers of all cells but one, and the exact probability of each cell; none is below `enough`."""
    half = [slow_laplace.quantile(scale, p) for p in (0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)]
    last_integers, reached = [], [0.0]
    for edge in sorted({*half, *(-q - 1 for q in half)}):
        p = float(slow_laplace.at_most(scale, edge))
        if enough <= min(p - reached[-1], 1 - p):
            last_integers, reached = [*last_integers, edge], [*reached, p]
    return last_integers, np.diff([*reached, 1.0])


def cells(drawn: np.ndarray, scale: Fraction, enough: float) -> np.ndarray:
    return np.searchsorted(edges(scale, enough)[0], drawn)


def counts(drawn: np.ndarray, scale: Fraction, enough: float) -> np.ndarray:
    return np.bincount(cells(drawn, scale, enough), minlength=edges(scale, enough)[1].size)


# ---- planted faults


def plant(name: str, fault: Callable, function: Callable) -> Callable:
    """Return `function`, with a fault instead of the function that our samplers call `name`."""

    def faulty(*args: object, **named: object) -> object:
        with ExitStack() as stack:
            for module in (bernoulli, laplace, exponential):
                if hasattr(module, name):
                    stack.enter_context(patch.object(module, name, fault))
            return function(*args, **named)

    return faulty


def published(scale: Fraction, *, size: int, bits: SeededBits) -> np.ndarray:
    """Draw by the published algorithm, which serves all sources that are neither secure nor seeded."""
    return discrete_laplace(scale, size=size, bits=Words(bits))


def modulo(bound: int, *, size: int, bits: SeededBits) -> np.ndarray:
    leading = bits.words(size) >> np.uint64(64 - max((bound - 1).bit_length(), 1))
    return (leading % np.uint64(bound)).astype(np.int64)


def parity_flipped(numerators: np.ndarray, denominator: int, *, bits: SeededBits) -> np.ndarray:
    return ~exp_minus_fraction(numerators, denominator, bits=bits)


def quarter_less_noise(scale: Fraction, *, size: int, bits: SeededBits) -> np.ndarray:
    return discrete_laplace(scale * 3 / 4, size=size, bits=bits)


def minus_zero_kept(scale: Fraction, *, size: int, bits: SeededBits) -> np.ndarray:
    magnitudes = laplace._magnitudes(scale.numerator, scale.denominator, size=size, bits=bits)
    return np.where(below(2, size=size, bits=bits) == 1, -magnitudes, magnitudes)


def floating(
    scale: Fraction, *, size: int, bits: SeededBits, times: float = 1, rounding: Callable = np.rint
) -> np.ndarray:
    generator = np.random.default_rng(bits.words(4).tolist())
    return rounding(generator.laplace(0, times * float(scale), size)).astype(np.int64)


def neighbors_share_a_draw(scale: Fraction, *, size: int, bits: SeededBits) -> np.ndarray:
    return np.repeat(discrete_laplace(scale, size=size // 2, bits=bits), 2)


def neighbors_share_a_sign(scale: Fraction, *, size: int, bits: SeededBits) -> np.ndarray:
    drawn = discrete_laplace(scale, size=size, bits=bits)
    return np.abs(drawn) * np.repeat(np.sign(drawn[::2]), 2)


FAULTS = {
    "quarter less noise": quarter_less_noise,
    "minus zero kept": minus_zero_kept,
    "modulo": plant("below", modulo, published),
    "parity flipped": plant("exp_minus_fraction", parity_flipped, published),
    "rounded, half the scale": partial(floating, times=0.5),
    "rounded": floating,
    "rounded down": partial(floating, rounding=np.floor),
    "neighbors share a draw": neighbors_share_a_draw,
    "neighbors share a sign": neighbors_share_a_sign,
}
WRONG = ["quarter less noise", "minus zero kept", "modulo", "parity flipped", "rounded, half the scale"]


# ---- claims about the discrete Laplace


def frequencies(sampler: Sampler, scale: Fraction) -> float:
    drawn = sampler(scale, size=DRAWS, bits=bits(f"frequencies {scale}"))
    return chance(counts(drawn, scale, ENOUGH / DRAWS), edges(scale, ENOUGH / DRAWS)[1])


def symmetry(sampler: Sampler, scale: Fraction) -> float:
    """Return the chance of the signs: each magnitude has either sign equally often, one degree of freedom per cell."""
    drawn = sampler(scale, size=DRAWS, bits=bits(f"symmetry {scale}"))
    plus, minus = (counts(abs(part), scale, 0.02) for part in (drawn[drawn > 0], drawn[drawn < 0]))
    seen = plus + minus >= ENOUGH
    return beyond(((plus - minus)[seen] ** 2 / (plus + minus)[seen]).sum(), int(seen.sum()))


def neighbors(sampler: Sampler, scale: Fraction) -> float:
    """Return the chance of pairs of neighbors: they fall into pairs of cells with the product of the probabilities."""
    drawn = sampler(scale, size=2 * DRAWS, bits=bits(f"neighbours {scale}"))
    cell, p = cells(drawn, scale, 0.045), edges(scale, 0.045)[1]
    return chance(np.bincount(cell[::2] * p.size + cell[1::2], minlength=p.size**2), np.outer(p, p).ravel())


@cache
def slow_draws(scale: Fraction) -> np.ndarray:
    coin = slow_laplace.coins(bits(f"slow {scale}"))
    return np.array([slow_laplace.draw(scale, coin) for _ in range(SLOW_DRAWS)])


@cache
def opendp_draws(scale: Fraction) -> np.ndarray:
    """Draw with OpenDP 0.16, which has no seed: this claim is a fresh one in every run."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return np.array(dp.m.make_laplace(*space, scale=float(scale))([0] * SLOW_DRAWS))


def agreement(theirs: Callable[[Fraction], np.ndarray], sampler: Sampler, scale: Fraction) -> float:
    ours = sampler(scale, size=DRAWS, bits=bits(f"agreement {scale}"))
    enough = ENOUGH / SLOW_DRAWS
    return chance_of_both(counts(ours, scale, enough), counts(theirs(scale), scale, enough))


CLAIMS = {
    "frequencies": frequencies,
    "symmetry": symmetry,
    "neighbors": neighbors,
    "reference": partial(agreement, slow_draws),
    "OpenDP": partial(agreement, opendp_draws),
}
ROWS = [
    *(("frequencies", scale) for scale in SCALES),
    *(("symmetry", scale) for scale in SCALES),
    *(("neighbors", scale) for scale in (F(1), F(20, 3), F(2**40, 3))),
    *(("reference", scale) for scale in (F(1, 3), F(20, 3))),
    *(("OpenDP", scale) for scale in (F(1, 2), F(1), F(13, 2), F(2**40))),
]
PLANTED = [
    *(("frequencies", F(20, 3), fault) for fault in WRONG),
    *(("reference", F(20, 3), fault) for fault in WRONG),
    *(("OpenDP", F(13, 2), fault) for fault in WRONG),
    *(("frequencies", scale, "quarter less noise") for scale in SCALES if scale != F(20, 3)),
    *((claim, F(1), "rounded") for claim in ("frequencies", "OpenDP")),
    *(("symmetry", scale, "rounded down") for scale in (F(1, 3), F(20, 3))),
    *(("neighbors", F(20, 3), fault) for fault in ("neighbors share a draw", "neighbors share a sign")),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("claim", "scale"), ROWS, ids=str)
@pytest.mark.parametrize("sampler", [discrete_laplace, published])
def test_noise_has_its_distribution(sampler: Sampler, claim: str, scale: Fraction) -> None:
    assert CLAIMS[claim](sampler, scale) > ALPHA


@pytest.mark.long  # noise/test_gaussian.py has the same test of another noise
def test_noise_drawn_in_small_batches_has_the_same_distribution() -> None:
    def few_at_a_time(scale: Fraction, *, size: int, bits: SeededBits) -> np.ndarray:
        return np.concatenate([discrete_laplace(scale, size=n % 80, bits=bits) for n in range(size // 39)])[:size]

    assert frequencies(few_at_a_time, F(20, 3)) > ALPHA


@pytest.mark.parametrize(("claim", "scale", "fault"), PLANTED, ids=str)
def test_planted_fault_in_the_noise_is_detected(claim: str, scale: Fraction, fault: str) -> None:
    assert CLAIMS[claim](FAULTS[fault], scale) < ALPHA


def proven_loss(sampler: Sampler) -> float:
    """Return the loss that noise of scale 1 proves between the counts 100 and 101, by the event "100 at most"."""
    here, there = (at + sampler(F(1), size=DRAWS, bits=bits(f"count {at}")) for at in (100, 101))
    return epsilon_lower_bound(here <= 100, there <= 100, alpha=ALPHA)


def test_noise_of_scale_one_keeps_epsilon_one() -> None:
    assert proven_loss(discrete_laplace) <= 1


# Not included: a flipped parity never ends at scale 1, and rounding at the right scale adds no loss.
@pytest.mark.parametrize("fault", ["quarter less noise", "minus zero kept", "modulo", "rounded, half the scale"])
def test_noise_that_exceeds_its_epsilon_is_detected(fault: str) -> None:
    assert proven_loss(FAULTS[fault]) > 1


# ---- claims about whole numbers, coins and choices


def evenness(sampler: Sampler, bound: int) -> float:
    parts = min(bound, 20)
    starts = [-(-bound * part // parts) for part in range(parts + 1)]
    drawn = sampler(bound, size=DRAWS, bits=bits(f"below {bound}"))
    parts_of_draws = np.searchsorted(starts[1:-1], drawn, side="right")
    sizes = np.diff(starts).astype(float)
    return chance(np.bincount(parts_of_draws, minlength=parts), sizes / bound)


def by_steps(thrower: Sampler) -> Sampler:
    return lambda steps, parts, *, bits: thrower(steps, Fraction(1, parts), bits=bits)


def heads(thrower: Sampler, odds: Fraction) -> float:
    """Return the chance of the number of heads, if their probability is exp(-odds); doubled for either side."""
    n, d = odds.numerator, odds.denominator
    thrown = int(thrower(np.full(DRAWS, n), d, bits=bits(f"coin {odds}")).sum())
    p = float(mpmath.exp(-mpmath.mpf(n) / d))
    return 2 * min(at_least(thrown, DRAWS, p), 1 - at_least(thrown + 1, DRAWS, p), 0.5)


LISTS = {
    "two": ([0, 1], F(1), 6_000),
    "ties": ([3, -1, 3, 0, 2], F(3, 7), 6_000),
    "far apart": ([0, 1000, 997, 990], F(1, 4), 6_000),
    "one of thousands": ([0] * 1500 + [38] + [0] * 1500, F(1, 5), 800),
}


def choices(chooser: Callable[..., Any], name: str) -> float:
    """Return the chance of the choices. Indexes too rare for ENOUGH draws share a cell, or join the likeliest one."""
    scores, rate, draws = LISTS[name]
    stream = bits(f"choice {name}")
    p = np.array(slow_exponential.probabilities(scores, rate), float)
    cell = np.where(p * draws >= ENOUGH, np.arange(p.size), p.size)
    rest = cell == p.size
    cell[rest] = p.size if p[rest].sum() * draws >= ENOUGH else p.argmax()
    if chooser is exponential_choices:
        drawn = chooser(np.array(scores), rate, size=draws, bits=stream)
    else:
        drawn = [chooser(np.array(scores), rate, bits=stream) for _ in range(draws)]
    used = np.unique(cell)
    seen, promised = np.bincount(cell[drawn], minlength=p.size + 1), np.bincount(cell, p, minlength=p.size + 1)
    return chance(seen[used], promised[used])


def rate_doubled(scores: np.ndarray, rate: Fraction, *, bits: SeededBits) -> int:
    return exponential_choice(scores, 2 * rate, bits=bits)


@pytest.mark.parametrize("bound", [2, 3, 20, 1000, 3 * 2**40, 2**62 - 1])
def test_integers_below_a_bound_are_uniform(bound: int) -> None:
    assert evenness(below, bound) > ALPHA


@pytest.mark.parametrize("bound", [3, 20, 3 * 2**40])
def test_modulo_bias_is_detected(bound: int) -> None:
    assert evenness(modulo, bound) < ALPHA


@pytest.mark.parametrize("odds", [F(1, 2**40), F(1, 3), F(7, 10), F(1), F(5, 2), F(2**61 + 1, 2**62)], ids=str)
def test_coin_has_its_probability(odds: Fraction) -> None:
    assert heads(by_steps(exp_minus_ratio), odds) > ALPHA


@pytest.mark.parametrize("odds", [F(1, 3), F(1), F(5, 2)], ids=str)
@pytest.mark.parametrize(
    "fault", [("below", modulo), ("exp_minus_fraction", parity_flipped)], ids=lambda fault: fault[0]
)
def test_coin_with_another_probability_is_detected(fault: tuple[str, Callable], odds: Fraction) -> None:
    assert heads(by_steps(plant(*fault, exp_minus_ratio)), odds) < ALPHA


@pytest.mark.one_in(4)
@pytest.mark.parametrize("chooser", [exponential_choice, exponential_choices], ids=["one at a time", "all at once"])
@pytest.mark.parametrize("name", LISTS)
def test_choice_has_its_exact_probabilities(name: str, chooser: Callable[..., Any]) -> None:
    assert choices(chooser, name) > ALPHA


CHOICE_FAULTS = {
    "rate doubled": rate_doubled,
    "modulo": plant("below", modulo, exponential_choice),
    "parity flipped": plant("exp_minus_fraction", parity_flipped, exponential_choice),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("fault", CHOICE_FAULTS)
def test_choice_with_other_probabilities_is_detected(fault: str) -> None:
    assert choices(CHOICE_FAULTS[fault], "ties") < ALPHA
