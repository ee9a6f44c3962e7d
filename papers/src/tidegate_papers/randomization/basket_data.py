"""Baskets of a made-up shop, many and fast: patterns that are bought together, some of them in part.

The procedure of Agrawal and Srikant. A pool of patterns: sizes are Poisson, a share of the items comes from the pattern
before, weights are exponential, each pattern has a corruption level of its own. A basket's size is Poisson; patterns are
drawn by weight, lose items while a coin of their corruption falls so, and are put in as far as the size; one that does
not fit goes in anyway half of the time, and else waits for the next basket.

Two things are our own, since the paper leaves them open: sizes are drawn again until they lie in 1 .. `largest`, and a
pattern that goes in anyway is cut where `largest` is reached.

Reference:
    Agrawal, Srikant 1994 (VLDB), section 2.4.3.

Millions of generated baskets, randomized and mined: which frequent itemsets come back, and how surely.

The experiment of the papers on privacy preserving mining of association rules, on baskets of `papers/src/tidegate_papers/randomization/basket_data.py`: an
operator at a breach level (designed for the maximum supports of these baskets), all reports drawn, itemsets mined at a
least support from true and from randomized baskets, and compared.

Reference:
    Evfimievski, Srikant, Agrawal, Gehrke 2002, section 6; Evfimievski 2002 (the survey), section 4.
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

TRIES = 50  # patterns tried for one basket before it is left as it is


@dataclass(frozen=True)
class Shop:
    """What is bought. The defaults give short baskets, some 300 frequent items at 0.2%, about 100 pairs and some triples."""

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
            raise Unsupported("a shop needs items, patterns, sizes above 0, and no basket larger than its vocabulary.")


def generate(shop: Shop, many: int, *, seed: int) -> Baskets:
    """So many baskets; the same for the same shop and seed."""
    random = np.random.Generator(np.random.PCG64(seed))
    starts, items, chance, corruption = pool(shop, random)
    keep, alias = _alias(chance)
    sizes = _sizes(shop, many, random)
    room = np.empty(many * shop.largest, np.int32)  # what stays empty takes no memory
    ends, filled = _fill(sizes, shop.largest, starts, items, keep, alias, corruption, shop.items, room, random)
    return Baskets(ends, room[:filled].copy())


def pool(shop: Shop, random: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """The patterns: where each starts, their items, how likely each is drawn, and how corrupt it is."""
    sizes = np.clip(random.poisson(shop.pattern_size, shop.patterns), 1, shop.largest)
    shared = np.minimum(random.exponential(shop.correlation, shop.patterns), 1.0)
    made: list[Array] = [np.zeros(0, np.int64)]
    for size, share in zip(sizes.tolist(), shared.tolist(), strict=True):
        old = random.permutation(made[-1])[: min(round(share * size), made[-1].size)]
        fresh = random.permutation(np.setdiff1d(np.arange(shop.items), old))[: size - old.size]
        made.append(np.concatenate([old, fresh]))
    weights = random.exponential(1.0, shop.patterns)
    corruption = np.clip(random.normal(shop.corruption, shop.corruption_spread, shop.patterns), 0.0, 1.0)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return starts, np.concatenate(made).astype(np.int32), weights / weights.sum(), corruption


def _sizes(shop: Shop, many: int, random: np.random.Generator) -> Ints:
    """Poisson, drawn again until from 1 to the largest."""
    sizes = random.poisson(shop.basket_size, many)
    while (wrong := np.flatnonzero((sizes < 1) | (sizes > shop.largest))).size:
        sizes[wrong] = random.poisson(shop.basket_size, wrong.size)
    return sizes


def _alias(chance: Array) -> tuple[Floats, Ints]:
    """Vose's table: a place by one draw, its alias by the rest of the draw."""
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
    """Basket after basket into `room`; returns where each ends, and how much was filled."""
    ends = np.zeros(sizes.size + 1, np.int64)
    stamp = np.full(vocabulary_size, -1, np.int64)  # the basket that an item was last put in
    left, waiting, at = np.empty(items.size, np.int32), 0, 0
    for basket in range(sizes.size):
        begin = at
        for _ in range(TRIES):
            if at - begin >= sizes[basket]:
                break
            if waiting == 0:  # else the pattern that did not fit into the basket before
                draw = random.random() * keep.size
                place = min(int(draw), keep.size - 1)
                pattern = place if draw - place < keep[place] else alias[place]
                waiting = starts[pattern + 1] - starts[pattern]
                for k in range(waiting):
                    left[k] = items[starts[pattern] + k]
                while waiting > 0 and random.random() < corruption[pattern]:
                    gone = min(int(random.random() * waiting), waiting - 1)
                    waiting -= 1
                    left[gone] = left[waiting]
            if at > begin and waiting > sizes[basket] - (at - begin) and random.random() < 0.5:
                break
            for k in range(waiting):
                if stamp[left[k]] != basket and at - begin < largest:
                    stamp[left[k]] = basket
                    room[at] = left[k]
                    at += 1
            waiting = 0
        ends[basket + 1] = at
    return ends, at


@dataclass(frozen=True)
class Comparison:
    """Of itemsets of one size: how many are frequent, came back, were lost, came by chance; their typical standard error."""

    size: int
    true: int
    recovered: int
    dropped: int
    by_chance: int
    sigma: float
    score_mean: float  # of (estimate - truth) / error over the truly frequent, found or not
    score_deviation: float


def by_size(baskets: Baskets) -> dict[int, Baskets]:
    """The baskets of each size that occurs."""
    found = {}
    for size in np.unique(baskets.sizes).tolist():
        chosen = np.flatnonzero(baskets.sizes == size)
        items = baskets.items[(baskets.starts[chosen][:, None] + np.arange(size)).ravel()]
        found[size] = Baskets(np.arange(chosen.size + 1) * size, items)
    return found


def randomized(operator: SetOperator, baskets: Baskets, *, seed: str) -> RandomizedSupports:
    """All reports, drawn from a seed and counted by size."""
    bits, many = BulkBits(seed), operator.vocabulary_size
    drawn = ((size, randomize_baskets(operator, some, bits)) for size, some in by_size(baskets).items())
    return RandomizedSupports(operator, {size: Bitsets.of(rows, vocabulary_size=many) for size, rows in drawn})


def maximum_supports(baskets: Mapping[int, Baskets], *, vocabulary_size: int) -> dict[int, tuple[Fraction, ...]]:
    """The largest support of 0, 1, 2, 3 items in the baskets of each size, as a share of these."""
    found = {}
    for size, some in baskets.items():
        source = TrueSupports(some, vocabulary_size=vocabulary_size)
        levels = mine(source, min_support=max(0.001, 1 / len(some)), largest=min(3, size)).levels
        most = [Fraction(round(level.supports.max() * len(some)), len(some)) for level in levels]
        found[size] = (Fraction(1), *most)
    return found


def compare(true: Mined, told: Mined, source: Supports) -> list[Comparison]:
    """What was told beside what is true, size by size; `source` is what was told from."""
    return [_compared(true, told, source, size) for size in range(1, len(told.levels) + 1)]


def far_off(true: Mined, told: Mined, truth: TrueSupports, size: int) -> Floats:
    """How far the true support of each itemset that was lost or came by chance is from the threshold, in typical deviations."""
    real, said = ({one.items for one in mined.frequent(size)} for mined in (true, told))
    wrong = np.array(sorted(real ^ said), np.int64).reshape(-1, size)
    return np.asarray((truth.count(wrong)[0] - true.min_support) / told.levels[size - 1].error)


def _compared(true: Mined, told: Mined, source: Supports, size: int) -> Comparison:
    real = {one.items: one.support for one in true.frequent(size)}
    said = {one.items for one in told.frequent(size)}
    both = len(real.keys() & said)
    spread = (float("nan"), float("nan"))
    if real:  # those that were kept would be chosen by their estimates, and look too large
        estimates, errors = source.count(np.array(list(real), np.int64))
        scores = (estimates - np.array(list(real.values()))) / errors
        spread = (float(scores.mean()), float(scores.std()))
    error = told.levels[size - 1].error
    return Comparison(size, len(real), both, len(real) - both, len(said) - both, error, *spread)
