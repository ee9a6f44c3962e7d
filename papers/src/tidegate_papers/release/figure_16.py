"""Figure 16: how many of 10,000 requested records each test releases, and whether it ever stops for good."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.demo.soldiers import LOCATIONS, SHARES
from tidegate_papers.item import LIMIT, Result
from tidegate_papers.release.examples import plan_of
from tidegate_papers.release.paper import FACTS, LEVELS, TESTS, printed
from tidegate_papers.release.sequences import Outcome, outcome
from tidegate_papers.release.statements import follow

SEQUENCES, PUBLISHED_SEQUENCES, REQUESTS, STREAM = 100, 20, 10_000, 16
WATCHED = 60
ERRORS = LIMIT
MERGED = "bins are merged smallest first; of the ways tried this fits best: a preference, not an identification"


@dataclass(frozen=True)
class Means:
    """Mean and deviation of the released records of one test at one level, by target.

    `frozen` counts the watched sequences that stopped releasing, and `shut_out` those without any record of some target.
    """

    test: str
    level: str
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    sequences: int
    frozen: int
    shut_out: int

    @property
    def error(self) -> NDArray[np.float64]:
        """The standard error of our mean."""
        return np.asarray(self.deviation / math.sqrt(self.sequences))

    @property
    def published(self) -> list[float]:
        return [printed(f"fig16_{self.level}_{self.test}_{name}") for name in LOCATIONS]

    @property
    def allowed(self) -> NDArray[np.float64]:
        """Two standard errors of the difference between our mean and the authors', who ran 20 sequences."""
        return np.asarray(ERRORS * self.deviation * math.sqrt(1 / self.sequences + 1 / PUBLISHED_SEQUENCES))

    @property
    def z(self) -> NDArray[np.float64]:
        """How many standard errors of the difference our mean is above the published one."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(ERRORS * (self.mean - np.array(self.published)) / self.allowed)


def simulate(number: int = SEQUENCES) -> list[Means]:
    """Run every test at both levels over the same sequences."""
    return [_means(test, level, number) for level in LEVELS for test in TESTS]


def _means(test: str, level: str, number: int) -> Means:
    done = outcome(plan_of(test, level), number, requests=REQUESTS, stream=STREAM)
    released = done.released
    watched = Outcome(done.counts[:WATCHED], done.last[:WATCHED], REQUESTS)
    mean, deviation = released.mean(axis=0), released.std(axis=0, ddof=1)
    return Means(test, level, mean, deviation, number, watched.frozen, watched.shut_out)


def figure_16(means: list[Means]) -> dict[str, Result]:
    """Return every cell with its distance in standard errors, printed totals and percentages, and frozen sequences."""
    results: dict[str, Result] = {}
    for row in means:
        results |= _cells(row) | _total(row)
    return {**results, **_percentages(), "s72_deadlock": Result(sum(row.frozen for row in means), _shut_out(means))}


def _shut_out(means: list[Means]) -> str:
    counts = [f"{row.shut_out} of {WATCHED} under {row.test} at {row.level}" for row in means if row.shut_out]
    return f"sequences in which not one record of some location left: {', '.join(counts)}" if counts else ""


def _cells(row: Means) -> dict[str, Result]:
    results = {}
    for name, mean, error, allowed in zip(LOCATIONS, row.mean, row.error, row.allowed, strict=True):
        note = f"standard error {error:.2f}" + (f"; {MERGED}" if row.test == "CST" else "")
        results[f"fig16_{row.level}_{row.test}_{name}"] = Result(
            round(float(mean), 2), note, error=float(allowed) / ERRORS, size=row.sequences
        )
    return results


def _total(row: Means) -> dict[str, Result]:
    note = f"ours is {row.mean.sum():.2f}"
    return {f"fig16_{row.level}_{row.test}_total": Result(round(math.fsum(row.published), 2), note)}


def _percentages() -> dict[str, Result]:
    return {
        f"fig16_{level}_percentages": follow(
            [
                (f"{test} {name}", percent, 100 * printed(f"fig16_{level}_{test}_{name}") / whole)
                for test, row in FACTS["figure_16_percent"][level].items()
                for name, whole, percent in zip((*LOCATIONS, "total"), (*SHARES, sum(SHARES)), row, strict=True)
            ],
            decimals=2,
        )
        for level in LEVELS
    }
