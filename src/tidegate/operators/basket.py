"""Operators on a set of items, at the client: what they share, and which reports are possible."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, combinations
from typing import Any, ClassVar, Literal

from tidegate.errors import Unsupported
from tidegate.operators.basket_loss import largest_ratio, logarithm
from tidegate.operators.basket_plans import SetOperator, SizePlan
from tidegate.operators.exact_draws import Bytes
from tidegate.operators.operator import Operator, Parameter, Report, is_set, members

FEW = 8  # items whose baskets can all be listed
LARGEST_BASKET = 1_000
INSERT = Parameter("insert", "an item that is not there is put in with this.", "probability", example="0.05")
LARGEST = Parameter("largest", "the most items that a basket can have.", "count", most=Fraction(LARGEST_BASKET))
FIXED = Parameter(
    "fixed", "every basket is padded to this many items.", "count", most=Fraction(LARGEST_BASKET), optional=True
)
Span = tuple[int, int]  # from and to, both possible, and all between


class BasketOperator(Operator):
    """A randomized set of items. A basket is a list of item codes; a report likewise, ascending.

    Where the plans differ by size, and baskets are not brought to one, the true size is sent in clear: as one more code
    behind the vocabulary's (vocabulary_size + the place of the size among the planned ones). That is outside of
    `gamma`, which compares baskets of one size. Else it compares any two baskets that are taken.
    """

    form: ClassVar[Literal["code", "set"]] = "set"
    of_sets: ClassVar[bool] = True
    takes_plans: ClassVar[bool] = False  # a policy states a plan for every size
    sends_size: ClassVar[bool] = True  # unless all baskets are brought to one size
    plan_parameters: ClassVar[tuple[Parameter, ...]]  # of the plan for baskets of one size

    @classmethod
    def size_plan(cls, size: int, given: Mapping[str, Any]) -> SizePlan:
        """The plan for baskets of `size` items from its parameters, on the grid of 2**-48."""
        raise NotImplementedError

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

    def exact_channel(self) -> list[list[Fraction]]:
        self._refuse_many()
        return [self.likelihoods(report) for report in self.reports()]

    def channel_array(self, *, merge: int = 1) -> Any:
        raise Unsupported(
            "baskets have no channel over single values.", "Their supports are recovered by collect.baskets."
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


def possible_counts(operator: SetOperator, size: int | None = None) -> tuple[bool, ...]:
    """Of every number of items, 0 to all of the vocabulary, whether a report can have so many: of baskets of one size, or
    of any that is taken. Items are treated alike: whether a report is possible depends on their number alone."""
    steps = [0] * (operator.vocabulary_size + 2)
    for low, high in _spans(operator, size):
        steps[low] += 1
        steps[high + 1] -= 1
    return tuple(open_spans > 0 for open_spans in accumulate(steps[:-1]))


def _spans(operator: SetOperator, size: int | None) -> Iterator[Span]:
    items = operator.vocabulary_size
    if operator.flip is not None:
        stay, come = operator.flip
        for held in operator.sizes if size is None else (size,):
            (least, most), (few, many) = _of(stay, held), _of(come, items - held)
            yield least + few, most + many
    elif operator.fixed is not None:
        plan = operator.plans[operator.fixed]
        for held in range(min(plan.size, items) + 1):  # larger baskets are cut down to one of these
            yield from _planned(plan, held, items)
    else:
        for held in operator.sizes if size is None else (size,):
            yield from _planned(operator.plans[held], held, items)


def _planned(plan: SizePlan, held: int, items: int) -> Iterator[Span]:
    """Of a basket with `held` items, and blanks up to the size of the plan."""
    few, many = _of(plan.insert, items - held)
    for kept, chance in enumerate(plan.keep):
        if chance:
            yield max(0, kept - (plan.size - held)) + few, min(kept, held) + many


def _of(chance: Fraction, coins: int) -> Span:
    """How many of some coins can show heads."""
    return (coins if chance == 1 else 0), (0 if chance == 0 else coins)
