"""Residual cells, slowly: one row, one cell at a time."""

from __future__ import annotations

import math
from statistics import NormalDist


def cell(residual, bins):
    """In which of equally likely parts of a standard normal a residual lies."""
    cuts = [NormalDist().inv_cdf(k / bins) for k in range(1, bins)]
    return sum(residual > cut for cut in cuts)


def margin_misfit(values, rows, centre, scale, bins):
    """sum |bins * held - rows| over the cells of (value - centre) / scale."""
    held = [0] * bins
    for value in values:
        held[cell((value - centre) / scale, bins)] += 1
    return sum(abs(bins * count - rows) for count in held)


def linear_misfit(values, features, parents, parts, rows, weights, scale, bins):
    """sum |bins * R * held - rows * part| over the cells of each parent and of the residual."""
    total = 0
    for line, should in zip(parents, parts, strict=True):
        held = [[0] * bins for _ in should]
        for i, value in enumerate(values):
            mean = sum(w * f[i] for w, f in zip(weights, features, strict=True))
            if line[i] != 255:
                held[line[i]][cell((value - mean) / scale, bins)] += 1
        for part, row in zip(should, held, strict=True):
            total += sum(abs(bins * sum(should) * count - rows * part) for count in row)
    return total


def level_misfit(counts, features, parents, rows, logits):
    """sum |counted - expected| where every artificial row is spread over the levels by its probabilities."""
    total, many = 0, len(features[0])
    for table, line in zip(counts, parents, strict=True):
        expected = [[0.0] * len(logits) for _ in table]
        for i in range(many):
            powers = [sum(w * f[i] for w, f in zip(row, features, strict=True)) for row in logits]
            whole = sum(math.exp(power) for power in powers)
            if line[i] != 255:
                for level, power in enumerate(powers):
                    expected[line[i]][level] += math.exp(power) / whole * rows / many
        total += sum(
            abs(int(c) - round(e))
            for row, wanted in zip(table, expected, strict=True)
            for c, e in zip(row, wanted, strict=True)
        )
    return total
