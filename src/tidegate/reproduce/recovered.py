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

from tidegate.arrays import Floats
from tidegate.collect.baskets.bitsets import Bitsets
from tidegate.collect.baskets.bulk import Baskets, randomize_baskets
from tidegate.collect.baskets.mining import Mined, Supports, mine
from tidegate.collect.baskets.recovery import RandomizedSupports
from tidegate.collect.baskets.truth import TrueSupports
from tidegate.collect.bulk import BulkBits
from tidegate.policy.setplans import SetOperator


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
