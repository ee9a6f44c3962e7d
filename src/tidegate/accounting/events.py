"""Privacy events: frozen values whose price can be recomputed at any later time.

An event is written to the ledger before a row is read. Its name and version are permanent: NEVER remove an event, NEVER
change its meaning or its price. A new meaning is a new version next to the old one. The price is the loss under replacement
of one protected unit (a row, or a person with at most k rows), in three units. The prices of all events on one data set add up.

Every mechanism with pure loss e has zcdp e**2 / 2 and z e**2 / 8: with a reference proportional to the geometric mean of the
largest and the smallest probability of each response, the logarithm of the ratio has a range of at most e.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from tidegate.accounting.amount import FREE, Price
from tidegate.accounting.gaussian import (
    DiscreteGaussian,
    GaussianBox,
    GaussianMoments,
    gaussian_box_from_dict,
    gaussian_from_dict,
    gaussian_moments_from_dict,
)
from tidegate.accounting.moments import Moments, moments_from_dict, pure_price


class Event(Protocol):
    """An object with a name, a price, and a stored form."""

    kind: ClassVar[str]

    @property
    def price(self) -> Price: ...

    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class DiscreteLaplace:
    """The release of integers with discrete Laplace noise of `scale`; one unit changes them by at most `sensitivity` (L1).

    Price:
        sensitivity / scale.

    Reference:
        Ghosh, Roughgarden, Sundararajan 2009; Canonne, Kamath, Steinke 2020, arXiv:2004.00010.
    """

    sensitivity: Fraction
    scale: Fraction
    kind: ClassVar[str] = "discrete-laplace/1"

    def __post_init__(self) -> None:
        _positive(self.sensitivity, self.scale)

    @property
    def price(self) -> Price:
        return pure_price(self.sensitivity / self.scale)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "sensitivity": str(self.sensitivity), "scale": str(self.scale)}


@dataclass(frozen=True)
class Exponential:
    """The selection from a public list with probability proportional to exp(rate * score).

    One unit changes every score by at most `sensitivity`. `one_sided`: it changes all scores in the same direction.

    Price:
        2 * rate * sensitivity; rate * sensitivity if one-sided. zcdp e**2 / 8 (the ratios of two data sets have a range
        of e). z: with a reference in the middle between the largest and the smallest score of each candidate, the
        range is rate * sensitivity, so (rate * sensitivity)**2 / 8.

    Reference:
        McSherry, Talwar 2007; Cesar, Rogers 2021 (bounded range).
    """

    sensitivity: Fraction
    rate: Fraction
    one_sided: bool = False
    kind: ClassVar[str] = "exponential/1"

    def __post_init__(self) -> None:
        _positive(self.sensitivity, self.rate)

    @property
    def price(self) -> Price:
        moved = self.rate * self.sensitivity
        pure = moved if self.one_sided else 2 * moved
        return Price.up(pure, pure**2 / 8, moved**2 / 8)

    def to_dict(self) -> dict[str, Any]:
        rates = {"sensitivity": str(self.sensitivity), "rate": str(self.rate)}
        return {"kind": self.kind, **rates, "one_sided": self.one_sided}


@dataclass(frozen=True)
class Filtered:
    """Adaptively chosen steps under a filter that stops at `epsilon`, repeated `times` times independently.

    There is one repetition for each synthetic table.

    Price:
        epsilon * times: the losses of all steps of one repetition add up to at most epsilon. One repetition has
        zcdp epsilon**2 / 2 and z epsilon**2 / 8, and repetitions add up.

    Reference:
        Rogers, Roth, Ullman, Vadhan 2016, arXiv:1605.08294 (pure losses: the sum is the filter).
    """

    epsilon: Fraction
    times: int = 1
    kind: ClassVar[str] = "filtered/1"

    def __post_init__(self) -> None:
        _positive(self.epsilon)
        if isinstance(self.times, bool) or not isinstance(self.times, int) or self.times < 1:
            raise ValueError("`times` must be a whole number of at least 1.")

    @property
    def price(self) -> Price:
        squared = self.epsilon**2 * self.times
        return Price.up(self.epsilon * self.times, squared / 2, squared / 8)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "epsilon": str(self.epsilon), "times": self.times}


@dataclass(frozen=True)
class FilteredGaussian:
    """Adaptively chosen steps under a filter that stops at `z` and at `zcdp`, repeated `times` times independently.

    There is one repetition for each synthetic table. The steps are noisy counts and choices without a pure bound.

    Price:
        z * times and zcdp * times; the pure loss is unbounded.

    Reference:
        Feldman, Zrnic 2021, arXiv:2008.11193 (the sum is a filter for every order at once).
    """

    z: Fraction
    zcdp: Fraction
    times: int = 1
    kind: ClassVar[str] = "filtered-gaussian/1"

    def __post_init__(self) -> None:
        _positive(self.z, self.zcdp)
        if isinstance(self.times, bool) or not isinstance(self.times, int) or self.times < 1:
            raise ValueError("`times` must be a whole number of at least 1.")

    @property
    def price(self) -> Price:
        return Price.up(None, self.zcdp * self.times, self.z * self.times)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "z": str(self.z), "zcdp": str(self.zcdp), "times": self.times}


@dataclass(frozen=True)
class KNorm:
    """The release of integers with box noise; one unit changes the i-th integer by at most bounds[i].

    The noise z has P(z) ~ exp(-k(z) / scale), where k(z) is the smallest whole k with steps |z_i| <= k bounds[i] for all i.

    Price:
        steps / scale: k changes by at most `steps` if z changes by at most the bounds (`noise.box`).

    Reference:
        Hardt, Talwar 2010; Awan & Slavkovic 2018, arXiv:1801.09236.
    """

    bounds: tuple[int, ...]
    steps: int
    scale: Fraction
    kind: ClassVar[str] = "k-norm/1"

    def __post_init__(self) -> None:
        if not self.bounds or min(self.bounds) < 1 or self.steps < 1 or self.scale <= 0:
            raise ValueError("Bounds and steps must be at least 1, and the scale must be above 0.")

    @property
    def price(self) -> Price:
        return pure_price(self.steps / self.scale)

    def to_dict(self) -> dict[str, Any]:
        """Return the event as stored in the ledger."""
        return {"kind": self.kind, "bounds": list(self.bounds), "steps": self.steps, "scale": str(self.scale)}


@dataclass(frozen=True)
class Choices:
    """One selection in each of `groups` disjoint groups, each with probability proportional to exp(rate * score).

    A unit's rows can be in any group, and change the scores of one group by at most `sensitivity`, or those of several by
    parts of it.

    Price:
        With m = rate * sensitivity. One group: that of `Exponential` (two-sided). Several: a unit that moves from one
        group to another changes two selections, so the pure loss is 4 m and zcdp is m**2. z: a reference without the unit
        differs from every data set in one group, by m**2 / 2; one in the middle of all scores differs in every
        group, by m**2 / 8 each. The lower of the two counts.

    Reference:
        McSherry, Talwar 2007; Cesar, Rogers 2021 (bounded range).
    """

    sensitivity: Fraction
    rate: Fraction
    groups: int = 1
    kind: ClassVar[str] = "choices/1"

    def __post_init__(self) -> None:
        _positive(self.sensitivity, self.rate)
        if isinstance(self.groups, bool) or not isinstance(self.groups, int) or self.groups < 1:
            raise ValueError("`groups` must be a whole number of at least 1.")

    @property
    def price(self) -> Price:
        moved = self.rate * self.sensitivity
        if self.groups == 1:
            return Price.up(2 * moved, moved**2 / 2, moved**2 / 8)
        return Price.up(4 * moved, moved**2, min(Fraction(self.groups, 8), Fraction(1, 2)) * moved**2)

    def to_dict(self) -> dict[str, Any]:
        """Return the event as stored in the ledger."""
        rates = {"sensitivity": str(self.sensitivity), "rate": str(self.rate)}
        return {"kind": self.kind, **rates, "groups": self.groups}


@dataclass(frozen=True)
class Together:
    """Several events on the same units. The price is the sum of theirs, regardless of order.

    Two equal events `exponential/1` are also how a choice in each of several groups was recorded: every group then has
    its own reference, and z is that of zcdp. (`Choices` records such a query now.)
    """

    parts: tuple[Event, ...]
    kind: ClassVar[str] = "together/1"

    @property
    def price(self) -> Price:
        total = sum((part.price for part in self.parts), FREE)
        choices = [part for part in self.parts if isinstance(part, Exponential)]
        return replace(total, z=total.zcdp) if len(set(choices)) < len(choices) else total

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "parts": [part.to_dict() for part in self.parts]}


def _positive(*values: Fraction) -> None:
    if any(value <= 0 for value in values):
        raise ValueError("Sensitivity, scale, rate and epsilon must be above 0.")


def k_norm_from_dict(content: Mapping[str, Any]) -> KNorm:
    """Return the event that `to_dict` wrote."""
    return KNorm(tuple(map(int, content["bounds"])), int(content["steps"]), Fraction(content["scale"]))


def event_from_dict(content: Mapping[str, Any]) -> Event:
    """Return the event that `to_dict` wrote, for every version ever written."""
    try:
        read = KINDS[content["kind"]]
    except (KeyError, TypeError):
        raise ValueError("The event is of an unknown kind.") from None
    return read(content)


KINDS: dict[str, Callable[[Mapping[str, Any]], Event]] = {
    Choices.kind: lambda c: Choices(Fraction(c["sensitivity"]), Fraction(c["rate"]), c["groups"]),
    DiscreteGaussian.kind: gaussian_from_dict,
    DiscreteLaplace.kind: lambda c: DiscreteLaplace(Fraction(c["sensitivity"]), Fraction(c["scale"])),
    Exponential.kind: lambda c: Exponential(Fraction(c["sensitivity"]), Fraction(c["rate"]), bool(c["one_sided"])),
    GaussianBox.kind: gaussian_box_from_dict,
    GaussianMoments.kind: gaussian_moments_from_dict,
    Filtered.kind: lambda c: Filtered(Fraction(c["epsilon"]), c["times"]),
    FilteredGaussian.kind: lambda c: FilteredGaussian(Fraction(c["z"]), Fraction(c["zcdp"]), c["times"]),
    KNorm.kind: k_norm_from_dict,
    Moments.kind: moments_from_dict,
    Together.kind: lambda c: Together(tuple(event_from_dict(part) for part in c["parts"])),
}
