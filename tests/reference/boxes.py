"""Noise measured by a box, slowly: its probabilities by their formula, and as the sampler computes them."""

from __future__ import annotations

import math

import mpmath

from tidegate.noise.box import acceptance, width_for


def box_of(z, bounds, steps):
    """The least k with steps |z_i| <= k bounds_i for all i."""
    return max(-(-steps * abs(value) // bound) for value, bound in zip(z, bounds, strict=True))


def sampler_probability(z, bounds, scale, steps, *, terms, geometrics=None):
    """P(z) up to a constant for the sampler: every size up to `terms`, proposed, accepted, and z uniform in its box."""
    count = (len(bounds) + 1 if geometrics is None else geometrics) - 1
    total, width = mpmath.mpf(0), width_for(scale, steps)
    for size in range(box_of(z, bounds, steps), terms):
        points = math.prod(2 * (size * bound // steps) + 1 for bound in bounds)
        chance = math.comb(size // width + count, count) * acceptance(size, bounds, steps, width) / points
        weight = mpmath.exp(-mpmath.mpf(size) * scale.denominator / scale.numerator)
        total += weight * chance.numerator / chance.denominator
    return total
