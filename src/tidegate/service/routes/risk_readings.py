"""One promise under both guarantees: the loss that it allows, its yes/no limit, and the error of several equal answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tidegate.accounting import Amount, Target, epsilon_at_delta, yes_no_at
from tidegate.accounting.average import DELTA
from tidegate.errors import Unsupported
from tidegate.policy.promises import GUARANTEES, Guarantee

ANSWERS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
UNITS: dict[Guarantee, str] = {"worst-case": "epsilon", "average": "z"}


@dataclass(frozen=True)
class Reading:
    """A total loss under one guarantee: an epsilon in the worst case, a z on average."""

    guarantee: Guarantee
    loss: Amount

    @property
    def unit(self) -> str:
        return UNITS[self.guarantee]

    @property
    def yes_no(self) -> float:
        """How often a yes/no question about one person can be answered correctly: for every response, or over the noise."""
        return float(yes_no_at(self.loss, self.guarantee))

    @property
    def epsilon_at_delta(self) -> float:
        """The epsilon of differential privacy at delta = 1e-6: an upper bound on average, the pure epsilon in the worst case."""
        return epsilon_at_delta(Amount(4 * self.loss.grains)) if self.guarantee == "average" else float(self.loss)

    def error(self, answers: int) -> float:
        """Return the standard deviation of each of several equal answers that spend the loss, in ranges of the answer.

        Worst case: Laplace noise of scale K / E. Average: Gaussian noise with sigma**2 = K / (8 Z), because the radius of a range
        of 1 is 1/2. The noise is a little larger where the answers are small whole numbers.
        """
        if self.guarantee == "average":
            return math.sqrt(answers / (8 * float(self.loss)))
        return answers * math.sqrt(2) / float(self.loss)

    def to_dict(self) -> dict[str, Any]:
        return {
            self.unit: str(self.loss),
            "yes_no": self.yes_no,
            "epsilon_at_delta": self.epsilon_at_delta,
            "delta": float(DELTA) if self.guarantee == "average" else 0.0,
            "errors": [{"answers": count, "error": self.error(count)} for count in ANSWERS] if self.loss else [],
        }


def possibilities(worlds: Fraction, within: int) -> Fraction:
    """Return 1 / the probability of a random guess that counts as right to within a number of steps on each side."""
    count = worlds / (2 * within + 1)
    if count > 1:
        return count
    raise Unsupported(
        f"A guess to within {within:,} steps covers all values, so it is always right."
        if within
        else "`worlds` must be above 1.",
        "Use a smaller `within`." if within else "Use, for example, ?worlds=99&rho=0.1.",
    )


def readings_of(rho: Fraction, worlds: Fraction, stated: Reading | None = None) -> dict[Guarantee, Reading]:
    """Return both readings of a promise; `stated` is used for its own guarantee. Empty if rho cannot be promised."""
    targets = {guarantee: Target("this", worlds, rho, guarantee) for guarantee in GUARANTEES}
    if not rho < 1 or not all(target.feasible for target in targets.values()):
        return {}
    readings = {guarantee: Reading(guarantee, target.limit) for guarantee, target in targets.items()}
    return {**readings, stated.guarantee: stated} if stated else readings


def readings_to_dict(readings: Mapping[Guarantee, Reading]) -> dict[str, Any] | None:
    return {guarantee: reading.to_dict() for guarantee, reading in readings.items()} or None
