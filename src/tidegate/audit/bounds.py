"""Confidence bounds from counts: the only module in which an attack's tallies become bounds.

Reference:
    Clopper & Pearson 1934 (exact bounds of a binomial probability); Ding et al. 2018, arXiv:1805.10559 (events are
    chosen on one part of the draws and bounded on the other, so that choosing costs no confidence).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from tidegate.arrays import Bools, Floats
from tidegate.extras import extra

with extra("audit", "The audit"):
    from scipy.special import betaincinv  # type: ignore[import-untyped]

MOST_THRESHOLDS = 64  # per column, if it has more distinct values
SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")
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
    event = _choose_event(look, look_there, alpha, both)
    if event is None:
        return 0.0, "no event"
    more, less = (bound_there, bound) if event.reverse else (bound, bound_there)
    hits, missed = int(event.of(more).sum()), int(event.of(less).sum())
    return epsilon_lower_bound(hits, len(more), missed, len(less), alpha=alpha), event.says(names)


def identification_probability(epsilon: float, *, prior: float) -> float:
    """Return the posterior probability of a world after an event that favors it e^epsilon times over the others (Bayes)."""
    odds = prior / (1 - prior) * np.exp(min(epsilon, 700.0)) if prior < 1 else np.inf
    return float(1 - 1 / (1 + odds))


def _choose_event(here: Floats, there: Floats, alpha: float, both: bool) -> ThresholdEvent | None:
    """Return the event with the highest bound on these draws; other draws bound it."""
    best, event = 0.0, None
    if not len(here) or not len(there):
        return None
    for column in range(here.shape[1]):
        thresholds = _thresholds(here[:, column], there[:, column])
        tallies = [_tallies(side[:, column], thresholds) for side in (here, there)]
        for sign in SIGNS:
            for reverse in (False, True) if both else (False,):
                (more, of), (less, other) = _sides(tallies, (len(here), len(there)), sign, reverse)
                losses = _approximate_losses(more, of, less, other, alpha)
                top = int(np.argmax(losses))
                if losses[top] > best:
                    best, event = float(losses[top]), ThresholdEvent(column, sign, float(thresholds[top]), reverse)
    return event


def _approximate_losses(hits_here: Any, n_here: int, hits_there: Any, n_there: int, alpha: float) -> Any:
    """Return approximate bounds for choosing an event. Wilson's intervals need no root finding."""
    with np.errstate(divide="ignore"):
        return np.log(_wilson(hits_here, n_here, alpha, -1)) - np.log(_wilson(hits_there, n_there, alpha, 1))


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
