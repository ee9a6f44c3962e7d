"""Operators on sets of items, as a client draws them: the shared class, and which reports are possible."""

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
INSERT = Parameter("insert", "the probability that an absent item is inserted.", "probability", example="0.05")
LARGEST = Parameter("largest", "the largest number of items in a basket.", "count", most=Fraction(LARGEST_BASKET))
FIXED = Parameter(
    "fixed", "every basket is padded to this number of items.", "count", most=Fraction(LARGEST_BASKET), optional=True
)
Span = tuple[int, int]  # smallest and largest, both possible, and everything between


class BasketOperator(Operator):
    """A randomized set of items. A basket is a list of item codes; a report is an ascending list of codes.

    If plans differ by size and baskets are not brought to one size, the true size is sent in clear, as one more code
    after those of the vocabulary (vocabulary_size + the index of the size among the planned sizes). `gamma` does not
    cover it and compares baskets of one size. Otherwise it compares any two accepted baskets.
    """

    form: ClassVar[Literal["code", "set"]] = "set"
    of_sets: ClassVar[bool] = True
    takes_plans: ClassVar[bool] = False  # a policy states a plan for every size
    sends_size: ClassVar[bool] = True  # unless all baskets are brought to one size
    plan_parameters: ClassVar[tuple[Parameter, ...]]  # of the plan for baskets of one size

    @classmethod
    def size_plan(cls, size: int, chosen: Mapping[str, Any]) -> SizePlan:
        """Return the plan for baskets of `size` items from its parameters, on the grid of 2**-48."""
        raise NotImplementedError

    def __init__(self, operator: SetOperator) -> None:
        self.operator = operator
        self.items = operator.vocabulary_size
        self.values = 2**self.items
        self.report_size = self.items + (len(operator.plans) if operator.needs_size else 0)

    def size_code(self, size: int) -> list[int]:
        """Return the code of a size that is sent in clear; empty if sizes are not sent."""
        return [self.items + self.operator.sizes.index(size)] if self.operator.needs_size else []

    def checked(self, basket: Sequence[int]) -> list[int]:
        """Return the basket in ascending order; refuse an invalid one without quoting its items."""
        items = sorted(basket)
        if not is_set(items, self.items):
            raise Unsupported(
                "A basket must name each item once and only items of the vocabulary.", "Nothing was sent."
            )
        self.operator.planned(len(items))
        return items

    def probability_of(self, report: Report, basket: Sequence[int]) -> Fraction:
        """Return P(report | basket), exactly as the client draws it. Refuse a basket whose size has no plan."""
        self.operator.planned(len(basket))
        items = [code for code in members(report) if code < self.items]
        sizes = [code for code in members(report) if code >= self.items]
        if sizes != self.size_code(len(basket)):
            return Fraction(0)
        return self.operator.probability(items, basket)

    def sample_basket(self, basket: Sequence[int], source: Bytes) -> Report:
        """Draw a randomized report of a basket."""
        raise NotImplementedError

    def reports(self) -> Iterator[Report]:
        """Yield every set of items, with every size if sizes are sent; only usable with few items."""
        for size_code in [self.size_code(size) for size in self.operator.sizes] if self.operator.needs_size else [[]]:
            for count in range(self.items + 1):
                for items in combinations(range(self.items), count):
                    yield [*items, *size_code]

    def accepts(self, report: Any) -> bool:
        """Return whether some basket gives this report a probability above 0."""
        if not is_set(report, self.report_size):
            return False
        size_code = tuple(code for code in report if code >= self.items)
        possible = self._possible.get(size_code)
        return possible is not None and possible[len(report) - len(size_code)]

    @cached_property
    def _possible(self) -> dict[tuple[int, ...], tuple[bool, ...]]:
        """Which numbers of items a report can have, by the code of its size."""
        if not self.operator.needs_size:
            return {(): possible_counts(self.operator)}
        return {tuple(self.size_code(size)): possible_counts(self.operator, size) for size in self.operator.sizes}

    def probability(self, report: Report, value: int) -> Fraction:
        """Return `probability_of` for a basket whose items are the bits of `value`."""
        return self.probability_of(report, [item for item in range(self.items) if value >> item & 1])

    def sample(self, value: int, source: Bytes) -> Report:
        """Return `sample_basket` for a basket whose items are the bits of `value`."""
        return self.sample_basket([item for item in range(self.items) if value >> item & 1], source)

    def item_odds(self) -> tuple[Fraction | None, Fraction | None]:
        """Return the largest factors by which a report raises the odds of an item it shows and lowers those of one it does not.

        An item of the basket stays with probability E[j] / size. None is unlimited.
        """
        flip, shown, hidden = self.operator.flip, [], []
        plans = [plan for plan in ([] if flip else self.operator.plans.values()) if plan.size]
        pairs = [(sum(j * p for j, p in enumerate(plan.keep)) / plan.size, plan.insert) for plan in plans]
        for stay, come in [flip] if flip else pairs:
            shown.append(None if come == 0 else Fraction(stay) / come)
            hidden.append(None if stay == 1 else (1 - come) / (1 - Fraction(stay)))
        return _largest(shown), _largest(hidden)

    def likelihoods(self, report: Report) -> list[Fraction]:
        """Return P(report | basket) for every basket; 0 for a basket whose size has no plan, because it sends no report."""
        self._refuse_many()
        sizes = set(self.operator.taken_sizes)
        accepted = (value.bit_count() in sizes for value in range(self.values))
        return [self.probability(report, value) if ok else Fraction(0) for value, ok in enumerate(accepted)]

    def exact_channel(self) -> list[list[Fraction]]:
        self._refuse_many()
        return [self.likelihoods(report) for report in self.reports()]

    def channel_array(self, *, merge: int = 1) -> Any:
        raise Unsupported(
            "Baskets have no channel over single values.", "Use collect.baskets to recover supports of itemsets."
        )

    def _refuse_many(self) -> None:
        if self.items > FEW:
            raise Unsupported(
                f"{self.items:,} items have 2**{self.items:,} baskets, too many to list.", f"Use at most {FEW} items."
            )

    @property
    def gamma(self) -> Fraction | None:
        """The largest ratio of a report's probabilities under two baskets (of one size, if sizes are sent)."""
        return largest_ratio(self.operator)

    @property
    def epsilon(self) -> float:
        """log gamma; gamma itself can exceed the largest float."""
        return math.inf if (gamma := self.gamma) is None else logarithm(gamma)

    @property
    def lifetime_epsilon(self) -> float:
        """The same as `epsilon`: a basket has one layer."""
        return self.epsilon


def _largest(factors: list[Fraction | None]) -> Fraction | None:
    known = [factor for factor in factors if factor is not None]
    return max(known, default=Fraction(1)) if len(known) == len(factors) else None


def possible_counts(operator: SetOperator, size: int | None = None) -> tuple[bool, ...]:
    """Return for every number of items, from 0 to the vocabulary size, whether a report can have it.

    Of baskets of one `size`, or of all accepted ones. Items are treated alike, so only their number matters.
    """
    steps = [0] * (operator.vocabulary_size + 2)
    for low, high in _spans(operator, size):
        steps[low] += 1
        steps[high + 1] -= 1
    return tuple(open_spans > 0 for open_spans in accumulate(steps[:-1]))


def _spans(operator: SetOperator, size: int | None) -> Iterator[Span]:
    items = operator.vocabulary_size
    if operator.flip is not None:
        stay, come = operator.flip
        for present in operator.sizes if size is None else (size,):
            (fewest_kept, most_kept), (fewest_new, most_new) = _span(stay, present), _span(come, items - present)
            yield fewest_kept + fewest_new, most_kept + most_new
    elif operator.fixed is not None:
        plan = operator.plans[operator.fixed]
        for present in range(min(plan.size, items) + 1):  # larger baskets are cut to one of these
            yield from _plan_spans(plan, present, items)
    else:
        for present in operator.sizes if size is None else (size,):
            yield from _plan_spans(operator.plans[present], present, items)


def _plan_spans(plan: SizePlan, present: int, items: int) -> Iterator[Span]:
    """Yield spans for a basket with `present` items, padded with blanks to the size of the plan."""
    fewest_new, most_new = _span(plan.insert, items - present)
    for staying, chance in enumerate(plan.keep):
        if chance:
            yield max(0, staying - (plan.size - present)) + fewest_new, min(staying, present) + most_new


def _span(chance: Fraction, coins: int) -> Span:
    """Return the smallest and largest possible number of heads."""
    return (coins if chance == 1 else 0), (0 if chance == 0 else coins)
