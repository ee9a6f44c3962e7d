"""Operators on a set of items, at the client: select-a-size, and what the others on sets share with it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, combinations
from typing import Any, ClassVar, Literal

from tidegate.accounting.baskets import largest_ratio, logarithm
from tidegate.collect._bits import WHOLE, Bytes, coin, draw_whole
from tidegate.collect.baskets.possible import possible_counts
from tidegate.collect.baskets.sizes import first_of_shuffled, to_size
from tidegate.collect.mechanisms.operator import Operator, Report, members
from tidegate.collect.mechanisms.unary import is_set
from tidegate.errors import Unsupported
from tidegate.policy.setplans import SetOperator

FEW = 8  # items whose baskets can all be listed


class BasketOperator(Operator):
    """A randomized set of items. A basket is a list of item codes; a report likewise, ascending.

    Where the plans differ by size, and baskets are not brought to one, the true size is sent in clear: as one more code
    behind the vocabulary's (vocabulary_size + the place of the size among the planned ones). That is outside of
    `gamma`, which compares baskets of one size. Else it compares any two baskets that are taken.
    """

    form: ClassVar[Literal["code", "set"]] = "set"

    def __init__(self, operator: SetOperator) -> None:
        self.operator = operator
        self.items = operator.vocabulary_size
        self.values = 2**self.items
        self.report_size = self.items + (len(operator.plans) if operator.needs_size else 0)

    def size_code(self, size: int) -> list[int]:
        """The code that tells the size in clear, where it is told."""
        return [self.items + self.operator.sizes.index(size)] if self.operator.needs_size else []

    def checked(self, basket: Sequence[int]) -> list[int]:
        """The basket, ascending; refused where it is none, without a word about what is in it."""
        held = sorted(basket)
        if not is_set(held, self.items):
            raise Unsupported(
                "a basket names each of its items once, and items of the vocabulary only.", "Nothing was sent."
            )
        self.operator.planned(len(held))
        return held

    def probability_of(self, report: Report, basket: Sequence[int]) -> Fraction:
        """P(report | basket), exactly as the client draws it. A basket of a size without a plan is refused, as there."""
        self.operator.planned(len(basket))
        said = [code for code in members(report) if code < self.items]
        told = [code for code in members(report) if code >= self.items]
        if told != self.size_code(len(basket)):
            return Fraction(0)
        return self.operator.probability(said, basket)

    def sample_basket(self, basket: Sequence[int], source: Bytes) -> Report:
        """A randomized report of a basket."""
        raise NotImplementedError

    def reports(self) -> Iterator[Report]:
        """Every set of items, with every size where sizes are told; only where there are few items."""
        for told in [self.size_code(size) for size in self.operator.sizes] if self.operator.needs_size else [[]]:
            for many in range(self.items + 1):
                for chosen in combinations(range(self.items), many):
                    yield [*chosen, *told]

    def accepts(self, report: Any) -> bool:
        """Whether a report could have come from this operator: whether some basket gives it a chance above 0."""
        if not is_set(report, self.report_size):
            return False
        told = tuple(code for code in report if code >= self.items)
        possible = self._possible.get(told)
        return possible is not None and possible[len(report) - len(told)]

    @cached_property
    def _possible(self) -> dict[tuple[int, ...], tuple[bool, ...]]:
        """By what is told of the size, which numbers of items a report can have."""
        if not self.operator.needs_size:
            return {(): possible_counts(self.operator)}
        return {tuple(self.size_code(size)): possible_counts(self.operator, size) for size in self.operator.sizes}

    def probability(self, report: Report, value: int) -> Fraction:
        """As `probability_of`, of a basket whose items are the bits of `value`."""
        return self.probability_of(report, [item for item in range(self.items) if value >> item & 1])

    def sample(self, value: int, source: Bytes) -> Report:
        """As `sample_basket`, of a basket whose items are the bits of `value`."""
        return self.sample_basket([item for item in range(self.items) if value >> item & 1], source)

    def item_odds(self) -> tuple[Fraction | None, Fraction | None]:
        """By how much a report that shows an item raises its odds, and one that does not lowers them, at most.

        An item of the basket stays with probability E[j] / size; None is without limit.
        """
        flip, shown, hidden = self.operator.flip, [], []
        plans = [plan for plan in ([] if flip else self.operator.plans.values()) if plan.size]
        pairs = [(sum(j * p for j, p in enumerate(plan.keep)) / plan.size, plan.insert) for plan in plans]
        for stay, come in [flip] if flip else pairs:
            shown.append(None if come == 0 else Fraction(stay) / come)
            hidden.append(None if stay == 1 else (1 - come) / (1 - Fraction(stay)))
        return _largest(shown), _largest(hidden)

    def likelihoods(self, report: Report) -> list[Fraction]:
        """P(report | basket) for every basket; 0 where it has a size without a plan: no report comes from it."""
        self._refuse_many()
        sizes = set(self.operator.taken_sizes)
        taken = (value.bit_count() in sizes for value in range(self.values))
        return [self.probability(report, value) if so else Fraction(0) for value, so in enumerate(taken)]

    def channel(self) -> list[list[Fraction]]:
        self._refuse_many()
        return [self.likelihoods(report) for report in self.reports()]

    def channel_array(self, *, merge: int = 1) -> Any:
        raise Unsupported(
            "baskets have no channel over single values.", "Their supports are recovered by collect.sets."
        )

    def measures(self, prior: Any = None) -> Any:
        raise Unsupported(
            "the measures of single values say nothing of baskets.",
            "Ask for `gamma` and `item_odds`, or for breaches: tidegate collect design.",
        )

    def _refuse_many(self) -> None:
        if self.items > FEW:
            raise Unsupported(
                f"{self.items:,} items make 2**{self.items:,} baskets: too many to list.", f"Up to {FEW} can be."
            )

    @property
    def gamma(self) -> Fraction | None:
        """The largest ratio of a report's probabilities under two baskets (of one size, where sizes are told)."""
        return largest_ratio(self.operator)

    @property
    def epsilon(self) -> float:
        """log gamma, which may be above what a float holds."""
        return math.inf if (gamma := self.gamma) is None else logarithm(gamma)

    @property
    def lifetime_epsilon(self) -> float:
        """The same: a basket has one layer."""
        return self.epsilon


def _largest(factors: list[Fraction | None]) -> Fraction | None:
    known = [factor for factor in factors if factor is not None]
    return max(known, default=Fraction(1)) if len(known) == len(factors) else None


class SelectASize(BasketOperator):
    """Keep j of the items with probability keep[j], then put in others by coins.

    Draws   where baskets are brought to one size, the cut (see sizes.py); 48 bits, whose place among the sums of keep
            is j; the j that stay (a partial shuffle of the ascending basket); for every other item in order a coin.
    Reference  Evfimievski, Srikant, Agrawal, Gehrke 2002.
    """

    name = "select-a-size"

    def __init__(self, operator: SetOperator) -> None:
        if operator.flip is not None or not all(plan.drawable for plan in operator.plans.values()):
            raise Unsupported(
                "a plan at the client has probabilities that are whole numbers over 2**48.",
                "Make the plan with SizePlan.rounded().",
            )
        super().__init__(operator)

    def sample_basket(self, basket: Sequence[int], source: Bytes) -> Report:
        held = self.checked(basket)
        told = self.size_code(len(held))
        plan = self.operator.plan(len(held))
        held = to_size(held, plan.size, self.items, source)
        drawn = draw_whole(source)
        stay = sum(drawn >= int(sums * WHOLE) for sums in accumulate(plan.keep))
        kept = set(first_of_shuffled(held, stay, source)[:stay])
        heads, true = int(plan.insert * WHOLE), set(held)
        return [i for i in range(self.items) if (i in kept if i in true else coin(heads, source))] + told

    def recipe(self) -> dict[str, Any]:
        plans = [
            {
                "size": size,
                "keep": [int(chance * WHOLE) for chance in self.operator.plans[size].keep],
                "insert": int(self.operator.plans[size].insert * WHOLE),
            }
            for size in self.operator.sizes
        ]
        return {"draw": self.name, "items": self.items, "fixed": self.operator.fixed, "plans": plans}
