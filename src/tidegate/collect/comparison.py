"""What can be said about options: differences with intervals instead of rankings, and nothing if there are too few answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.arrays import Floats
from tidegate.exact import say
from tidegate.extras import extra
from tidegate.noise.differences import larger_ones
from tidegate.operators import Support

with extra("collect", "Estimating from randomized reports"):
    from scipy.special import ndtri  # type: ignore[import-untyped]

LEAST_REPORTS = 30
WIDEST = 0.6  # of an interval, as a share
MOST_COMPARED = 20  # options whose differences are listed: 190 pairs


def too_few(reports: int, widest: float) -> str:
    """Return why there are too few answers to say anything, from the width of the widest interval; empty if there are enough."""
    if reports < LEAST_REPORTS:
        return f"Too few answers to say: {reports:,} of at least {LEAST_REPORTS}."
    if widest <= WIDEST:
        return ""
    return (
        f"Too few answers to say: the widest interval spans {say(100 * widest, 2)} percentage points, "
        f"more than {say(100 * WIDEST)}."
    )


@dataclass(frozen=True)
class Difference:
    """How much more frequent one option is than another, with an interval that holds for all pairs together."""

    first: str
    second: str
    estimate: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0; otherwise the two must not be ranked."""
        return self.low > 0

    def __str__(self) -> str:
        between = f"{say(100 * self.low)} to {say(100 * self.high)} points"
        if self.is_clear:
            return f"{self.first} is more frequent than {self.second} by {between}"
        return f"{self.first} and {self.second} differ by {between}, which includes 0"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        ends = {"difference": self.estimate, "low": self.low, "high": self.high}
        return {"first": self.first, "second": self.second, **ends, "clear": self.is_clear}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Difference:
        """Return what `to_dict` wrote."""
        return cls(data["first"], data["second"], data["difference"], data["low"], data["high"])


def difference_errors(masses: Floats, total: float, support: Support) -> Floats:
    """Return the standard errors of all differences of two estimated shares, exact for shares equal to `masses`.

    N (p - q)^2 Var = E[(Y_a - Y_b)^2] - (E Y_a - E Y_b)^2, where Y_a is whether a report supports a.
    """
    seen = support.false + (support.true - support.false) * masses
    either = masses[:, None] + masses[None, :]
    both = either * support.pair_with_true + (1 - either) * support.pair_without
    squares = seen[:, None] + seen[None, :] - 2 * both
    variance = squares - (seen[:, None] - seen[None, :]) ** 2
    np.fill_diagonal(variance, 0)
    return np.asarray(np.sqrt(np.maximum(variance, 0) / total) / (support.true - support.false))


def differences(shares: Floats, errors: Floats, labels: Sequence[str]) -> list[Difference]:
    """Return the differences of all pairs, the larger estimate first, in the order of the estimates.

    Guarantee:
        The probability that any two options are ranked in the wrong order is at most 5%, over all pairs together (Holm).
    """

    def between(tail: float) -> tuple[Floats, Floats]:
        wide = float(ndtri(1 - tail)) * errors
        apart = shares[:, None] - shares[None, :]
        return apart - wide, apart + wide

    _, (low, high) = larger_ones(between, len(labels), least=0.0)
    order = np.argsort(-shares, kind="stable").tolist()
    return [
        Difference(
            labels[first],
            labels[second],
            float(shares[first] - shares[second]),
            max(-1.0, float(low[first, second])),
            min(1.0, float(high[first, second])),
        )
        for rank, first in enumerate(order)
        for second in order[rank + 1 :]
    ]
