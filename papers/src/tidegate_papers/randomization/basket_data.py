"""Millions of generated baskets of a simulated shop, randomized and mined: which frequent itemsets are recovered.

The generator follows Agrawal and Srikant. A pool of patterns has Poisson sizes; a share of a pattern's items comes from the
pattern before; weights are exponential, and each pattern has its own corruption level. A basket's size is Poisson; patterns
are drawn by weight, lose items by coins of their corruption, and are added up to the size; one that does not fit is added
anyway half of the time, and otherwise waits for the next basket. The paper leaves two things open: here sizes are drawn again
until they are in 1 .. `largest`, and a pattern that is added anyway is cut when `largest` is reached.

The experiment is that of the papers on privacy preserving mining of association rules: an operator at a breach level,
designed for the maximum supports of these baskets, draws all reports; itemsets above a least support are mined from true and
from randomized baskets and compared.

Reference:
    Agrawal, Srikant 1994 (VLDB), section 2.4.3; Evfimievski, Srikant, Agrawal, Gehrke 2002, section 6; Evfimievski 2002
    (the survey), section 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numba import njit

from tidegate.arrays import Array, Floats, Ints
from tidegate.collect.baskets.bitsets import Bitsets
from tidegate.collect.baskets.mining import Mined, Supports, mine
from tidegate.collect.baskets.recovery import RandomizedSupports
from tidegate.errors import Unsupported
from tidegate.operators.basket_plans import SetOperator
from tidegate_papers.simulation.baskets import Baskets, randomize_baskets
from tidegate_papers.simulation.true_supports import TrueSupports
from tidegate_papers.simulation.values import BulkBits

TRIES = 50  # patterns tried for one basket


@dataclass(frozen=True)
class Shop:
    """A shop. The defaults give short baskets, about 300 frequent items at 0.2%, about 100 pairs and some triples."""

    items: int = 500
    patterns: int = 2000
    pattern_size: float = 1.0
    basket_size: float = 1.8
    largest: int = 10
    correlation: float = 0.5
    corruption: float = 0.5
    corruption_spread: float = 0.1**0.5

    def __post_init__(self) -> None:
        if not 1 <= self.largest <= self.items or self.patterns < 1 or min(self.pattern_size, self.basket_size) <= 0:
            raise Unsupported("A shop needs items, patterns, sizes above 0, and no basket larger than its vocabulary.")


def generate(shop: Shop, count: int, *, seed: int) -> Baskets:
    """Generate baskets; the same for the same shop and seed."""
    random = np.random.Generator(np.random.PCG64(seed))
    starts, items, chance, corruption = pool(shop, random)
    keep, alias = _alias(chance)
    sizes = _sizes(shop, count, random)
    room = np.empty(count * shop.largest, np.int32)  # pages that stay empty take no memory
    ends, filled = _fill(sizes, shop.largest, starts, items, keep, alias, corruption, shop.items, room, random)
    return Baskets(ends, room[:filled].copy())


def pool(shop: Shop, random: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """Return the patterns: where each starts, their items, their probabilities, and their corruption."""
    sizes = np.clip(random.poisson(shop.pattern_size, shop.patterns), 1, shop.largest)
    shared = np.minimum(random.exponential(shop.correlation, shop.patterns), 1.0)
    patterns: list[Array] = [np.zeros(0, np.int64)]
    for size, share in zip(sizes.tolist(), shared.tolist(), strict=True):
        old = random.permutation(patterns[-1])[: min(round(share * size), patterns[-1].size)]
        fresh = random.permutation(np.setdiff1d(np.arange(shop.items), old))[: size - old.size]
        patterns.append(np.concatenate([old, fresh]))
    weights = random.exponential(1.0, shop.patterns)
    corruption = np.clip(random.normal(shop.corruption, shop.corruption_spread, shop.patterns), 0.0, 1.0)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return starts, np.concatenate(patterns).astype(np.int32), weights / weights.sum(), corruption


def _sizes(shop: Shop, count: int, random: np.random.Generator) -> Ints:
    """Draw Poisson sizes again until they are from 1 to the largest."""
    sizes = random.poisson(shop.basket_size, count)
    while (wrong := np.flatnonzero((sizes < 1) | (sizes > shop.largest))).size:
        sizes[wrong] = random.poisson(shop.basket_size, wrong.size)
    return sizes


def _alias(chance: Array) -> tuple[Floats, Ints]:
    """Return Vose's table: an index by one draw, its alias by the rest of the draw."""
    keep, alias = chance * chance.size, np.arange(chance.size)
    small, large = list(np.flatnonzero(keep < 1)), list(np.flatnonzero(keep >= 1))
    while small and large:
        low, high = small.pop(), large[-1]
        alias[low] = high
        keep[high] -= 1 - keep[low]
        if keep[high] < 1:
            small.append(large.pop())
    return keep, alias


@njit(cache=True)
def _fill(
    sizes: Any,
    largest: Any,
    starts: Any,
    items: Any,
    keep: Any,
    alias: Any,
    corruption: Any,
    vocabulary_size: Any,
    room: Any,
    random: Any,
) -> Any:
    """Fill basket after basket into `room`; return where each ends, and how much was filled."""
    ends = np.zeros(sizes.size + 1, np.int64)
    stamp = np.full(vocabulary_size, -1, np.int64)  # the basket that an item was last put in
    pattern_items, waiting, at = np.empty(items.size, np.int32), 0, 0
    for basket in range(sizes.size):
        begin = at
        for _ in range(TRIES):
            if at - begin >= sizes[basket]:
                break
            if waiting == 0:  # else the pattern that did not fit into the basket before
                draw = random.random() * keep.size
                index = min(int(draw), keep.size - 1)
                pattern = index if draw - index < keep[index] else alias[index]
                waiting = starts[pattern + 1] - starts[pattern]
                for k in range(waiting):
                    pattern_items[k] = items[starts[pattern] + k]
                while waiting > 0 and random.random() < corruption[pattern]:
                    gone = min(int(random.random() * waiting), waiting - 1)
                    waiting -= 1
                    pattern_items[gone] = pattern_items[waiting]
            if at > begin and waiting > sizes[basket] - (at - begin) and random.random() < 0.5:
                break
            for k in range(waiting):
                if stamp[pattern_items[k]] != basket and at - begin < largest:
                    stamp[pattern_items[k]] = basket
                    room[at] = pattern_items[k]
                    at += 1
            waiting = 0
        ends[basket + 1] = at
    return ends, at


@dataclass(frozen=True)
class Comparison:
    """Itemsets of one size: how many are frequent, recovered, lost, added by chance; their typical standard error."""

    size: int
    true: int
    recovered: int
    dropped: int
    by_chance: int
    sigma: float
    score_mean: float  # of (estimate - truth) / error over the truly frequent, recovered or not
    score_deviation: float


def by_size(baskets: Baskets) -> dict[int, Baskets]:
    """Return the baskets of each size that occurs."""
    groups = {}
    for size in np.unique(baskets.sizes).tolist():
        chosen = np.flatnonzero(baskets.sizes == size)
        items = baskets.items[(baskets.starts[chosen][:, None] + np.arange(size)).ravel()]
        groups[size] = Baskets(np.arange(chosen.size + 1) * size, items)
    return groups


def randomized(operator: SetOperator, baskets: Baskets, *, seed: str) -> RandomizedSupports:
    """Draw all reports from a seed and count them by size."""
    bits, items = BulkBits(seed), operator.vocabulary_size
    drawn = ((size, randomize_baskets(operator, some, bits)) for size, some in by_size(baskets).items())
    return RandomizedSupports(operator, {size: Bitsets.of(rows, vocabulary_size=items) for size, rows in drawn})


def maximum_supports(baskets: Mapping[int, Baskets], *, vocabulary_size: int) -> dict[int, tuple[Fraction, ...]]:
    """Return the largest support of 0, 1, 2, 3 items in the baskets of each size, as a share of these."""
    supports = {}
    for size, some in baskets.items():
        source = TrueSupports(some, vocabulary_size=vocabulary_size)
        levels = mine(source, min_support=max(0.001, 1 / len(some)), largest=min(3, size)).levels
        most = [Fraction(round(level.supports.max() * len(some)), len(some)) for level in levels]
        supports[size] = (Fraction(1), *most)
    return supports


def compare(true: Mined, mined: Mined, source: Supports) -> list[Comparison]:
    """Compare mined itemsets with the true ones, size by size; `source` is what they were mined from."""
    return [_compared(true, mined, source, size) for size in range(1, len(mined.levels) + 1)]


def far_off(true: Mined, mined: Mined, truth: TrueSupports, size: int) -> Floats:
    """Return how far the true support of each lost or added itemset is from the threshold, in typical deviations."""
    real, estimated = ({itemset.items for itemset in source.frequent(size)} for source in (true, mined))
    wrong = np.array(sorted(real ^ estimated), np.int64).reshape(-1, size)
    return np.asarray((truth.count(wrong)[0] - true.min_support) / mined.levels[size - 1].error)


def _compared(true: Mined, mined: Mined, source: Supports, size: int) -> Comparison:
    real = {itemset.items: itemset.support for itemset in true.frequent(size)}
    estimated = {itemset.items for itemset in mined.frequent(size)}
    both = len(real.keys() & estimated)
    spread = (float("nan"), float("nan"))
    if real:  # only recovered ones would be selected by their estimates, which are then too large
        estimates, errors = source.count(np.array(list(real), np.int64))
        scores = (estimates - np.array(list(real.values()))) / errors
        spread = (float(scores.mean()), float(scores.std()))
    error = mined.levels[size - 1].error
    return Comparison(size, len(real), both, len(real) - both, len(estimated) - both, error, *spread)
