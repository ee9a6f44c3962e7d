"""Published Gaussian noise on the grid: the discrete Gaussian, truncated where its weights round to zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Self

from tidegate.errors import Unsupported
from tidegate.operators.additive import PRIVACY, AdditiveNoise, shortest_run
from tidegate.operators.exact_draws import ONE, PLACES, WHOLE, exp_minus
from tidegate.operators.operator import CERTAIN, Parameter

CUT = 8  # standard deviations, at most; weights that round to zero are dropped earlier
WIDTH = Fraction(3919928, 10**6)  # width of the 95% interval, in standard deviations
SIGMA = Parameter(
    "sigma", "The standard deviation, in the attribute's units.", "length", least=Fraction(1, 4), most=Fraction(100)
)


class GaussianNoise(AdditiveNoise):
    """Additive noise with P(d) proportional to exp(-d**2 / (2 sigma**2)), sigma in steps, as integers over 2**48.

    Guarantee:
        The table is the distribution: draws and the channel use the same integers. The shortest interval that
        contains the noise with 95% certainty is at least privacy x range wide. The local loss is unlimited,
        because the table is bounded.

    Reference:
        Agrawal, Srikant 2000: 3.92 sigma for continuous noise; discrete: Canonne, Kamath, Steinke 2020.
    """

    name = "gaussian-noise"
    parameters = (PRIVACY, SIGMA)
    unlimited = True

    def __init__(self, values: int, *, sigma: Fraction) -> None:
        super().__init__(values, table(sigma))
        self.sigma = sigma
        if self.reach == 0:
            raise Unsupported(
                f"gaussian-noise with a sigma of {float(sigma):.3g} steps does not change any value.",
                "Set `sigma` to at least a quarter of a step, or set `privacy`.",
            )

    @classmethod
    def from_parameters(
        cls, values: int, step: Fraction, chosen: Mapping[str, Fraction], plans: Iterable[Any] = ()
    ) -> Self:
        if "privacy" in chosen:
            return cls(values, sigma=sigma_for(values, chosen["privacy"]))
        return cls(values, sigma=chosen["sigma"] / step)


def table(sigma: Fraction) -> list[int]:
    """Return symmetric integer weights of a Gaussian that sum to 2**48; the middle weight absorbs the rounding."""
    half = _half(sigma)
    total = half[0] + 2 * sum(half[1:])
    side = [weight * WHOLE // total for weight in half[1:]]
    while side and side[-1] == 0:
        side.pop()
    return [*reversed(side), WHOLE - 2 * sum(side), *side]


def _half(sigma: Fraction) -> list[int]:
    """Return exp(-d**2 / (2 sigma**2)) for d = 0, 1, ... by two running products, from two exponentials only."""
    inverse = 1 / sigma**2
    ratio, shrink = exp_minus(inverse / 2), exp_minus(inverse)
    half, weight = [ONE], ONE
    for _ in range(int(CUT * sigma) + 1):
        weight = weight * ratio >> PLACES
        ratio = ratio * shrink >> PLACES
        half.append(weight)
    return half


def sigma_for(values: int, privacy: Fraction) -> Fraction:
    """Return a sigma whose 95% interval is at least privacy x range: the published one, or slightly above."""
    least = privacy * (values - 1)
    sixteenths = max(4, int(16 * least / WIDTH) - 1)
    while _width(Fraction(sixteenths, 16)) < least:
        sixteenths += 1
    return Fraction(sixteenths, 16)


def _width(sigma: Fraction) -> int:
    first, last = shortest_run(table(sigma), CERTAIN)
    return last - first
