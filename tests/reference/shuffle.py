"""Reference implementations of the loss in a shuffled batch: sums over all counts, and enumeration of all histograms."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations_with_replacement, product
from math import exp

import numpy as np
from scipy.stats import binom  # type: ignore[import-untyped]


def blanket_delta(
    ratio: float, weight: float, only_one: float, both: float, *, reports: int, epsilon: float, factor: float = 1.0
) -> float:
    """Return factor / n * E[(a N01 + b N10 + c N11 + d N00)_+] by a sum over all counts, without lattice or transform."""
    power = exp(epsilon)
    only_first, only_second = ratio - power, 1 - power * ratio
    in_both, in_neither = ratio * (1 - power), 1 - power
    informative = 2 * weight * only_one
    left = 1 - informative
    total = 0.0
    for informative_count in likely(reports, informative):
        rest = reports - informative_count
        chance = binom.pmf(informative_count, reports, informative)
        share_both = weight * both / left if left > 0 else 0.0
        share_neither = (weight * (1 - 2 * only_one - both)) / left if left > 0 else 0.0
        for count_both in likely(rest, share_both):
            neither = np.array(list(likely(rest - count_both, share_neither / (1 - share_both))))
            chances = chance * binom.pmf(count_both, rest, share_both)
            chances = chances * binom.pmf(neither, rest - count_both, share_neither / (1 - share_both))
            lost = in_both * count_both + in_neither * neither
            total += float(chances @ half_excess(informative_count, only_first, only_second, lost))
    return factor * total / reports


def half_excess(count: int, up: float, down: float, offset: np.ndarray) -> np.ndarray:
    """Return E[(up A + down (count - A) + offset)_+] for A ~ Bin(count, 1/2), from two binomial tails."""
    slope, start = up - down, down * count + offset
    first = np.maximum(np.floor(-start / slope) + 1, 0)  # the smallest A with a positive sum
    mean = count / 2 * binom.sf(first - 2, count - 1, 0.5) if count else np.zeros_like(start)
    return slope * mean + start * binom.sf(first - 1, count, 0.5)


def likely(count: int, chance: float) -> range:
    """Return the counts of a binomial distribution but for a probability of 1e-18 at either end."""
    if chance <= 0 or count == 0:
        return range(1)
    low, high = binom.ppf(1e-18, count, chance), binom.isf(1e-18, count, chance)
    return range(max(0, int(low)), min(count, int(high)) + 1)


def true_delta(channel: np.ndarray, *, reports: int, epsilon: float) -> float:
    """Return the exact delta of a shuffled batch: all pairs of values, all values of the others, all histograms."""
    values = range(channel.shape[1])
    worst = 0.0
    for others in combinations_with_replacement(values, reports - 1):
        spread = {(0,) * channel.shape[0]: 1.0}
        for value in others:
            spread = add_report(spread, channel[:, value])
        with_each = [add_report(spread, channel[:, value]) for value in values]
        for first, second in product(values, values):
            if first != second:
                gaps = (with_each[first][key] - exp(epsilon) * with_each[second][key] for key in with_each[first])
                worst = max(worst, sum(gap for gap in gaps if gap > 0))
    return worst


def add_report(spread: dict[tuple[int, ...], float], column: np.ndarray) -> dict[tuple[int, ...], float]:
    """Return the distribution of histograms with one more report."""
    longer: dict[tuple[int, ...], float] = defaultdict(float)
    for histogram, chance in spread.items():
        for report, probability in enumerate(column):
            longer[(*histogram[:report], histogram[report] + 1, *histogram[report + 1 :])] += chance * probability
    return longer
