"""Breaches and the local loss of a randomized basket.

An observer looks at a report of a basket of m items through an itemset of k items: v of them are seen, k - v are not. A
breach is an item that is, after such a look, in the basket with more than a certain probability. Items that are *not* seen
count too: an operator that drops every true item and inserts the others reveals the basket by its gaps.

    keep[j]   the probability that j items of the basket stay
    insert    the probability that an item not in the basket is inserted

Everything is linear in `keep`, and exact if the numbers are Fractions.

Reference:
    Evfimievski, Srikant, Agrawal, Gehrke 2002 (breaches of visible itemsets, challenging itemsets from maximum supports);
    Evfimievski, Gehrke, Srikant 2003 (the ratio of likelihoods). Both sides and all k up to m are our extension:
    the published definition covers visible itemsets of the mined sizes only.
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
    """The probability of an item of the basket before and after one look."""

    look: Look
    before: Number
    after: Number


@dataclass(frozen=True)
class LocalLoss:
    """The largest ratios of P(report | basket) between any two baskets, and between two with one item replaced.

    The size of the basket is sent with the report and is not covered by either.
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
    """One size of baskets: the worst breach, the local loss, and items that no operator can keep below the level."""

    size: int
    level: Number
    worst: Breach
    loss: LocalLoss
    exempted: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether no look makes an item more probable than the level (except exempted items)."""
        return bool(self.worst.after <= self.level)


def challenging(maximum: Sequence[Number]) -> tuple[Number, ...]:
    """Return the partial supports s_0 .. s_k of an itemset all of whose j-subsets have the maximum support maximum[j].

    maximum[0] is 1. Supports that no itemset can have give values below 0: those count as 0.
    """
    items = len(maximum) - 1
    return tuple(
        comb(items, i) * max(0, sum((-1) ** (j - i) * comb(items - i, j - i) * maximum[j] for j in range(i, items + 1)))
        for i in range(items + 1)
    )


def looks(size: int) -> Iterator[Look]:
    """Yield all looks at a report of a basket of this size, by itemsets of 1 .. size items."""
    for items in range(1, size + 1):
        for seen in range(items + 1):
            if seen:
                yield Look(items, seen, "seen")
            if seen < items:
                yield Look(items, seen, "not seen")


def look_rows(size: int, insert: Number, partial: Sequence[Number], look: Look) -> tuple[list[Number], list[Number]]:
    """Return P(item in the basket and the look) and P(the look) as linear functions of keep[0 .. size].

    partial[l] is the fraction of baskets that contain exactly l of the items; the items are exchangeable. With x of the seen
    and y of the others in the basket, and j items staying, the look has the probability
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
    """Return the ratio as a float if the number is one: a Fraction times a float would be slow."""
    return float(ratio) if isinstance(number, float) else ratio


def breaches(keep: Sequence[Number], insert: Number, supports: Sequence[Sequence[Number]]) -> list[Breach]:
    """Return the breach of every possible look at a report of a basket of len(keep) - 1 items.

    supports[k] contains the partial supports of itemsets of k items, k = 0 .. size, in baskets of this size
    (`from_maximum` computes them from maximum supports).
    """
    size = len(keep) - 1
    results = []
    for look in looks(size):
        both, total = look_rows(size, insert, supports[look.items], look)
        chance = sum(probability * weight for probability, weight in zip(keep, total, strict=True))
        if chance > 0:
            after = sum(probability * weight for probability, weight in zip(keep, both, strict=True)) / chance
            results.append(Breach(look, prior(supports[look.items]), after))
    return results


def prior(partial: Sequence[Number]) -> Number:
    """Return the probability of an item of the itemset before any report: the mean over its items."""
    items = len(partial) - 1
    return sum(present * share for present, share in enumerate(partial)) / (items * sum(partial))


def from_maximum(maximum: Sequence[Number]) -> tuple[tuple[Number, ...], ...]:
    """Return challenging itemsets of 0 .. m items from the maximum supports of 0 .. m items."""
    return tuple(challenging(maximum[: items + 1]) for items in range(len(maximum)))


def worst_breach(keep: Sequence[Number], insert: Number, supports: Sequence[Sequence[Number]]) -> Breach:
    """Return the look that makes an item most probable."""
    return max(breaches(keep, insert, supports), key=lambda breach: breach.after)


def exempted(priors: Mapping[str, Number], *, level: Number) -> tuple[str, ...]:
    """Return the items whose probability exceeds the level before any report: no report can keep them below it."""
    return tuple(sorted(name for name, share in priors.items() if share > level))


def likelihoods(keep: Sequence[Number], insert: Number) -> list[Number]:
    """Return g(q): P(report | basket) up to factors common to all baskets, by the number of shared items q."""
    size = len(keep) - 1
    odds = (1 - insert) / insert
    return [chance * _like(Fraction(1, comb(size, q)), insert) * odds**q for q, chance in enumerate(keep)]


def local_loss(keep: Sequence[Number], insert: Number, *, vocabulary: int | None = None) -> LocalLoss:
    """Return the largest ratios of likelihoods; infinite if a report excludes a basket.

    A report and a basket of m of the n items can share any number from 0 to m if n >= 2 m (assumed without `vocabulary`);
    among fewer items, at least m + |report| - n.
    """
    size = len(keep) - 1
    if size == 0 or size == vocabulary:
        return LocalLoss(1, 1)  # there is only one such basket
    if insert in (0, 1):
        is_uninformative = keep[0] == 1 if insert == 0 else keep[size] == 1
        return LocalLoss(1, 1) if is_uninformative else LocalLoss(math.inf, math.inf)
    like = likelihoods(keep, insert)
    others = size if vocabulary is None else min(size, vocabulary - size)
    windows = [like[low : low + others + 1] for low in range(size - others + 1)]
    steps = [like[low : low + 2] for low in range(size)]
    return LocalLoss(max(map(_ratio, windows)), max(map(_ratio, steps)))


def _ratio(like: Sequence[Number]) -> Number:
    if max(like) == 0:
        return 1  # none of these reports can occur
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
    """Return the worst breach and the local loss of one size, from maximum supports or partial supports.

    Items of `priors` above the level are listed as exempted; leave them out of the maximum supports.
    """
    if supports is None:
        if maximum is None:
            raise TypeError("Specify either `maximum` or `supports`.")
        supports = from_maximum(extend_maximum(maximum, len(keep) - 1))
    worst = worst_breach(keep, insert, supports)
    named = exempted(priors or {}, level=level)
    return BasketRisk(len(keep) - 1, level, worst, local_loss(keep, insert, vocabulary=vocabulary), named)


def extend_maximum(maximum: Sequence[Number], size: int) -> tuple[Number, ...]:
    """Return the maximum supports of 0 .. size items: missing ones are at most as large as the last one."""
    return (*maximum, *(maximum[-1] for _ in range(size + 1 - len(maximum))))[: size + 1]
