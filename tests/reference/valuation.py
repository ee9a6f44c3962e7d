"""Reference implementations of the value of information: every order of arrival, every group, in fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from math import factorial


def shapley_by_orders(worth: Sequence[float]) -> list[Fraction]:
    """The average of what everybody adds, over all orders."""
    exact = [Fraction(value) for value in worth]
    players = len(exact).bit_length() - 1
    shares = [Fraction(0)] * players
    for order in permutations(range(players)):
        mask = 0
        for player in order:
            shares[player] += exact[mask | 1 << player] - exact[mask]
            mask |= 1 << player
    return [share / factorial(players) for share in shares]


def shortfall(division: Sequence[float], worth: Sequence[float]) -> float:
    """The most by which a group (other than the empty one and all) gets less than its worth."""
    players = len(division)
    groups = range(1, (1 << players) - 1)
    return max(worth[mask] - sum(division[i] for i in range(players) if mask >> i & 1) for mask in groups)
