"""The forest's loops, slowly: one cell, one row, one segmentation after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
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


# Divergences of the steps of a run, from the probabilities of their outputs

ORDERS = (Fraction(11, 10), Fraction(2), Fraction(5), Fraction(20))


@cache
def shift_divergence(order: Fraction, mean: int, center: Fraction, sigma: Fraction) -> float:
    """The divergence of discrete Gaussian noise around an integer from the noise around a real center, term by term.

    The terms p**order * q**(1 - order) are largest near order * mean + (1 - order) * center; what is left out on either side
    is below exp(-200) of the sum.
    """
    alpha, about, width = float(order), float(center), float(sigma)

    def exponents(middle: float, mean: float) -> np.ndarray:
        x = np.round(middle) + np.arange(-int(20 * width) - 4, int(20 * width) + 5)
        return -((x - mean) ** 2) / (2 * width**2)

    log_p, log_q = (np.logaddexp.reduce(exponents(at, at)) for at in (float(mean), about))
    tilted = alpha * mean + (1 - alpha) * about
    terms = alpha * (exponents(tilted, mean) - log_p) + (1 - alpha) * (exponents(tilted, about) - log_q)
    return float(np.logaddexp.reduce(terms)) / (alpha - 1)


def counts_divergence(order: Fraction, difference: Sequence[int], sigma: Fraction) -> float:
    """Of independent noise in every cell: divergences add up."""
    return sum(shift_divergence(order, abs(int(d)), Fraction(0), sigma) for d in difference)


def divergences(order: Fraction, log_p: np.ndarray, log_q: np.ndarray) -> np.ndarray:
    """Of distributions given by log probabilities along the last axis, from float logarithms."""
    alpha = float(order)
    with np.errstate(invalid="ignore"):
        terms = alpha * log_p + (1 - alpha) * log_q
    return np.logaddexp.reduce(terms, axis=-1) / (alpha - 1)


def exponential_log_law(scores: np.ndarray, rate: Fraction) -> np.ndarray:
    """Log probabilities of the exponential mechanism along the last axis."""
    exponents = float(rate) * scores
    return exponents - np.logaddexp.reduce(exponents, axis=-1)[..., None]


def permute_and_flip_log_law(scores: np.ndarray, rate: Fraction) -> np.ndarray:
    """Log probabilities of permute-and-flip for each line of scores.

    Index i wins among the heads: p_i times the mean of 1 / (1 + other heads), the integral from 0 to 1 of
    prod (1 - p_j + p_j t). The integrand is a polynomial, so Gauss-Legendre with enough nodes is exact.
    """
    coins = np.exp(float(rate) * (scores - scores.max(axis=-1, keepdims=True)))
    nodes, weights = np.polynomial.legendre.leggauss(scores.shape[-1] // 2 + 1)
    nodes, weights = (nodes + 1) / 2, weights / 2
    factors = 1 - coins[..., None] + coins[..., None] * nodes  # (lines, indexes, nodes)
    others = factors.prod(axis=-2, keepdims=True) / factors
    return np.log(coins * (others * weights).sum(axis=-1))


# Cells that are found from the rows


def start_cells(size: int) -> list[int]:
    """16 even cells; above 640 codes also round(size ** (j / 16)); the first and the last code alone."""
    starts = {0, 1, size - 1} | {size * j // 16 for j in range(16)}
    if size > 640:
        with mpmath.workdps(40):
            starts |= {int(mpmath.nint(mpmath.mpf(size) ** (mpmath.mpf(j) / 16))) for j in range(1, 16)}
    return sorted(start for start in starts if start < size)


def cut_cell(low: int, high: int, pieces: int) -> list[int]:
    """One code each, growing cells if low > 0 and high / low > 4, else even ones."""
    if high - low <= pieces:
        return list(range(low, high))
    with mpmath.workdps(40):
        ratio = mpmath.mpf(high) / low if low else mpmath.inf
        steps = [mpmath.mpf(j) / pieces for j in range(pieces)]
        growing = low > 0 and ratio > 4
        cuts = [int(mpmath.nint(low * ratio**s if growing else (high - low) * s)) for s in steps]
        return sorted(set(cuts) if growing else {low + cut for cut in cuts})


Cell = tuple[int, int]


def cells_of(starts: Sequence[int], size: int) -> list[Cell]:
    return list(zip(starts, [*starts[1:], size], strict=True))


def level_count(size: int, pieces: int) -> int:
    """1 + the smallest number of divisions that brings size / 16 to 1 or below, at most 6."""
    width, divisions = Fraction(size, 16), 0
    while width > 1:
        width, divisions = width / pieces, divisions + 1
    return min(1 + divisions, 6)


def cut_heavy(
    cells: Sequence[Cell], counted: dict[Cell, float], least: float, pieces: int
) -> tuple[list[Cell], list[Cell]]:
    """All cells after the heavy ones of a level were cut, and the new ones."""
    after, fresh = [], []
    for low, high in cells:
        if counted.get((low, high), -mpmath.inf) > least and high - low > 1:
            parts = cells_of(cut_cell(low, high, pieces), high)
            after, fresh = after + parts, fresh + parts
        else:
            after.append((low, high))
    return after, fresh


def combine(
    leaves: Sequence[Cell], noisy: Sequence[float], variance: float, levels: Sequence[tuple[dict[Cell, float], float]]
) -> tuple[np.ndarray, np.ndarray]:
    """The estimates of least squares from all counts, by one system of equations, and the diagonal of their covariance.

    `levels`: for every level the counts of its cells and the variance of each.
    """
    lines, values, weights = list(np.eye(len(noisy))), list(noisy), [1 / variance] * len(noisy)
    for counts, level_variance in levels:
        for (low, high), count in counts.items():
            inside = [float(low <= a and b <= high) for a, b in leaves]
            lines.append(np.array(inside + [0.0] * (len(noisy) - len(leaves))))
            values.append(count)
            weights.append(1 / level_variance)
    design, weight = np.array(lines), np.array(weights)
    covariance = np.linalg.inv(design.T @ (design * weight[:, None]))
    return covariance @ (design.T @ (weight * np.array(values))), np.diag(covariance)


def combine_in_turn(
    leaves: Sequence[Cell], noisy: Sequence[float], variance: float, levels: Sequence[tuple[dict[Cell, float], float]]
) -> tuple[list[float], list[float]]:
    """From the last level to the first, cell by cell, as the specification writes it."""
    x, v = [float(value) for value in noisy], [variance] * len(noisy)
    for counts, level_variance in reversed(levels):
        for (low, high), count in counts.items():
            inside = [n for n, (a, b) in enumerate(leaves) if low <= a and b <= high]
            total, estimate = sum(v[n] for n in inside), sum(x[n] for n in inside)
            gain = total / (total + level_variance)
            for n in inside:
                x[n] += v[n] * gain * (count - estimate) / total
            for n in inside:
                v[n] *= 1 - v[n] * gain / total
    return x, v


def trim(sums: Sequence[float], variances: Sequence[float]) -> tuple[int, int]:
    """The first and the last start cell that stay; all of them if nothing is clear."""

    def first(order: Sequence[int]) -> int | None:
        total, noise = 0.0, 0.0
        for n in order:
            total, noise = total + sums[n], noise + variances[n]
            if total > 2 * noise**0.5:
                return n
        return None

    low, high = first(range(len(sums))), first(range(len(sums) - 1, -1, -1))
    return (0, len(sums) - 1) if low is None or high is None or low > high else (low, high)


def spread_ints(weights: Sequence[int], raw: Sequence[int]) -> list[int]:
    """Positions spread evenly over the sum of the weights, then shuffled, in Python's whole numbers."""
    size, total = len(raw), sum(weights)
    if total == 0:
        return [(word >> 32) * len(weights) >> 32 for word in raw]
    ends = np.cumsum([int(weight) for weight in weights]).tolist()
    out = [next(k for k, end in enumerate(ends) if (n * total + raw[0] % total) // size < end) for n in range(size)]
    for n in range(size - 1, 0, -1):
        other = (raw[n] >> 32) * (n + 1) >> 32
        out[n], out[other] = out[other], out[n]
    return out
