"""Every basket, every report, one by one: what the closed forms of set operators must equal."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import comb

Basket = frozenset[int]


def baskets(items: int, size: int) -> list[Basket]:
    return [frozenset(chosen) for chosen in combinations(range(items), size)]


def all_sets(items: int) -> list[Basket]:
    return [basket for size in range(items + 1) for basket in baskets(items, size)]


def chance(report: Basket, basket: Basket, items: int, keep: Sequence[Fraction], insert: Fraction) -> Fraction:
    """P(report | basket) of select-a-size: choose how many, choose which, toss a coin for every other item."""
    retained = len(report & basket)
    inserted = len(report - basket)
    others = items - len(basket)
    which = Fraction(1, comb(len(basket), retained))
    return keep[retained] * which * insert**inserted * (1 - insert) ** (others - inserted)


def transition(items: int, size: int, keep: Sequence[Fraction], insert: Fraction, k: int) -> list[list[Fraction]]:
    """P[seen][present] of the itemset {0 .. k-1}, by adding up all reports of one basket for each overlap."""
    itemset = frozenset(range(k))
    table = [[Fraction(0)] * (k + 1) for _ in range(k + 1)]
    for present in range(k + 1):
        basket = next(candidate for candidate in baskets(items, size) if len(candidate & itemset) == present)
        for report in all_sets(items):
            table[len(report & itemset)][present] += chance(report, basket, items, keep, insert)
    return table


def ratios(items: int, size: int, keep: Sequence[Fraction], insert: Fraction) -> tuple[Fraction, Fraction]:
    """The largest P(report | basket) / P(report | other): of any two baskets, and of two with one item replaced."""
    known = baskets(items, size)
    anything, replaced = Fraction(1), Fraction(1)
    for report in all_sets(items):
        chances = [chance(report, basket, items, keep, insert) for basket in known]
        anything = max(anything, max(chances) / min(chances))
        for index, basket in enumerate(known):
            for other_index, neighbor in enumerate(known):
                if len(basket & neighbor) == size - 1:
                    replaced = max(replaced, chances[index] / chances[other_index])
    return anything, replaced


def posterior(
    prior: dict[Basket, Fraction],
    items: int,
    keep: Sequence[Fraction],
    insert: Fraction,
    visible: Basket,
    absent: Basket,
    about: int,
) -> Fraction:
    """P(item in the basket | the report shows all of `visible` and none of `absent`)."""
    both = total = Fraction(0)
    for report in all_sets(items):
        if visible <= report and not absent & report:
            for basket, weight in prior.items():
                seen = weight * chance(report, basket, items, keep, insert)
                total += seen
                both += seen if about in basket else 0
    return both / total
