"""Events of discrete Gaussian noise. They have no pure loss: their price is in zcdp and z.

If the integers of all possible data sets of one unit lie in a ball of radius r, in units of sigma, then z is r**2 / 2: the
noise around each of them, against the noise around the center of the ball, has a Renyi divergence of at most
alpha r**2 / 2 for every order alpha. The center is any real point, so it need not be an integer. If two of them are at most
D apart, zcdp is D**2 / 2. Coordinates add up, and each can have its own sigma.

Reference:
    Canonne, Kamath, Steinke 2020, arXiv:2004.00010 (discrete Gaussian noise, zcdp).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from tidegate.accounting.amount import Amount, Price

HALF = Fraction(1, 2)


def ball_price(squared_radius: Fraction, squared_diameter: Fraction) -> Price:
    """Return the price for a ball and a largest distance, both in units of sigma. A distance is at most two radii.

    Numbers that no unit changes cost one grain, so that a charge without a pure loss is never free.
    """
    if not squared_radius:
        return Price(None, Amount(1), Amount(1))
    diameter = min(squared_diameter, 4 * squared_radius)
    return Price.up(None, diameter / 2, squared_radius / 2)


@dataclass(frozen=True)
class DiscreteGaussian:
    """The release of integers with discrete Gaussian noise of one sigma.

    The integers of all possible data sets of one unit lie in a ball of `squared_radius`, and two of them are at most
    `squared_diameter` apart (Euclidean, squared).

    Price:
        zcdp squared_diameter / (2 sigma**2), z squared_radius / (2 sigma**2). No pure loss.
    """

    squared_radius: Fraction
    squared_diameter: Fraction
    sigma: Fraction
    kind: ClassVar[str] = "discrete-gaussian/1"

    def __post_init__(self) -> None:
        _positive(self.squared_radius, self.squared_diameter, self.sigma)

    @property
    def price(self) -> Price:
        return ball_price(self.squared_radius / self.sigma**2, self.squared_diameter / self.sigma**2)

    def to_dict(self) -> dict[str, Any]:
        """Return the event as stored in the ledger."""
        ball = {"squared_radius": str(self.squared_radius), "squared_diameter": str(self.squared_diameter)}
        return {"kind": self.kind, **ball, "sigma": str(self.sigma)}


@dataclass(frozen=True)
class GaussianBox:
    """The release of integers with discrete Gaussian noise; one unit changes the i-th by at most bounds[i].

    Price:
        The integers of one unit lie in a box with sides `bounds`: z is the sum of bounds[i]**2 / (8 sigmas[i]**2), zcdp four
        times that. No pure loss.
    """

    bounds: tuple[int, ...]
    sigmas: tuple[Fraction, ...]
    kind: ClassVar[str] = "gaussian-box/1"

    def __post_init__(self) -> None:
        if not self.bounds or len(self.bounds) != len(self.sigmas) or min(self.bounds) < 1:
            raise ValueError("Bounds must be at least 1, with one sigma for each.")
        _positive(*self.sigmas)

    @property
    def price(self) -> Price:
        sides = sum((bound / sigma) ** 2 for bound, sigma in zip(self.bounds, self.sigmas, strict=True))
        return ball_price(Fraction(sides) / 4, Fraction(sides))

    def to_dict(self) -> dict[str, Any]:
        """Return the event as stored in the ledger."""
        return {"kind": self.kind, "bounds": list(self.bounds), "sigmas": [str(sigma) for sigma in self.sigmas]}


@dataclass(frozen=True)
class GaussianMoments:
    """The release of sums over rows of 1, d and d**2 (those with a sigma), with discrete Gaussian noise of these sigmas.

    d is a whole number from `lowest` to `highest` in each row, and a unit has at most `rows` rows. `cells`: the sums were
    released for each of that many disjoint cells, and a row is in at most one of them. `always`: every row is counted
    regardless of its unit, so that replacing a unit replaces rows one for one.

    Price:
        With n = 1/sigma0, p = max|d|/sigma1, q = max d**2/sigma2 (0 for a sum that was not released), one row adds the
        point (n, d/sigma1, d**2/sigma2) in its cell, or nothing. All these points lie in a ball of squared radius r2
        (`_squared_radius` has the centers); the rows of a unit add up, so r2 grows with rows**2. z is r2 / 2.
        Two points are at most n**2 + p**2 + q**2 apart if one is nothing (squared), twice that in two cells, and
        4 p**2 + q**2 in the same cell: (d - e)**2 <= 4 max|d|**2 and |d**2 - e**2| <= max d**2. zcdp is half of that.

    Reference:
        Worked out above; the tests enumerate rows and compare with exact divergences.
    """

    lowest: int
    highest: int
    rows: int
    sigmas: tuple[Fraction | None, Fraction | None, Fraction | None]
    cells: int = 1
    always: bool = False
    kind: ClassVar[str] = "gaussian-moments/1"

    def __post_init__(self) -> None:
        sigmas = [sigma for sigma in self.sigmas if sigma is not None]
        if not sigmas or min(sigmas) <= 0 or self.lowest > self.highest or self.rows < 1 or self.cells < 1:
            raise ValueError("Ordered bounds, at least 1 row and 1 cell, and at least one sigma above 0 are required.")
        if self.always and (self.sigmas[0] is not None or self.cells > 1 or self.rows > 1):
            raise ValueError("If every row is always counted, the number of rows is public and there is one cell.")

    @property
    def reach(self) -> int:
        return max(abs(self.lowest), abs(self.highest))

    @property
    def price(self) -> Price:
        units = self.rows**2
        return ball_price(self.squared_radius * units, self._squared_diameter() * units)

    @property
    def squared_radius(self) -> Fraction:
        """The squared radius of a ball around the points of one row, in units of the sigmas."""
        number, first, second = self._sides()
        sums_only = self.sigmas[0] is None and self.sigmas[2] is None
        if sums_only and self.sigmas[1] is not None:
            return _sum_radius(self.lowest, self.highest, self.cells, self.always) / self.sigmas[1] ** 2
        if self.cells > 1:
            return (1 - Fraction(1, self.cells)) * (number**2 + second**2) + first**2
        if self.sigmas[0] is None and self.always:
            return _cap(second, first)
        return _enclosing(number, first, second)

    def _sides(self) -> tuple[Fraction, Fraction, Fraction]:
        """Return n, p and q."""
        sizes = (1, self.reach, self.reach**2)
        number, first, second = (
            Fraction(size) / sigma if sigma is not None else Fraction(0)
            for size, sigma in zip(sizes, self.sigmas, strict=True)
        )
        return number, first, second

    def _squared_diameter(self) -> Fraction:
        number, first, second = self._sides()
        presence = number**2 + first**2 + second**2
        change = 4 * first**2 + second**2
        if self.always:
            return change
        return max(presence * (2 if self.cells > 1 else 1), change)

    def to_dict(self) -> dict[str, Any]:
        """Return the event as stored in the ledger."""
        sigmas = [str(sigma) if sigma is not None else None for sigma in self.sigmas]
        bounds = {"lowest": self.lowest, "highest": self.highest, "rows": self.rows}
        return {"kind": self.kind, **bounds, "sigmas": sigmas, "cells": self.cells, "always": self.always}


def _sum_radius(lowest: int, highest: int, cells: int, always: bool) -> Fraction:
    """Return the squared radius of the sums alone, in whole numbers.

    One cell: half of the range, which includes nothing unless the row always counts. Several cells: a center of
    highest / cells in each of them if no value is negative, otherwise nothing.
    """
    if always or cells == 1:
        low, high = (lowest, highest) if always else (min(lowest, 0), max(highest, 0))
        return Fraction((high - low) ** 2, 4)
    reach = Fraction(max(abs(lowest), abs(highest)) ** 2)
    return reach * (1 - Fraction(1, cells)) if lowest >= 0 or highest <= 0 else reach


def _cap(height: Fraction, half_width: Fraction) -> Fraction:
    """Return the squared radius of a circle around (0, 0) and the arc from it to (+-half_width, height).

    The arc is a parabola, or any curve below its chord's parabola. A circle of radius half_width around
    (0, height) contains it if height <= half_width; otherwise one through all three points is smaller.
    """
    if half_width >= height:
        return half_width**2
    return ((height**2 + half_width**2) / (2 * height)) ** 2


def _enclosing(number: Fraction, first: Fraction, second: Fraction) -> Fraction:
    """Return the squared radius of a ball around nothing and (number, +-t first, t**2 second) for 0 <= t <= 1.

    The squared distance from a center (a, 0, b) is convex in t**2, so that only t = 0 and t = 1 count. Every center is
    sound; three candidates are tried: through nothing and both ends, through all, and around the ends.
    """
    wide = number**2 + second**2
    scale = min(Fraction(1), (wide + first**2) / (2 * wide)) if wide else Fraction(0)
    top = (first**2 + second**2) / (2 * second) if second else Fraction(0)
    centers = {(number * scale, second * scale), (number * HALF, top), (number, second), (number, top)}
    return min(
        max(a**2 + b**2, (number - a) ** 2 + b**2, (number - a) ** 2 + first**2 + (second - b) ** 2) for a, b in centers
    )


def _positive(*values: Fraction) -> None:
    if any(value <= 0 for value in values):
        raise ValueError("Radius, diameter and sigma must be above 0.")


def gaussian_from_dict(content: Mapping[str, Any]) -> DiscreteGaussian:
    """Return the event that `to_dict` wrote."""
    radius, diameter, sigma = (Fraction(content[name]) for name in ("squared_radius", "squared_diameter", "sigma"))
    return DiscreteGaussian(radius, diameter, sigma)


def gaussian_box_from_dict(content: Mapping[str, Any]) -> GaussianBox:
    """Return the event that `to_dict` wrote."""
    return GaussianBox(tuple(map(int, content["bounds"])), tuple(map(Fraction, content["sigmas"])))


def gaussian_moments_from_dict(content: Mapping[str, Any]) -> GaussianMoments:
    """Return the event that `to_dict` wrote."""
    number, first, second = (Fraction(sigma) if sigma is not None else None for sigma in content["sigmas"])
    bounds = int(content["lowest"]), int(content["highest"]), int(content["rows"])
    return GaussianMoments(*bounds, (number, first, second), int(content["cells"]), bool(content["always"]))
