"""The search for a plan of least variance in floating point, which `exact_plan` makes exact.

For one insertion rate, all limits are linear in the probabilities keep[0 .. m]: a row of `looks` for every breach, and
low <= keep[j] / binomial[j] <= e^epsilon low for the loss (a binomial plan of the same rate reveals nothing). The variance of
the k-th support is L_k(keep) / c_k(keep)^2 - s_k with linear L_k and c_k: not convex. The search starts a local solver at
corners of the limits, found by linear programs, over a grid of rates that is refined around the best one.

Guarantee:
    For a plan returned by `exact_plan`, in rational arithmetic and for the probabilities that are drawn: no look at a
    report makes an item of a challenging itemset more probable than the level, and the ratio of likelihoods of any two
    baskets is at most a rational number below e^epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np

from tidegate.arrays import Floats
from tidegate.collect.baskets import transitions
from tidegate.collect.baskets.recovery import squares
from tidegate.errors import Infeasible
from tidegate.exact import say
from tidegate.extras import extra
from tidegate.operators.basket_loss import exponential_below
from tidegate.operators.basket_plans import SizePlan
from tidegate.risk import baskets

with extra("collect", "Estimating from randomized reports"):
    from scipy.optimize import linprog, minimize  # type: ignore[import-untyped]

COARSE, FINE = 32, 512
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Goal:
    """What is wanted for baskets of one size.

    supports   partial supports of challenging itemsets of 0 .. size items, against breaches; empty: no breach limit
    targets    partial supports of the itemsets to recover, one for each k, and their weights
    ratio      e^epsilon; infinite: no limit
    """

    size: int
    level: float
    supports: Sequence[Sequence[float]]
    targets: Sequence[Sequence[float]]
    weights: Sequence[float]
    ratio: float


@dataclass(frozen=True)
class Optimum:
    """Probabilities of keeping 0 .. m items, and their weighted variance (times the number of baskets)."""

    keep: Floats
    insert: float
    value: float


class Rate:
    """The linear forms of a goal at one insertion rate."""

    def __init__(self, goal: Goal, insert: float) -> None:
        self.goal, self.insert = goal, insert
        size = goal.size
        self.binomial = np.array([comb(size, j) * insert**j * (1 - insert) ** (size - j) for j in range(size + 1)])
        self.rows = _breach_rows(goal, insert) if goal.supports else np.zeros((0, size + 1))
        self.forms = [_forms(size, insert, target) for target in goal.targets]

    def value(self, keep: Floats) -> float:
        """The weighed sum of variances; infinite where a support cannot be recovered."""
        total = 0.0
        for weight, (second, left, share) in zip(self.goal.weights, self.forms, strict=True):
            contrast = float(left @ keep)
            if contrast == 0:
                return np.inf
            total += weight * (float(second @ keep) / contrast**2 - share)
        return total

    def gradient(self, keep: Floats) -> Floats:
        total = np.zeros(keep.size)
        for weight, (second, left, _) in zip(self.goal.weights, self.forms, strict=True):
            contrast = float(left @ keep)
            total += weight * (second / contrast**2 - 2 * float(second @ keep) / contrast**3 * left)
        return total

    def limits(self) -> Floats:
        """Rows a with a @ (keep, low) <= 0. The last variable is the least of keep / binomial."""
        breaches = np.hstack([self.rows, np.zeros((len(self.rows), 1))])
        if not np.isfinite(self.goal.ratio):
            return breaches
        scaled = np.diag(1 / self.binomial)
        scale = np.minimum(1.0, self.binomial)[:, None]  # rows of a size that solvers can compare
        lower = np.hstack([-scaled, np.ones((len(scaled), 1))]) * scale
        upper = np.hstack([scaled, np.full((len(scaled), 1), -self.goal.ratio)]) * scale
        return np.vstack([breaches, lower, upper / max(1.0, self.goal.ratio) ** 0.5])


def _breach_rows(goal: Goal, insert: float) -> Floats:
    """P(item and look) - level P(look) for every look, each scaled to a largest entry of 1."""
    rows = []
    stays = _stays(goal.size)
    for look in baskets.looks(goal.size):
        seen, unseen = look.seen, look.items - look.seen
        x, y = np.arange(seen + 1)[:, None], np.arange(unseen + 1)[None, :]
        partial = np.asarray(goal.supports[look.items])
        choose = np.array([[comb(seen, a) * comb(unseen, b) / comb(look.items, a + b) for b in y[0]] for a in x[:, 0]])
        weight = partial[x + y] * choose * insert ** (seen - x) * (1 - insert) ** (unseen - y)
        share = x / seen if look.about == "seen" else y / unseen
        row = np.einsum("xy,xyj->j", weight * (share - goal.level), stays[: seen + 1, : unseen + 1])
        rows.append(row / max(np.abs(row).max(), 1e-300))
    return np.array(rows)


def _stays(size: int) -> Floats:
    """[x, y, j]: the chance that x given items stay and y given ones go, where j of `size` stay."""
    table = np.zeros((size + 1, size + 1, size + 1))
    for x in range(size + 1):
        for y in range(size + 1 - x):
            for j in range(x, size - y + 1):
                table[x, y, j] = comb(size - x - y, j - x) / comb(size, j)
    return table


def _forms(size: int, insert: float, target: Sequence[float]) -> tuple[Floats, Floats, float]:
    """L_k and c_k as linear functions of keep, and s_k."""
    items = len(target) - 1
    phi = [np.array([comb(j, i) / comb(size, i) for j in range(size + 1)]) for i in range(items + 1)]
    second = np.zeros(size + 1)
    for present, share in enumerate(target):
        second += share * (insert * (1 - insert)) ** (items - present) * squares(phi, insert, present)
    return second, np.asarray(transitions.contrast(phi, insert, items)), float(target[-1])


def best_at(goal: Goal, insert: float, starts: Sequence[Floats] = ()) -> Optimum | None:
    """Return the best plan at one insertion rate, or None if no plan keeps the limits."""
    rate = Rate(goal, insert)
    limits = rate.limits()
    corners = _corners(rate, limits)
    if not corners:
        return None
    ends = [_descend(rate, limits, start) for start in (*corners, *starts)]
    candidates = [keep for keep in (*ends, *corners) if keep is not None]
    best = min(candidates, key=rate.value)
    return Optimum(best, insert, rate.value(best))


def _corners(rate: Rate, limits: Floats) -> list[Floats]:
    """Return corners of the limits, best first: where each contrast is largest, and where their sum is.

    Contrasts of the other sign are those of the complement of every report, at the rate 1 - insert.
    """
    contrasts = [left / max(np.abs(left).max(), 1e-300) for _, left, _ in rate.forms]
    directions = [*contrasts, np.sum(contrasts, axis=0)] if len(contrasts) > 1 else [*contrasts]
    size = rate.goal.size
    ones = np.append(np.ones(size + 1), 0.0)[None, :]
    corners = []
    for direction in directions:
        solved = linprog(
            -np.append(direction, 0.0), A_ub=limits, b_ub=np.zeros(len(limits)), A_eq=ones, b_eq=[1.0], bounds=(0, None)
        )
        if solved.status != 0:
            return []
        corners.append(np.clip(solved.x[: size + 1], 0, None))
    distinct = {tuple(np.round(corner, 9)): corner for corner in corners if np.isfinite(rate.value(corner))}
    return sorted(distinct.values(), key=rate.value)[:3]


def _descend(rate: Rate, limits: Floats, start: Floats) -> Floats | None:
    """Return a local minimum from a start, or None if it breaks the limits."""
    size = rate.goal.size
    first = np.append(start, (start / rate.binomial).min())
    constraints = [
        {"type": "eq", "fun": lambda z: z[:-1].sum() - 1, "jac": lambda z: np.append(np.ones(size + 1), 0.0)},
        {"type": "ineq", "fun": lambda z: -limits @ z, "jac": lambda z: -limits},
    ]
    scale = abs(rate.value(start))
    solved = minimize(
        lambda z: rate.value(z[:-1]) / scale,
        first,
        jac=lambda z: np.append(rate.gradient(z[:-1]) / scale, 0.0),
        bounds=[(0, 1)] * (size + 1) + [(0, 1)],
        constraints=constraints,
        method="SLSQP",
        options={"maxiter": 100, "ftol": 1e-10},
    )
    keep = np.clip(solved.x[:-1], 0, None)
    keep = keep / keep.sum()
    low = (keep / rate.binomial).min()
    broken = (limits @ np.append(keep, low)).max(initial=0.0) > TOLERANCE
    return None if broken or not np.isfinite(keep).all() else keep


def search(goal: Goal, *, progress: Callable[[], None] | None = None) -> Optimum | None:
    """Return the best plan over all insertion rates: multiples of 1/32, then finer around the best, down to 1/512."""
    seen: dict[int, Optimum | None] = {}

    def look(number: int, warm: Sequence[Floats] = ()) -> None:
        if 0 < number < FINE and number not in seen:
            seen[number] = best_at(goal, number / FINE, warm)
            if progress is not None:
                progress()

    step = FINE // COARSE
    for number in range(step, FINE, step):
        look(number)
    while step > 1:
        step //= 2
        good = sorted((optimum.value, number) for number, optimum in seen.items() if optimum is not None)[:2]
        for _, number in good:
            warm = [seen[number].keep]  # type: ignore[union-attr]
            look(number - step, warm)
            look(number + step, warm)
    best = min(
        (optimum for optimum in seen.values() if optimum is not None), key=lambda optimum: optimum.value, default=None
    )
    return None if best is None else _upright(best)


def _upright(optimum: Optimum) -> Optimum:
    """Return the plan or its complement, which is equivalent: the one whose reports resemble the baskets."""
    mean_kept = float(np.arange(optimum.keep.size) @ optimum.keep) / (optimum.keep.size - 1)
    return (
        optimum
        if mean_kept >= optimum.insert
        else Optimum(optimum.keep[::-1].copy(), 1 - optimum.insert, optimum.value)
    )


Partial = Sequence[Fraction]
SHARES = [Fraction(0), *(Fraction(1, 2**power) for power in range(46, -1, -1))]


@dataclass(frozen=True)
class Limits:
    """The limits of a plan for one size, as exact numbers.

    level      no item becomes more probable than this by a look; None: no limit
    supports   partial supports of challenging itemsets of 0 .. size items
    epsilon    the largest local loss between two baskets of one size; None: no limit
    """

    level: Fraction | None
    supports: Sequence[Partial]
    epsilon: Fraction | None

    def hold(self, keep: Sequence[Fraction], insert: Fraction) -> bool:
        """Return whether a plan keeps them, in rational arithmetic."""
        return self.loss_holds(keep, insert) and self.rows_hold(keep, self.rows(len(keep) - 1, insert))

    def rows(self, size: int, insert: Fraction) -> list[list[Fraction]]:
        """Return each breach limit as a row whose product with keep must not exceed 0: P(item and look) - level P(look)."""
        if self.level is None:
            return []
        pairs = (baskets.look_rows(size, insert, self.supports[look.items], look) for look in baskets.looks(size))
        return [[with_item - self.level * whole for with_item, whole in zip(*pair, strict=True)] for pair in pairs]

    def loss_holds(self, keep: Sequence[Fraction], insert: Fraction) -> bool:
        if self.epsilon is None:
            return True
        return bool(baskets.local_loss(keep, insert).any_two <= exponential_below(self.epsilon))

    def rows_hold(self, keep: Sequence[Fraction], rows: Sequence[Sequence[Fraction]]) -> bool:
        return all(
            sum(chance * coefficient for chance, coefficient in zip(keep, row, strict=True)) <= 0 for row in rows
        )


def exact_plan(keep: Sequence[float], insert: Fraction, limits: Limits) -> SizePlan:
    """Return the plan on the grid nearest to these probabilities that keeps the limits.

    First the loss is repaired (`lifted`). Then rounding errors are repaired by the smallest possible share of the binomial
    plan with the same rate: it reveals nothing about the basket, and all limits are linear, so a larger share helps each.
    """
    size = len(keep) - 1
    if (insert * 2**48).denominator != 1:
        raise ValueError("The insertion rate must be on the grid of 2**-48.")
    chances = [Fraction(max(chance, 0.0)) for chance in keep]
    chances = [chance / sum(chances) for chance in chances]
    if limits.epsilon is not None:
        chances = lifted(chances, insert, exponential_below(limits.epsilon))
    silent = [comb(size, j) * insert**j * (1 - insert) ** (size - j) for j in range(size + 1)]
    rows = limits.rows(size, insert)
    for share in SHARES:
        mixed = [(1 - share) * chance + share * other for chance, other in zip(chances, silent, strict=True)]
        plan = SizePlan.rounded(size, mixed, insert)
        if limits.loss_holds(plan.keep, insert) and limits.rows_hold(plan.keep, rows):
            return plan
    raise Infeasible(
        f"No plan for baskets of {size} items keeps the limits: an itemset is too probable before any report.",
        _advice(limits),
    )


def _advice(limits: Limits) -> str:
    if limits.level is None:
        return "Allow a larger epsilon."
    before = max(baskets.prior(partial) for partial in limits.supports[1:])
    return f"Allow a breach level above {say(float(before))}, or exempt the items above the level."


def lifted(keep: Sequence[Fraction], insert: Fraction, ratio: Fraction) -> list[Fraction]:
    """Raise every probability to the minimum that the loss requires, and divide by the sum.

    keep[q] >= C(m, q) (insert / (1 - insert))^q max(g) / ratio, where g are the likelihoods. Dividing by the sum leaves all
    ratios as they are, so that one round is enough in exact arithmetic; chances are cut to 96 bits to keep them short.
    """
    size = len(keep) - 1
    odds = insert / (1 - insert)
    least = max(baskets.likelihoods(keep, insert)) / ratio
    raised = [max(chance, comb(size, q) * odds**q * least) for q, chance in enumerate(keep)]
    short = [Fraction(-(-chance.numerator * 2**96 // chance.denominator), 2**96) for chance in raised]
    return [chance / sum(short) for chance in short]
