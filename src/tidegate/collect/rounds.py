"""Advice for a question that is asked repeatedly: a permanent answer, randomized again in every round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tidegate.collect.adviser import FEW_VALUES, NORMAL_95
from tidegate.errors import Unsupported
from tidegate.exact import Number, exact, plain, say
from tidegate.operators import VALUE_OPERATORS, HashResponse, Operator, Pure, RandomizedResponse
from tidegate.operators.operator import EACH, LARGEST_EPSILON


@dataclass(frozen=True)
class RoundsOption:
    """An operator, its line in a policy, the 95% error of one round, and the most that all rounds of one person use.

    lifetime    if the answer takes every value once: one permanent answer for each value, or for each of two cells
    """

    operator: str
    line: str
    error: float
    lifetime: Fraction

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        about = {"operator": self.operator, "policy": self.line}
        return {**about, "error_95": self.error, "lifetime_epsilon": float(self.lifetime)}


@dataclass(frozen=True)
class RoundsAdvice:
    """The operators for rounds, the recommended one first."""

    values: int
    clients: int
    options: tuple[RoundsOption, ...]

    def __str__(self) -> str:
        best = self.options[0]
        error = f"an error of at most {say(100 * best.error)} percentage points (95%)"
        return (
            f'Write {best.line} and repeats = "two-layers". {self.clients:,} reports of one round estimate the share of a category with '
            f"{error}. The permanent answers of one person use at most epsilon {say(best.lifetime)}, however often the answer changes; when it "
            "changed is hidden by the noise of each round only."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        about = {"values": self.values, "clients": self.clients, "says": str(self)}
        return {**about, "options": [option.to_dict() for option in self.options]}


def advise_rounds(values: int, *, clients: int, epsilon: Number, each: Number) -> RoundsAdvice:
    """Return the operators for a category of `values` values that is asked in rounds, the recommended one first.

    Plain response has the smaller error for up to four values. For more, hash response is first: its error does not grow
    with the number of values, and an answer that changes often uses two permanent answers instead of one for each value.

    Args:
        epsilon: The loss of one permanent answer.
        each: The loss of one report, below epsilon.
    """
    total, single = exact(epsilon), exact(each)
    if not Fraction(1, 1000) <= single < total <= LARGEST_EPSILON:
        raise Unsupported(f"`each` must be below `epsilon`, both from 0.001 to {LARGEST_EPSILON}.")
    if values < 2 or clients < 1:
        raise Unsupported("Specify at least 2 values and 1 client.")
    kinds = [kind for kind in VALUE_OPERATORS.values() if EACH in kind.parameters and values <= kind.most_values]
    options = [_option(kind, values, clients, total, single) for kind in kinds]
    first = RandomizedResponse.name if values <= FEW_VALUES else HashResponse.name
    return RoundsAdvice(values, clients, tuple(sorted(options, key=lambda o: (o.operator != first, o.error))))


def _option(kind: type[Operator], values: int, clients: int, epsilon: Fraction, each: Fraction) -> RoundsOption:
    operator = kind.from_parameters(values, Fraction(1), {"epsilon": epsilon, "each": each})
    if not isinstance(operator, Pure):
        raise TypeError(kind.name)
    line = f'operator = "{kind.name}", epsilon = {plain(epsilon)}, each = {plain(each)}'
    error = NORMAL_95 * math.sqrt(operator.variance(1 / values) / clients)
    return RoundsOption(kind.name, line, error, epsilon * (kind.most_answers or values))
