"""Scores by their definitions, in fractions: every tree of the family built and valued, every row placed by hand."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product
from math import exp, floor, isnan
from statistics import NormalDist


def variation(counts):
    """sum |K b - n|."""
    return sum(abs(len(counts) * b - sum(counts)) for b in counts)


def square(a, b, places):
    """floor(2^p a^2 / (a + b))."""
    return floor(Fraction(2**places) * Fraction(a) ** 2 / (a + b)) if a else 0


def grid(counts, mass, places, shares=1):
    share = Fraction(mass, len(counts))
    return sum(square(share, Fraction(b, shares), places) for b in counts)


def dyadic_partitions(x0, x1, y0, y1):
    """Every dyadic tree on cells [x0, x1) x [y0, y1), as its leaves."""
    yield [(x0, x1, y0, y1)]
    if x1 - x0 > 1:
        middle = (x0 + x1) // 2
        for low, high in product(dyadic_partitions(x0, middle, y0, y1), dyadic_partitions(middle, x1, y0, y1)):
            yield low + high
    if y1 - y0 > 1:
        middle = (y0 + y1) // 2
        for low, high in product(dyadic_partitions(x0, x1, y0, middle), dyadic_partitions(x0, x1, middle, y1)):
            yield low + high


@cache
def dyadic_trees(side):
    return list(dyadic_partitions(0, side, 0, side))


def dyadic(synthetic, original, places, penalty=0):
    """max of sum of squares - splits x penalty; penalty in whole units."""

    def inside(table, leaf):
        x0, x1, y0, y1 = leaf
        return sum(table[x][y] for x in range(x0, x1) for y in range(y0, y1))

    value = cache(lambda leaf: square(inside(synthetic, leaf), inside(original, leaf), places))
    return max(sum(map(value, leaves)) - penalty * (len(leaves) - 1) for leaves in dyadic_trees(len(original)))


def depth2(original, synthetic, thresholds, leaf):
    """max over trees of depth two of sum leaf(a, b): rows are sent down each tree one by one."""
    cuts = [(column, t) for column, some in enumerate(thresholds) for t in some]

    def value(rows_a, rows_b):
        return max(
            [leaf(len(rows_a), len(rows_b))]
            + [
                sum(
                    leaf(sum((row[c] > t) == side for row in rows_a), sum((row[c] > t) == side for row in rows_b))
                    for side in (False, True)
                )
                for c, t in cuts
            ]
        )

    best = value(synthetic, original)
    for c, t in cuts:
        sides = [
            ([row for row in synthetic if (row[c] > t) == side], [row for row in original if (row[c] > t) == side])
            for side in (False, True)
        ]
        best = max(best, sum(value(a, b) for a, b in sides))
    return best


def residual_codes(rows, theta, cells):
    """Cells of residuals under a sequence of normal regressions, row by row."""
    cuts = [NormalDist().inv_cdf(k / cells) for k in range(1, cells)]
    codes_by_row = []
    for row in rows:
        codes, offset = [], 0
        for j, x in enumerate(row):
            mean = theta[offset] + sum(theta[offset + 1 + i] * row[i] for i in range(j))
            z = (x - mean) / exp(theta[offset + j + 1])
            codes.append(0 if isnan(z) else sum(z > cut for cut in cuts))
            offset += j + 2
        codes_by_row.append(codes)
    return codes_by_row


def pair_counts(codes, cells):
    """Tables of every two columns (or of the only one), each a flat list."""
    columns = len(codes[0])
    if columns == 1:
        return [[sum(row[0] == u for row in codes) for u in range(cells)]]
    return [
        [sum(row[i] == u and row[j] == v for row in codes) for u in range(cells) for v in range(cells)]
        for i in range(columns)
        for j in range(i + 1, columns)
    ]


def overlap(low, high, cells):
    """The parts of [low, high] in equal cells of [0, 1]."""
    return [
        max(Fraction(0), min(high, Fraction(k + 1, cells)) - max(low, Fraction(k, cells))) / (high - low)
        for k in range(cells)
    ]
