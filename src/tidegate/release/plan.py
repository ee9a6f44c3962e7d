"""The public data on which the decisions of one promise depend: computed once, stored in the ledger, used by every process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import PolicyUnreadable
from tidegate.policy import Concealment
from tidegate.release.request import Progress
from tidegate.risk.simulation import CriticalTable, target_table, total_table

# A simulated critical value is itself a value of the statistic: a measure equal to it has reached it.
REACHED = 1 - 1e-9
TOTAL, TARGET = "total", "target"  # tables of critical values: of all records, of the records of one target


@dataclass(frozen=True)
class Plan:
    """A promise with its baseline, the shares of its targets, and its critical values."""

    promise: Concealment
    baseline: tuple[Fraction, ...]
    shares: tuple[Fraction, ...]
    tables: Mapping[str, CriticalTable] = field(default_factory=dict)

    @property
    def values(self) -> int:
        return len(self.baseline)

    @property
    def targets(self) -> int:
        return len(self.shares)

    @cached_property
    def floats(self) -> NDArray[np.float64]:
        """The baseline in floating point."""
        return np.array([float(share) for share in self.baseline])

    def to_dict(self) -> dict[str, Any]:
        """Return what the ledger stores; the promise itself is in the policy."""
        return {
            "baseline": [str(share) for share in self.baseline],
            "shares": [str(share) for share in self.shares],
            "tables": {name: table.to_dict() for name, table in self.tables.items()},
        }


def make_plan(
    promise: Concealment, baseline: Sequence[Fraction], shares: Sequence[Fraction], *, progress: Progress | None = None
) -> Plan:
    """Make the plan of a promise from baseline and shares as weights. Simulates critical values if tests need them."""
    expected, divided = normalize(baseline, "the baseline"), normalize(shares, "the shares")
    published = promise.small_samples == "published"
    tables = {}
    if "mutual-information" in promise.tests:
        tables[TOTAL] = total_table(expected, divided, promise.significance, published=published, progress=progress)
    if "kullback-leibler" in promise.tests:
        tables[TARGET] = target_table(expected, promise.significance, published=published, progress=progress)
    return Plan(promise, expected, divided, tables)


def plan_from_dict(promise: Concealment, content: Mapping[str, Any]) -> Plan:
    """Return the plan that `Plan.to_dict` wrote."""
    baseline, shares = (tuple(Fraction(item) for item in content[name]) for name in ("baseline", "shares"))
    tables = {name: CriticalTable.from_dict(table) for name, table in content["tables"].items()}
    return Plan(promise, baseline, shares, tables)


def normalize(weights: Sequence[Fraction], what: str) -> tuple[Fraction, ...]:
    """Return weights as probabilities. A weight of 0 is refused: one record of that value would prove everything."""
    total = sum(weights, Fraction(0))
    if len(weights) < 2 or min(weights) <= 0:
        raise PolicyUnreadable(
            f"{what.capitalize()} must have a weight above 0 for each of {len(weights)} cells.",
            "Set weights in the policy, or declare only values that occur (merge rare ones in bins).",
        )
    return tuple(Fraction(weight) / total for weight in weights)
