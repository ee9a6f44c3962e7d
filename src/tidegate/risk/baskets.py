"""What a randomized basket gives away: breaches, and the local loss beside them.

A report of a basket of m items is looked at through an itemset of k items: v of them are seen, k - v are not. A breach is an
item that is, after such a look, in the basket with more than a given probability. Items that are *not* seen count as well: an
operator that drops every true item and inserts the others shows the basket by its holes.

    keep[j]   the chance that j items of the basket stay      insert   the chance that an item not in it is put in

Everything is linear in `keep`, and exact where the numbers are Fractions.

Reference  Evfimievski, Srikant, Agrawal, Gehrke 2002 (breaches of visible itemsets, challenging itemsets from maximum supports);
           Evfimievski, Gehrke, Srikant 2003 (the ratio of likelihoods). Both sides and all k up to m are ours: the published
           definition looks at visible itemsets of the mined sizes only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any, Literal

Number = Any  # Fraction or float
Side = Literal["seen", "not seen"]


@dataclass(frozen=True)
class Look:
    """An itemset of `items`, of which `seen` are in the report; the question is about an item on one side."""

    items: int
    seen: int
    about: Side

    def __str__(self) -> str:
        if self.seen == self.items:
            return f"{self.items} seen" if self.items > 1 else "seen"
        if self.seen == 0:
            return f"none of {self.items} seen" if self.items > 1 else "not seen"
        return f"{self.seen} of {self.items} seen, about one {self.about}"


@dataclass(frozen=True)
class Breach:
    """How probable an item of the basket becomes by one look, and how probable it was."""

    look: Look
    before: Number
    after: Number


@dataclass(frozen=True)
class LocalLoss:
    """The largest ratios of P(report | basket) between any two baskets, and between two with one item replaced.

    The size of the basket is told beside the report, and lies outside of both.
    """

    any_two: Number
    one_replaced: Number

    @property
    def epsilon(self) -> float:
        return _log(self.any_two)

    @property
    def epsilon_one_replaced(self) -> float:
        return _log(self.one_replaced)


@dataclass(frozen=True)
class BasketRisk:
    """One size of baskets: the worst breach, the local loss, and items that no operator can hold to the level."""

    size: int
    level: Number
    worst: Breach
    loss: LocalLoss
    exempted: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether no look makes an item more probable than the level (exempted items apart)."""
        return bool(self.worst.after <= self.level)


def challenging(maximum: Sequence[Number]) -> tuple[Number, ...]:
    """Partial supports s_0 .. s_k of an imaginary itemset all of whose j-subsets have the maximum support maximum[j].

    maximum[0] is 1. Supports that no itemset can have give shares below 0: those count as 0.
    """
    items = len(maximum) - 1
    return tuple(
        comb(items, i) * max(0, sum((-1) ** (j - i) * comb(items - i, j - i) * maximum[j] for j in range(i, items + 1)))
        for i in range(items + 1)
    )


def looks(size: int) -> Iterator[Look]:
    """All looks at a report of a basket of this size, by itemsets of 1 .. size items."""
    for items in range(1, size + 1):
        for seen in range(items + 1):
            if seen:
                yield Look(items, seen, "seen")
            if seen < items:
                yield Look(items, seen, "not seen")


def look_rows(size: int, insert: Number, partial: Sequence[Number], look: Look) -> tuple[list[Number], list[Number]]:
    """P(item in the basket and the look) and P(the look) as linear functions of keep[0 .. size].

    partial[l] is the share of baskets that hold exactly l of the items, which ones being exchangeable. With x of the seen
    and y of the others in the basket, given that j items stay, the look has the chance
    C(m - x - y, j - x) / C(m, j) * insert^(v - x) (1 - insert)^(k - v - y).
    """
    seen, unseen = look.seen, look.items - look.seen
    both: list[Number] = [0] * (size + 1)
    total: list[Number] = [0] * (size + 1)
    for x in range(seen + 1):
        for y in range(unseen + 1):
            ways = Fraction(comb(seen, x) * comb(unseen, y), comb(look.items, x + y))
            weight = partial[x + y] * _like(ways, insert) * insert ** (seen - x) * (1 - insert) ** (unseen - y)
            share = Fraction(x, seen) if look.about == "seen" else Fraction(y, unseen)
            for j in range(x, size - y + 1):
                chance = weight * _like(Fraction(comb(size - x - y, j - x), comb(size, j)), insert)
                total[j] += chance
                both[j] += chance * _like(share, insert)
    return both, total


def _like(ratio: Fraction, number: Number) -> Number:
    """The ratio as a float among floats: a Fraction times a float would be slow."""
    return float(ratio) if isinstance(number, float) else ratio


def breaches(keep: Sequence[Number], insert: Number, supports: Sequence[Sequence[Number]]) -> list[Breach]:
    """Every look at a report of a basket of len(keep) - 1 items, as far as it can happen.

    supports[k] holds the partial supports of itemsets of k items, k = 0 .. size, in baskets of this size
    (`from_maximum` makes them from maximum supports).
    """
    size = len(keep) - 1
    found = []
    for look in looks(size):
        both, total = look_rows(size, insert, supports[look.items], look)
        chance = sum(one * weight for one, weight in zip(keep, total, strict=True))
        if chance > 0:
            after = sum(one * weight for one, weight in zip(keep, both, strict=True)) / chance
            found.append(Breach(look, prior(supports[look.items]), after))
    return found


def prior(partial: Sequence[Number]) -> Number:
    """How probable an item of the itemset is before any report: the mean over its items."""
    items = len(partial) - 1
    return sum(present * share for present, share in enumerate(partial)) / (items * sum(partial))


def from_maximum(maximum: Sequence[Number]) -> tuple[tuple[Number, ...], ...]:
    """Challenging itemsets of 0 .. m items from the maximum supports of 0 .. m items."""
    return tuple(challenging(maximum[: items + 1]) for items in range(len(maximum)))


def worst_breach(keep: Sequence[Number], insert: Number, supports: Sequence[Sequence[Number]]) -> Breach:
    """The look that makes an item most probable."""
    return max(breaches(keep, insert, supports), key=lambda found: found.after)


def exempted(priors: Mapping[str, Number], *, level: Number) -> tuple[str, ...]:
    """Items that are in a basket with more than the level already: no report keeps them below it, they are named instead."""
    return tuple(sorted(name for name, share in priors.items() if share > level))


def likelihoods(keep: Sequence[Number], insert: Number) -> list[Number]:
    """g(q): P(report | basket) but for factors that are the same for all baskets, by how many items they share."""
    size = len(keep) - 1
    odds = (1 - insert) / insert
    return [chance * _like(Fraction(1, comb(size, q)), insert) * odds**q for q, chance in enumerate(keep)]


def local_loss(keep: Sequence[Number], insert: Number, *, vocabulary: int | None = None) -> LocalLoss:
    """The largest ratios of likelihoods; infinite where a report rules a basket out.

    A report and a basket of m of the n items can share any number from 0 to m where n >= 2 m (assumed without `vocabulary`);
    among fewer items, neither less than m + |report| - n.
    """
    size = len(keep) - 1
    if size == 0 or size == vocabulary:
        return LocalLoss(1, 1)  # there is one such basket only
    if insert in (0, 1):
        told_nothing = keep[0] == 1 if insert == 0 else keep[size] == 1
        return LocalLoss(1, 1) if told_nothing else LocalLoss(math.inf, math.inf)
    like = likelihoods(keep, insert)
    others = size if vocabulary is None else min(size, vocabulary - size)
    windows = [like[low : low + others + 1] for low in range(size - others + 1)]
    steps = [like[low : low + 2] for low in range(size)]
    return LocalLoss(max(map(_ratio, windows)), max(map(_ratio, steps)))


def _ratio(like: Sequence[Number]) -> Number:
    if max(like) == 0:
        return 1  # none of these reports happens
    return math.inf if min(like) == 0 else max(like) / min(like)


def _log(ratio: Number) -> float:
    return math.inf if ratio == math.inf else math.log(ratio)


def basket_risk(
    keep: Sequence[Number],
    insert: Number,
    *,
    level: Number,
    maximum: Sequence[Number] | None = None,
    supports: Sequence[Sequence[Number]] | None = None,
    priors: Mapping[str, Number] | None = None,
    vocabulary: int | None = None,
) -> BasketRisk:
    """The worst breach and the local loss of one size, from maximum supports or given partial supports.

    Items of `priors` above the level are named; leave them out of the maximum supports.
    """
    if supports is None:
        if maximum is None:
            raise TypeError("either maximum or supports is needed")
        supports = from_maximum(completed(maximum, len(keep) - 1))
    worst = worst_breach(keep, insert, supports)
    named = exempted(priors or {}, level=level)
    return BasketRisk(len(keep) - 1, level, worst, local_loss(keep, insert, vocabulary=vocabulary), named)


def completed(maximum: Sequence[Number], size: int) -> tuple[Number, ...]:
    """Maximum supports of 0 .. size items: those not given can be as large as the last one given, and not larger."""
    return (*maximum, *(maximum[-1] for _ in range(size + 1 - len(maximum))))[: size + 1]
