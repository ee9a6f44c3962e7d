"""The release controller, slowly: every statistic from its definition, every queued request asked again from the oldest.

Written from Bezzi et al., Sections 5 and 6, and from what was settled where the paper leaves room; not from our controller.
Counts are counts[x][y]: released records by revealing value x and target y. Requests are numbered 0, 1, 2, ...
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Protocol

from scipy.stats import chi2

Column = tuple[int, ...]
Baseline = tuple[Fraction, ...]
Critical = Callable[[int], float]

ENOUGH = 5  # Section 6: a value is compared on its own from 5 records on
SAME_DISTANCE = 1e-12


class Counts(list[list[int]]):
    """The released counts, one row for each x, and beside them the public baseline of x."""

    def __init__(self, rows: Iterable[Iterable[int]], baseline: Sequence[Fraction]) -> None:
        super().__init__([list(row) for row in rows])
        self.baseline = tuple(baseline)

    def column(self, y: int) -> Column:
        """The records of one target."""
        return tuple(row[y] for row in self)

    def columns(self) -> list[Column]:
        """The records of each target that has any."""
        return [column for column in (self.column(y) for y in range(len(self[0]))) if any(column)]

    def with_one_more(self, x: int, y: int) -> Counts:
        """What would be out if this record went too."""
        more = Counts(self, self.baseline)
        more[x][y] += 1
        return more


# -- statistics: pure functions of one column, so that an answer once computed may be remembered


@cache
def kullback_leibler(column: Column, baseline: Baseline) -> float:
    """g = 2 n ln 2 times the distance in bits: 2 sum c ln(c / (n b))."""
    n = sum(column)
    return 2 * math.fsum(c * math.log(Fraction(c) / (n * b)) for c, b in zip(column, baseline, strict=True) if c)


def mutual_information(counts: Counts) -> float:
    """G = 2 N ln 2 times the information in bits, against the public baseline: the sum of all g."""
    return math.fsum(kullback_leibler(column, counts.baseline) for column in counts.columns())


@cache
def pearson(column: Column, baseline: Baseline, rule: str) -> tuple[Fraction, int]:
    """The sum of (O - E)^2 / E over the merged values, exactly, and how many of them there are."""
    bins = MERGING[rule](column)
    n = sum(column)
    total = Fraction(0)
    for members in bins:
        expected = n * sum((baseline[x] for x in members), start=Fraction(0))
        off = sum(column[x] for x in members) - expected
        total += off * off / expected
    return total, len(bins)


def dixon(counts: Counts) -> tuple[float, int]:
    """(max - second) / (max - min) of the targets' distances, and how many different ones there are; Q is 0 below 3."""
    distances = sorted(kullback_leibler(column, counts.baseline) / (2 * sum(column)) for column in counts.columns())
    different = distances[:1] + [later for former, later in pairwise(distances) if later - former > SAME_DISTANCE]
    if len(different) < 3:
        return 0.0, len(different)
    return (distances[-1] - distances[-2]) / (distances[-1] - distances[0]), len(different)


def posterior(column: Column, baseline: Baseline, profiles: Sequence[Baseline], priors: Sequence[Fraction]) -> Fraction:
    """The observer's probability, by Bayes, that these records come from one of the profiles and not from the baseline."""

    def likelihood(profile: Baseline) -> Fraction:
        return math.prod((q**c for q, c in zip(profile, column, strict=True)), start=Fraction(1))

    sensitive = sum(prior * likelihood(profile) for profile, prior in zip(profiles, priors, strict=True))
    return sensitive / (sensitive + (1 - sum(priors)) * likelihood(baseline))


# -- merging neighboring values until each has 5 records: lists of the x that go together


def forward(column: Column) -> list[list[int]]:
    """From the first value on: collect until there are 5; what is left at the end joins the last bin."""
    bins: list[list[int]] = [[]]
    for x in range(len(column)):
        bins[-1].append(x)
        if sum(column[member] for member in bins[-1]) >= ENOUGH:
            bins.append([])
    rest = bins.pop()
    if not bins:
        return [rest]
    bins[-1] += rest
    return bins


def smaller_neighbour(column: Column) -> list[list[int]]:
    """While a bin is too small, join the first such with the smaller of its neighbors, of equals the later."""
    return _join_bins(column, lambda sizes: next(i for i, size in enumerate(sizes) if size < ENOUGH))


def smallest_first(column: Column) -> list[list[int]]:
    """While a bin is too small, join the smallest, of equals the first, with the smaller neighbor, of equals the later."""
    return _join_bins(column, lambda sizes: sizes.index(min(sizes)))


def _join_bins(column: Column, choose: Callable[[list[int]], int]) -> list[list[int]]:
    bins = [[x] for x in range(len(column))]
    while True:
        sizes = [sum(column[x] for x in members) for members in bins]
        if len(bins) == 1 or min(sizes) >= ENOUGH:
            return bins
        poor = choose(sizes)
        near = [i for i in (poor - 1, poor + 1) if 0 <= i < len(bins)]
        first = min(poor, min(near, key=lambda i: (sizes[i], -i)))  # of equal neighbors the later one
        bins[first : first + 2] = [bins[first] + bins[first + 1]]


MERGING = {"forward": forward, "smaller-neighbour": smaller_neighbour, "smallest-first": smallest_first}


# -- tests: does the release stay safe with the record of x about y, which is in the counts already?


class Check(Protocol):
    """What a controller asks."""

    def holds(self, counts: Counts, x: int, y: int) -> bool: ...


@dataclass(frozen=True)
class ReferenceMutualInformation:
    """MIS: G strictly below critical(N)."""

    critical: Critical

    def holds(self, counts: Counts, x: int, y: int) -> bool:
        return mutual_information(counts) < self.critical(sum(map(sum, counts)))


@dataclass(frozen=True)
class ReferenceKullbackLeibler:
    """KLD: g of the record's target strictly below critical(n)."""

    critical: Critical

    def holds(self, counts: Counts, x: int, y: int) -> bool:
        column = counts.column(y)
        return kullback_leibler(column, counts.baseline) < self.critical(sum(column))


@dataclass(frozen=True)
class ReferenceChiSquare:
    """CST: Pearson's F of the record's target strictly below the quantile; a single bin is safe."""

    significance: float
    rule: str

    def holds(self, counts: Counts, x: int, y: int) -> bool:
        statistic, bins = pearson(counts.column(y), counts.baseline, self.rule)
        return bins == 1 or statistic < chi_square_critical(self.significance, bins - 1)


@dataclass(frozen=True)
class ReferenceDixon:
    """DQT: Q strictly below critical(number of different distances); fewer than 3 are safe."""

    critical: Critical

    def holds(self, counts: Counts, x: int, y: int) -> bool:
        statistic, different = dixon(counts)
        return different < 3 or statistic < self.critical(different)


@dataclass(frozen=True)
class ReferencePosterior:
    """The named observer's probability for the record's target at most rho, in exact fractions."""

    profiles: Sequence[Baseline]
    priors: Sequence[Fraction]
    rho: Fraction

    def holds(self, counts: Counts, x: int, y: int) -> bool:
        return posterior(counts.column(y), counts.baseline, self.profiles, self.priors) <= self.rho


@cache
def chi_square_critical(significance: float, freedom: int) -> float:
    """What a chi-square variable exceeds with this probability."""
    return float(chi2.ppf(1 - significance, freedom))


def critical_from_table(values: Sequence[float], *, significance: float, freedom: int) -> Critical:
    """Critical values for 1, 2, ... records from a table, beyond its end from the chi-square distribution."""
    return lambda n: values[n - 1] if n <= len(values) else chi_square_critical(significance, freedom)


# -- the controller


@dataclass
class ReferenceController:
    """Grants what every test allows; what it denies waits.

    order   "restart": after every grant the queue is asked again from the oldest until nobody in it may leave;
            "one pass": after a granted request the queue is asked once, oldest first; "none": nothing waits.
    """

    tests: Sequence[Check]
    baseline: Sequence[Fraction]
    targets: int
    order: str = "restart"
    counts: Counts = field(init=False)
    queue: list[tuple[int, int, int]] = field(init=False, default_factory=list)
    released: list[int] = field(init=False, default_factory=list)
    asked: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.counts = Counts([[0] * self.targets for _ in self.baseline], self.baseline)

    def request(self, x: int, y: int) -> list[int]:
        """The numbers of the requests that this one lets out, in the order in which they leave."""
        number, before = self.asked, len(self.released)
        self.asked += 1
        if self.allows(x, y):
            self.release(number, x, y)
            self.serve()
        elif self.order != "none":
            self.queue.append((number, x, y))
        return self.released[before:]

    def withdraw(self, number: int) -> bool:
        """Take a request out of the queue: was it there?"""
        length = len(self.queue)
        self.queue = [waiting for waiting in self.queue if waiting[0] != number]
        return len(self.queue) < length

    def allows(self, x: int, y: int) -> bool:
        """Whether all tests hold with this record among the released."""
        counts = self.counts.with_one_more(x, y)
        return all(test.holds(counts, x, y) for test in self.tests)

    def release(self, number: int, x: int, y: int) -> None:
        self.counts[x][y] += 1
        self.released.append(number)

    def serve(self) -> None:
        """Let out of the queue what may leave now."""
        if self.order == "restart":
            while any(self.leaves(waiting) for waiting in self.queue):  # any stops at the first that leaves
                pass
        else:
            for waiting in list(self.queue):
                self.leaves(waiting)

    def leaves(self, waiting: tuple[int, int, int]) -> bool:
        """Release this one from the queue if it may leave."""
        number, x, y = waiting
        if not self.allows(x, y):
            return False
        self.release(number, x, y)
        self.queue.remove(waiting)
        return True


@dataclass
class RememberingController(ReferenceController):
    """The same, but a value and target denied since the last release is not tested again: nothing has changed for it."""

    denied: set[tuple[int, int]] = field(init=False, default_factory=set)

    def allows(self, x: int, y: int) -> bool:
        if (x, y) in self.denied:
            return False
        allowed = super().allows(x, y)
        if not allowed:
            self.denied.add((x, y))
        return allowed

    def release(self, number: int, x: int, y: int) -> None:
        super().release(number, x, y)
        self.denied.clear()
