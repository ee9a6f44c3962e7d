"""Probabilities of samples, and streams of bits for sampled claims."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from functools import cache

import mpmath
import numpy as np

from tidegate.noise import SeededBits

ENOUGH = 200
SEED = os.environ.get("TIDEGATE_SEED", "tidegate")
SEED = secrets.token_hex(8) if SEED == "fresh" else SEED


def bits(name: object) -> SeededBits:
    """Return a separate stream for each use. The seed is printed with a failure; set it to repeat the run."""
    print(f"TIDEGATE_SEED={SEED}")
    return SeededBits(f"{SEED}/{name}")


@dataclass(frozen=True)
class Words:
    """The words of a seeded source, but of another class: a source that is neither secure nor seeded."""

    source: SeededBits

    def words(self, count: int) -> np.ndarray:
        return self.source.words(count)


def beyond(statistic: float, freedom: int) -> float:
    """Return P(chi-square >= statistic), doubled: for counts, the tail at 1e-5 was 1.3 times as heavy in 6,000,000 tries."""
    return 2 * float(mpmath.gammainc(freedom / 2, statistic / 2, mpmath.inf, regularized=True))


def chance(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """Return the probability of counts at least as far from their expectation."""
    expected = counts.sum() * probabilities
    assert expected.min() >= ENOUGH
    return beyond(((counts - expected) ** 2 / expected).sum(), counts.size - 1)


def chance_of_both(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the probability of two counts at least as different, if they come from one distribution."""
    weight = np.sqrt(theirs.sum() / ours.sum())
    return beyond(((ours * weight - theirs / weight) ** 2 / (ours + theirs)).sum(), ours.size - 1)


@cache
def log_choose(n: int) -> np.ndarray:
    k = np.arange(1, n + 1)
    return np.concatenate([[0.0], np.cumsum(np.log((n - k + 1) / k))])


def at_least(k: int, n: int, p: float) -> float:
    """Return P(Binomial(n, p) >= k), term by term."""
    j = np.arange(k, n + 1)
    return float(np.exp(log_choose(n)[k:] + j * np.log(p) + (n - j) * np.log1p(-p)).sum())


def lowest(k: int, n: int, *, alpha: float) -> float:
    """Return the Clopper-Pearson lower bound of a probability, from k of n; it is too high with probability at most alpha."""
    low, high = 0.0, k / n
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if at_least(k, n, middle) <= alpha else (low, middle)
    return low


def epsilon_lower_bound(here: np.ndarray, there: np.ndarray, *, alpha: float) -> float:
    """Return the loss that two samples of an event prove, except with probability alpha."""
    low = lowest(int(here.sum()), here.size, alpha=alpha / 2)
    high = 1 - lowest(int((~there).sum()), there.size, alpha=alpha / 2)
    return float(np.log(low) - np.log(high))
