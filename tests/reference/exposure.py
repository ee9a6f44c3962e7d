"""The measures of exposure and their critical values, slowly: one cell, one record, one outcome after the other.

Written from Bezzi et al. 2012 (Sections 4 to 6), not from our kernels.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

import mpmath

DIGITS = 50
WORD = 2**64


def divergence(column: Sequence[int], baseline: Sequence[Fraction]) -> mpmath.mpf:
    """2 sum c ln(c / (n b)), in many digits."""
    with mpmath.workdps(DIGITS):
        total = mpmath.mpf(0)
        for count, share in zip(column, baseline, strict=True):
            if count:
                ratio = Fraction(count, sum(column)) / share
                total += count * mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        return 2 * total


def kullback_leibler(column: Sequence[int], baseline: Sequence[Fraction]) -> float:
    """sum P(x|y) log2(P(x|y) / P(x)), Definition of Section 4."""
    total = 0.0
    for count, share in zip(column, baseline, strict=True):
        if count:
            conditional = Fraction(count, sum(column))
            total += float(conditional) * math.log2(conditional / share)
    return total


def mutual_information(columns: Sequence[Sequence[int]], baseline: Sequence[Fraction]) -> float:
    """sum P(x,y) log2(P(x,y) / (P(x) P(y))), Section 4."""
    whole = sum(map(sum, columns))
    total = 0.0
    for column in columns:
        for count, share in zip(column, baseline, strict=True):
            if count:
                both = Fraction(count, whole)
                total += float(both) * math.log2(both / (share * Fraction(sum(column), whole)))
    return total


# Bins, as lists of the values that they hold


def merge_forward(column: Sequence[int], least: int) -> list[list[int]]:
    bins: list[list[int]] = [[]]
    for value in range(len(column)):
        bins[-1].append(value)
        if sum(column[x] for x in bins[-1]) >= least:
            bins.append([])
    rest = bins.pop()
    if bins:
        bins[-1] += rest
        return bins
    return [rest]


def merge_to_smaller(column: Sequence[int], least: int, *, smallest_first: bool) -> list[list[int]]:
    bins = [[value] for value in range(len(column))]
    while len(bins) > 1:
        totals = [sum(column[x] for x in each) for each in bins]
        sparse = [index for index in range(len(bins)) if totals[index] < least]
        if not sparse:
            break
        index = min(sparse, key=lambda i: (totals[i], i)) if smallest_first else sparse[0]
        left = totals[index - 1] if index > 0 else math.inf
        right = totals[index + 1] if index + 1 < len(bins) else math.inf
        if left < right:
            index -= 1
        bins[index] += bins.pop(index + 1)
    return bins


def merge(column: Sequence[int], rule: str, least: int) -> list[list[int]]:
    if rule == "forward":
        return merge_forward(column, least)
    return merge_to_smaller(column, least, smallest_first=rule == "smallest-first")


def pearson(column: Sequence[int], baseline: Sequence[Fraction], rule: str, least: int) -> tuple[Fraction, int]:
    """sum (O - E)^2 / E over merged bins, exactly."""
    bins = merge(column, rule, least)
    if len(bins) == 1:
        return Fraction(0), 0
    total = Fraction(0)
    for each in bins:
        expected = sum(column) * sum((baseline[x] for x in each), Fraction(0))
        total += (sum(column[x] for x in each) - expected) ** 2 / expected
    return total, len(bins) - 1


# What chance alone leads to


def outcomes(size: int, baseline: Sequence[Fraction]) -> Iterator[tuple[list[int], Fraction]]:
    """Every column of this size with its probability."""
    for drawn in itertools.combinations_with_replacement(range(len(baseline)), size):
        counts = Counter(drawn)
        chance = Fraction(math.factorial(size))
        for value, count in counts.items():
            chance *= baseline[value] ** count / math.factorial(count)
        yield [counts[value] for value in range(len(baseline))], chance


def distribution(size: int, baseline: Sequence[Fraction]) -> dict[float, Fraction]:
    """The exact distribution of g; values equal to 12 digits are one."""
    probabilities: dict[float, Fraction] = {}
    for column, chance in outcomes(size, baseline):
        value = float(mpmath.nstr(divergence(column, baseline), 12))
        probabilities[value] = probabilities.get(value, Fraction(0)) + chance
    return dict(sorted(probabilities.items()))


def moments(size: int, baseline: Sequence[Fraction]) -> tuple[float, float, float]:
    """Mean, variance and third cumulant of g, by enumeration."""
    law = distribution(size, baseline)
    mean = sum(value * float(chance) for value, chance in law.items())
    second, third = (sum((value - mean) ** k * float(chance) for value, chance in law.items()) for k in (2, 3))
    return mean, second, third


def words(seed: int, path: int) -> Iterator[int]:
    """splitmix64, a stream for each path."""

    def mixed(word: int) -> int:
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % WORD
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB % WORD
        return word ^ (word >> 31)

    state = mixed((seed + 0x9E3779B97F4A7C15 * (path + 1)) % WORD)
    while True:
        state = (state + 0x9E3779B97F4A7C15) % WORD
        yield mixed(state)


def grow_path(
    sizes: Sequence[int],
    stream: Iterator[int],
    values: tuple[Sequence[int], Sequence[int]],
    targets: tuple[Sequence[int], Sequence[int]],
    baseline: Sequence[float],
) -> list[float]:
    """G at each size, recomputed from all records so far. `values` and `targets`: odds to stay, where else to go."""

    def draw(odds: Sequence[int], other: Sequence[int]) -> int:
        word = next(stream)
        index = (word // 2**32) * len(odds) // 2**32
        return index if word % 2**32 < odds[index] else other[index]

    counts: Counter[tuple[int, int]] = Counter()
    statistics = []
    for size in range(1, sizes[-1] + 1):
        x = draw(*values)
        y = draw(*targets) if len(targets[0]) > 1 else 0
        counts[x, y] += 1
        if size in sizes:
            totals = Counter({t: sum(c for (_, of), c in counts.items() if of == t) for t in range(len(targets[0]))})
            statistics.append(
                2 * math.fsum(c * math.log(c / (totals[t] * baseline[v])) for (v, t), c in counts.items())
            )
    return statistics


def dixon_tail(q: float, number: int) -> float:
    """P(Q > q) of normal variables: the trapezium rule, step by step, over the smallest and the range."""
    step = 0.04
    total = 0.0
    for i in range(-225, 176):
        x = i * step
        for j in range(1, 351):
            r = j * step
            between = (math.erf((x + (1 - q) * r) / math.sqrt(2)) - math.erf(x / math.sqrt(2))) / 2
            total += math.exp(-(x * x + (x + r) ** 2) / 2) / (2 * math.pi) * between ** (number - 2)
    return number * (number - 1) * total * step * step
