"""Select-a-size: keep a random number of the items of a basket, then put in others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, ClassVar, Self

from tidegate.errors import Unsupported
from tidegate.operators.basket import FIXED, INSERT, BasketOperator
from tidegate.operators.basket_plans import BasketPlan, SetOperator, SizePlan, largest_basket
from tidegate.operators.exact_draws import WHOLE, Bytes, below, coin, draw_whole
from tidegate.operators.operator import Parameter, Report

KEEP = Parameter("keep", "0, 1, ... items stay with these: 0.1,0.2,0.7.", "counts", example="0.1,0.2,0.7")


class SelectASize(BasketOperator):
    """Keep j of the items with probability keep[j], then put in others by coins.

    Draws   where baskets are brought to one size, the cut (see `to_size`); 48 bits, whose place among the sums of keep
            is j; the j that stay (a partial shuffle of the ascending basket); for every other item in order a coin.

    Reference:
        Evfimievski, Srikant, Agrawal, Gehrke 2002.
    """

    name = "select-a-size"
    parameters: ClassVar[tuple[Parameter, ...]] = (FIXED,)
    takes_plans = True
    plan_parameters: ClassVar[tuple[Parameter, ...]] = (KEEP, INSERT)

    def __init__(self, operator: SetOperator) -> None:
        if operator.flip is not None or not all(plan.drawable for plan in operator.plans.values()):
            raise Unsupported(
                "a plan at the client has probabilities that are whole numbers over 2**48.",
                "Make the plan with SizePlan.rounded().",
            )
        super().__init__(operator)

    @classmethod
    def from_parameters(
        cls, values: int, step: Fraction, given: Mapping[str, Fraction], plans: Iterable[BasketPlan] = ()
    ) -> Self:
        stated = tuple(plans)
        fixed = int(given["fixed"]) if "fixed" in given else None
        most = None if fixed is None else largest_basket(given, stated)
        rounded = [SizePlan.rounded(plan.size, plan.keep, plan.insert) for plan in stated]
        return cls(select_a_size(rounded, vocabulary_size=values, fixed=fixed, most=most))

    @classmethod
    def size_plan(cls, size: int, given: Mapping[str, Any]) -> SizePlan:
        keep = list(given["keep"])
        if size and len(keep) != size + 1:
            raise Unsupported(
                f"baskets of {size} items need {size + 1} probabilities: of keeping 0, 1, ..., all of them."
            )
        if len(keep) < 2 or sum(keep) != 1:
            raise Unsupported("keep holds the probabilities of keeping 0, 1, ..., all items; they add up to 1.")
        return SizePlan.rounded(len(keep) - 1, keep, given["insert"])

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


def select_a_size(
    plans: Iterable[SizePlan] | Mapping[int, SizePlan],
    *,
    vocabulary_size: int,
    fixed: int | None = None,
    most: int | None = None,
) -> SetOperator:
    """Select-a-size with any plans."""
    listed = plans.values() if isinstance(plans, Mapping) else plans
    return SetOperator(vocabulary_size, {plan.size: plan for plan in listed}, fixed, most=most)


def first_of_shuffled(items: Sequence[int], many: int, source: Bytes) -> list[int]:
    """`many` of the items, uniformly chosen: place i changes with place i + below(left), for i = 0, 1, ...

    The others follow behind them.
    """
    held = list(items)
    for place in range(many):
        other = place + below(len(held) - place, source)
        held[place], held[other] = held[other], held[place]
    return held


def to_size(basket: Sequence[int], size: int, vocabulary_size: int, source: Bytes) -> list[int]:
    """A basket of exactly `size` items: padded with blanks (codes behind the vocabulary), or cut down uniformly.

    Only old collections cut (`Question.cuts`). Supports are then those of the cut baskets: of a basket with r > size items a k-itemset survives with probability
    C(size, k) / C(r, k).
    """
    if len(basket) > size:
        return first_of_shuffled(basket, size, source)[:size]
    return [*basket, *range(vocabulary_size, vocabulary_size + size - len(basket))]
