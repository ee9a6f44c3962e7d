"""Figure 16: how many records each test releases of 10,000 requests, and whether it ever stops for good."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.demo.soldiers import LOCATIONS, SHARES
from tidegate_papers.item import LIMIT, Found
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
    """Mean and deviation of the released records of one test at one level, by target; in how many of the watched sequences
    nothing more left (frozen) or nothing at all left of some target (shut out)."""

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
        """Two standard errors of the difference between our mean and the authors', who took 20 sequences."""
        return np.asarray(ERRORS * self.deviation * math.sqrt(1 / self.sequences + 1 / PUBLISHED_SEQUENCES))

    @property
    def z(self) -> NDArray[np.float64]:
        """How many standard errors of the difference our mean is above the published one."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(ERRORS * (self.mean - np.array(self.published)) / self.allowed)


def simulate(number: int = SEQUENCES) -> list[Means]:
    """Every test at both levels over the same sequences."""
    return [_means(test, level, number) for level in LEVELS for test in TESTS]


def _means(test: str, level: str, number: int) -> Means:
    done = outcome(plan_of(test, level), number, requests=REQUESTS, stream=STREAM)
    released = done.released
    watched = Outcome(done.counts[:WATCHED], done.last[:WATCHED], REQUESTS)
    mean, deviation = released.mean(axis=0), released.std(axis=0, ddof=1)
    return Means(test, level, mean, deviation, number, watched.frozen, watched.shut_out)


def figure_16(means: list[Means]) -> dict[str, Found]:
    """Every cell with its distance in standard errors, printed totals and percentages, and sequences that froze."""
    found: dict[str, Found] = {}
    for one in means:
        found |= _cells(one) | _total(one)
    return {**found, **_percentages(), "s72_deadlock": Found(sum(one.frozen for one in means), _shut_out(means))}


def _shut_out(means: list[Means]) -> str:
    told = [f"{one.shut_out} of {WATCHED} under {one.test} at {one.level}" for one in means if one.shut_out]
    return f"sequences in which not one record of some location left: {', '.join(told)}" if told else ""


def _cells(one: Means) -> dict[str, Found]:
    found = {}
    for name, mean, error, z in zip(LOCATIONS, one.mean, one.error, one.z, strict=True):
        note = f"standard error {error:.2f}" + (f"; {MERGED}" if one.test == "CST" else "")
        found[f"fig16_{one.level}_{one.test}_{name}"] = Found(
            round(float(mean), 2), note, z=float(z), size=one.sequences
        )
    return found


def _total(one: Means) -> dict[str, Found]:
    note = f"ours is {one.mean.sum():.2f}"
    return {f"fig16_{one.level}_{one.test}_total": Found(round(math.fsum(one.published), 2), note)}


def _percentages() -> dict[str, Found]:
    return {
        f"fig16_{level}_percentages": follow(
            [
                (f"{test} {name}", told, 100 * printed(f"fig16_{level}_{test}_{name}") / whole)
                for test, row in FACTS["figure_16_percent"][level].items()
                for name, whole, told in zip((*LOCATIONS, "total"), (*SHARES, sum(SHARES)), row, strict=True)
            ],
            decimals=2,
        )
        for level in LEVELS
    }
