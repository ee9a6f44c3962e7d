"""Operators on sets of items as frozen values: how many true items stay, and how often others are put in.

SizePlan      select-a-size for baskets of exactly `size` items
SetOperator   a vocabulary and a plan for every size: `select_a_size`, `cut_and_paste`, `item_flip`, or a question's own

All probabilities are exact fractions. What a client draws stands on the grid of 2**-48 (`rounded`); the plans of a
per-item flip, which is drawn item by item, are finer.

Reference  Evfimievski, Srikant, Agrawal, Gehrke 2002 (select-a-size, cut-and-paste); Rizvi, Haritsa 2002 (per-item flip, MASK).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import comb
from typing import TYPE_CHECKING

from tidegate.errors import Unsupported
from tidegate.exact import Number, exact
from tidegate.policy.baskets import largest_basket

if TYPE_CHECKING:
    from tidegate.policy.collection import Question

WHOLE = 1 << 48  # clients draw six bytes: every probability is a whole number over this


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
            drawn uniformly, and its supports are not identified (collect/baskets/brackets.py).
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


def cut_and_paste(
    cutoff: int,
    rho: Number,
    sizes: Iterable[int],
    *,
    vocabulary_size: int,
    fixed: int | None = None,
    most: int | None = None,
) -> SetOperator:
    """Cut-and-paste: keep a uniform number of items up to the cutoff, then put in every other item, true or not, by rho.

    The plans are those of `cut_and_paste_keep`, on the grid of 2**-48.
    """
    insert = Fraction(round(exact(rho) * WHOLE), WHOLE)
    plans = {size: SizePlan.rounded(size, cut_and_paste_keep(size, cutoff, insert), insert) for size in sizes}
    return SetOperator(vocabulary_size, plans, fixed, most=most)


def cut_and_paste_keep(size: int, cutoff: int, rho: Fraction) -> tuple[Fraction, ...]:
    """p_m[j] = sum over i <= min(K, j) of w_i C(m - i, j - i) rho**(j - i) (1 - rho)**(m - j).

    w_i = 1 / (K + 1) for i < m, and what is left of one where i = m <= K: 1 - m / (K + 1).
    """
    if cutoff < 0:
        raise Unsupported("the cutoff of cut-and-paste is 0 or more.")
    first = [Fraction(1, cutoff + 1) for _ in range(min(cutoff, size) + 1)]
    first[-1] = 1 - sum(first[:-1], Fraction(0))
    return tuple(
        sum(
            (
                weight * comb(size - i, j - i) * rho ** (j - i) * (1 - rho) ** (size - j)
                for i, weight in enumerate(first[: j + 1])
            ),
            Fraction(0),
        )
        for j in range(size + 1)
    )


def item_flip(
    keep: Number, insert: Number | None = None, *, vocabulary_size: int, largest: int | None = None
) -> SetOperator:
    """Per-item flip: a true item stays with probability `keep`, another comes in with probability `insert`.

    MASK is the symmetric one, insert = 1 - keep (the default). `largest` limits the baskets, by default to the vocabulary.
    """
    stay = Fraction(round(exact(keep) * WHOLE), WHOLE)
    come = 1 - stay if insert is None else Fraction(round(exact(insert) * WHOLE), WHOLE)
    if not 0 <= stay <= 1 or not 0 <= come <= 1:
        raise Unsupported("an item stays, or is put in, with a probability from 0 to 1.")
    most = vocabulary_size if largest is None else largest
    return SetOperator(vocabulary_size, FlipPlans(stay, come, most), flip=(stay, come))


def set_operator(question: Question) -> SetOperator:
    """What a question about a set of items does with a basket, exactly as its clients draw."""
    given, items = question.parameters, question.size
    whole = {name: int(given[name]) for name in ("cutoff", "largest", "fixed") if name in given}
    if question.operator == "mask":
        return item_flip(given["keep"], given.get("insert"), vocabulary_size=items, largest=whole.get("largest"))
    fixed = whole.get("fixed")
    most = None if fixed is None else largest_basket(given, question.plans)
    if question.operator == "cut-and-paste":
        sizes = range(whole["largest"] + 1) if fixed is None else [fixed]
        return cut_and_paste(whole["cutoff"], given["rho"], sizes, vocabulary_size=items, fixed=fixed, most=most)
    plans = [SizePlan.rounded(plan.size, plan.keep, plan.insert) for plan in question.plans]
    return select_a_size(plans, vocabulary_size=items, fixed=fixed, most=most)


@dataclass(frozen=True)
class FlipPlans(Mapping[int, SizePlan]):
    """The plans that a per-item flip comes to, made when they are asked for: keep[j] is binomial."""

    stay: Fraction
    come: Fraction
    largest: int

    def __getitem__(self, size: int) -> SizePlan:
        if not 0 <= size <= self.largest:
            raise KeyError(size)
        return _flip_plan(self.stay, self.come, size)

    def __contains__(self, size: object) -> bool:
        return isinstance(size, int) and 0 <= size <= self.largest

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.largest + 1))

    def __len__(self) -> int:
        return self.largest + 1


@cache
def _flip_plan(stay: Fraction, come: Fraction, size: int) -> SizePlan:
    keep = (comb(size, j) * stay**j * (1 - stay) ** (size - j) for j in range(size + 1))
    return SizePlan(size, tuple(keep), come)
