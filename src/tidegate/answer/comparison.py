"""Tests of which groups of an answer differ by more than the noise: no other module makes such claims.

Every ordered pair of groups is one hypothesis ("A is not higher than B"). Holm's procedure decides all of them together, so
that the chance of any false claim is at most 5%, in either direction and for any number of groups.

count, histogram, sum     exact: the distribution of the difference of two independent draws of the noise
mean, variance, std       a bound: the intervals of both groups, each at half of the allowed error (a union bound)

Guarantee:
    A claimed difference has an interval of at least 95% that excludes 0. Everything follows from the noisy answer alone.

Reference:
    Holm 1979, "A simple sequentially rejective multiple test procedure" (Scand. J. Statist. 6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.accounting import DiscreteGaussian, DiscreteLaplace, Event, GaussianMoments, Moments
from tidegate.answer.mechanisms import read_stored
from tidegate.answer.mechanisms.mechanism import noise_of, noises_of
from tidegate.answer.mechanisms.sums import sum_unit
from tidegate.answer.request import Query
from tidegate.exact import say
from tidegate.frames import Row, Rows
from tidegate.noise.differences import ALLOWED, MOST_GROUPS, Ends, larger_ones
from tidegate.policy import Policy

MOST_LISTED = 50  # differences in the JSON version, the largest first
EXACT, BOUND = "exact", "bound"
Labels = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """One group that is higher than another, with the interval of the difference."""

    higher: Labels
    lower: Labels
    difference: float
    low: float
    high: float

    def says(self) -> str:
        between = f"{number(self.low)} to {number(self.high)}"
        return f"{name_of(self.higher)} is higher than {name_of(self.lower)} (difference {number(self.difference)}, 95% interval {between})"


@dataclass(frozen=True)
class Comparison(Rows):
    """All differences between groups that the noise supports, the largest first."""

    noun: str
    groups: int
    method: str
    differences: tuple[Difference, ...]

    @property
    def pairs(self) -> int:
        return self.groups * (self.groups - 1) // 2

    def says(self) -> str:
        """Return the finding in one sentence, as a title."""
        if not self.differences:
            return f"The noise could explain all differences between {self.noun}"
        more = len(self.differences) - 1
        rest = f"; {more:,} more of {self.pairs:,} pairs differ" if more else ""
        return f"{self.differences[0].says()}{rest}"

    def rows(self) -> list[Row]:
        """Return one dictionary per difference, the largest first: the labels of both groups, and the interval."""
        return [
            {
                **{f"higher_{name}": label for name, label in difference.higher.items()},
                **{f"lower_{name}": label for name, label in difference.lower.items()},
                "difference": difference.difference,
                "low": difference.low,
                "high": difference.high,
            }
            for difference in self.differences
        ]

    def _kinds(self) -> dict[str, type]:
        return dict.fromkeys(("difference", "low", "high"), float)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values; of the differences, the largest ones."""
        listed = [
            {"higher": d.higher, "lower": d.lower, "difference": d.difference, "low": d.low, "high": d.high}
            for d in self.differences[:MOST_LISTED]
        ]
        counts = {"pairs": self.pairs, "differing": len(self.differences)}
        return {"says": self.says(), "method": self.method, "confidence": 1 - ALLOWED, **counts, "differences": listed}


def compare(query: Query, policy: Policy, event: Event, stored: Any, *, labels: list[Labels]) -> Comparison | None:
    """Compare the groups of an answer; None if there is nothing to compare, or there are too many groups."""
    if not 2 <= len(labels) <= MOST_GROUPS or query.statistic == "regression":
        return None
    half = None if "estimates" in stored else _half(query, policy, event)  # estimates are correlated
    read = read_stored(query, policy, event, stored, confidence=1 - ALLOWED)
    if read.low is None:
        return None
    noisy = np.asarray(read.noisy, np.float64).reshape(-1)

    def exact(tail: float) -> Ends:
        wide = half(tail) if half else 0.0
        apart = noisy[:, None] - noisy[None, :]
        return apart - wide, apart + wide

    def bound(tail: float) -> Ends:
        ends = read_stored(query, policy, event, stored, confidence=1 - tail / 2)
        low, high = (np.asarray(end, np.float64).reshape(-1) for end in (ends.low, ends.high))
        return low[:, None] - high[None, :], high[:, None] - low[None, :]

    apart, ends = larger_ones(exact if half else bound, len(labels), least=_least(query, policy))
    shown = np.asarray(read.values, np.float64).reshape(-1)
    differences = [
        _difference(labels, i, j, shown[i] - shown[j], ends[0][i, j], ends[1][i, j]) for i, j in np.argwhere(apart)
    ]
    noun = "bins" if query.statistic == "histogram" and not query.groups else "groups"
    return Comparison(
        noun,
        len(labels),
        EXACT if half else BOUND,
        tuple(sorted(differences, key=lambda difference: -difference.difference)),
    )


def _half(query: Query, policy: Policy, event: Event) -> Callable[[float], float] | None:
    """Return the one-sided error of the difference of two noisy cells, if its distribution is known; otherwise None."""
    if isinstance(event, DiscreteLaplace | DiscreteGaussian):
        noise = noise_of(event)
        return lambda tail: float(noise.difference_quantile(tail))
    if query.statistic == "sum" and isinstance(event, Moments | GaussianMoments):
        of_sum, unit = noises_of(event)[1], float(sum_unit(query, policy))
        return (lambda tail: unit * of_sum.difference_quantile(tail)) if of_sum is not None else None
    return None


def _least(query: Query, policy: Policy) -> float:
    """Differences of exact integers are multiples of a unit: half of it keeps rounding errors out."""
    if query.statistic == "sum":
        return float(sum_unit(query, policy)) / 2
    return 0.5 if query.statistic in ("count", "histogram") else 0.0


def _difference(labels: list[Labels], i: int, j: int, shown: float, low: float, high: float) -> Difference:
    """Return the difference of the two values as shown, clipped to the interval of the difference."""
    return Difference(labels[i], labels[j], float(np.clip(shown, low, high)), float(low), float(high))


def name_of(labels: Labels) -> str:
    """Return a group's name as a sentence uses it."""
    return ", ".join(label_text(label) for label in labels.values())


def label_text(label: Any) -> str:
    """Return the label of a cell for a sentence."""
    return "(missing)" if label is None else str(label).lower() if isinstance(label, bool) else str(label)


def number(value: float) -> str:
    """Return a number for a sentence, with four significant digits."""
    return say(value, 4) if abs(value) < 1e4 and not float(value).is_integer() else f"{value:,.0f}"
