"""Counts with integer noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

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

    def event(self, query: Query, policy: Policy, *, epsilon: Fraction) -> DiscreteLaplace:
        rows = policy.dataset.unit.rows_per_person
        sensitivity = Fraction(2 * rows if axes_of(query, policy) else rows)
        return DiscreteLaplace(sensitivity, scale_for(sensitivity, epsilon))

    def average_event(self, query: Query, policy: Policy, *, z: Fraction) -> DiscreteGaussian:
        squared_rows, cells = policy.dataset.unit.rows_per_person**2, cells_of(query, policy)
        radius = squared_rows * (Fraction(cells - 1, cells) if cells > 1 else Fraction(1, 4))
        return DiscreteGaussian(radius, Fraction(squared_rows * (2 if cells > 1 else 1)), sigma_for(radius, z))

    def error(self, query: Query, policy: Policy, event: Counted, *, confidence: float) -> float | None:
        return float(noise_of(event).quantile(confidence))

    def caution(self, query: Query, policy: Policy, event: Counted) -> str:
        return ""

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
