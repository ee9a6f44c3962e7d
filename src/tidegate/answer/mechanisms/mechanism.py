"""What every mechanism can do."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.accounting import Event
from tidegate.answer.request import Query
from tidegate.noise import Bits
from tidegate.policy import Category, Policy
from tidegate.tables import Axis, Table


@dataclass(frozen=True)
class Reading:
    """What a stored result says: values, and where the truth lies with a given confidence (of the noise alone).

    Guarantee  Where there is an interval, every value lies in its own. `noisy` is the number before it was brought into its
               public range: unbiased, for further arithmetic.
    """

    values: NDArray[Any]
    low: NDArray[Any] | None
    high: NDArray[Any] | None
    noisy: NDArray[Any]


def projected(noisy: Any, low: Any, high: Any, *, ends: tuple[float | None, float | None]) -> Reading:
    """The noisy number and its interval, which holds it, brought into a public range (None: no end on that side).

    The value lies in the interval: both are moved by one function that never changes an order.
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
    """From a query to a noisy result. Nothing but `exact` sees a row, and nothing but `perturb` draws noise."""

    def event(self, query: Query, policy: Policy, *, epsilon: Fraction) -> Event:
        """What it will do for at most `epsilon`, stated without data."""
        ...

    def error(self, query: Query, policy: Policy, event: Any, *, confidence: float) -> float | None:
        """How far the answer may be off, in the column's unit; None where that depends on the data."""
        ...

    def caution(self, query: Query, policy: Policy, event: Any) -> str:
        """What else a reader must know, in a sentence; empty where nothing."""
        ...

    def exact(self, query: Query, table: Table) -> Any:
        """Read the table once and return the integers that get noise: all that is asked of the engine."""
        ...

    def perturb(self, exact: Any, event: Any, *, bits: Bits, size: int | None = None) -> dict[str, Any]:
        """Return the noisy integers as they are stored; with `size`, that many independent results along a first axis."""
        ...

    def read(self, query: Query, policy: Policy, event: Any, stored: Any, *, confidence: float) -> Reading:
        """What stored integers say; of several results along a first axis, all at once."""
        ...


def spread(cells: NDArray[Any], size: int | None) -> NDArray[Any]:
    """Repeat the exact cells for `size` independent results along a first axis; None leaves them as they are."""
    return cells if size is None else np.broadcast_to(cells, (size, *cells.shape))


def most_rows(policy: Policy) -> int | None:
    """The most rows that any count can have, where the policy says it."""
    rows = policy.dataset.rows
    return None if rows is None else rows * policy.dataset.unit.rows_per_person


def axes_of(query: Query, policy: Policy) -> list[Axis]:
    """The axes of the cells of a query: its groups, and the bins of a histogram."""
    axes = [Axis(name, policy.countable(name)) for name in query.groups]
    if query.statistic == "histogram":
        axes.append(Axis(query.column, policy.countable(query.column), binned=True))
    if query.statistic == "regression":
        axes.append(Axis("term", Category(("(intercept)", *query.terms))))
    return axes


def cells_of(query: Query, policy: Policy) -> int:
    """In how many cells the answer comes."""
    return int(np.prod([axis.length for axis in axes_of(query, policy)], dtype=object))


def rows_per_cell(query: Query, policy: Policy) -> Fraction | None:
    """How many rows a cell has if they are spread evenly: public, and only for what is said beforehand."""
    if policy.dataset.rows is None:
        return None
    return Fraction(policy.dataset.rows, cells_of(query, policy))
