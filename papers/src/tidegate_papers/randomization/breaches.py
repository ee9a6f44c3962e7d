"""Section 3: the example of a breach, and what the chosen operators let a server conclude."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import comb

from tidegate.operators.basket_plans import SizePlan
from tidegate.risk import baskets
from tidegate.risk.entropy import uniform_in_uniform
from tidegate.risk.interval import uniform_width
from tidegate_papers.item import Found
from tidegate_papers.randomization.itemsets import LEVEL, Recovery

ROUNDING = 1e-6  # cut-and-paste is searched in floating point


@dataclass(frozen=True)
class Example:
    """10,000,000 baskets of 10 of 10,000 items. Every item stays with 20%, else a random one takes its place."""

    baskets: int = 10_000_000
    items: int = 10_000
    size: int = 10
    stays: Fraction = Fraction(1, 5)
    three: Fraction = Fraction(1, 100)  # the share of baskets that hold all of A
    two: Fraction = Fraction(5, 100)  # ... all but one

    def rough(self) -> tuple[Fraction, Fraction, Fraction]:
        """The paper's estimate: baskets with 3, 2, at most 1 items of A that show A afterwards."""
        come, goes = Fraction(1, self.items), 1 - self.stays
        whole = self.baskets * self.three * self.stays**3
        most = self.baskets * self.two * self.stays**2 * (self.size - 2) * goes * come
        few = self.baskets * self.stays * ((self.size - 1) * goes * come) ** 2
        return whole, most, few

    def exact(self) -> tuple[Fraction, Fraction, Fraction]:
        """The same by inclusion and exclusion; all other baskets are taken to hold one item of A, which is the most."""
        rest = 1 - self.three - self.two
        shares = (self.three, 3), (self.two, 2), (rest, 1)
        whole, most, few = (self.baskets * share * self.shown(held) for share, held in shares)
        return whole, most, few

    def shown(self, held: int) -> Fraction:
        """P(the report shows all three items | the basket holds so many of them): places are independent."""
        total = Fraction(0)
        for missing in range(4):  # so many of A are not shown: which of them were in the basket?
            for inside in range(min(missing, held) + 1):
                ways = comb(held, inside) * comb(3 - held, missing - inside)
                comes = Fraction(missing, self.items) * (1 - self.stays)
                gone = (1 - self.stays - comes) ** inside * (1 - comes) ** (self.size - inside)
                total += (-1) ** missing * ways * gone
        return total


def example() -> dict[str, Found]:
    """800 of 814, 98%: from a prior of 1%."""
    whole, most, few = Example().rough()
    exact = Example().exact()
    told = " + ".join(f"{float(part):.1f}" for part in exact)
    return {
        "s3_example_prior": Found(float(Example().three)),
        "s3_example_three": Found(float(whole)),
        "s3_example_two": Found(float(most)),
        "s3_example_one": Found(float(few)),
        "s3_example_all": Found(float(whole + most + few)),
        "s3_example_share": Found(float(whole / (whole + most + few))),
        "s3_example_exact": Found(float(exact[0] / sum(exact)), f"without approximation: {told}"),
        "s3_one_sided": _one_sided(),
    }


def _one_sided() -> Found:
    """An operator that drops every true item and puts in others: nothing visible was in the basket."""
    size, maximum = 5, (Fraction(1), *(Fraction(1, 20 * 2**further) for further in range(5)))
    keep, insert = (Fraction(1), *(Fraction(0) for _ in range(size))), Fraction(9, 10)
    found = baskets.breaches(keep, insert, baskets.from_maximum(maximum))
    seen = max(one.after for one in found if one.look.seen == one.look.items)
    worst = max(found, key=lambda one: one.after)
    note = (
        f"baskets of {size}, all items dropped, others put in by {float(insert)}: visible itemsets say "
        f"{float(seen):g}, holes ({worst.look}) say {float(worst.after):.3f}"
    )
    return Found(round(float(worst.after), 4), note, holds=worst.after <= LEVEL)


def section_3(done: Iterable[Recovery]) -> dict[str, Found]:
    """By size of the basket: what is inserted, the worst conclusion from visible itemsets of 1 to 3 items and from any look, epsilon."""
    told = {}
    for one in done:
        for name, operator in one.operators.items():
            rows = {str(size): row(plan, one.maximum[size]) for size, plan in operator.plans.items()}
            agrees = max(cells[2] for cells in rows.values()) <= float(LEVEL) + ROUNDING
            told[f"s3_breach_{name}_{one.sample.name}"] = Found(rows, holds=agrees)
    return told


def row(plan: SizePlan, maximum: tuple[Fraction, ...]) -> list[float]:
    """Insert, worst by 1 to 3 visible items, worst by any look, epsilon."""
    supports = baskets.from_maximum(baskets.extend_maximum(maximum, plan.size))
    found = baskets.breaches(plan.keep, plan.insert, supports)
    seen = max(one.after for one in found if one.look.seen == one.look.items <= 3)
    loss = baskets.local_loss(plan.keep, plan.insert).epsilon
    worst = max(one.after for one in found)
    return [round(float(plan.insert), 4), float(seen), float(worst), round(loss, 3)]


HALF_WIDTH, PIECES, PROPERTY = 1.0, 2, 0.01


def section_4() -> dict[str, Found]:
    """Intervals, entropies and the breach that an average does not notice."""
    entropy = uniform_in_uniform(1.0, half_width=HALF_WIDTH, pieces=PIECES)
    certain = width_left(-1 + PROPERTY)
    return {
        "s4_interval": Found(uniform_width(HALF_WIDTH, confidence=1.0)),
        "s4_interval_left": Found(max(width_left(z / 1000) for z in range(-1000, 2001))),
        "s4_interval_at_half": Found(width_left(-0.5)),
        "s4_pi": Found(entropy.privacy_before),
        "s4_pi_left": Found(entropy.privacy_after),
        "s4_loss": Found(entropy.loss),
        "s4_prior": Found(PROPERTY / PIECES),
        "s4_posterior": Found(min(PROPERTY, certain) / certain),
        "s4_rare": Found(rare(), f"1 in {1 / rare():,.0f}"),
        "s4_either": Found(1 / PIECES),
    }


def width_left(report: float) -> float:
    """How long the part of [0, 1] is from which a report near it can come."""
    return min(1.0, report + HALF_WIDTH) - max(0.0, report - HALF_WIDTH)


def rare() -> float:
    """P(-1 <= Z <= -0.99): both X (in the left piece) and Y + 1 are small, and their sum is at most 0.01."""
    return (1 / PIECES) * PROPERTY**2 / 2 / (2 * HALF_WIDTH)
