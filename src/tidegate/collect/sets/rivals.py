"""The best cut-and-paste operator under the limits of a design: what an optimised one is measured against."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tidegate.collect.sets._search import FINE, Floats, Goal, Rate
from tidegate.collect.sets.plan import cut_and_paste_keep
from tidegate.risk import baskets

GRID = 64  # rates, before they are refined


@dataclass(frozen=True)
class Rival:
    """A cut-and-paste plan for one size: its deviations (times the square root of the baskets), its loss."""

    cutoff: int
    insert: Fraction
    deviations: tuple[float, ...]
    epsilon: float


def best_cut_and_paste(goal: Goal, *, unlimited_loss: bool = False) -> Rival | None:
    """Of all cutoffs and rates on the grid, the pair of least weighed variance that keeps the limits."""
    wanted = replace(goal, ratio=math.inf) if unlimited_loss else goal
    step = FINE // GRID
    found = [_best_cutoff(wanted, number) for number in range(step, FINE, step)]
    best = min(found, default=None, key=lambda one: one[0])
    while best is not None and math.isfinite(best[0]) and step > 1:
        step //= 2
        near = [number for number in (best[2] - step, best[2] + step) if 0 < number < FINE]
        best = min([best, *(_best_cutoff(wanted, number) for number in near)], key=lambda one: one[0])
    if best is None or not math.isfinite(best[0]):
        return None
    return _rival(goal, best[1], Fraction(best[2], FINE))


def _best_cutoff(goal: Goal, number: int) -> tuple[float, int, int]:
    """(variance, cutoff, rate) of the best cutoff at one rate; infinite where none keeps the limits."""
    rate = Rate(goal, number / FINE)
    limits = rate.limits()
    best = (math.inf, 0, number)
    for cutoff in range(len(goal.targets), 4 * goal.size + 10):
        keep = _keep(goal.size, cutoff, number)
        low = float((keep / rate.binomial).min())
        if (limits @ np.append(keep, low)).max(initial=0.0) <= 1e-12:
            best = min(best, (rate.value(keep), cutoff, number))
    return best


def _keep(size: int, cutoff: int, number: int) -> Floats:
    return np.array([float(one) for one in cut_and_paste_keep(size, cutoff, Fraction(number, FINE))])


def _rival(goal: Goal, cutoff: int, insert: Fraction) -> Rival:
    keep = _keep(goal.size, cutoff, int(insert * FINE))
    rate = Rate(goal, float(insert))
    each = [math.sqrt(float(second @ keep) / float(left @ keep) ** 2 - share) for second, left, share in rate.forms]
    return Rival(cutoff, insert, tuple(each), baskets.local_loss(keep.tolist(), float(insert)).epsilon)
