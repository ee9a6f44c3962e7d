"""Millions of generated baskets, randomized and mined: which frequent itemsets come back, and how surely.

The experiment of the papers on privacy preserving mining of association rules, on baskets of `reproduce/baskets.py`: an
operator at a breach level (designed for the maximum supports of these baskets), all reports drawn, itemsets mined at a
least support from true and from randomized baskets, and compared.

Reference  Evfimievski, Srikant, Agrawal, Gehrke 2002, section 6; Evfimievski 2002 (the survey), section 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tidegate.collect.bulk import BulkBits
from tidegate.collect.sets.bitsets import Bitsets
from tidegate.collect.sets.bulk import Baskets, randomize_baskets
from tidegate.collect.sets.mining import Mined, mine
from tidegate.collect.sets.plan import SetOperator
from tidegate.collect.sets.randomized import RandomizedSupports
from tidegate.collect.sets.truth import TrueSupports


@dataclass(frozen=True)
class Comparison:
    """Of itemsets of one size: how many are frequent, came back, were lost, came by chance; their typical standard error."""

    size: int
    true: int
    recovered: int
    dropped: int
    by_chance: int
    sigma: float
    score_mean: float  # of (estimate - truth) / error over all candidates kept
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


def compare(true: Mined, told: Mined, truth: TrueSupports) -> list[Comparison]:
    """What was told beside what is true, size by size; of candidates that are close to the threshold, too."""
    return [_compared(true, told, truth, size) for size in range(1, len(told.levels) + 1)]


def _compared(true: Mined, told: Mined, truth: TrueSupports, size: int) -> Comparison:
    real = {one.items for one in true.frequent(size)}
    said = {one.items for one in told.frequent(size)}
    level = told.levels[size - 1]
    scores = (level.supports - truth.count(level.itemsets)[0]) / level.errors
    both = len(real & said)
    spread = (float(scores.mean()), float(scores.std()))
    return Comparison(size, len(real), both, len(real) - both, len(said) - both, level.error, *spread)
