"""Identification on average, slowly: divergences of coins, of channels and of discrete Gaussian noise, and exact success rates.

Written from the statement of the theorem (every guess after the answers is right with a probability s that satisfies
d_alpha(s, q) <= alpha z for every alpha >= 1), in many digits or by enumeration, not from our accounting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import mpmath
import numpy as np

DIGITS = 60
STEP = 1.02  # ratio of two neighboring orders
ORDERS = np.concatenate([[1.0], STEP ** np.arange(1, 240)])  # up to about 100


def many_digits(value: Fraction | int | mpmath.mpf) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else mpmath.mpf(value)


# Two coins


def coin_divergence(order: mpmath.mpf, s: mpmath.mpf, q: mpmath.mpf) -> mpmath.mpf:
    """The Renyi divergence of a coin of probability s from one of probability q; Kullback-Leibler at order 1."""
    if order == 1:
        return s * mpmath.log(s / q) + (1 - s) * mpmath.log((1 - s) / (1 - q))
    right, wrong = s**order * q ** (1 - order), (1 - s) ** order * (1 - q) ** (1 - order)
    return mpmath.log(right + wrong) / (order - 1)


def ceiling(rho: Fraction, q: Fraction) -> mpmath.mpf:
    """The largest z that keeps rho: the supremum of d_alpha(rho, q) / alpha over alpha >= 1, by a grid and golden sections."""
    with mpmath.workdps(DIGITS):
        s, guess = many_digits(rho), many_digits(q)

        def at(point: mpmath.mpf) -> mpmath.mpf:
            order = 1 + mpmath.exp(point)
            return coin_divergence(order, s, guess) / order

        grid = [mpmath.mpf(point) / 2 for point in range(-24, 81)]  # orders from 1 + 6e-6 to 2e17
        values = [at(point) for point in grid]
        best = max(range(len(grid)), key=values.__getitem__)
        low, high = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
        golden = (mpmath.sqrt(5) - 1) / 2
        left, right = high - golden * (high - low), low + golden * (high - low)
        at_left, at_right = at(left), at(right)
        for _ in range(110):
            if at_left >= at_right:
                high, right, at_right = right, left, at_left
                left = high - golden * (high - low)
                at_left = at(left)
            else:
                low, left, at_left = left, right, at_right
                right = low + golden * (high - low)
                at_right = at(right)
        return max(coin_divergence(mpmath.mpf(1), s, guess), at_left, at_right)


def closed_ceiling(rho: Fraction, q: Fraction) -> mpmath.mpf:
    """(sqrt(ln 1/q) - sqrt(ln 1/rho))**2, which is never above `ceiling`."""
    with mpmath.workdps(DIGITS):
        return (mpmath.sqrt(-mpmath.log(many_digits(q))) - mpmath.sqrt(-mpmath.log(many_digits(rho)))) ** 2


# Channels: one row for each world, one column for each response


def channel_divergences(channel: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The Renyi divergence of every world from the reference, for every order of ORDERS: (orders, worlds)."""
    channel, reference = channel[:, reference > 0], reference[reference > 0]  # what no world responds does not count
    with np.errstate(divide="ignore"):
        ratios, logs = np.log(channel) - np.log(reference), np.log(reference)
    first = (channel * np.where(channel > 0, ratios, 0.0)).sum(axis=1)
    exponents = ORDERS[1:, None, None] * np.where(channel > 0, ratios, -np.inf) + logs
    top = exponents.max(axis=2)
    totals = top + np.log(np.exp(exponents - top[..., None]).sum(axis=2))
    return np.vstack([first, totals / (ORDERS[1:, None] - 1)])


def largest_ratio(channel: np.ndarray, reference: np.ndarray) -> float:
    """The divergence of order infinity of the worst world."""
    channel, reference = channel[:, reference > 0], reference[reference > 0]
    with np.errstate(divide="ignore"):
        return float((np.log(channel) - np.log(reference)).max())


def radius(channel: np.ndarray, reference: np.ndarray) -> float:
    """An average loss that is surely not too small: a divergence never decreases with its order.

    Between two neighboring orders a < b, D_alpha / alpha is at most D_b / a, and beyond the last order at most D_infinity / last.
    """
    worst = channel_divergences(channel, reference).max(axis=1)
    between = worst[1:] / ORDERS[:-1]
    return max(0.0, float(between.max()), largest_ratio(channel, reference) / float(ORDERS[-1]))


def reached(channel: np.ndarray, reference: np.ndarray) -> float:
    """An average loss that is surely reached: the largest D_alpha / alpha at the orders of ORDERS."""
    return float((channel_divergences(channel, reference).max(axis=1) / ORDERS).max())


def middle(channel: np.ndarray) -> np.ndarray:
    """The reference in proportion to the geometric mean of the largest and the smallest probability of each response."""
    weights = np.sqrt(channel.max(axis=0) * channel.min(axis=0))
    return np.asarray(weights / weights.sum())


def smallest_radius(channel: np.ndarray) -> float:
    """The smaller of the radii around the middle, and around the mean of all worlds."""
    references = [channel.mean(axis=0)]
    if channel.min() > 0:
        references.append(middle(channel))
    return min(radius(channel, reference) for reference in references)


def windows(size: int, within: int) -> list[range]:
    """The values that each guess covers, to within some steps."""
    return [range(max(0, guess - within), min(size, guess + within + 1)) for guess in range(size)]


def guess_masses(prior: np.ndarray, labels: Sequence[int], within: int) -> np.ndarray:
    """The prior of each world where each guess is right, otherwise 0: (guesses, worlds)."""
    values = max(labels) + 1
    covers = [[label in window for label in labels] for window in windows(values, within)]
    return np.where(np.array(covers), prior, 0.0)


def best_success(channel: np.ndarray, masses: np.ndarray) -> float:
    """The exact probability that the best guess after the response is right."""
    return float((masses @ channel).max(axis=0).sum())


# Discrete Gaussian noise


def theta(sigma: Fraction, center: mpmath.mpf | int = 0) -> mpmath.mpf:
    """The sum over all integers x of exp(-(x - center)**2 / (2 sigma**2))."""
    return mpmath.fsum(gaussian_weight(sigma, x - center) for x in _support(sigma, center))


def gaussian_weight(sigma: Fraction, distance: mpmath.mpf | int) -> mpmath.mpf:
    return mpmath.exp(-(mpmath.mpf(distance) ** 2) / (2 * many_digits(sigma) ** 2))


def _support(sigma: Fraction, center: mpmath.mpf | int = 0) -> Iterable[int]:
    reach, middle_value = int(20 * sigma) + 4, int(mpmath.nint(center))  # the rest is below exp(-200)
    return range(middle_value - reach, middle_value + reach + 1)


def gaussian_probability(sigma: Fraction, z: int) -> mpmath.mpf:
    """P(Z = z)."""
    with mpmath.workdps(DIGITS):
        return gaussian_weight(sigma, z) / theta(sigma)


def gaussian_table(sigma: Fraction, digits: int = 40) -> dict[int, mpmath.mpf]:
    """All probabilities that matter."""
    with mpmath.workdps(digits):
        total = theta(sigma)
        return {z: gaussian_weight(sigma, z) / total for z in _support(sigma)}


def gaussian_divergence(order: Fraction, mean: int, center: Fraction, sigma: Fraction) -> mpmath.mpf:
    """The Renyi divergence of the noise around an integer from the noise around any real center, term by term."""
    with mpmath.workdps(40):
        alpha, about = many_digits(order), many_digits(center)
        own, other = theta(sigma), theta(sigma, about)
        shifted = alpha * mean + (1 - alpha) * about  # the terms are largest here
        total, kullback = mpmath.mpf(0), mpmath.mpf(0)
        for x in {*_support(sigma, mean), *_support(sigma, shifted)}:
            p = gaussian_weight(sigma, x - mean) / own
            q = gaussian_weight(sigma, x - about) / other
            total += p**alpha * q ** (1 - alpha) if alpha != 1 else 0
            kullback += p * mpmath.log(p / q) if alpha == 1 and p > 0 else 0
        return kullback if alpha == 1 else mpmath.log(total) / (alpha - 1)


def gaussian_log_weights(sigma: float, centers: np.ndarray, support: np.ndarray) -> np.ndarray:
    """Log probabilities of the noise around each center, in floats: (centers, support)."""
    exponents = -((support - np.asarray(centers)[:, None]) ** 2) / (2 * sigma**2)
    return np.asarray(exponents - np.logaddexp.reduce(exponents, axis=1)[:, None])


# Balls


def enclosing_ball(points: np.ndarray, copies: int = 1) -> tuple[float, float, np.ndarray]:
    """The smallest ball around points of one cell, if each can be in any of `copies` cells: bounds and center.

    The center is the same in every cell, c: the squared distance of p is copies |c|**2 - 2 p c + |p|**2. The dual problem is to
    maximize sum w |p|**2 - |sum w p|**2 / copies over weights w, by Frank-Wolfe with away steps. Returns (a lower bound of the squared
    radius, the squared radius around the returned center, the center).
    """
    squares = (points**2).sum(axis=1)
    weights = np.zeros(len(points))
    weights[int(squares.argmax())] = 1.0
    for _ in range(20_000):
        mean = weights @ points
        center = mean / copies
        distances = copies * (center @ center) - 2 * points @ center + squares
        lower = float(weights @ squares - mean @ mean / copies)
        far = int(distances.argmax())
        upper = float(distances[far])
        if upper - lower <= 1e-12 * max(1.0, upper):
            break
        active = np.flatnonzero(weights > 0)
        near = int(active[distances[active].argmin()])
        toward, away = upper - weights @ distances, weights @ distances - distances[near]
        direction = -weights.copy()
        direction[far] += 1.0
        longest = 1.0
        if away > toward:
            direction = weights.copy()
            direction[near] -= 1.0
            longest = weights[near] / (1 - weights[near]) if weights[near] < 1 else 1.0
        move = direction @ points
        curvature = float(move @ move) / copies
        slope = float(direction @ distances)
        step = min(longest, slope / (2 * curvature)) if curvature > 0 else longest
        weights = np.maximum(weights + step * direction, 0.0)
        weights[weights < 1e-15] = 0.0
        weights /= weights.sum()
    return lower, upper, center
