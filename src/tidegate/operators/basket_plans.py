"""Operators on sets of items as frozen values: how many true items stay, and how often others are put in.

SizePlan      what is done with baskets of exactly `size` items
BasketPlan    the same as a policy file states it
SetOperator   a vocabulary and a plan for every size: made by each operator's own file

`fixed` is the largest size: smaller baskets are padded. A smaller `fixed` cut larger baskets, whose supports cannot be
estimated: new collections that do so are refused (`Collection.refuse_cuts`); those in a ledger stay readable.

All probabilities are exact fractions. What a client draws stands on the grid of 2**-48 (`rounded`); the plans of a
per-item flip, which is drawn item by item, are finer.
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
    """What is done with a basket of `size` items.

    Choose j with probability keep[j], keep j uniformly chosen items of the basket, drop its others, and put in every item
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
                f"a plan for {self.size} items needs {self.size + 1} probabilities: of keeping 0, 1, ..., all of them.",
                f"{len(self.keep)} were given.",
            )
        if min(self.keep) < 0 or sum(self.keep) != 1:
            raise Unsupported(f"the probabilities of a plan for {self.size} items must be 0 or more and add up to 1.")
        if not 0 <= self.insert <= 1:
            raise Unsupported("an item is put in with a probability from 0 to 1.")

    @classmethod
    def rounded(cls, size: int, keep: Iterable[Number], insert: Number) -> SizePlan:
        """The plan on the grid of 2**-48 nearest to these: what rounding leaves over goes to the likeliest count.

        Every probability moves by less than 2**-48, but for the likeliest (by less than (size + 1) 2**-48); none above
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
        """Whether the client can draw it exactly: all probabilities whole numbers over 2**48."""
        return all(WHOLE % chance.denominator == 0 for chance in (*self.keep, self.insert))

    def kept(self, common: int) -> Fraction:
        """The probability that exactly these `common` items of the basket stay (any given ones) and all others go."""
        return self.keep[common] / comb(self.size, common)

    def probability(self, common: int, strange: int, vocabulary_size: int) -> Fraction:
        """P(report | basket), for a report with `common` items of the basket and `strange` others."""
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
            raise Unsupported("an operator on sets needs a plan for at least one size.")
        if self.flip is None and any(size != plan.size for size, plan in self.plans.items()):
            raise Unsupported("every plan stands under its own size.")
        if self.fixed is not None and self.flip is None and self.fixed not in self.plans:
            raise Unsupported(f"baskets are brought to {self.fixed} items, and there is no plan for that size.")
        if self.fixed is None and self.largest > self.vocabulary_size:
            raise Unsupported(
                f"a basket of {self.largest} different items needs as many; there are {self.vocabulary_size}."
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
        """Whether a report is of use only together with its basket's true size, which is then sent in clear.

        A size in clear is outside every epsilon of the operator: `fixed` or a flip avoid it.
        """
        return self.fixed is None and self.flip is None

    @property
    def taken_sizes(self) -> Iterable[int]:
        """The sizes of baskets that are taken, ascending."""
        if self.fixed is None:
            return self.sizes
        return range(min(self.vocabulary_size, self.vocabulary_size if self.most is None else self.most) + 1)

    def plan(self, size: int) -> SizePlan:
        """The plan for baskets of `size` items; with `fixed` the one that all baskets follow."""
        return self.plans[self.planned(size)]

    def planned(self, size: int) -> int:
        """The size whose plan a basket of `size` items follows; a size without one is refused."""
        planned = size if self.fixed is None else self.fixed
        if self.fixed is not None and self.most is not None and size > self.most:
            raise Unsupported(
                f"baskets of {size} items are not taken; the largest has {self.most}.", "Leave items out."
            )
        if planned not in self.plans:
            raise Unsupported(
                f"baskets of {size} items are not planned for; the largest planned size is {self.largest}.",
                "Leave items out, or let the question bring all baskets to one size.",
            )
        return planned

    def probability(self, report: Collection[int], basket: Collection[int]) -> Fraction:
        """P(report | basket), exactly as the client draws it (both as sets of item codes)."""
        said, true = set(report), set(basket)
        plan = self.plan(len(true))
        if self.fixed is None or len(true) == plan.size:
            return plan.probability(len(said & true), len(said - true), self.vocabulary_size)
        if len(true) > plan.size:
            return _cut(plan, len(said), len(said & true), len(true), self.vocabulary_size)
        return _padded(plan, len(said & true), len(said - true), len(true), self.vocabulary_size)


def _padded(plan: SizePlan, common: int, strange: int, size: int, vocabulary_size: int) -> Fraction:
    """P(report | basket) of a basket with fewer items than the plan: it may keep any number of the blanks besides."""
    blanks = plan.size - size
    stays = sum((plan.kept(common + extra) * comb(blanks, extra) for extra in range(blanks + 1)), Fraction(0))
    return stays * plan.insert**strange * (1 - plan.insert) ** (vocabulary_size - size - strange)


def _cut(plan: SizePlan, said: int, common: int, size: int, vocabulary_size: int) -> Fraction:
    """P(report | basket) of a basket with more items than the plan: over how many of the common ones survive the cut."""
    total = Fraction(0)
    for stay in range(max(0, plan.size - (size - common)), min(common, plan.size) + 1):
        ways = Fraction(comb(common, stay) * comb(size - common, plan.size - stay), comb(size, plan.size))
        total += ways * plan.probability(stay, said - stay, vocabulary_size)
    return total


@dataclass(frozen=True)
class BasketPlan:
    """What is done with baskets of `size` items: how likely 0, 1, .. of them stay, and another is put in."""

    size: int
    keep: tuple[Fraction, ...]
    insert: Fraction

    def to_dict(self) -> dict[str, Any]:
        return {"size": self.size, "keep": list(map(plain, self.keep)), "insert": plain(self.insert)}


def read_plans(plans: Iterable[Any]) -> tuple[BasketPlan, ...]:
    """Plans out of a file, or out of anything with size, keep and insert."""
    made = []
    for given in plans:
        parts = given if isinstance(given, Mapping) else vars(given)
        if set(parts) != {"size", "keep", "insert"}:
            raise PolicyUnreadable("a plan has size, keep and insert, and nothing else.")
        made.append(BasketPlan(int(parts["size"]), tuple(map(exact, parts["keep"])), exact(parts["insert"])))
    return tuple(sorted(made, key=lambda plan: plan.size))


def check_plans(plans: tuple[BasketPlan, ...], parameters: Mapping[str, Fraction], *, items: int) -> None:
    """Refuse plans that are no distributions, that share a size, or whose sizes do not fit `fixed` and the items."""
    for plan in plans:
        if len(plan.keep) != plan.size + 1 or min(plan.keep) < 0 or sum(plan.keep) != 1 or not 0 <= plan.insert <= 1:
            raise PolicyUnreadable(
                f"the plan for {plan.size} items needs {plan.size + 1} probabilities that add up to 1, and insert from 0 to 1."
            )
    if len({plan.size for plan in plans}) != len(plans) or any(plan.size > items for plan in plans):
        raise PolicyUnreadable(f"plans are for different sizes, of {items:,} items at most.")
    sizes = {plan.size for plan in plans} or set(range(int(parameters.get("largest", items)) + 1))
    if "fixed" in parameters and parameters["fixed"] not in sizes:
        raise PolicyUnreadable(f"baskets are brought to {say(parameters['fixed'])} items; no plan is for that size.")


def largest_basket(parameters: Mapping[str, Fraction], plans: tuple[BasketPlan, ...]) -> int:
    """Return the most items that a basket can have: `largest`, or the largest planned size."""
    return max(plan.size for plan in plans) if plans else int(parameters["largest"])


def cuts(parameters: Mapping[str, Fraction], plans: tuple[BasketPlan, ...]) -> bool:
    """Return whether baskets larger than `fixed` are taken, and cut."""
    return "fixed" in parameters and parameters["fixed"] < largest_basket(parameters, plans)
