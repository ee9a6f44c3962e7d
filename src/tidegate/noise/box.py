"""Integer noise whose size is measured by a box: the discrete l-infinity K-norm mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from tidegate.noise.bits import Bits, below, below_any
from tidegate.noise.laplace import LARGEST, _magnitudes, round_up

AT_ONCE = 16  # proposals per batch
STEPS = 1024  # steps of a box: rounding up to whole steps adds a thousandth of what one unit can change


def box_noise(bounds: Sequence[int], scale: Fraction, *, steps: int, bits: Bits) -> list[int]:
    """Draw integers z with P(z) proportional to exp(-k(z) / scale).

    k(z) is the smallest k with steps |z_i| <= k bounds_i for all i.

    Guarantee:
        Added to integers of which one person changes the i-th by at most bounds_i, all of them at once, the result
        has pure loss steps / scale, because k(z + d) <= k(z) + steps if |d_i| <= bounds_i: steps |z_i + d_i| <= k
        bounds_i + steps bounds_i. Exact: no floating point is used.

    How:
        The box B(k) = {z: k(z) <= k} contains V(k) = product of 2 floor(k bounds_i / steps) + 1 points. Draw K with
        weight V(K) exp(-K / scale) and z uniformly from B(K): then P(z) is proportional to the sum of exp(-K / scale)
        over all K >= k(z), which is a constant times exp(-k(z) / scale). For K = J w + R with R < w, propose J as a sum
        of n + 1 geometric numbers and R as the remainder of one: weights C(J + n, n) exp(-K / scale). Accept K with
        probability V(K) / (n! C(J + n, n) c), c = product of c_i = max(u, (u + 1) / i), u = 2 w bounds_i / steps:
        no factor (2 floor(K bounds_i / steps) + 1) / (J + i) exceeds its c_i, because (u (J + 1) + 1) / (J + i) is
        between its value at J = 0 and its limit as J grows.

    Needs:
        Bounds and steps of at least 1; scale > 0, numerator and denominator at most 2**52.

    Reference:
        Hardt, Talwar 2010; Awan & Slavkovic 2018, arXiv:1801.09236 (their continuous noise is r U, r ~ Gamma(n + 1)
        and U uniform in the box).
    """
    if not bounds or min(bounds) < 1 or steps < 1 or not 0 < scale.numerator <= LARGEST or scale.denominator > LARGEST:
        raise ValueError("Bounds and steps must be at least 1, and the scale must be positive and at most 2**52.")
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
            if throw_coin(acceptance(size, bounds, steps, width), bits=bits):
                return size


def width_for(scale: Fraction, steps: int) -> int:
    """Return the number of steps in one proposal: about half of those that cost 1, which keeps rejections rare."""
    return max(1, min(steps, math.floor(scale)) // 2)


def acceptance(size: int, bounds: Sequence[int], steps: int, width: int) -> Fraction:
    """Return the probability with which a proposed size is accepted."""
    probability, whole = Fraction(1), size // width
    for index, bound in enumerate(bounds, 1):
        unit = Fraction(2 * width * bound, steps)
        points = 2 * (size * bound // steps) + 1
        probability *= points / ((whole + index) * max(unit, (unit + 1) / index))
    return probability


def throw_coin(probability: Fraction, *, bits: Bits) -> bool:
    """Return True with exactly that probability: draw digits of a uniform number until they differ from its digits."""
    remainder, denominator = probability.numerator, probability.denominator
    if remainder >= denominator:
        return True
    while remainder:
        digit, remainder = divmod(remainder << 32, denominator)
        drawn = int(below(2**32, size=1, bits=bits)[0])
        if drawn != digit:
            return drawn < digit
    return False
