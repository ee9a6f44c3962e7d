"""MIS: all targets together reveal next to nothing about the values of a record."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

from tidegate.arrays import Ints
from tidegate.release import _kernels, exact_tests
from tidegate.release.mechanisms.test import Reading, Test
from tidegate.release.plan import REACHED, TOTAL, Plan
from tidegate.risk.exposure import mutual_information


class MutualInformation(Test):
    """Releases while 2 N ln2 I(X, Y) stays below the value that chance alone exceeds with the given probability.

    Reference:
        Bezzi et al. 2012, Definition 5.1 and Property 5.2; degrees of freedom of the declared domain.
    """

    name = "mutual-information"
    index = _kernels.MUTUAL
    measure = "mutual information (bits)"
    sees = "any dependence between the released values and their groups, over all groups together"
    blind = (
        "one small group: its part in the average is small (in Figure 6 of the paper L2 passes although its own distance "
        "has p = 0.003); the order, timing and bursts of releases; that the measure stays just below its critical value"
    )

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._parts: dict[int, tuple[bytes, Decimal]] = {}

    def arrays(self) -> dict[str, Any]:
        table = self.plan.tables[TOTAL]
        return {
            "total_sizes": table.sizes,
            "total_values": table.values * REACHED,
            "total_beyond": table.beyond * REACHED,
        }

    def holds(self, counts: Ints, target: int) -> bool:
        critical = self._critical(int(counts.sum()))
        with localcontext(exact_tests.PRECISE):
            return sum(map(self._column, range(self.plan.targets), counts.T), Decimal(0)) < Decimal(critical)

    def _column(self, target: int, column: Ints) -> Decimal:
        """Return the part of one target; cached, because few of many targets change between calls."""
        counted, part = self._parts.get(target, (b"", Decimal(0)))
        if counted != column.tobytes():
            part = exact_tests.divergence([int(c) for c in column], self.plan.baseline)
            self._parts[target] = column.tobytes(), part
        return part

    def readings(self, counts: Ints) -> list[Reading]:
        total = int(counts.sum())
        if not total:
            return []
        critical = self._critical(total) / (2 * total * math.log(2))
        return [Reading(None, mutual_information(counts, self.plan.floats), critical)]

    def _critical(self, total: int) -> float:
        return self.plan.tables[TOTAL].at(total) * REACHED
