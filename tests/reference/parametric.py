"""Residual cells, slowly: one row, one cell at a time."""

from __future__ import annotations

import math
from statistics import NormalDist


def cell(residual, bins):
    """Return the index of the equally likely part of a standard normal that contains a residual."""
    cuts = [NormalDist().inv_cdf(k / bins) for k in range(1, bins)]
    return sum(residual > cut for cut in cuts)


def margin_misfit(values, rows, center, scale, bins):
    """sum |bins * held - rows| over the cells of (value - center) / scale."""
    counts = [0] * bins
    for value in values:
        counts[cell((value - center) / scale, bins)] += 1
    return sum(abs(bins * count - rows) for count in counts)


def linear_misfit(values, features, parents, parts, rows, weights, scale, bins):
    """sum |bins * R * held - rows * part| over the cells of each parent and of the residual."""
    total = 0
    for line, should in zip(parents, parts, strict=True):
        counts = [[0] * bins for _ in should]
        for i, value in enumerate(values):
            mean = sum(w * f[i] for w, f in zip(weights, features, strict=True))
            if line[i] != 255:
                counts[line[i]][cell((value - mean) / scale, bins)] += 1
        for part, row in zip(should, counts, strict=True):
            total += sum(abs(bins * sum(should) * count - rows * part) for count in row)
    return total


def level_misfit(counts, features, parents, rows, logits):
    """sum |counted - expected| where every artificial row is spread over the levels by its probabilities."""
    total, size = 0, len(features[0])
    for table, line in zip(counts, parents, strict=True):
        expected = [[0.0] * len(logits) for _ in table]
        for i in range(size):
            powers = [sum(w * f[i] for w, f in zip(row, features, strict=True)) for row in logits]
            whole = sum(math.exp(power) for power in powers)
            if line[i] != 255:
                for level, power in enumerate(powers):
                    expected[line[i]][level] += math.exp(power) / whole * rows / size
        total += sum(
            abs(int(c) - round(e))
            for row, expected_row in zip(table, expected, strict=True)
            for c, e in zip(row, expected_row, strict=True)
        )
    return total
