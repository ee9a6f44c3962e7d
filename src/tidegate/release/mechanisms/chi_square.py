"""CST: the released values of no single target fail a goodness-of-fit test against the baseline."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from tidegate.arrays import Ints
from tidegate.release import _kernels, exact_tests
from tidegate.release.mechanisms.test import Reading, Test
from tidegate.risk.critical import chi_square_critical
from tidegate.risk.exposure import merge_sparse_bins, pearson

MERGING = {
    "forward": _kernels.FORWARD,
    "smaller-neighbour": _kernels.SMALLER_NEIGHBOUR,
    "smallest-first": _kernels.SMALLEST_FIRST,
}


class ChiSquare(Test):
    """Releases while Pearson's statistic, over values merged until each holds five records, stays below its critical value.

    Reference:
        Bezzi et al. 2012, Definition 5.9, Property 5.10 and Section 6 for the merging.
    """

    name = "chi-square"
    index = _kernels.FIT
    measure = "Pearson's cumulative statistic"
    sees = "a group whose merged values drift from the baseline, once there are enough records of it to be tested"
    blind = (
        "what merging hides: in Figure 9 of the paper the location L2 is safe with 38 of its 52 records in one age range, "
        "unmerged it would fail with p near 0; that few records of L2 are released (3% instead of 13%); order and timing"
    )

    def arrays(self) -> dict[str, Any]:
        level = self.plan.promise.significance
        values = [np.inf, *(chi_square_critical(freedom, level) for freedom in range(1, self.plan.values))]
        return {"fit_values": np.array(values), "merging": MERGING[self.plan.promise.merging]}

    def holds(self, counts: Ints, target: int) -> bool:
        column = [int(c) for c in counts[:, target]]
        starts = merge_sparse_bins(column, rule=self.plan.promise.merging)
        if len(starts) == 1:
            return True
        ends = [*starts[1:], len(column)]
        merged = [sum(column[a:b]) for a, b in zip(starts, ends, strict=True)]
        shares = [sum(self.plan.baseline[a:b], Fraction(0)) for a, b in zip(starts, ends, strict=True)]
        critical = chi_square_critical(len(starts) - 1, self.plan.promise.significance)
        return exact_tests.pearson(merged, shares) < Fraction(critical)

    def readings(self, counts: Ints) -> list[Reading]:
        all_readings = []
        for y, column in enumerate(counts.T):
            value, freedom = pearson(column, self.plan.baseline, rule=self.plan.promise.merging)
            level = self.plan.promise.significance
            all_readings.append(Reading(y, value, chi_square_critical(freedom, level) if freedom else math.inf))
        return [reading for reading, size in zip(all_readings, counts.sum(axis=0), strict=True) if size]
