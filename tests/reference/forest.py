"""The forest's loops, slowly: one cell, one row, one segmentation after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import mpmath
import numpy as np


def coarsen_table(table: np.ndarray, left: Sequence[int], right: Sequence[int]) -> dict[tuple[int, int], float]:
    sums: dict[tuple[int, int], float] = {}
    for (a, b), value in np.ndenumerate(table):
        key = int(left[a]), int(right[b])
        sums[key] = sums.get(key, 0) + value.item()
    return sums


def weighted_counts(
    left: Sequence[int], right: Sequence[int], weights: Sequence[float]
) -> dict[tuple[int, int], float]:
    sums: dict[tuple[int, int], float] = {}
    for a, b, weight in zip(left, right, weights, strict=True):
        sums[int(a), int(b)] = sums.get((int(a), int(b)), 0.0) + weight
    return sums


def rake_weights(
    cells: Sequence[int], target: Sequence[float], weights: Sequence[float], least: float, most: float
) -> list[float]:
    out = []
    for cell, weight in zip(cells, weights, strict=True):
        here = sum(w for p, w in zip(cells, weights, strict=True) if p == cell)
        factor = min(max(target[cell] / here, least), most) if here > 0 else 1.0
        out.append(weight * factor)
    return out


def segmentations(size: int) -> Iterator[list[tuple[int, int]]]:
    """All ways to cut 0 .. size into runs."""
    for cuts in product([False, True], repeat=size - 1):
        starts = [0, *(position + 1 for position, cut in enumerate(cuts) if cut)]
        yield list(zip(starts, [*starts[1:], size], strict=True))


def average_density(
    values: Sequence[float], widths: Sequence[float], precision: Sequence[float], penalty: float
) -> list[float]:
    """The mean over all segmentations, each weighing exp(-(squared error + penalty * segments) / 2)."""
    total, mean = mpmath.mpf(0), [mpmath.mpf(0)] * len(values)
    for segments in segmentations(len(values)):
        cost, fits = penalty * len(segments), []
        for first, end in segments:
            here = range(first, end)
            weight = sum(precision[k] * widths[k] ** 2 for k in here)
            density = sum(precision[k] * widths[k] * values[k] for k in here) / weight
            cost += sum(precision[k] * (values[k] - density * widths[k]) ** 2 for k in here)
            fits += [density * widths[k] for k in here]
        likely = mpmath.exp(-cost / 2)
        total += likely
        mean = [m + likely * fit for m, fit in zip(mean, fits, strict=True)]
    return [float(m / total) for m in mean]


def shrink(values: Sequence[float], deviations: Sequence[float], shape: float, total: float) -> list[float]:
    """Means of counts with a gamma prior of mean total / size, given normal noise, by integration."""
    mean = total / len(values)
    out = []
    for value, deviation in zip(values, deviations, strict=True):

        def weight(x: mpmath.mpf, value: float = value, deviation: float = deviation) -> mpmath.mpf:
            return x ** (shape - 1) * mpmath.exp(-shape * x / mean - ((x - value) / deviation) ** 2 / 2)

        # x = t**(1/shape) takes the pole at 0 away
        bounds = [0, (deviation / 10) ** shape, deviation**shape, (4 * deviation) ** shape, (15 * deviation) ** shape]
        total_weight = mpmath.quad(lambda t: weight(t ** (1 / shape)) * t ** (1 / shape - 1), bounds)
        first_moment = mpmath.quad(lambda t: weight(t ** (1 / shape)) * t ** (2 / shape - 1), bounds)
        out.append(float(first_moment / total_weight))
    return out


def onto_simplex(values: Sequence[float], total: float) -> list[float]:
    """By halving: the level that, taken off all values, leaves the sum."""
    low, high = min(values) - total - 1, max(values)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(max(v - middle, 0) for v in values) > total else (low, middle)
    return [max(v - low, 0) for v in values]


def exchange_rows(
    chosen: Sequence[int],
    cells: np.ndarray,
    target: Sequence[float],
    price: Sequence[float],
    slots: Sequence[int],
    offers: Sequence[int],
) -> list[int]:
    """Go through the offers, recompute all costs, and accept an offer that lowers their sum."""

    def cost(sample: list[int]) -> float:
        counts = np.bincount(cells[:, sample].ravel(), minlength=len(target))
        return sum(p * (c - w) ** 2 for p, c, w in zip(price, counts, target, strict=True))

    sample = [int(row) for row in chosen]
    for slot, offer in zip(slots, offers, strict=True):
        other = [*sample[:slot], int(offer), *sample[slot + 1 :]]
        if cost(other) < cost(sample) - 1e-9:
            sample = other
    return sample
