"""Counts with integer noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from tidegate.accounting import DiscreteLaplace
from tidegate.answer.mechanisms.mechanism import Exact, Reading, axes_of, clip_reading, most_rows, spread
from tidegate.answer.request import Query
from tidegate.noise import Bits, discrete_laplace, noise_quantile, scale_for
from tidegate.policy import Policy
from tidegate.tables import Table


class Counts:
    """The number of rows in every cell plus noise.

    Guarantee:
        Replacing one unit's k rows changes one number by at most k, and disjoint cells by at most 2 k in total
        (k are removed, k are added): pure loss 2 k / scale, or k / scale for a single number.
    """

    def event(self, query: Query, policy: Policy, *, epsilon: Fraction) -> DiscreteLaplace:
        rows = policy.dataset.unit.rows_per_person
        sensitivity = Fraction(2 * rows if axes_of(query, policy) else rows)
        return DiscreteLaplace(sensitivity, scale_for(sensitivity, epsilon))

    def error(self, query: Query, policy: Policy, event: DiscreteLaplace, *, confidence: float) -> float | None:
        return float(noise_quantile(event.scale, confidence))

    def caution(self, query: Query, policy: Policy, event: DiscreteLaplace) -> str:
        return ""

    def exact(self, query: Query, table: Table) -> Exact:
        cells = table.count(axes_of(query, table.policy), where=query.condition)
        return Exact(query, table.policy, (cells,))

    def perturb(self, exact: Exact, event: DiscreteLaplace, *, bits: Bits, size: int | None = None) -> dict[str, Any]:
        cells = spread(exact.numbers[0], size)
        noisy = cells + discrete_laplace(event.scale, size=cells.size, bits=bits).reshape(cells.shape)
        return {"cells": noisy.tolist()}

    def read(self, query: Query, policy: Policy, event: DiscreteLaplace, stored: Any, *, confidence: float) -> Reading:
        values = np.array(stored["cells"], np.int64)
        half = noise_quantile(event.scale, confidence)
        return clip_reading(values, values - half, values + half, ends=(0, most_rows(policy)))
