"""From a plan in floating point to one whose limits hold exactly, on the grid of 2^-48 that clients draw from.

Guarantee  For a plan returned by `exact_plan`, in rational arithmetic and for the very probabilities that are drawn: no look at a
           report makes an item of a challenging itemset more probable than the level, and the ratio of likelihoods of any two
           baskets is at most a rational number below e^epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

from tidegate.accounting.baskets import exponential_below
from tidegate.errors import Infeasible
from tidegate.policy.exact import say
from tidegate.policy.setplans import SizePlan
from tidegate.risk import baskets

Partial = Sequence[Fraction]
SHARES = [Fraction(0), *(Fraction(1, 2**power) for power in range(46, -1, -1))]


@dataclass(frozen=True)
class Limits:
    """What a plan for one size must keep: exact numbers.

    level      no item becomes more probable than this by a look; None: no limit
    supports   partial supports of challenging itemsets of 0 .. size items
    epsilon    the largest local loss between two baskets of one size; None: no limit
    """

    level: Fraction | None
    supports: Sequence[Partial]
    epsilon: Fraction | None

    def hold(self, keep: Sequence[Fraction], insert: Fraction) -> bool:
        """Whether a plan keeps them, by rational arithmetic alone."""
        return self.loss_holds(keep, insert) and self.rows_hold(keep, self.rows(len(keep) - 1, insert))

    def rows(self, size: int, insert: Fraction) -> list[list[Fraction]]:
        """Every breach limit as a row whose product with keep must not be above 0: P(item and look) - level P(look)."""
        if self.level is None:
            return []
        pairs = (baskets.look_rows(size, insert, self.supports[look.items], look) for look in baskets.looks(size))
        return [[one - self.level * whole for one, whole in zip(*pair, strict=True)] for pair in pairs]

    def loss_holds(self, keep: Sequence[Fraction], insert: Fraction) -> bool:
        if self.epsilon is None:
            return True
        return bool(baskets.local_loss(keep, insert).any_two <= exponential_below(self.epsilon))

    def rows_hold(self, keep: Sequence[Fraction], rows: Sequence[Sequence[Fraction]]) -> bool:
        return all(sum(chance * one for chance, one in zip(keep, row, strict=True)) <= 0 for row in rows)


def exact_plan(keep: Sequence[float], insert: Fraction, limits: Limits) -> SizePlan:
    """The plan on the grid nearest to these chances that keeps the limits.

    First the loss is repaired (`lifted`). What rounding then leaves is mended by a share, as small as possible, of the binomial
    plan of the same rate: that one tells nothing of the basket, and all limits are linear, so more of it brings every limit nearer.
    """
    size = len(keep) - 1
    if (insert * 2**48).denominator != 1:
        raise ValueError("the insertion rate must stand on the grid")
    chances = [Fraction(max(one, 0.0)) for one in keep]
    chances = [one / sum(chances) for one in chances]
    if limits.epsilon is not None:
        chances = lifted(chances, insert, exponential_below(limits.epsilon))
    silent = [comb(size, j) * insert**j * (1 - insert) ** (size - j) for j in range(size + 1)]
    rows = limits.rows(size, insert)
    for share in SHARES:
        mixed = [(1 - share) * one + share * other for one, other in zip(chances, silent, strict=True)]
        plan = SizePlan.rounded(size, mixed, insert)
        if limits.loss_holds(plan.keep, insert) and limits.rows_hold(plan.keep, rows):
            return plan
    raise Infeasible(
        f"no plan for baskets of {size} items keeps the limits: an itemset of theirs is too probable beforehand.",
        _advice(limits),
    )


def _advice(limits: Limits) -> str:
    if limits.level is None:
        return "Allow a larger epsilon."
    before = max(baskets.prior(partial) for partial in limits.supports[1:])
    return f"Allow a breach level above {say(float(before))}, or name the items above the level as exempted."


def lifted(keep: Sequence[Fraction], insert: Fraction, ratio: Fraction) -> list[Fraction]:
    """Raise every chance to what the loss asks for, divide by the sum, and repeat until nothing has to be raised.

    keep[q] >= C(m, q) (insert / (1 - insert))^q max(g) / ratio, where g are the likelihoods. Dividing by the sum leaves all
    ratios as they are, so that one round is enough in exact arithmetic; chances are cut to 96 bits to keep them short.
    """
    size = len(keep) - 1
    odds = insert / (1 - insert)
    least = max(baskets.likelihoods(keep, insert)) / ratio
    raised = [max(one, comb(size, q) * odds**q * least) for q, one in enumerate(keep)]
    short = [Fraction(-(-one.numerator * 2**96 // one.denominator), 2**96) for one in raised]
    return [one / sum(short) for one in short]
