"""Figure 19: how many of 100 releases that one test calls safe are safe for another."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.release.mechanisms import REGISTERED
from tidegate_papers.item import Result
from tidegate_papers.release.examples import plan_of, verdict
from tidegate_papers.release.paper import TESTS, printed
from tidegate_papers.release.sequences import outcome

SEQUENCES, PUBLISHED_SEQUENCES, REQUESTS, LEVEL, STREAM = 100, 100, 5_000, "0.2", 19


@dataclass(frozen=True)
class Safe:
    """Releases under the test of the row that pass the test of the column: (released under, judged by)."""

    counts: NDArray[np.int64]
    sequences: int


def simulate(number: int = SEQUENCES) -> Safe:
    """Run every test over the same sequences, and judge each release by every test."""
    judges = [REGISTERED[name](plan_of(test, LEVEL)) for test, name in TESTS.items()]
    rows = []
    for test in TESTS:
        released = outcome(plan_of(test, LEVEL), number, requests=REQUESTS, stream=STREAM).counts
        rows.append([sum(verdict(judge.readings(counts)) == "safe" for counts in released) for judge in judges])
    return Safe(np.array(rows), number)


def figure_19(safe: Safe) -> dict[str, Result]:
    """Return every cell, of a hundred, with Fisher's exact test of one probability for the authors' sequences and ours."""
    results = {}
    for name, ours in _cells(safe):
        chance = fisher(printed(name), PUBLISHED_SEQUENCES, ours, safe.sequences)
        note = f"p {chance:.2f} in sequences of {REQUESTS:,} requests (Fisher's exact test)"
        error = error_of_shares(ours, safe.sequences, printed(name), PUBLISHED_SEQUENCES)
        results[name] = Result(100 * ours / safe.sequences, note, error=100 * error, size=safe.sequences)
    return results


def error_of_shares(hits: int, tries: int, others: int, other_tries: int) -> float:
    """Return the standard error of the difference of two shares, under one probability."""
    pooled = (hits + others) / (tries + other_tries)
    return math.sqrt(pooled * (1 - pooled) * (1 / tries + 1 / other_tries))


def fisher(hits: int, tries: int, others: int, other_tries: int) -> float:
    """Return the probability of a split of all hits at least as unlikely as this one, under one probability."""
    whole = hits + others
    possible = range(max(0, whole - other_tries), min(whole, tries) + 1)
    chances = {k: math.comb(tries, k) * math.comb(other_tries, whole - k) for k in possible}
    return sum(chance for chance in chances.values() if chance <= chances[hits]) / sum(chances.values())


def _cells(safe: Safe) -> list[tuple[str, int]]:
    return [
        (f"fig19_{under}_{by}", int(safe.counts[row, column]))
        for row, under in enumerate(TESTS)
        for column, by in enumerate(TESTS)
    ]
