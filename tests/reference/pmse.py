"""pMSE and total variation by their definitions, row by row; every table of counts, every way one row can move."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations


def pmse(synthetic, original):
    """The mean over all rows of (share of synthetic rows in its cell - c)^2."""
    total = sum(synthetic) + sum(original)
    c = Fraction(sum(synthetic), total)
    shares = [Fraction(a, a + b) for a, b in zip(synthetic, original, strict=True) for _ in range(a + b)]
    return sum((share - c) ** 2 for share in shares) / total


def total_variation(synthetic, original):
    """The largest difference over all unions of cells."""
    ns, n = sum(synthetic), sum(original)
    apart = [Fraction(a, ns) - Fraction(b, n) for a, b in zip(synthetic, original, strict=True)]
    return max(
        sum(apart[i] for i in some) for size in range(len(apart) + 1) for some in combinations(range(len(apart)), size)
    )


def tables(rows, cells):
    """All counts of so many rows in so many cells."""
    if cells == 1:
        yield (rows,)
        return
    for first in range(rows + 1):
        for rest in tables(rows - first, cells - 1):
            yield (first, *rest)


def neighbors(counts):
    """All counts after one row moved."""
    for j in range(len(counts)):
        for k in range(len(counts)):
            if j != k and counts[j]:
                yield tuple(count - (i == j) + (i == k) for i, count in enumerate(counts))


def intervals(cells):
    """Every way to cut a line of cells into runs: the trees on one ordered column."""
    for cuts in range(cells):
        for places in combinations(range(1, cells), cuts):
            yield list(zip((0, *places), (*places, cells), strict=True))


def merge(counts, runs):
    return [sum(counts[low:high]) for low, high in runs]
