"""The discrete Laplace distribution in many digits, its quantiles, and the scale that an epsilon needs."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reference.laplace import DIGITS, at_most, probability, quantile, within

from tidegate.noise import SeededBits, discrete_laplace, noise_quantile, scale_for
from tidegate.noise.laplace import LARGEST, difference_quantile, difference_tail

SLACK = 1e-12  # in probability: quantiles are computed in floating point
SCALES = [Fraction(1, 3), Fraction(1), Fraction(20, 3), Fraction(10**6, 7)]

moderate = st.builds(Fraction, st.integers(1, 10**6), st.integers(1, 10**6))
every = st.builds(Fraction, st.integers(1, LARGEST), st.integers(1, LARGEST)) | st.sampled_from(
    [Fraction(LARGEST), Fraction(1, LARGEST), Fraction(LARGEST, 3), Fraction(2**40, 3)]
)
confidence = st.floats(0, 1, exclude_max=True) | st.integers(1, 52).map(lambda digits: 1 - 2.0**-digits)
positive = st.builds(Fraction, st.integers(1, 2**120), st.integers(1, 2**120))


@st.composite
def target_scales(draw: st.DrawFn) -> Fraction:
    """Any fraction up to the largest scale, of any denominator, and those next to a power of two, where grids change."""
    denominator = draw(st.integers(1, 2**120))
    if draw(st.booleans()):
        return Fraction(2) ** draw(st.integers(-60, 51)) * (1 + Fraction(draw(st.integers(-4, 4)), 2**54))
    return Fraction(draw(st.integers(1, LARGEST * denominator)), denominator)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_published_algorithm_has_the_probabilities_of_the_formula(scale: Fraction) -> None:
    t, s = scale.numerator, scale.denominator
    with mpmath.workdps(DIGITS):
        tick = mpmath.exp(-mpmath.mpf(1) / t)  # U + t V is x with probability (1 - tick) * tick**x
        magnitude = [(1 - tick) * mpmath.fsum(tick**x for x in range(y * s, y * s + s)) for y in range(8)]
        minus_zero = magnitude[0] / 2
        for y in range(1, 8):
            assert mpmath.almosteq(magnitude[y] / 2 / (1 - minus_zero), probability(scale, y), rel_eps=1e-60)
        assert mpmath.almosteq(magnitude[0] / 2 / (1 - minus_zero), probability(scale, 0), rel_eps=1e-60)


@given(moderate, st.integers(-300, 300), st.integers(0, 50))
def test_probabilities_add_up(scale: Fraction, start: int, length: int) -> None:
    with mpmath.workdps(DIGITS):
        total = mpmath.fsum(probability(scale, z) for z in range(start, start + length))
        assert abs(at_most(scale, start + length - 1) - at_most(scale, start - 1) - total) < mpmath.mpf(10) ** -70


@given(moderate, confidence)
def test_interval_of_moderate_noise_is_the_smallest(scale: Fraction, p: float) -> None:
    assert noise_quantile(scale, p) == quantile(scale, p)


@given(every, confidence)
def test_interval_of_any_noise_is_the_smallest_within_the_slack(scale: Fraction, p: float) -> None:
    q = noise_quantile(scale, p)
    assert isinstance(q, int)
    assert within(scale, q) >= p - SLACK
    assert q == 0 or within(scale, q - 1) < p + SLACK


@given(moderate, st.integers(0, 30))
def test_interval_widens_as_soon_as_it_falls_short(scale: Fraction, q: int) -> None:
    reached = float(within(scale, q))
    assume(SLACK * 4 < reached < 1 - SLACK * 4)
    assert noise_quantile(scale, reached - 2 * SLACK) <= q < noise_quantile(scale, reached + 2 * SLACK)


@given(moderate, moderate, confidence, confidence)
def test_more_noise_or_more_confidence_never_narrows_the_interval(a: Fraction, b: Fraction, p: float, q: float) -> None:
    assert noise_quantile(min(a, b), min(p, q)) <= noise_quantile(max(a, b), max(p, q))


@given(positive, target_scales())
def test_scale_never_costs_more_than_epsilon(sensitivity: Fraction, target_scale: Fraction) -> None:
    epsilon = sensitivity / target_scale
    assert sensitivity / scale_for(sensitivity, epsilon) <= epsilon


@given(positive, every)
def test_representable_scale_is_exact(sensitivity: Fraction, target_scale: Fraction) -> None:
    assert scale_for(sensitivity, sensitivity / target_scale) == target_scale


@given(positive, target_scales())
def test_rounded_scale_wastes_almost_nothing(sensitivity: Fraction, target_scale: Fraction) -> None:
    scale = scale_for(sensitivity, sensitivity / target_scale)
    assert scale - target_scale <= max(Fraction(1, LARGEST), target_scale / 2**50)


@given(positive, target_scales(), st.integers(0, 3))
def test_sampler_accepts_every_scale(sensitivity: Fraction, target_scale: Fraction, size: int) -> None:
    scale = scale_for(sensitivity, sensitivity / target_scale)
    drawn = discrete_laplace(scale, size=size, bits=SeededBits(1))
    assert drawn.shape == (size,)
    assert drawn.dtype == np.int64


@given(positive, positive)
def test_epsilon_that_needs_too_much_noise_is_refused(sensitivity: Fraction, beyond: Fraction) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        scale_for(sensitivity, sensitivity / (LARGEST + beyond))


@given(positive, st.fractions(0, 1).filter(lambda short: short < 1))
def test_the_largest_scale_is_reached(sensitivity: Fraction, short: Fraction) -> None:
    assert scale_for(sensitivity, sensitivity / (LARGEST - short)) == LARGEST


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(LARGEST + 1), Fraction(1, LARGEST + 1)], ids=str)
def test_scale_out_of_range_is_refused(scale: Fraction) -> None:
    with pytest.raises(ValueError, match="scale"):
        discrete_laplace(scale, size=1, bits=SeededBits(1))


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(50)])
@pytest.mark.parametrize("quantile", [1, 2, 3, 5, 7, 20])
def test_quantile_of_a_difference_is_rounded_up_at_a_tie(scale: Fraction, quantile: int) -> None:
    """The tail beyond `quantile` - 1 is the allowed one to the last digit, so floating point cannot decide."""
    assert difference_quantile(scale, difference_tail(scale, quantile)) == quantile
    assert difference_quantile(scale, difference_tail(scale, quantile) * (1 + 1e-9)) == quantile - 1
