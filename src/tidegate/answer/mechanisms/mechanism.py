"""The protocol of mechanisms."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.accounting import DiscreteGaussian, DiscreteLaplace, Event, GaussianMoments, Moments
from tidegate.answer.request import Query
from tidegate.noise import Bits, Gaussian, Laplace, Noise
from tidegate.policy import Category, Policy
from tidegate.tables import Axis
from tidegate.tables.universe import grouping_of

if TYPE_CHECKING:
    from tidegate.tables import Table


@dataclass(frozen=True)
class Reading:
    """The values of a stored result, and their intervals at some confidence (of the noise alone).

    Guarantee:
        If there are intervals, every value is in its own. `noisy` is the number before it was clipped to its public
        range: unbiased, for further arithmetic.
    """

    values: NDArray[Any]
    low: NDArray[Any] | None
    high: NDArray[Any] | None
    noisy: NDArray[Any]


def clip_reading(noisy: Any, low: Any, high: Any, *, ends: tuple[float | None, float | None]) -> Reading:
    """Return the noisy number and its interval, clipped to a public range (None: no end on that side).

    The value stays in the interval: one monotonic function changes both.
    """
    if ends == (None, None):
        return Reading(noisy, low, high, noisy)
    value, bottom, top = (np.asarray(np.clip(part, *ends)) for part in (noisy, low, high))
    return Reading(value, bottom, top, np.asarray(noisy))


@dataclass(frozen=True)
class Exact:
    """What a mechanism computed from the rows before any noise. It never leaves the process.

    `numbers` holds one array for each kind of number (counts, or moments by power), with the shape of the cells.
    """

    query: Query
    policy: Policy
    numbers: tuple[NDArray[Any], ...]


class Mechanism(Protocol):
    """The way from a query to a noisy result. Only `exact` accesses rows, and only `perturb` draws noise."""

    def event(self, query: Query, policy: Policy, *, epsilon: Fraction) -> Event:
        """Return the event for a loss of at most `epsilon`, without data."""
        ...

    def average_event(self, query: Query, policy: Policy, *, z: Fraction) -> Event:
        """Return the event for an average loss of at most `z`, without data."""
        ...

    def error(self, query: Query, policy: Policy, event: Any, *, confidence: float) -> float | None:
        """Return the error of the answer in the column's unit; None if it depends on the data."""
        ...

    def caution(self, query: Query, policy: Policy, event: Any) -> str:
        """Return a note for the reader; empty if there is none."""
        ...

    def exact(self, query: Query, table: Table) -> Any:
        """Read the table once and return the integers that get noise: the only query to the engine."""
        ...

    def perturb(self, exact: Any, event: Any, *, bits: Bits, size: int | None = None) -> dict[str, Any]:
        """Return the noisy integers in stored form; with `size`, that many independent results along a first axis."""
        ...

    def read(self, query: Query, policy: Policy, event: Any, stored: Any, *, confidence: float) -> Reading:
        """Return the reading of stored integers, or of several results along a first axis at once."""
        ...


def noise_of(event: DiscreteLaplace | DiscreteGaussian) -> Noise:
    """Return the noise of every number of an event."""
    return Laplace(event.scale) if isinstance(event, DiscreteLaplace) else Gaussian(event.sigma)


def noises_of(event: Moments | GaussianMoments) -> list[Noise | None]:
    """Return the noise of number, sum and squares; None where it was not released."""
    if isinstance(event, Moments):
        return [Laplace(scale) if scale is not None else None for scale in event.scales]
    return [Gaussian(sigma) if sigma is not None else None for sigma in event.sigmas]


def spread(cells: NDArray[Any], size: int | None) -> NDArray[Any]:
    """Repeat the exact cells for `size` independent results along a first axis; None leaves them as they are."""
    return cells if size is None else np.broadcast_to(cells, (size, *cells.shape))


def most_rows(policy: Policy) -> int | None:
    """Return the largest number of rows of any count, if the policy declares it."""
    rows = policy.dataset.rows
    return None if rows is None else rows * policy.dataset.unit.rows_per_person


def axes_of(query: Query, policy: Policy) -> list[Axis]:
    """Return the axes of the cells of a query: its groups, and the bins of a histogram."""
    axes = [Axis(name, grouping_of(policy, name)) for name in query.groups]
    if query.statistic == "histogram":
        axes.append(Axis(query.column, policy.countable(query.column), binned=True))
    if query.statistic == "regression":
        axes.append(Axis("term", Category(("(intercept)", *query.terms))))
    return axes


def cells_of(query: Query, policy: Policy) -> int:
    """Return the number of cells of the answer."""
    return int(np.prod([axis.length for axis in axes_of(query, policy)], dtype=object))


def rows_per_cell(query: Query, policy: Policy) -> Fraction | None:
    """Return the number of rows per cell under an even distribution: public, and for expected errors only.

    A person counts with one row unless the policy declares about how many `records` there are.
    """
    rows, most = policy.dataset.records or policy.dataset.rows, most_rows(policy)
    if rows is None:
        return None
    return Fraction(min(rows, most) if most is not None else rows, cells_of(query, policy))
