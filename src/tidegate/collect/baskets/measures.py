"""All measures of one report of a basket: local losses, breaches by itemset, and the information about one item.

There is no interval, because items have no order. Entropy is that of one item, in the basket or not; of whole baskets it
would need the probability of each. Breaches depend on maximum supports, which state the prior knowledge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tidegate.errors import Infeasible
from tidegate.operators.basket_plans import SizePlan
from tidegate.risk import baskets
from tidegate.risk.entropy import EntropyPrivacy, entropy_privacy
from tidegate.risk.local import posterior_limit

UNLIKELY = 0.05
PATTERNS = ("visible", "absent", "mixed")


@dataclass(frozen=True)
class ItemsetBreach:
    """The probability of an itemset before a report, and at most after it by pattern (None: impossible)."""

    items: int
    before: float
    visible: float | None
    absent: float | None
    mixed: float | None

    def to_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


@dataclass(frozen=True)
class BasketMeasures:
    """One size of baskets under one plan.

    loss       ratios between any two baskets of this size, and between two with one item replaced
    stays      the chance that an item of the basket is seen        comes   that another one is
    entropy    of the likeliest item, in the basket or not, by whether it is seen
    limit      the highest probability that anything of prior probability 5% can reach, for any prior
    """

    plan: SizePlan
    loss: baskets.LocalLoss
    stays: Fraction
    comes: Fraction
    prior: Fraction
    entropy: EntropyPrivacy
    limit: float
    breaches: tuple[ItemsetBreach, ...]

    @property
    def worst(self) -> float:
        """The highest probability that an item can reach by any look."""
        return max(
            after for row in self.breaches for after in (row.visible, row.absent, row.mixed) if after is not None
        )

    @property
    def seen(self) -> float:
        """The largest factor on the odds of an item that is seen."""
        return math.inf if not self.comes else float(self.stays / self.comes)

    @property
    def unseen(self) -> float:
        """The factor on the odds of an item that is not seen."""
        return math.inf if self.comes == 1 else float((1 - self.stays) / (1 - self.comes))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; null is unlimited, or an impossible look."""
        return {
            "size": self.plan.size,
            "keep": [str(chance) for chance in self.plan.keep],
            "insert": str(self.plan.insert),
            "epsilon": _finite(self.loss.epsilon),
            "gamma": _finite(_ratio(self.loss.any_two)),
            "epsilon_one_item_replaced": _finite(self.loss.epsilon_one_replaced),
            "gamma_one_item_replaced": _finite(_ratio(self.loss.one_replaced)),
            "item": {
                "seen_if_there": float(self.stays),
                "seen_if_not": float(self.comes),
                "odds_if_seen": _finite(self.seen),
                "odds_if_not_seen": _finite(self.unseen),
                "prior": float(self.prior),
                "entropy_loss": self.entropy.loss,
                "bits_told": self.entropy.information,
            },
            "interval": None,
            "breach": {"from": UNLIKELY, "to_for_any_prior": self.limit},
            "breaches": [row.to_dict() for row in self.breaches],
            "worst_breach": self.worst,
            "size_in_epsilon": False,
        }


def measure_baskets(
    plan: SizePlan, maximum: Sequence[Fraction], *, vocabulary_size: int | None = None
) -> BasketMeasures:
    """Return the measures of one plan, if 0, 1, 2, .. items together have at most these supports in baskets of its size."""
    supports = baskets.from_maximum(baskets.extend_maximum(maximum, plan.size))
    if any(sum(partial) == 0 for partial in supports):
        raise Infeasible("No basket can have these supports.", "State supports above 0 that do not rise.")
    loss = baskets.local_loss(plan.keep, plan.insert, vocabulary=vocabulary_size)
    stays = sum((j * chance for j, chance in enumerate(plan.keep)), Fraction(0)) / plan.size
    prior = Fraction(maximum[1])
    channel = np.array([[1 - plan.insert, 1 - stays], [plan.insert, stays]], float)
    entropy = entropy_privacy(channel, np.array([1 - prior, prior], float))
    limit = posterior_limit(UNLIKELY, gamma=_ratio(loss.any_two))
    breaches = baskets.breaches(plan.keep, plan.insert, supports)
    rows = tuple(_row(breaches, items, supports[items]) for items in range(1, plan.size + 1))
    return BasketMeasures(plan, loss, stays, plan.insert, prior, entropy, limit, rows)


def _row(breaches: Sequence[baskets.Breach], items: int, partial: Sequence[Fraction]) -> ItemsetBreach:
    most: dict[str, float | None] = dict.fromkeys(PATTERNS)
    for breach in breaches:
        if breach.look.items == items:
            pattern = "visible" if breach.look.seen == items else "absent" if breach.look.seen == 0 else "mixed"
            most[pattern] = max(most[pattern] or 0.0, float(breach.after))
    return ItemsetBreach(items, float(baskets.prior(partial)), **most)


def _ratio(ratio: Any) -> float:
    try:
        return float(ratio)
    except OverflowError:
        return math.inf


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
