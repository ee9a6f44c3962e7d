"""Published uniform noise: an integer from -half_width to half_width, all equally likely."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Self

from tidegate.operators.additive import PRIVACY, EvenNoise
from tidegate.operators.operator import Parameter

HALF_WIDTH = Parameter(
    "half_width", "The half-width, in the attribute's units.", "length", least=Fraction(1, 4), most=Fraction(100)
)


class UniformNoise(EvenNoise):
    """Additive uniform noise.

    Guarantee:
        The shortest interval that contains the noise with 95% certainty is at least privacy x range wide (the range
        is values - 1 steps). The local loss is unlimited: a report near an end of its range reveals the value.

    Reference:
        Agrawal, Srikant 2000 (SIGMOD): 2 x 0.95 x half_width for continuous noise.
    """

    name = "uniform-noise"
    parameters = (PRIVACY, HALF_WIDTH)
    unlimited = True

    def __init__(self, values: int, *, half_width: int) -> None:
        super().__init__(values, [1] * (2 * half_width + 1))
        self.half_width = half_width

    @classmethod
    def from_parameters(
        cls, values: int, step: Fraction, chosen: Mapping[str, Fraction], plans: Iterable[Any] = ()
    ) -> Self:
        if "privacy" in chosen:
            return cls(values, half_width=half_width_for(values, chosen["privacy"]))
        return cls(values, half_width=math.ceil(chosen["half_width"] / step))


def half_width_for(values: int, privacy: Fraction) -> int:
    """Return the smallest half-width h with ceil(0.95 (2h + 1)) - 1 >= privacy x range."""
    least = math.ceil(privacy * (values - 1))
    half = max(1, int(Fraction(10, 19) * least) - 2)
    while math.ceil(Fraction(19, 20) * (2 * half + 1)) - 1 < least:
        half += 1
    return half
