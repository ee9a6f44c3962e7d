"""DQT: no target's distance from the baseline stands out from the others'."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any

import numpy as np

from tidegate.arrays import Ints
from tidegate.release import _kernels, exact_tests
from tidegate.release.mechanisms.test import Reading, Test
from tidegate.risk.dixon import dixon_critical
from tidegate.risk.exposure import SAME, dixon_coefficient, kullback_leibler


class Dixon(Test):
    """Releases while Dixon's coefficient of the largest distance stays below its critical value.

    Reference:
        Bezzi et al. 2012, Definition 5.12; Dixon 1950 (r10).
    """

    name = "dixon"
    index = _kernels.OUTLIER
    measure = "Dixon's coefficient"
    sees = "one group whose distance from the baseline stands out from all the others'"
    blind = (
        "a second outlier, which hides the first one: in Figure 11 of the paper L1 and L2 are both far from the "
        "baseline (p near 1e-20) and pass; distances are not normal, so among groups that all follow the baseline it "
        "stops 36% at a nominal 20%; order and timing. It does not protect when used alone"
    )

    def arrays(self) -> dict[str, Any]:
        values = [np.inf] * 3 + [self._critical(number) for number in range(3, self.plan.targets + 1)]
        return {"outlier_values": np.array(values)}

    def holds(self, counts: Ints, target: int) -> bool:
        with localcontext(exact_tests.PRECISE):
            return self._holds(counts)

    def _holds(self, counts: Ints) -> bool:
        distances = sorted(
            exact_tests.divergence([int(c) for c in column], self.plan.baseline) / (2 * int(column.sum()))
            for column in counts.T
            if column.any()
        )
        apart = sum(high - low > Decimal(SAME) for low, high in pairwise(distances))
        if apart + 1 < 3:
            return True
        gap, span = distances[-1] - distances[-2], distances[-1] - distances[0]
        return gap < Decimal(self._critical(apart + 1)) * span

    def readings(self, counts: Ints) -> list[Reading]:
        nats = kullback_leibler(counts, self.plan.floats) * math.log(2)
        value, number = dixon_coefficient(nats)
        return [Reading(None, value, self._critical(number) if number >= 3 else math.inf)] if number else []

    def _critical(self, number: int) -> float:
        return dixon_critical(number, self.plan.promise.significance, table=self.plan.promise.dixon_table)
