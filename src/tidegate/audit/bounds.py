"""Confidence bounds from counts: the only module in which an attack's tallies become bounds.

Reference:
    Clopper & Pearson 1934 (exact bounds of a binomial probability); Ding et al. 2018, arXiv:1805.10559 (events are
    chosen on one part of the draws and bounded on the other, so that choosing costs no confidence).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from tidegate.accounting import Amount, average_yes_no
from tidegate.arrays import Bools, Floats
from tidegate.extras import extra

with extra("audit", "The audit"):
    from scipy.special import betainc, betaincinv  # type: ignore[import-untyped]

POWER, MOST_RUNS = 0.95, 200_000  # of planned tests
BLOCK = 512  # numbers of hits that are tried at once
MOST_THRESHOLDS = 64  # per column, if it has more distinct values
SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")
Score = Callable[[Any, int, Any, int], Any]
SIGNS = {">=": np.greater_equal, "<=": np.less_equal, "=": np.equal}


def lower_bound(k: int, n: int, *, alpha: float) -> float:
    """Return the lower bound of a probability that was observed k times in n independent tries.

    Guarantee:
        Above the true probability with probability at most alpha, whatever it is.
    """
    return float(_lower_bounds(k, n, alpha))


def upper_bound(k: int, n: int, *, alpha: float) -> float:
    """Return the upper bound of a probability that was observed k times in n independent tries.

    Guarantee:
        Below the true probability with probability at most alpha, whatever it is.
    """
    return float(_upper_bounds(k, n, alpha))


def epsilon_lower_bound(hits_here: int, n_here: int, hits_there: int, n_there: int, *, alpha: float) -> float:
    """Return the loss that an event proves from its counts on a data set and on a neighbor.

    Guarantee:
        Above the true loss with probability at most alpha; 0 if the counts prove nothing.
    """
    return max(0.0, float(_losses(hits_here, n_here, hits_there, n_there, alpha)))


def strongest_bound(n_here: int, n_there: int, *, alpha: float) -> float:
    """Return the highest loss that this number of draws can prove with `best_event`.

    It is reached by an event that always occurs here and never there. If it is below a promise, the draws cannot refute
    the promise.
    """
    here, there = n_here - n_here // 2, n_there - n_there // 2
    return epsilon_lower_bound(here, here, 0, there, alpha=alpha)


def distinction_bound(hits_here: int, n_here: int, hits_there: int, n_there: int, *, alpha: float) -> float:
    """Return how often an event names the right one of two equally likely data sets, at least.

    Guarantee:
        Above the true probability with probability at most alpha.
    """
    low, high = lower_bound(hits_here, n_here, alpha=alpha / 2), upper_bound(hits_there, n_there, alpha=alpha / 2)
    return max(0.5, (low + 1 - high) / 2)  # a random guess is right as often


def largest_distinction(z: Amount, zcdp: Amount) -> float:
    """Return how often the right one of two equally likely data sets can be named after a loss, at most.

    Z bounds it by the reference, and zCDP by Pinsker's inequality: the Kullback-Leibler divergence is at most zCDP.
    """
    return min(float(average_yes_no(z)), (1 + sqrt(float(zcdp) / 2)) / 2)


def strongest_distinction(n_here: int, n_there: int, *, alpha: float) -> float:
    """Return the highest probability that this number of draws can prove with `best_distinction`."""
    here, there = n_here - n_here // 2, n_there - n_there // 2
    return distinction_bound(here, here, 0, there, alpha=alpha)


def chance_of_at_least(hits: int, n: int, probability: float) -> float:
    """Return the probability of at least that many hits in n independent tries: the exact one-sided binomial test."""
    return float(betainc(hits, n - hits + 1, probability)) if hits > 0 else 1.0


def runs_to_detect(honest: float, faulty: float, *, alpha: float, power: float = POWER) -> int | None:
    """Return the least number of runs in which a test at level alpha rejects a faulty probability with that power.

    The test is the exact one-sided binomial test of the honest probability. Its power is not monotonic in the number of
    runs (hits are whole numbers), so some larger numbers have a little less.

    Returns:
        None if the faulty probability is not above the honest one, or more than MOST_RUNS are needed.
    """
    about = _approximate_runs(honest, faulty, alpha, power)
    if faulty <= honest or about > MOST_RUNS:
        return None
    start = int(faulty * about * (0.9 if faulty * about > 1000 else 0.6)) - 4  # of the hits, well below those needed
    while start > 1 and _rejects(np.array([start]), honest, faulty, alpha, power)[0]:
        start //= 2
    start = max(start, 1)
    while True:
        hits = np.arange(start, start + BLOCK)
        rejects = _rejects(hits, honest, faulty, alpha, power)
        if rejects.any():
            return int(_runs_for(hits[np.argmax(rejects)], faulty, power))
        start += BLOCK


def _approximate_runs(honest: float, faulty: float, alpha: float, power: float) -> float:
    """Return the number of runs by the normal approximation, which shows where to search."""
    quantiles = (NormalDist().inv_cdf(1 - alpha), NormalDist().inv_cdf(power))
    spreads = (np.sqrt(p * (1 - p)) for p in (honest, faulty))
    above = sum(quantile * spread for quantile, spread in zip(quantiles, spreads, strict=True))
    return float((above / (faulty - honest)) ** 2) if faulty > honest else np.inf


def _rejects(hits: Any, honest: float, faulty: float, alpha: float, power: float) -> Any:
    """Return whether that many hits reject the honest probability, in the runs in which a faulty one reaches them."""
    runs = _runs_for(hits, faulty, power)
    return betainc(hits, runs - hits + 1, honest) <= alpha


def _runs_for(hits: Any, probability: float, power: float) -> Any:
    """Return the least numbers of runs that have these hits with probability `power`."""
    low = np.asarray(hits)
    high = np.ceil((low + 10 * np.sqrt(low) + 20) / probability).astype(np.int64)
    while np.any(low < high):
        middle = (low + high) // 2
        enough = betainc(hits, middle - hits + 1, probability) >= power
        low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
    return low


@dataclass(frozen=True)
class ThresholdEvent:
    """An event that distinguishes two data sets: a column of the draws above, below or at a threshold."""

    column: int
    sign: str
    threshold: float
    reverse: bool = False  # it occurs more often on the neighbor

    def of(self, samples: Floats) -> Bools:
        return np.asarray(SIGNS[self.sign](samples[:, self.column], self.threshold))

    def says(self, names: Sequence[str] = ()) -> str:
        name = names[self.column] if names else "it" if not self.column else f"number {self.column + 1}"
        return f"{name} {self.sign} {self.threshold:.6g}"


def best_event(
    samples_here: ArrayLike,
    samples_there: ArrayLike,
    *,
    alpha: float,
    both: bool = True,
    names: Sequence[str] = (),
) -> tuple[float, str]:
    """Return the loss that draws from two data sets prove, and the event that proves it.

    Args:
        samples_here: One number per draw, or several (columns). Both sides need the same columns.
        samples_there: The draws from the neighbor.
        both: Whether an event can also occur more often on `samples_there`.

    Guarantee:
        Above the true loss with probability at most alpha: the event is chosen on the first half of the draws and bounded
        on the second half, which is not used to choose it.
    """
    here, there = _columns(samples_here), _columns(samples_there)
    (look, bound), (look_there, bound_there) = _halves(here), _halves(there)
    event = _choose_event(look, look_there, partial(_approximate_losses, alpha=alpha), both)
    if event is None:
        return 0.0, "no event"
    return epsilon_lower_bound(*_hits(event, bound, bound_there), alpha=alpha), event.says(names)


def best_distinction(
    samples_here: ArrayLike, samples_there: ArrayLike, *, alpha: float, names: Sequence[str] = ()
) -> tuple[float, str]:
    """Return how often draws name the right one of two equally likely data sets, at least, and the event that does.

    Guarantee:
        Above the true probability with probability at most alpha; the halves are those of `best_event`.
    """
    here, there = _columns(samples_here), _columns(samples_there)
    (look, bound), (look_there, bound_there) = _halves(here), _halves(there)
    event = _choose_event(look, look_there, _differences, both=True)
    if event is None:
        return 0.5, "no event"
    return distinction_bound(*_hits(event, bound, bound_there), alpha=alpha), event.says(names)


def _hits(event: ThresholdEvent, here: Floats, there: Floats) -> tuple[int, int, int, int]:
    """Return hits and draws, where the event is the more frequent and where it is not."""
    more, less = (there, here) if event.reverse else (here, there)
    return int(event.of(more).sum()), len(more), int(event.of(less).sum()), len(less)


def identification_probability(epsilon: float, *, prior: float) -> float:
    """Return the posterior probability of a world after an event that favors it e^epsilon times over the others (Bayes)."""
    odds = prior / (1 - prior) * np.exp(min(epsilon, 700.0)) if prior < 1 else np.inf
    return float(1 - 1 / (1 + odds))


def _choose_event(here: Floats, there: Floats, score: Score, both: bool) -> ThresholdEvent | None:
    """Return the event with the highest score on these draws; other draws bound it."""
    best, event = 0.0, None
    if not len(here) or not len(there):
        return None
    for column in range(here.shape[1]):
        thresholds = _thresholds(here[:, column], there[:, column])
        tallies = [_tallies(side[:, column], thresholds) for side in (here, there)]
        for sign in SIGNS:
            for reverse in (False, True) if both else (False,):
                (more, of), (less, other) = _sides(tallies, (len(here), len(there)), sign, reverse)
                scores = score(more, of, less, other)
                top = int(np.argmax(scores))
                if scores[top] > best:
                    best, event = float(scores[top]), ThresholdEvent(column, sign, float(thresholds[top]), reverse)
    return event


def _approximate_losses(hits_here: Any, n_here: int, hits_there: Any, n_there: int, alpha: float) -> Any:
    """Return approximate bounds for choosing an event. Wilson's intervals need no root finding."""
    with np.errstate(divide="ignore"):
        return np.log(_wilson(hits_here, n_here, alpha, -1)) - np.log(_wilson(hits_there, n_there, alpha, 1))


def _differences(hits_here: Any, n_here: int, hits_there: Any, n_there: int) -> Any:
    """Return by how much more frequent events are here than there."""
    return hits_here / n_here - hits_there / n_there


def _wilson(hits: Any, n: int, alpha: float, sign: int) -> Any:
    share, square = hits / n, 2 * np.log(1 / alpha)  # about the square of the normal quantile of alpha
    spread = np.sqrt(square * share * (1 - share) / n + square**2 / (4 * n**2))
    return np.maximum((share + square / (2 * n) + sign * spread) / (1 + square / n), 0.0)


def _tallies(draws: Floats, thresholds: Floats) -> dict[str, Any]:
    """Count the draws above, below and at each threshold."""
    ordered = np.sort(draws)
    below, upto = (np.searchsorted(ordered, thresholds, side=side) for side in SIDES)
    return {">=": draws.size - below, "<=": upto, "=": upto - below}


def _sides(tallies: list[dict[str, Any]], sizes: tuple[int, int], sign: str, reverse: bool) -> list[tuple[Any, int]]:
    pairs = [(tally[sign], size) for tally, size in zip(tallies, sizes, strict=True)]
    return pairs[::-1] if reverse else pairs


def _thresholds(here: Floats, there: Floats) -> Floats:
    values = np.unique(np.concatenate([here, there]))
    if values.size <= MOST_THRESHOLDS:
        return values
    return np.unique(np.quantile(values, np.linspace(0, 1, MOST_THRESHOLDS), method="nearest"))


def _columns(samples: ArrayLike) -> Floats:
    values = np.asarray(samples, np.float64)
    return values[:, None] if values.ndim == 1 else values


def _halves(samples: Floats) -> tuple[Floats, Floats]:
    return samples[: len(samples) // 2], samples[len(samples) // 2 :]


def _losses(hits_here: Any, n_here: int, hits_there: Any, n_there: int, alpha: float) -> Any:
    with np.errstate(divide="ignore"):
        low = np.log(_lower_bounds(hits_here, n_here, alpha / 2))
        return low - np.log(_upper_bounds(hits_there, n_there, alpha / 2))


def _lower_bounds(k: Any, n: int, alpha: float) -> Any:
    hits = np.asarray(k, np.float64)
    if n == 0:
        return np.zeros_like(hits)
    return np.where(hits > 0, betaincinv(np.maximum(hits, 1), n - np.maximum(hits, 1) + 1, alpha), 0.0)


def _upper_bounds(k: Any, n: int, alpha: float) -> Any:
    return 1 - _lower_bounds(n - np.asarray(k, np.float64), n, alpha)
