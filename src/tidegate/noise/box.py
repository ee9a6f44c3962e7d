"""Integer noise whose size is measured by a box: the discrete l-infinity K-norm mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from tidegate.noise.bits import Bits, below, below_any
from tidegate.noise.laplace import LARGEST, _magnitudes, round_up

AT_ONCE = 16  # proposals
STEPS = 1024  # of a box: rounding up to whole ones adds a thousandth of what one unit can move


def box_noise(bounds: Sequence[int], scale: Fraction, *, steps: int, bits: Bits) -> list[int]:
    """Draw integers z with P(z) proportional to exp(-k(z) / scale), k(z) the least k with steps |z_i| <= k bounds_i for all i.

    Guarantee  Added to integers of which one person moves the i-th by at most bounds_i, all of them at once, the result
               has pure loss steps / scale. For k(z + d) <= k(z) + steps if |d_i| <= bounds_i: steps |z_i + d_i| <= k
               bounds_i + steps bounds_i. Exact: no floating point is used.
    How        Boxes B(k) = {z: k(z) <= k} hold V(k) = product of 2 floor(k bounds_i / steps) + 1 points. Draw K with weight
               V(K) exp(-K / scale) and z evenly from B(K): then P(z) is proportional to the sum of exp(-K / scale) over
               all K >= k(z), which is a constant times exp(-k(z) / scale). For K = J w + R with R < w, propose J as a sum
               of n + 1 geometric numbers and R as the rest of one: weights C(J + n, n) exp(-K / scale). Keep K with
               probability V(K) / (n! C(J + n, n) c), c = product of c_i = max(u, (u + 1) / i), u = 2 w bounds_i / steps:
               no factor (2 floor(K bounds_i / steps) + 1) / (J + i) exceeds its c_i, as (u (J + 1) + 1) / (J + i) lies
               between its values at J = 0 and without end.
    Needs      Bounds and steps of at least 1; scale > 0, numerator and denominator at most 2**52.
    Reference  Hardt, Talwar 2010; Awan & Slavkovic 2018, arXiv:1801.09236 (their continuous noise is r U, r ~ Gamma(n + 1)
               and U even in the box).
    """
    if not bounds or min(bounds) < 1 or steps < 1 or not 0 < scale.numerator <= LARGEST or scale.denominator > LARGEST:
        raise ValueError("bounds and steps of at least 1 and a positive scale up to 2**52 are needed")
    size = _box_size(sorted(bounds, reverse=True), scale, steps, bits)
    widths = [size * bound // steps for bound in bounds]
    return [below_any(2 * width + 1, bits=bits) - width for width in widths]


def _box_size(bounds: Sequence[int], scale: Fraction, steps: int, bits: Bits) -> int:
    width, count = width_for(scale, steps), len(bounds) + 1
    coarse = round_up(scale / width) if width > 1 else scale
    if coarse * width != scale:
        width, coarse = 1, scale
    while True:
        whole = _magnitudes(coarse.numerator, coarse.denominator, size=AT_ONCE * count, bits=bits)
        rest = _magnitudes(scale.numerator, scale.denominator, size=AT_ONCE, bits=bits) % width
        for size in map(int, whole.reshape(AT_ONCE, count).sum(axis=1) * width + rest):
            if coin(kept(size, bounds, steps, width), bits=bits):
                return size


def width_for(scale: Fraction, steps: int) -> int:
    """Steps that are proposed at once: about half of what costs 1, so that neither few nor many proposals are lost."""
    return max(1, min(steps, math.floor(scale)) // 2)


def kept(size: int, bounds: Sequence[int], steps: int, width: int) -> Fraction:
    """With which probability a proposed size is kept."""
    found, whole = Fraction(1), size // width
    for place, bound in enumerate(bounds, 1):
        unit = Fraction(2 * width * bound, steps)
        points = 2 * (size * bound // steps) + 1
        found *= points / ((whole + place) * max(unit, (unit + 1) / place))
    return found


def coin(probability: Fraction, *, bits: Bits) -> bool:
    """True with exactly that probability: digits of an even number are drawn until it is known to be below or above."""
    left, below_one = probability.numerator, probability.denominator
    if left >= below_one:
        return True
    while left:
        digit, left = divmod(left << 32, below_one)
        drawn = int(below(2**32, size=1, bits=bits)[0])
        if drawn != digit:
            return drawn < digit
    return False
