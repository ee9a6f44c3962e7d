"""Noise measured by a box: its exact distribution and its privacy loss."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from claims.probabilities import at_least, bits, chance
from hypothesis import given
from hypothesis import strategies as st
from reference.boxes import box_of, sampler_probability

from tidegate.accounting import KNorm, event_from_dict
from tidegate.noise import STEPS, box_noise
from tidegate.noise.box import acceptance, throw_coin

ALPHA = 1e-6
CASES = [((1, 2), Fraction(2), 2), ((3,), Fraction(4, 3), 4), ((2, 2, 1), Fraction(1), 1), ((1, 2), Fraction(7), 8)]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("bounds", "scale", "steps"), CASES)
def test_box_sampler_has_the_promised_distribution(bounds: tuple[int, ...], scale: Fraction, steps: int) -> None:
    """Proposal, coin and even draw together, against exp(-k(z) / scale): to 20 digits."""
    with mpmath.workdps(40):
        first = sampler_probability((0,) * len(bounds), bounds, scale, steps, terms=400)
        for z in product(range(-1, 4 - len(bounds) // 3), repeat=len(bounds)):
            ratio = sampler_probability(z, bounds, scale, steps, terms=400) / first
            power = mpmath.mpf(box_of(z, bounds, steps)) * scale.denominator / scale.numerator
            assert abs(ratio * mpmath.exp(power) - 1) < mpmath.mpf(10) ** -20


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("bounds", "scale", "steps"), CASES)
def test_no_change_within_the_bounds_loses_more_than_the_price(
    bounds: tuple[int, ...], scale: Fraction, steps: int
) -> None:
    """Every response in a box of 13 a side, every move; the price is reached."""
    worst = Fraction(0)
    for z in product(range(-6, 7), repeat=len(bounds)):
        for move in product(*(range(-b, b + 1) for b in bounds)):
            there = tuple(a + b for a, b in zip(z, move, strict=True))
            worst = max(worst, (box_of(there, bounds, steps) - box_of(z, bounds, steps)) / scale)
    assert worst == steps / scale
    assert KNorm(bounds, steps, scale).price.pure.value >= worst


def test_missing_geometric_number_is_detected() -> None:
    """The planted fault: sizes as for one sum less. The far responses become too rare."""
    bounds, scale, steps = (1, 2), Fraction(2), 2
    near = sampler_probability((5, 0), bounds, scale, steps, terms=400, geometrics=2)
    far = sampler_probability((6, 0), bounds, scale, steps, terms=400, geometrics=2)
    assert float(mpmath.log(near / far)) > float(steps / scale) * 1.01


def test_single_step_is_possible_and_none_is_refused() -> None:
    drawn = [box_noise((1, 2), Fraction(2), steps=1, bits=bits(number)) for number in range(50)]
    assert {len(z) for z in drawn} == {2}
    assert len({tuple(z) for z in drawn}) > 10
    with pytest.raises(ValueError, match="at least 1"):
        box_noise((1, 2), Fraction(2), steps=0, bits=bits(1))


@pytest.mark.long  # test_box_sampler_has_the_promised_distribution is cheaper
def test_frequencies_of_draws_match_their_probabilities() -> None:
    """4,000 draws by the size of their box, and by their quarter. Alpha 1e-6 each."""
    bounds, scale, steps, source = (1, 2), Fraction(2), 2, bits("boxes")
    drawn = [tuple(box_noise(bounds, scale, steps=steps, bits=source)) for _ in range(4_000)]
    points = [math.prod(2 * (k * b // steps) + 1 for b in bounds) for k in range(400)]
    mass = np.diff(points, prepend=0) * np.exp(-np.arange(400) / 2)
    seen = np.bincount([min(box_of(z, bounds, steps), 11) for z in drawn], minlength=12)
    kept_mass = np.append(mass[:11], mass[11:].sum()) / mass.sum()
    apart = kept_mass * 4_000 >= 200
    assert apart.sum() >= 5
    assert chance(seen[apart], kept_mass[apart] / kept_mass[apart].sum()) > ALPHA
    assert chance(seen[apart], np.full(apart.sum(), 1 / apart.sum())) < ALPHA
    quarters = np.array([sum((a > 0, b > 0) == (x, y) for a, b in drawn if a and b) for x in (0, 1) for y in (0, 1)])
    assert chance(quarters, np.full(4, 0.25)) > ALPHA


@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 10**9), min_size=1, max_size=6),
    st.integers(1, 4096),
    st.integers(1, 4096),
)
def test_acceptance_of_a_size_is_a_probability(size: int, bounds: list[int], steps: int, width: int) -> None:
    assert 0 < acceptance(size, bounds, steps, width) <= 1


def test_coin_is_exact_to_its_last_digit() -> None:
    """Alpha 1e-9 each way, 40,000 throws of a coin whose fraction does not fit 64 bits."""
    probability, source = Fraction(10**40 + 1, 3 * 10**40), bits("coin")
    heads = sum(throw_coin(probability, bits=source) for _ in range(40_000))
    assert at_least(heads, 40_000, 1 / 3) > 1e-9
    assert at_least(40_000 - heads, 40_000, 2 / 3) > 1e-9
    assert throw_coin(Fraction(1), bits=source)
    assert not throw_coin(Fraction(0), bits=source)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(9)])
@pytest.mark.parametrize("bounds", [(1, 2, 1, 2), (200_000, 10**10, 48_000, 2 * 10**9)], ids=["small", "wide"])
def test_mean_norm_matches_the_continuous_mechanism(bounds: tuple[int, ...], epsilon: Fraction) -> None:
    """Gamma(n + 1, 1 / epsilon) has mean (n + 1) / epsilon; rounding up to whole boxes adds at most one step. Alpha 1e-8."""
    source = bits(("norm", bounds, epsilon))
    drawn = [box_noise(bounds, STEPS / epsilon, steps=STEPS, bits=source) for _ in range(200)]
    norms = [max(abs(value) / bound for value, bound in zip(z, bounds, strict=True)) for z in drawn]
    mean, spread = len(bounds) / float(epsilon), len(bounds) ** 0.5 / float(epsilon)  # of the norm itself: Gamma(n)
    assert abs(np.mean(norms) - mean) <= 5.8 * spread / 200**0.5 + 1 / min(bounds)


def test_event_survives_serialization_and_keeps_its_price() -> None:
    event = KNorm((3, 4), 16, Fraction(64))
    assert event_from_dict(event.to_dict()) == event
    assert event.price.pure.value == Fraction(1, 4)
    for wrong in (((), 1, Fraction(1)), ((0,), 1, Fraction(1)), ((1,), 0, Fraction(1)), ((1,), 1, Fraction(0))):
        with pytest.raises(ValueError, match="at least 1"):
            KNorm(*wrong)
    with pytest.raises(ValueError, match="at least 1"):
        box_noise((), Fraction(1), steps=1, bits=bits("none"))
