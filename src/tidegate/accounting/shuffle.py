"""The loss of one report in a shuffled batch: upper bounds of (epsilon, delta) for a reader who sees no order.

Two bounds have one form, delta(eps) <= factor / n * E[(l_1 + ... + l_n)_+] with independent draws l_i:

- the privacy blanket of a two-level operator, P(report | value) = base(report) * (ratio if the value holds it, else 1);
- the bound by clones for any local randomizer, also for several questions in one report.

The numbers are upper bounds. Each l_i is spread onto a lattice without changing its mean, which can only raise the expectation of a
convex function. Cut tails (Chernoff) and a bound of the rounding errors of the Fourier transform are added to delta.

Reference:
    Balle, Bell, Gascon, Nissim 2019, "The privacy blanket of the shuffle model", Lemma 5.3.
    Feldman, McMillan, Talwar 2021, "Hiding among the clones", Theorem 3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb, e, exp, inf, log, log1p, sqrt
from typing import TYPE_CHECKING

from tidegate.errors import Unsupported
from tidegate.extras import late
from tidegate.operators import (
    HashResponse,
    OneOption,
    Operator,
    Prefix,
    PrivSet,
    ProjectiveGeometry,
    RandomizedResponse,
    SquareWave,
    SubsetSelection,
    Unary,
)

if TYPE_CHECKING:
    import numpy as np

    from tidegate.arrays import Floats, Ints
else:
    np = late("numpy")

PRECISION = 1e-4  # relative width of the last bracket of epsilon
CUT = 1e-5  # share of delta that cut tails may add
LEAST_CELLS, MOST_CELLS = 2**12, 2**21  # of the lattice; 2**17 take 20 ms
ROUNDED = 16 * 2.0**-53  # error of one operation of the transform, relative to its largest term
MOST_EVALUATIONS = 60
LARGEST_LOCAL = 50.0  # beyond, no batch is large enough


@dataclass(frozen=True)
class Blanket:
    """A two-level operator and its worst pair of values.

    Everybody sends a draw from one common distribution, the blanket, with probability `weight`, whatever they hold.

    Args:
        ratio: The largest ratio of a report's probabilities under two values, e**epsilon0.
        weight: The total mass of the blanket: the sum over reports of (a lower bound of) the smallest probability.
        only_one: The share of the blanket that the first value of the pair holds and the second does not, and vice versa.
        both: The share of the blanket that both values hold.

    The worst pair has the largest `only_one`: a report that only one value holds spreads the sum more than one that both
    or neither hold, at the same mean.
    """

    ratio: float
    weight: float
    only_one: float
    both: float


def response_blanket(ratio: float, values: int) -> Blanket:
    """Return the blanket of randomized response over `values` categories."""
    return Blanket(ratio, values / (ratio + values - 1), 1 / values, 0.0)


def subset_blanket(ratio: float, values: int, size: int) -> Blanket:
    """Return the blanket of subset selection with sets of `size` categories."""
    pairs = values * (values - 1)
    single, both = size * (values - size) / pairs, size * (size - 1) / pairs
    return Blanket(ratio, 1 / (1 + (ratio - 1) * size / values), single, both)


def unary_blanket(ratio: float) -> Blanket:
    """Return the blanket of optimized unary encoding; a report with every bit set counts as if some value did not hold it."""
    return Blanket(ratio, (ratio + 1) / (2 * ratio), ratio / (ratio + 1) ** 2, 1 / (ratio + 1) ** 2)


def wave_blanket(ratio: float, values: int, near: int) -> Blanket:
    """Return the blanket of a square wave on a grid: `near` reports around each of `values` values are more likely."""
    reports, apart = values - 1 + near, min(near, values - 1)
    return Blanket(ratio, reports / (reports + (ratio - 1) * near), apart / reports, (near - apart) / reports)


def privset_blanket(ratio: float, options: int, most: int, size: int) -> Blanket:
    """Return the blanket of PrivSet: sets of `size` among `options` and `most` blanks; those that meet the choice are likelier."""
    items = options + most
    every, misses, misses_two = (comb(items - taken, size) for taken in (0, most, 2 * most))
    miss, miss_both = misses / every, misses_two / every
    total = float(ratio) * (every - misses) + misses
    return Blanket(ratio, every / total, miss - miss_both, 1 - 2 * miss + miss_both)


def projective_blanket(ratio: float, prime: int, dimension: int) -> Blanket:
    """Return the blanket of projective geometry response over the field of `prime` elements (dimension t)."""
    points, plane, line = ((prime ** (dimension - less) - 1) // (prime - 1) for less in (0, 1, 2))
    return Blanket(ratio, points / (points + (ratio - 1) * plane), (plane - line) / points, line / points)


def hash_blanket(ratio: float) -> Blanket:
    """Return the blanket of hash response: two values share a cell for half of the seeds."""
    return Blanket(ratio, 2 / (ratio + 1), 1 / 4, 1 / 4)


def blanket_of(operator: Operator) -> Blanket | None:
    """Return the blanket of an operator as its clients draw; None if it is not known to be two-level."""
    if operator.gamma is None:
        return None
    ratio = float(operator.gamma)
    if isinstance(operator, RandomizedResponse):
        return response_blanket(ratio, operator.values)
    if isinstance(operator, SubsetSelection):
        return subset_blanket(ratio, operator.values, operator.size)
    if isinstance(operator, Unary):
        return unary_blanket(ratio)
    if isinstance(operator, SquareWave):
        return wave_blanket(ratio, operator.values, 2 * operator.half + 1)
    if isinstance(operator, ProjectiveGeometry):
        return projective_blanket(ratio, operator.prime, operator.dimension)
    if isinstance(operator, PrivSet):
        return privset_blanket(ratio, operator.items, operator.choose, operator.size)
    if isinstance(operator, OneOption):
        return response_blanket(ratio, 2)
    if isinstance(operator, HashResponse):
        return hash_blanket(ratio)
    if isinstance(operator, Prefix):  # texts that differ in their shortest prefixes differ in all of them
        ratios = [float(level.inside / level.outside) for level in operator.levels]
        spaces = zip(ratios, operator.levels, strict=True)
        return sampled_blanket([projective_blanket(r, operator.prime, level.dimension) for r, level in spaces])
    return None


def sampled_blanket(blankets: Sequence[Blanket]) -> Blanket:
    """Return the blanket of a report about one question, which is drawn uniformly and is public.

    P(question, report | values) is P(question) P(report | value of the question), which is two-level if all ratios are equal. The
    worst pair differs in every question. A smaller ratio is first raised to the largest one: the operator with the smaller ratio
    is the other one mixed with its blanket, so it cannot lose more.
    """
    ratio = max(blanket.ratio for blanket in blankets)
    raised = [_with_ratio(blanket, ratio) for blanket in blankets]
    weight = sum(blanket.weight for blanket in raised)
    single = sum(blanket.weight * blanket.only_one for blanket in raised) / weight
    both = sum(blanket.weight * blanket.both for blanket in raised) / weight
    return Blanket(ratio, weight / len(raised), single, both)


def _with_ratio(blanket: Blanket, ratio: float) -> Blanket:
    """Return the blanket of an operator whose values hold the same reports with another ratio."""
    if ratio == blanket.ratio:
        return blanket
    return Blanket(ratio, 1 / (1 + (ratio - 1) * (blanket.only_one + blanket.both)), blanket.only_one, blanket.both)


def default_delta(reports: int) -> float:
    """Return 1 / (100 n)."""
    return 1 / (100 * reports)


def blanket_epsilon(blanket: Blanket, reports: int, *, delta: float | None = None) -> float:
    """Return an upper bound of epsilon at delta for one report among `reports` shuffled ones of a two-level operator.

    Guarantee:
        Never above the local loss, whatever the values and reports of the others. The reports of the others must be drawn by
        the operator: forged ones do not count.
    """
    return _smallest(blanket, log(blanket.ratio), *_checked(reports, delta))


def general_epsilon(local: float, reports: int, *, delta: float | None = None) -> float:
    """Return the same for any randomizer with a local loss of `local`, for example several questions in one report."""
    return _smallest(None, local, *_checked(reports, delta))


def blanket_delta(blanket: Blanket, reports: int, epsilon: float) -> float:
    """Return an upper bound of delta at epsilon; see `blanket_epsilon`."""
    return _delta(blanket, log(blanket.ratio), reports, epsilon, 1e-12)


def general_delta(local: float, reports: int, epsilon: float) -> float:
    """Return an upper bound of delta at epsilon; see `general_epsilon`."""
    return _delta(None, local, reports, epsilon, 1e-12)


def _checked(reports: int, delta: float | None) -> tuple[int, float]:
    if reports < 1 or (delta is not None and not 0 < delta < 1):
        raise Unsupported(
            "A batch needs at least 1 report, and `delta` must be between 0 and 1.", "Use 1e-6, for example."
        )
    return reports, default_delta(reports) if delta is None else delta


@lru_cache(maxsize=1024)
def _smallest(blanket: Blanket | None, local: float, reports: int, delta: float) -> float:
    """Return the upper end of a narrow bracket of the smallest epsilon whose bound is at most delta."""

    def above(epsilon: float) -> float:
        bound = _delta(blanket, local, reports, epsilon, CUT * delta)
        return log(bound / delta) if bound > 0 else -inf

    low, high = 0.0, local
    below, beyond = 0.0, -inf  # log(bound / delta) at both ends, once they are known
    for _ in range(MOST_EVALUATIONS):
        if high - low <= PRECISION * high:
            break
        share = below / (below - beyond) if below > 0 and beyond > -inf else 0.5
        middle = low + (high - low) * min(max(share, 0.02), 0.98)
        excess = above(middle)
        if excess > 0:
            low, below, beyond = middle, excess, beyond / 2  # halve the other end: it must not stay for long (Illinois)
        else:
            high, beyond, below = middle, excess, below / 2
    return high


def _delta(blanket: Blanket | None, local: float, reports: int, epsilon: float, cut: float) -> float:
    """Return factor / n * E[(l_1 + ... + l_n)_+], rounded up, at most 1; 0 from the local loss on."""
    if epsilon >= local:
        return 0.0
    if local > LARGEST_LOCAL:
        return 1.0
    ratio, power = exp(local), exp(epsilon)
    if blanket is None:  # C ~ Bin(n - 1, 1 / ratio) clones, each on either side with probability 1/2
        single, both, neither, factor = 1 / (2 * ratio), 0.0, 0.0, 2 * ratio / (ratio + 1)
    else:
        single, both = blanket.weight * blanket.only_one, blanket.weight * blanket.both
        neither, factor = max(blanket.weight - 2 * single - both, 0.0), 1.0
    draws = np.array([ratio - power, 1 - power * ratio, ratio * (1 - power), 1 - power, 0.0])
    chances = np.array([single, single, both, neither, 0.0])
    chances[-1] = max(1 - chances.sum(), 0.0)
    excess = _excess(draws, chances, reports, cut * reports / factor)
    return min(1.0, factor / reports * excess * (1 + 1e-9))


def _excess(draws: Floats, chances: Floats, count: int, cut: float) -> float:
    """Return an upper bound of E[(sum of `count` draws)_+] for a negative mean, by a tilted Fourier transform.

    With M = E[e^(t l)], E[S_+] = M^count * E_t[S_+ e^(-t S)], where the tilted draws have mean 0 and S_+ e^(-t S) is at
    most 1 / (e t).
    """
    tilt = _zero_mean_tilt(draws, chances)
    most = 1 / (e * tilt)
    reach = _reach(draws, chances, tilt, count, log(cut / most))
    cells = 2 ** int(np.ceil(np.log2(128 * sqrt(count))))
    cells = min(max(cells, LEAST_CELLS), MOST_CELLS)
    places, chances, width = _lattice(draws, chances, 2 * reach / (cells - 4))
    draws = np.asarray(places * width, np.float64)
    scale = count * _log_moment(draws, chances, tilt)
    tilted = chances * np.exp(tilt * draws - scale / count)
    spectrum = np.zeros(cells)
    np.add.at(spectrum, places % cells, tilted)
    powers = np.asarray(np.fft.rfft(spectrum) ** count)
    half = np.arange(1, cells // 2)
    weights = half * width * np.exp(-tilt * half * width)
    inside = float(np.fft.irfft(powers, cells)[1 : cells // 2] @ weights)
    rounding = ROUNDED * (count + np.log2(cells)) * float(np.abs(powers).mean()) * float(weights.sum())
    outside = exp(min(_log_tails(draws, tilted, count, (cells // 2 - 1) * width), 0.0)) * most
    return float(exp(scale) * (inside + rounding + outside))


def _zero_mean_tilt(draws: Floats, chances: Floats) -> float:
    """Return t with E[l e^(t l)] = 0 (about): positive, because the mean is negative and some draw is positive."""
    low, high = 0.0, 1 / float(draws.max())
    slope = chances * draws
    while slope @ np.exp(high * draws) < 0:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if slope @ np.exp(middle * draws) < 0 else (low, middle)
    return high


def _log_moment(draws: Floats, chances: Floats, tilt: float) -> float:
    return log1p(float(chances @ np.expm1(tilt * draws)))


def _chernoff(draws: Floats, tilted: Floats, count: int) -> list[tuple[Floats, Floats]]:
    """Return, for both directions, parameters t and log E[e^(t S)]: the best t for a normal sum and others around it."""
    draws, tilted = draws[tilted > 0], tilted[tilted > 0]
    steps = np.geomspace(0.05, 200, 60) / sqrt(float(tilted @ draws**2) * count)
    sides = []
    for side in (draws, -draws):
        terms = steps[:, None] * side[None, :] + np.log(tilted)
        largest = terms.max(axis=1)
        sides.append((steps, count * (largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1)))))
    return sides


def _reach(draws: Floats, chances: Floats, tilt: float, count: int, goal: float) -> float:
    """Return how far the tilted sum goes in either direction, but for a probability of e^goal."""
    tilted = chances * np.exp(tilt * draws - _log_moment(draws, chances, tilt))
    ends = [float(((logs - goal + log(2)) / steps).min()) for steps, logs in _chernoff(draws, tilted, count)]
    return min(max(ends), count * float(np.abs(draws).max())) * (1 + 1e-9)


def _log_tails(draws: Floats, tilted: Floats, count: int, reach: float) -> float:
    """Return log P(|sum of tilted draws| >= reach), rounded up."""
    if count * float(np.abs(draws).max()) < reach:
        return -inf
    return log(2) + max(float((logs - steps * reach).min()) for steps, logs in _chernoff(draws, tilted, count))


def _lattice(draws: Floats, chances: Floats, width: float) -> tuple[Ints, Floats, float]:
    """Return places and chances on a lattice with the same means; the largest draw is on the lattice if it is wide enough."""
    steps = int(draws.max() / width)
    width = float(draws.max()) / steps if steps else width
    lower = np.floor(draws / width + 1e-12)
    share = np.clip(draws / width - lower, 0, 1)
    places = np.concatenate([lower, lower + 1]).astype(np.int64)
    return places, np.concatenate([chances * (1 - share), chances * share]), width
