"""Operators on sets of items as frozen values: how many true items stay, and how often others are inserted.

SizePlan      the randomization of baskets of exactly `size` items
BasketPlan    the same as a policy file states it
SetOperator   a vocabulary and a plan for every size, built in the file of each operator

`fixed` is the largest size: smaller baskets are padded. A smaller `fixed` cuts larger baskets, whose supports cannot be
estimated: new collections with cuts are refused (`Collection.refuse_cuts`); those in a ledger stay readable.

All probabilities are exact fractions. Clients draw plans on the grid of 2**-48 (`rounded`); the plans of a per-item
flip, which is drawn item by item, are finer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any

from tidegate.errors import PolicyUnreadable, Unsupported
from tidegate.exact import Number, exact, plain, say
from tidegate.operators.exact_draws import WHOLE


@dataclass(frozen=True)
class SizePlan:
    """The randomization of a basket of `size` items.

    Choose j with probability keep[j], keep j uniformly chosen items of the basket, drop the others, and insert every item
    of the vocabulary that is not in the basket, independently, with probability `insert`.
    """

    size: int
    keep: tuple[Fraction, ...]
    insert: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "keep", tuple(map(exact, self.keep)))
        object.__setattr__(self, "insert", exact(self.insert))
        if self.size < 0 or len(self.keep) != self.size + 1:
            raise Unsupported(
                f"A plan for {self.size} items needs {self.size + 1} probabilities (of keeping 0, 1, ..., all items), "
                f"not {len(self.keep)}.",
                "State one probability for each number of items.",
            )
        if min(self.keep) < 0 or sum(self.keep) != 1:
            raise Unsupported(f"The probabilities of a plan for {self.size} items must be 0 or more and add up to 1.")
        if not 0 <= self.insert <= 1:
            raise Unsupported("`insert` must be a probability from 0 to 1.")

    @classmethod
    def rounded(cls, size: int, keep: Iterable[Number], insert: Number) -> SizePlan:
        """Return the nearest plan on the grid of 2**-48; the likeliest count absorbs the rounding.

        Every probability changes by less than 2**-48, except the likeliest (by less than (size + 1) 2**-48). None above
        2**-49 becomes zero.
        """
        wholes = [round(exact(chance) * WHOLE) for chance in keep]
        likeliest = max(range(len(wholes)), key=wholes.__getitem__)
        wholes[likeliest] += WHOLE - sum(wholes)
        return cls(
            size, tuple(Fraction(whole, WHOLE) for whole in wholes), Fraction(round(exact(insert) * WHOLE), WHOLE)
        )

    @property
    def drawable(self) -> bool:
        """Whether a client can draw it exactly: all probabilities are integers over 2**48."""
        return all(WHOLE % chance.denominator == 0 for chance in (*self.keep, self.insert))

    def kept(self, common: int) -> Fraction:
        """Return the probability that exactly `common` particular items of the basket stay and all others are dropped."""
        return self.keep[common] / comb(self.size, common)

    def probability(self, common: int, strange: int, vocabulary_size: int) -> Fraction:
        """Return P(report | basket), for a report with `common` items of the basket and `strange` others."""
        left_out = vocabulary_size - self.size - strange
        return self.kept(common) * self.insert**strange * (1 - self.insert) ** left_out


@dataclass(frozen=True)
class SetOperator:
    """A vocabulary of `vocabulary_size` items (codes from 0) and the randomization of baskets of every planned size.

    Args:
        fixed: Every basket is brought to this size first: padded with blanks that no report shows. Nothing is then revealed
            about its size. A larger basket that is accepted at all (old collections, `Question.cuts`) is cut down to items
            drawn uniformly, and its supports are not identified (collect/baskets/rules.py).
        most: With `fixed`, the largest basket that is accepted; None if nothing limits it.
        flip: (keep, insert) if every item is kept or inserted by a coin of its own, whatever the size.
    """

    vocabulary_size: int
    plans: Mapping[int, SizePlan]
    fixed: int | None = None
    flip: tuple[Fraction, Fraction] | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        if not self.plans:
            raise Unsupported("An operator on sets needs a plan for at least one size.")
        if self.flip is None and any(size != plan.size for size, plan in self.plans.items()):
            raise Unsupported("Every plan must be listed under its own size.")
        if self.fixed is not None and self.flip is None and self.fixed not in self.plans:
            raise Unsupported(f"`fixed` is {self.fixed} items, but no plan has that size.")
        if self.fixed is None and self.largest > self.vocabulary_size:
            raise Unsupported(
                f"The largest planned basket has {self.largest} items, but the vocabulary has only {self.vocabulary_size}."
            )

    def __hash__(self) -> int:
        return hash(
            (self.vocabulary_size, self.fixed, self.flip, self.most, None if self.flip else tuple(self.plans.values()))
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The planned sizes, ascending."""
        return tuple(sorted(self.plans))

    @property
    def largest(self) -> int:
        """The largest planned size."""
        return max(self.plans)

    @property
    def needs_size(self) -> bool:
        """Whether a report is useful only together with its basket's true size, which is then sent in clear.

        No epsilon of the operator covers a size in clear; `fixed` or a flip avoids it.
        """
        return self.fixed is None and self.flip is None

    @property
    def taken_sizes(self) -> Iterable[int]:
        """The sizes of accepted baskets, ascending."""
        if self.fixed is None:
            return self.sizes
        return range(min(self.vocabulary_size, self.vocabulary_size if self.most is None else self.most) + 1)

    def plan(self, size: int) -> SizePlan:
        """Return the plan for baskets of `size` items; with `fixed`, the plan of all baskets."""
        return self.plans[self.planned(size)]

    def planned(self, size: int) -> int:
        """Return the size whose plan a basket of `size` items follows; refuse a size without a plan."""
        planned = size if self.fixed is None else self.fixed
        if self.fixed is not None and self.most is not None and size > self.most:
            raise Unsupported(f"A basket can have at most {self.most} items; this one has {size}.", "Leave items out.")
        if planned not in self.plans:
            raise Unsupported(
                f"There is no plan for baskets of {size} items; the largest planned size is {self.largest}.",
                "Leave items out, or let the question bring all baskets to one size.",
            )
        return planned

    def probability(self, report: Collection[int], basket: Collection[int]) -> Fraction:
        """Return P(report | basket), exactly as the client draws it (both as sets of item codes)."""
        shown, true = set(report), set(basket)
        plan = self.plan(len(true))
        if self.fixed is None or len(true) == plan.size:
            return plan.probability(len(shown & true), len(shown - true), self.vocabulary_size)
        if len(true) > plan.size:
            return _cut(plan, len(shown), len(shown & true), len(true), self.vocabulary_size)
        return _padded(plan, len(shown & true), len(shown - true), len(true), self.vocabulary_size)


def _padded(plan: SizePlan, common: int, strange: int, size: int, vocabulary_size: int) -> Fraction:
    """Return P(report | basket) of a basket with fewer items than the plan; any number of blanks can be kept too."""
    blanks = plan.size - size
    stays = sum((plan.kept(common + extra) * comb(blanks, extra) for extra in range(blanks + 1)), Fraction(0))
    return stays * plan.insert**strange * (1 - plan.insert) ** (vocabulary_size - size - strange)


def _cut(plan: SizePlan, shown: int, common: int, size: int, vocabulary_size: int) -> Fraction:
    """Return P(report | basket) of a basket with more items than the plan, summed over the common items that survive the cut."""
    total = Fraction(0)
    for stay in range(max(0, plan.size - (size - common)), min(common, plan.size) + 1):
        ways = Fraction(comb(common, stay) * comb(size - common, plan.size - stay), comb(size, plan.size))
        total += ways * plan.probability(stay, shown - stay, vocabulary_size)
    return total


@dataclass(frozen=True)
class BasketPlan:
    """The plan for baskets of `size` items as a policy states it: `keep` for 0, 1, .. items, and `insert`."""

    size: int
    keep: tuple[Fraction, ...]
    insert: Fraction

    def to_dict(self) -> dict[str, Any]:
        return {"size": self.size, "keep": list(map(plain, self.keep)), "insert": plain(self.insert)}


def read_plans(plans: Iterable[Any]) -> tuple[BasketPlan, ...]:
    """Return plans from a file, or from any objects with size, keep and insert."""
    read = []
    for plan in plans:
        parts = plan if isinstance(plan, Mapping) else vars(plan)
        if set(parts) != {"size", "keep", "insert"}:
            raise PolicyUnreadable("A plan must have exactly the keys size, keep and insert.")
        read.append(BasketPlan(int(parts["size"]), tuple(map(exact, parts["keep"])), exact(parts["insert"])))
    return tuple(sorted(read, key=lambda plan: plan.size))


def check_plans(plans: tuple[BasketPlan, ...], parameters: Mapping[str, Fraction], *, items: int) -> None:
    """Refuse plans that are not distributions, that share a size, or whose sizes do not fit `fixed` and the items."""
    for plan in plans:
        if len(plan.keep) != plan.size + 1 or min(plan.keep) < 0 or sum(plan.keep) != 1 or not 0 <= plan.insert <= 1:
            raise PolicyUnreadable(
                f"The plan for {plan.size} items needs {plan.size + 1} probabilities that add up to 1, and `insert` from 0 to 1."
            )
    if len({plan.size for plan in plans}) != len(plans) or any(plan.size > items for plan in plans):
        raise PolicyUnreadable(f"Plans must have different sizes, of at most {items:,} items.")
    sizes = {plan.size for plan in plans} or set(range(int(parameters.get("largest", items)) + 1))
    if "fixed" in parameters and parameters["fixed"] not in sizes:
        raise PolicyUnreadable(f"`fixed` is {say(parameters['fixed'])} items, but no plan has that size.")


def largest_basket(parameters: Mapping[str, Fraction], plans: tuple[BasketPlan, ...]) -> int:
    """Return the largest number of items in a basket: `largest`, or the largest planned size."""
    return max(plan.size for plan in plans) if plans else int(parameters["largest"])


def cuts(parameters: Mapping[str, Fraction], plans: tuple[BasketPlan, ...]) -> bool:
    """Return whether baskets larger than `fixed` are accepted and cut."""
    return "fixed" in parameters and parameters["fixed"] < largest_basket(parameters, plans)
