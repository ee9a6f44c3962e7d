"""Counts with integer noise."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.accounting import DiscreteGaussian, DiscreteLaplace
from tidegate.answer.mechanisms.mechanism import (
    Exact,
    Reading,
    axes_of,
    cells_of,
    clip_reading,
    most_rows,
    noise_of,
    spread,
)
from tidegate.answer.request import Query
from tidegate.noise import Bits, scale_for, sigma_for
from tidegate.policy import Policy

if TYPE_CHECKING:
    from tidegate.tables import Table

Counted = DiscreteLaplace | DiscreteGaussian


class Counts:
    """The number of rows in every cell plus noise.

    Guarantee:
        Replacing one unit's k rows changes one number by at most k, and disjoint cells by at most 2 k in total
        (k are removed, k are added): pure loss 2 k / scale, or k / scale for a single number. On average: the numbers of
        one unit lie in a ball around k / 2, or around k / G in each of G cells, of squared radius k**2 / 4 or
        k**2 (G - 1) / G.
    """

    def rows_per_unit(self, query: Query, policy: Policy) -> int:
        """Return the most that one unit adds to all numbers together."""
        return policy.dataset.unit.rows_per_person

    def event(self, query: Query, policy: Policy, *, epsilon: Fraction) -> DiscreteLaplace:
        rows = self.rows_per_unit(query, policy)
        sensitivity = Fraction(2 * rows if axes_of(query, policy) else rows)
        return DiscreteLaplace(sensitivity, scale_for(sensitivity, epsilon))

    def average_event(self, query: Query, policy: Policy, *, z: Fraction) -> DiscreteGaussian:
        squared_rows, cells = self.rows_per_unit(query, policy) ** 2, cells_of(query, policy)
        radius = squared_rows * (Fraction(cells - 1, cells) if cells > 1 else Fraction(1, 4))
        return DiscreteGaussian(radius, Fraction(squared_rows * (2 if cells > 1 else 1)), sigma_for(radius, z))

    def error(self, query: Query, policy: Policy, event: Counted, *, confidence: float) -> float | None:
        return float(noise_of(event).quantile(confidence))

    def caution(self, query: Query, policy: Policy, event: Any) -> str:
        rows, cells = most_rows(policy), cells_of(query, policy)
        if not isinstance(event, DiscreteLaplace | DiscreteGaussian):
            return ""  # measured together with other queries
        error = noise_of(event).quantile(0.95)
        if rows is None or cells == 1 or error * cells <= rows:
            return ""
        return f"the error of {error:,} exceeds the average of {rows / cells:,.1f} rows in each of {cells:,} cells"

    def exact(self, query: Query, table: Table) -> Exact:
        cells = table.count(axes_of(query, table.policy), where=query.condition)
        return Exact(query, table.policy, (cells,))

    def perturb(self, exact: Exact, event: Counted, *, bits: Bits, size: int | None = None) -> dict[str, Any]:
        cells = spread(exact.numbers[0], size)
        noisy = cells + noise_of(event).draw(cells.size, bits=bits).reshape(cells.shape)
        return {"cells": noisy.tolist()}

    def read(self, query: Query, policy: Policy, event: Counted, stored: Any, *, confidence: float) -> Reading:
        values = np.array(stored["cells"], np.int64)
        half = noise_of(event).quantile(confidence)
        return clip_reading(values, values - half, values + half, ends=(0, most_rows(policy)))


class Distinct(Counts):
    """The number of different values in every cell plus noise.

    Guarantee:
        k rows that leave remove at most k values, and k that enter add at most k: one number changes by at most k, and
        disjoint cells by at most 2 k in total. What a unit adds to the numbers is between 0 and the number of its rows in
        each cell, so that the ball of `Counts` contains it.
    """

    def exact(self, query: Query, table: Table) -> Exact:
        cells = table.distinct(query.column, by=axes_of(query, table.policy), where=query.condition)
        return Exact(query, table.policy, (cells,))


class Persons(Counts):
    """The number of persons in every cell plus noise.

    Guarantee:
        In one cell a person is counted once, whatever the number of rows: the number changes by at most 1, and all rows of
        a person are read. In C cells a person with at most k rows is in at most min(k, C) of them.
    """

    def rows_per_unit(self, query: Query, policy: Policy) -> int:
        return min(policy.dataset.unit.rows_per_person, cells_of(query, policy)) if query.groups else 1

    def exact(self, query: Query, table: Table) -> Exact:
        return Exact(query, table.policy, (table.persons(by=axes_of(query, table.policy), where=query.condition),))

    def read(self, query: Query, policy: Policy, event: Counted, stored: Any, *, confidence: float) -> Reading:
        values = np.array(stored["cells"], np.int64)
        half = noise_of(event).quantile(confidence)
        return clip_reading(values, values - half, values + half, ends=(0, policy.dataset.rows))
