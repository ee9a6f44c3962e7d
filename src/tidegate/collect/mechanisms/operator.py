"""The shape of an operator: what every randomization of one value can be asked.

An operator works on codes 0 .. values-1. Its report is a code 0 .. report_size-1 (`form` "code") or a list of value
codes, ascending (`form` "set"). Nothing here or in the operators needs more than Python itself; arrays
(`channel_array`, `measures`) are made by modules that are imported when they are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from tidegate.collect._bits import Bytes
from tidegate.errors import Unsupported

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tidegate.collect.measures import Measures

Report: TypeAlias = int | list[int]
EXACT_CELLS = 1_000_000


class Operator:
    """One way to randomize one value. Subclasses state `values`, `report_size`, `gamma`, `probability` and `sample`."""

    name: ClassVar[str]
    form: ClassVar[Literal["code", "set"]] = "code"
    ordered: ClassVar[bool] = False
    values: int
    report_size: int

    @property
    def gamma(self) -> Fraction | None:
        """The largest ratio of a report's probabilities under two values, exact; None where it is unlimited."""
        raise NotImplementedError

    @property
    def epsilon(self) -> float:
        """The local loss that is really spent, log gamma; infinite where some report rules a value out."""
        return math.inf if self.gamma is None else math.log(self.gamma)

    @property
    def lifetime_gamma(self) -> Fraction | None:
        """As `gamma`, for all reports together that a client ever makes of one value."""
        return self.gamma

    @property
    def lifetime_epsilon(self) -> float:
        """As `epsilon`, for all reports together that a client ever makes of one value."""
        return math.inf if self.lifetime_gamma is None else math.log(self.lifetime_gamma)

    def probability(self, report: Report, value: int) -> Fraction:
        """P(report | value), exactly as the client draws it."""
        raise NotImplementedError

    def sample(self, value: int, source: Bytes) -> Report:
        """A randomized report of a value."""
        raise NotImplementedError

    def reports(self) -> Iterator[Report]:
        """Every possible report; for sets only where there are few."""
        return iter(range(self.report_size))

    def accepts(self, report: Any) -> bool:
        """Whether a report could have come from this operator."""
        return isinstance(report, int) and not isinstance(report, bool) and 0 <= report < self.report_size

    def recipe(self) -> dict[str, Any]:
        """The whole numbers that a client in any language needs to draw a report; probabilities are over 2**48."""
        raise NotImplementedError

    def likelihoods(self, report: Report) -> list[Fraction]:
        """P(report | value) for every value: what the holder of the report reasons from."""
        return [self.probability(report, value) for value in range(self.values)]

    def channel(self) -> list[list[Fraction]]:
        """The exact matrix, one row for each report (in the order of `reports`), one column for each value."""
        rows = self.report_size if self.form == "code" else 2**self.values
        if rows * self.values > EXACT_CELLS:
            raise Unsupported(
                f"the exact channel of {self.name} on {self.values:,} values has more than {EXACT_CELLS:,} cells.",
                "channel_array() gives it as floating-point numbers.",
            )
        return [self.likelihoods(report) for report in self.reports()]

    def channel_array(self, *, merge: int = 1) -> NDArray[np.float64]:
        """P(report | value) as an array (reports, values); `merge` neighbours of each together, values weighing the same."""
        from tidegate.collect.channels import channel_array

        return channel_array(self, merge=merge)

    def spread(self) -> float:
        """The variance of one report as an unbiased estimate of its value, in squared steps (numbers only)."""
        raise NotImplementedError

    def measures(self, prior: Any = None) -> Measures:
        """All privacy measures of one report, for a prior over the values (uniform if not given)."""
        from tidegate.collect.measures import measure

        return measure(self, prior)

    def repeated(self, report: Report, source: Bytes) -> Report:
        """A fresh report of a memoised one: the same, unless the operator has an instantaneous layer."""
        return report


def code(report: Report) -> int:
    """A report that is a code."""
    if not isinstance(report, int):
        raise TypeError("a code is needed")
    return report


def members(report: Report) -> list[int]:
    """A report that is a set."""
    if not isinstance(report, list):
        raise TypeError("a list of codes is needed")
    return report


class Pure(Operator):
    """A report supports some of the values: the true one with probability p, any other with probability q.

    An unbiased count of a value is (supports - N q) / (p - q); with a share f its variance is
    N (q (1 - q) + f (p - q) (1 - p - q)) / (p - q)**2.   Reference  Wang, Blocki, Li, Jha 2017 (USENIX Security).
    """

    p: Fraction
    q: Fraction

    def variance(self, share: float = 0.0) -> float:
        """N times the variance of a value's estimated share, exact, where its true share is `share`."""
        p, q = float(self.p), float(self.q)
        return (q * (1 - q) + share * (p - q) * (1 - p - q)) / (p - q) ** 2
