"""KLD: the released values of no single target drift from the baseline."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from tidegate.arrays import Ints
from tidegate.release import _kernels, exact_tests
from tidegate.release.mechanisms.test import Reading, Test
from tidegate.release.plan import REACHED, TARGET
from tidegate.risk.exposure import kullback_leibler


class KullbackLeibler(Test):
    """Releases while 2 n_y ln2 KL(y) stays below the value that chance alone exceeds with the given probability.

    Reference:
        Bezzi et al. 2012, Definition 5.5 and Property 5.6; degrees of freedom of the declared domain.
    """

    name = "kullback-leibler"
    index = _kernels.DISTANCE
    measure = "Kullback-Leibler distance (bits)"
    sees = "any single group whose released values drift from the baseline"
    blind = (
        "a small drift in the same direction of many groups at once; the order, timing and bursts of releases; the "
        "number of released records of each group, to an observer who knows the size of the group"
    )

    def arrays(self) -> dict[str, Any]:
        table = self.plan.tables[TARGET]
        values = table.dense(int(table.sizes[-1])) * REACHED
        return {"target_values": values, "target_beyond": table.beyond * REACHED}

    def holds(self, counts: Ints, target: int) -> bool:
        column = [int(c) for c in counts[:, target]]
        return exact_tests.divergence(column, self.plan.baseline) < Decimal(self._critical(sum(column)))

    def readings(self, counts: Ints) -> list[Reading]:
        distances, sizes = kullback_leibler(counts, self.plan.floats), counts.sum(axis=0)
        return [
            Reading(y, float(distances[y]), self._critical(int(size)) / (2 * int(size) * math.log(2)))
            for y, size in enumerate(sizes)
            if size
        ]

    def _critical(self, size: int) -> float:
        return self.plan.tables[TARGET].at(size) * REACHED
