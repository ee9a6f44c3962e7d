"""Select-a-size: keep a random number of the items of a basket, then insert others."""

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

KEEP = Parameter("keep", "the probabilities that 0, 1, ... items stay: 0.1,0.2,0.7.", "counts", example="0.1,0.2,0.7")


class SelectASize(BasketOperator):
    """Keep j of the items with probability keep[j], then insert others by coins.

    Order of the draws: the cut, if baskets are brought to one size (see `to_size`); 48 bits, whose position among the
    cumulative sums of keep is j; the j items that stay (a partial shuffle of the ascending basket); a coin for every
    other item in order.

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
                "A client can only draw plans whose probabilities are integers over 2**48.",
                "Build the plan with SizePlan.rounded().",
            )
        super().__init__(operator)

    @classmethod
    def from_parameters(
        cls, values: int, step: Fraction, chosen: Mapping[str, Fraction], plans: Iterable[BasketPlan] = ()
    ) -> Self:
        stated = tuple(plans)
        fixed = int(chosen["fixed"]) if "fixed" in chosen else None
        most = None if fixed is None else largest_basket(chosen, stated)
        rounded = [SizePlan.rounded(plan.size, plan.keep, plan.insert) for plan in stated]
        return cls(select_a_size(rounded, vocabulary_size=values, fixed=fixed, most=most))

    @classmethod
    def size_plan(cls, size: int, chosen: Mapping[str, Any]) -> SizePlan:
        keep = list(chosen["keep"])
        if size and len(keep) != size + 1:
            raise Unsupported(
                f"Baskets of {size} items need {size + 1} probabilities: of keeping 0, 1, ..., all of them."
            )
        if len(keep) < 2 or sum(keep) != 1:
            raise Unsupported(
                "`keep` must list the probabilities of keeping 0, 1, ..., all items; they must add up to 1."
            )
        return SizePlan.rounded(len(keep) - 1, keep, chosen["insert"])

    def sample_basket(self, basket: Sequence[int], source: Bytes) -> Report:
        items = self.checked(basket)
        size_code = self.size_code(len(items))
        plan = self.operator.plan(len(items))
        items = to_size(items, plan.size, self.items, source)
        drawn = draw_whole(source)
        stay = sum(drawn >= int(sums * WHOLE) for sums in accumulate(plan.keep))
        staying = set(first_of_shuffled(items, stay, source)[:stay])
        heads, true = int(plan.insert * WHOLE), set(items)
        return [i for i in range(self.items) if (i in staying if i in true else coin(heads, source))] + size_code

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
    """Return select-a-size with any plans."""
    listed = plans.values() if isinstance(plans, Mapping) else plans
    return SetOperator(vocabulary_size, {plan.size: plan for plan in listed}, fixed, most=most)


def first_of_shuffled(items: Sequence[int], count: int, source: Bytes) -> list[int]:
    """Move `count` uniformly chosen items to the front: index i swaps with index i + below(remaining), for i = 0, 1, ...

    The other items follow.
    """
    shuffled = list(items)
    for index in range(count):
        other = index + below(len(shuffled) - index, source)
        shuffled[index], shuffled[other] = shuffled[other], shuffled[index]
    return shuffled


def to_size(basket: Sequence[int], size: int, vocabulary_size: int, source: Bytes) -> list[int]:
    """Return a basket of exactly `size` items: padded with blanks (codes after the vocabulary), or cut uniformly.

    Only old collections cut (`Question.cuts`). Supports are then those of the cut baskets: of a basket with r > size
    items, a k-itemset survives with probability C(size, k) / C(r, k).
    """
    if len(basket) > size:
        return first_of_shuffled(basket, size, source)[:size]
    return [*basket, *range(vocabulary_size, vocabulary_size + size - len(basket))]
