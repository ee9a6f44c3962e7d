"""Numbers that look random and are the same in every run: no generator, no seed.

Multiples of the square root of a prime, modulo 1, fill the unit interval evenly (Weyl 1916); those of different primes
together fill the cube, since the roots are independent over the rationals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)


def spread(number: int, column: int) -> float:
    """Return the value of a row in a column, from 0 to 1."""
    return (number + 1) * math.sqrt(PRIMES[column]) % 1.0


def pick(position: float, weights: Mapping[str, float]) -> str:
    """Return the name at a position from 0 to 1, where each name has room in proportion to its weight."""
    remaining = position * sum(weights.values())
    for name, weight in weights.items():
        remaining -= weight
        if remaining < 0:
            return name
    return name
