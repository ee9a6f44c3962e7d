"""Quantiles, lowest and highest: one value of the public grid, chosen by the distance of its rank from the requested one.

The lowest value itself cannot be released privately (it can belong to a single person). The mechanism aims a few ranks
inside instead, at a rank where it is unlikely to miss the data. That rank is public and is reported.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidegate.accounting import Choices, Event, Exponential, Together
from tidegate.answer.mechanisms.mechanism import Exact, Reading, axes_of, cells_of
from tidegate.answer.request import Query
from tidegate.noise import Bits, exponential_choice, exponential_choices
from tidegate.policy import Numeric, Policy
from tidegate.tables import Axis
from tidegate.tables.universe import measured_of

if TYPE_CHECKING:
    from tidegate.tables import Table

FINE = 2**12
FINEST = 2**40  # steps of the square root of an average loss


class Ranks:
    """Scores are whole numbers: minus the distance between the requested rank and the ranks that a value covers.

    Guarantee:
        One row that is added, removed or changed moves a score by at most `share`'s denominator (1 for the ends), k
        rows by k times that; the exponential mechanism then loses 2 * rate * that. Over groups, a unit's rows can
        move from one group to another: two choices are affected, and both are charged.
    """

    def event(self, query: Query, policy: Policy, *, epsilon: Fraction) -> Event:
        touched = 2 if query.groups else 1
        sensitivity = Fraction(policy.dataset.unit.rows_per_person * _denominator(query))
        choice = Exponential(sensitivity, _round_down(epsilon / (2 * sensitivity * touched)))
        return Together((choice, choice)) if query.groups else choice

    def average_event(self, query: Query, policy: Policy, *, z: Fraction) -> Choices:
        sensitivity = Fraction(policy.dataset.unit.rows_per_person * _denominator(query))
        groups = cells_of(query, policy)
        per_square = Choices(Fraction(1), Fraction(1), groups).price.z.value  # z is this times (rate * sensitivity)**2
        moved = Fraction(math.isqrt(math.floor(z / per_square * FINEST**2)), FINEST)
        return Choices(sensitivity, _round_down(moved / sensitivity), groups)

    def error(self, query: Query, policy: Policy, event: Event, *, confidence: float) -> float | None:
        return None

    def rank_error(self, query: Query, policy: Policy, event: Event, *, confidence: float = 0.95) -> int:
        """Return the largest distance, in rows and at that confidence, between the chosen and the requested rank."""
        size = measured_of(policy, query.column).size
        return math.ceil(math.log(size / (1 - confidence)) / float(_rate(event) * _denominator(query)))

    def caution(self, query: Query, policy: Policy, event: Event) -> str:
        ranks = self.rank_error(query, policy, event)
        if query.statistic == "quantile":
            return f"its rank is within {ranks:,} row{'' if ranks == 1 else 's'} of the requested one, 95%"
        end = "lowest" if query.statistic == "min" else "highest"
        return f"it aims at number {self.aim(query, policy, event):,} from the {end}, and is within {ranks:,} rows of that, 95%"

    def aim(self, query: Query, policy: Policy, event: Event) -> int:
        """Return the rank that represents an end: far enough inside that all values beyond it together are unlikely."""
        return max(1, math.ceil(math.log(measured_of(policy, query.column).size) / float(_rate(event))))

    def exact(self, query: Query, table: Table) -> Exact:
        """Return the rows at every value, in every group."""
        axes = [*axes_of(query, table.policy), Axis(query.column, measured_of(table.policy, query.column))]
        cells = table.count(axes, where=query.condition)
        present = cells[..., : measured_of(table.policy, query.column).size]  # missing values have no rank
        return Exact(query, table.policy, (present,))

    def perturb(self, exact: Exact, event: Event, *, bits: Bits, size: int | None = None) -> dict[str, Any]:
        (cells,) = exact.numbers
        groups, rate = cells.reshape(-1, cells.shape[-1]), _rate(event)
        scores = [self.scores(exact.query, exact.policy, event, group) for group in groups]
        shape = cells.shape[:-1]
        if size is None:
            codes = [exponential_choice(group, rate, bits=bits) for group in scores]
            return {"codes": np.array(codes, np.int64).reshape(shape).tolist()}
        drawn = [exponential_choices(group, rate, size=size, bits=bits) for group in scores]
        return {"codes": np.stack(drawn, axis=1).reshape(size, *shape).tolist()}

    def scores(self, query: Query, policy: Policy, event: Event, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for every value minus the distance of the requested rank from the ranks that the value covers."""
        upto = np.cumsum(counts)
        below, total = upto - counts, int(upto[-1])
        if query.statistic == "max":
            upto, below = total - below, total - upto  # counted from above
        if query.share is not None:
            target, size = query.share.numerator * total, query.share.denominator
            return np.asarray(-np.maximum(0, np.maximum(size * below - target, target - size * upto)))
        aim = self.aim(query, policy, event)
        return np.asarray(-np.maximum(0, np.maximum(below - (aim - 1), aim - upto)))

    def read(self, query: Query, policy: Policy, event: Event, stored: Any, *, confidence: float) -> Reading:
        attribute = measured_of(policy, query.column)
        assert isinstance(attribute, Numeric)  # noqa: S101  (Query.check has seen to it)
        codes = np.array(stored["codes"], np.float64)
        values = float(attribute.low) + codes * float(attribute.width)
        return Reading(values, None, None, values)


def _denominator(query: Query) -> int:
    return query.share.denominator if query.share is not None else 1


def _rate(event: Event) -> Fraction:
    choice = event.parts[0] if isinstance(event, Together) else event
    if not isinstance(choice, Exponential | Choices):
        raise ValueError("Ranks must be chosen by the exponential mechanism.")
    return choice.rate


def _round_down(rate: Fraction) -> Fraction:
    """Return the rate, or one just below it with a short numerator, so that whole-number scores fit into 62 bits."""
    if rate.numerator <= FINE and rate.denominator <= 2**60:
        return rate
    grid = 1
    while rate * grid < FINE and grid < 2**60:
        grid *= 2
    rounded = Fraction(math.floor(rate * grid), grid)
    if not rounded:
        raise ValueError("This epsilon is too small to choose among ranks.")
    return rounded
