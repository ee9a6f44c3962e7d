"""Several counts at once: one noisy measurement of shared cells, from which all of them follow by least squares.

Answers that are measured one by one split the loss. Here every row is counted in a few cells of one strategy instead:

    histogram    every combination of values of the columns that the queries use
    tree         ranges of one column: halves (or thirds ...) of halves, down to single values
    marginals    tables of the columns that are grouped by, each with its own noise

The error of each query follows from the strategy and the policy alone, so that the best strategy is chosen, and its error
shown, before anything is charged. All answers come from one table of estimates, so that they agree with each other; a public number
of rows is a measurement without noise.

Reference:
    Hay et al. 2010 (trees); Li et al. 2015, "The matrix mechanism" (least squares); McKenna et al. 2018 (marginals);
    Canonne, Kamath, Steinke 2020 (Gaussian noise).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tidegate.accounting import Event
from tidegate.answer.mechanisms.estimates import Estimated
from tidegate.answer.mechanisms.mechanism import axes_of, noise_of
from tidegate.answer.request import Query
from tidegate.answer.spending import RequestedLoss
from tidegate.answer.workloads.dense import dense_strategies
from tidegate.answer.workloads.marginals import marginal_strategies
from tidegate.arrays import Ints
from tidegate.noise import Bits
from tidegate.policy import Policy

if TYPE_CHECKING:
    from tidegate.tables import Table

STATISTICS = ("count", "histogram")


class Strategy(Protocol):
    """A way to measure: its event, the integers that get noise, and the estimates that follow."""

    @property
    def name(self) -> str: ...

    @property
    def event(self) -> Event: ...

    def describe(self) -> dict[str, Any]:
        """Return the strategy as a part of the request's identity."""
        ...

    def variance(self) -> float:
        """Return the mean variance of the queries; of a query with several numbers, their mean."""
        ...

    def expected(self) -> list[Estimated]:
        """Return the deviations of every query; all values are 0."""
        ...

    def exact(self, table: Table) -> list[Ints]:
        """Read the table, and return the integers that get noise."""
        ...

    def perturb(self, exact: list[Ints], *, bits: Bits) -> list[Any]:
        """Return the noisy integers."""
        ...

    def estimate(self, noisy: list[Any]) -> list[Estimated]:
        """Return the estimates of every query."""
        ...


def plan_workload(queries: Sequence[Query], policy: Policy, loss: RequestedLoss) -> Strategy | None:
    """Return the strategy with the least mean variance, or None if queries one by one are at least as good.

    The queries must be counts (or histograms), and have been checked.
    """
    if len(queries) < 2 and not any(axes_of(query, policy) for query in queries):
        return None
    if not all(query.statistic in STATISTICS and _uses_columns_only(query, policy) for query in queries):
        return None
    candidates: list[Strategy] = [*dense_strategies(queries, policy, loss), *marginal_strategies(queries, policy, loss)]
    alone = one_by_one_variance(queries, policy, loss)
    best = min(candidates, key=lambda strategy: strategy.variance(), default=None)
    return best if best is not None and best.variance() < alone else None


def _uses_columns_only(query: Query, policy: Policy) -> bool:
    """Return whether a query groups by columns and compares columns, without expressions."""
    tests = query.condition.tests() if query.condition is not None else set()
    return not tests and set(query.groups) <= set(policy.attributes)


def one_by_one_variance(queries: Sequence[Query], policy: Policy, loss: RequestedLoss) -> float:
    """Return the mean variance of the answers if each query gets its own noise."""
    part = loss.part(len(queries))
    events: list[Any] = [part.event(query, policy) for query in queries]
    return sum(noise_of(event).variance for event in events) / len(events)
