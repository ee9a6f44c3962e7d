"""Reference implementations of mining: every itemset is searched in every basket."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations

Itemset = tuple[int, ...]


def support(items: Iterable[int], baskets: Sequence[set[int]]) -> Fraction:
    """The share of baskets that hold all items."""
    itemset = set(items)
    return Fraction(sum(itemset <= basket for basket in baskets), len(baskets))


def frequent_itemsets(baskets: Sequence[set[int]], *, min_support: Fraction) -> dict[Itemset, Fraction]:
    """Of all itemsets of all items, those that are held often enough."""
    everything = sorted(set().union(*baskets))
    every = (items for size in range(1, len(everything) + 1) for items in combinations(everything, size))
    supports = {items: support(items, baskets) for items in every}
    return {items: share for items, share in supports.items() if share >= min_support}


def all_rules(
    baskets: Sequence[set[int]], *, min_support: Fraction, min_confidence: Fraction
) -> dict[tuple[Itemset, Itemset], Fraction]:
    """Every split of every frequent itemset in two, by its confidence."""
    confidences = {}
    for items, share in frequent_itemsets(baskets, min_support=min_support).items():
        for size in range(1, len(items)):
            for antecedent in combinations(items, size):
                consequent = tuple(item for item in items if item not in antecedent)
                confidences[antecedent, consequent] = share / support(antecedent, baskets)
    return {split: confidence for split, confidence in confidences.items() if confidence >= min_confidence}
