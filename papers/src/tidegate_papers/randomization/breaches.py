"""Sections 3 and 4: the examples of breaches, and what the chosen operators let a server conclude.

In the example of Section 4, X is uniform on [0, 1] and [4, 5], and the noise Y on [-1, 1].
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import comb

from tidegate.operators.basket_plans import SizePlan
from tidegate.risk import baskets
from tidegate.risk.entropy import uniform_in_uniform
from tidegate.risk.interval import uniform_width
from tidegate_papers.item import Result
from tidegate_papers.randomization.itemsets import LEVEL, Recovery

ROUNDING = 1e-6  # cut-and-paste is designed in floating point


@dataclass(frozen=True)
class Example:
    """10,000,000 baskets of 10 of 10,000 items. Every item stays with 20%; otherwise a random one replaces it."""

    baskets: int = 10_000_000
    items: int = 10_000
    size: int = 10
    stays: Fraction = Fraction(1, 5)
    three: Fraction = Fraction(1, 100)  # the share of baskets with all of A
    two: Fraction = Fraction(5, 100)  # the share with all but one

    def rough(self) -> tuple[Fraction, Fraction, Fraction]:
        """Return the paper's estimate: baskets with 3, 2, at most 1 items of A whose report contains A."""
        come, goes = Fraction(1, self.items), 1 - self.stays
        whole = self.baskets * self.three * self.stays**3
        most = self.baskets * self.two * self.stays**2 * (self.size - 2) * goes * come
        few = self.baskets * self.stays * ((self.size - 1) * goes * come) ** 2
        return whole, most, few

    def exact(self) -> tuple[Fraction, Fraction, Fraction]:
        """Return the same by inclusion and exclusion; all other baskets have one item of A, which is the most."""
        rest = 1 - self.three - self.two
        shares = (self.three, 3), (self.two, 2), (rest, 1)
        whole, most, few = (self.baskets * share * self.shown(count) for share, count in shares)
        return whole, most, few

    def shown(self, count: int) -> Fraction:
        """Return P(the report contains all three items | the basket has `count` of them): positions are independent."""
        total = Fraction(0)
        for missing in range(4):  # items of A that are not in the report: which of them were in the basket?
            for inside in range(min(missing, count) + 1):
                ways = comb(count, inside) * comb(3 - count, missing - inside)
                comes = Fraction(missing, self.items) * (1 - self.stays)
                gone = (1 - self.stays - comes) ** inside * (1 - comes) ** (self.size - inside)
                total += (-1) ** missing * ways * gone
        return total


def example() -> dict[str, Result]:
    """Return 800 of 814, 98%: from a prior of 1%."""
    whole, most, few = Example().rough()
    exact = Example().exact()
    parts = " + ".join(f"{float(part):.1f}" for part in exact)
    return {
        "s3_example_prior": Result(float(Example().three)),
        "s3_example_three": Result(float(whole)),
        "s3_example_two": Result(float(most)),
        "s3_example_one": Result(float(few)),
        "s3_example_all": Result(float(whole + most + few)),
        "s3_example_share": Result(float(whole / (whole + most + few))),
        "s3_example_exact": Result(float(exact[0] / sum(exact)), f"without approximation: {parts}"),
        "s3_one_sided": _one_sided(),
    }


def _one_sided() -> Result:
    """Return the breach of an operator that drops every true item and adds others: no visible item was in the basket."""
    size, maximum = 5, (Fraction(1), *(Fraction(1, 20 * 2**further) for further in range(5)))
    keep, insert = (Fraction(1), *(Fraction(0) for _ in range(size))), Fraction(9, 10)
    conclusions = baskets.breaches(keep, insert, baskets.from_maximum(maximum))
    seen = max(conclusion.after for conclusion in conclusions if conclusion.look.seen == conclusion.look.items)
    worst = max(conclusions, key=lambda conclusion: conclusion.after)
    note = (
        f"baskets of {size}, all items dropped, others put in by {float(insert)}: visible itemsets say "
        f"{float(seen):g}, holes ({worst.look}) say {float(worst.after):.3f}"
    )
    return Result(round(float(worst.after), 4), note, holds=worst.after <= LEVEL)


def section_3(done: Iterable[Recovery]) -> dict[str, Result]:
    """Return the breach levels of the chosen operators by size of the basket.

    A row has insertion, the worst conclusions from 1 to 3 visible items and from any look, and epsilon.
    """
    results = {}
    for recovery in done:
        for name, operator in recovery.operators.items():
            rows = {str(size): row(plan, recovery.maximum[size]) for size, plan in operator.plans.items()}
            agrees = max(cells[2] for cells in rows.values()) <= float(LEVEL) + ROUNDING
            results[f"s3_breach_{name}_{recovery.sample.name}"] = Result(rows, holds=agrees)
    return results


def row(plan: SizePlan, maximum: tuple[Fraction, ...]) -> list[float]:
    """Return insertion, worst by 1 to 3 visible items, worst by any look, epsilon."""
    supports = baskets.from_maximum(baskets.extend_maximum(maximum, plan.size))
    conclusions = baskets.breaches(plan.keep, plan.insert, supports)
    seen = max(conclusion.after for conclusion in conclusions if conclusion.look.seen == conclusion.look.items <= 3)
    loss = baskets.local_loss(plan.keep, plan.insert).epsilon
    worst = max(conclusion.after for conclusion in conclusions)
    return [round(float(plan.insert), 4), float(seen), float(worst), round(loss, 3)]


HALF_WIDTH, PIECES, PROPERTY = 1.0, 2, 0.01


def section_4() -> dict[str, Result]:
    """Return intervals, entropies and the breach that an average does not show."""
    entropy = uniform_in_uniform(1.0, half_width=HALF_WIDTH, pieces=PIECES)
    certain = width_left(-1 + PROPERTY)
    return {
        "s4_interval": Result(uniform_width(HALF_WIDTH, confidence=1.0)),
        "s4_interval_left": Result(max(width_left(z / 1000) for z in range(-1000, 2001))),
        "s4_interval_at_half": Result(width_left(-0.5)),
        "s4_pi": Result(entropy.privacy_before),
        "s4_pi_left": Result(entropy.privacy_after),
        "s4_loss": Result(entropy.loss),
        "s4_prior": Result(PROPERTY / PIECES),
        "s4_posterior": Result(min(PROPERTY, certain) / certain),
        "s4_rare": Result(rare(), f"1 in {1 / rare():,.0f}"),
        "s4_either": Result(1 / PIECES),
    }


def width_left(report: float) -> float:
    """Return the length of the part of [0, 1] that a report near it can come from."""
    return min(1.0, report + HALF_WIDTH) - max(0.0, report - HALF_WIDTH)


def rare() -> float:
    """Return P(-1 <= Z <= -0.99): both X (in the left piece) and Y + 1 are small, and their sum is at most 0.01."""
    return (1 / PIECES) * PROPERTY**2 / 2 / (2 * HALF_WIDTH)
