"""The best cut-and-paste operators under the limits of a design, the baseline of an optimized operator."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb

import numpy as np

from tidegate.arrays import Floats
from tidegate.collect.baskets.search import FINE, Goal, Rate
from tidegate.risk import baskets

GRID = 64  # rates, before they are refined
SLACK = 1e-12  # in favor of the baseline


@dataclass(frozen=True)
class Baseline:
    """A cut-and-paste plan for one size: its standard errors (times the square root of the baskets) and its loss."""

    cutoff: int
    insert: Fraction
    deviations: tuple[float, ...]
    epsilon: float


@dataclass(frozen=True)
class _Best:
    value: float
    cutoff: int
    number: int


def best_cut_and_paste(goal: Goal, *, unlimited_loss: bool = False) -> Baseline | None:
    """Return the cutoff and rate on the grid with the least weighted variance within the limits; None if there is none."""
    limited = replace(goal, ratio=math.inf) if unlimited_loss else goal
    step = FINE // GRID
    best = min(
        (_best_cutoff(limited, number) for number in range(step, FINE, step)), key=lambda candidate: candidate.value
    )
    while math.isfinite(best.value) and step > 1:
        step //= 2
        near = [number for number in (best.number - step, best.number + step) if 0 < number < FINE]
        best = min([best, *(_best_cutoff(limited, number) for number in near)], key=lambda candidate: candidate.value)
    return _baseline(goal, best) if math.isfinite(best.value) else None


def _best_cutoff(goal: Goal, number: int) -> _Best:
    """Return the best cutoff at one rate; its variance is infinite if none keeps the limits. Cutoffs below k lose k items."""
    rate = Rate(goal, number / FINE)
    limits = rate.limits()
    keeps = _pasted(goal.size, _cuts(goal), rate.insert)
    low = (keeps / rate.binomial).min(axis=1)
    is_kept = (np.column_stack([keeps, low]) @ limits.T).max(axis=1, initial=0.0) <= SLACK
    values = [rate.value(keep) if fine else math.inf for keep, fine in zip(keeps, is_kept, strict=True)]
    best = int(np.argmin(values))
    return _Best(values[best], best + len(goal.targets), number)


def _cuts(goal: Goal) -> Floats:
    """Return a row for each cutoff K: the probabilities of cutting 0 .. m items, 1 / (K + 1) each, the rest for all m."""
    table = np.zeros((4 * goal.size + 10 - len(goal.targets), goal.size + 1))
    for row, cutoff in zip(table, range(len(goal.targets), 4 * goal.size + 10), strict=True):
        row[: min(cutoff, goal.size) + 1] = 1 / (cutoff + 1)
        row[min(cutoff, goal.size)] += 1 - row.sum()
    return table


def _pasted(size: int, cuts: Floats, insert: float) -> Floats:
    """Return the probabilities of keeping 0 .. m items if those that are not cut return at the insertion rate."""
    back = np.zeros((size + 1, size + 1))
    for i in range(size + 1):
        for j in range(i, size + 1):
            back[i, j] = comb(size - i, j - i) * insert ** (j - i) * (1 - insert) ** (size - j)
    return np.asarray(cuts @ back)


def _baseline(goal: Goal, best: _Best) -> Baseline:
    rate = Rate(goal, best.number / FINE)
    keep = _pasted(goal.size, _cuts(goal), rate.insert)[best.cutoff - len(goal.targets)]
    each = [math.sqrt(float(second @ keep) / float(left @ keep) ** 2 - share) for second, left, share in rate.forms]
    loss = baskets.local_loss(keep.tolist(), rate.insert)
    return Baseline(best.cutoff, Fraction(best.number, FINE), tuple(each), loss.epsilon)
