"""Sums, means and variances from integer moments with integer noise.

A mean is a sum of centered values over a number of rows; a variance needs the squares too. All come from the same few noisy
integers, and later arithmetic on them is free. The number of rows is public if every row counts (unit "row", a declared
number, no condition, no group, missing = "lowest"); otherwise it is noisy too, and charged.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.accounting import GaussianMoments, Moments
from tidegate.answer.mechanisms.mechanism import (
    Exact,
    Reading,
    axes_of,
    cells_of,
    clip_reading,
    most_rows,
    noises_of,
    rows_per_cell,
    spread,
)
from tidegate.answer.request import Query
from tidegate.arrays import Floats
from tidegate.exact import say
from tidegate.noise import Bits, Noise, round_up, sigma_for
from tidegate.policy import EachRow, Numeric, Policy
from tidegate.tables.mappings import Measured
from tidegate.tables.universe import measured_of

if TYPE_CHECKING:
    from tidegate.tables import Table

# The split of the budget between number, sum and squares if all are noisy. The best split depends on the data; these are
# public and work well if the mean is within a third of the range from its middle.
SHARES = {
    "sum": (Fraction(0), Fraction(1), Fraction(0)),
    "mean": (Fraction(1, 3), Fraction(2, 3), Fraction(0)),
    "variance": (Fraction(1, 5), Fraction(2, 5), Fraction(2, 5)),
    "std": (Fraction(1, 5), Fraction(2, 5), Fraction(2, 5)),
}

Summed = Moments | GaussianMoments
ROUNDED = Fraction(1, 2**40)
LEAST = Fraction(1, 4)  # squared radius: a column with one value still gets the noise of one step


class Sums:
    """Noisy sums of 1, d and d**2, from which sums, means and variances follow.

    Guarantee:
        The loss of the event, worked out in `tidegate.accounting.Moments` and `GaussianMoments`; no float before the noise.
    """

    def event(self, query: Query, policy: Policy, *, epsilon: Fraction) -> Moments:
        grid = _Lattice(query, policy)
        known = rows_are_public(query, policy)
        reach, span = max(abs(grid.lowest), abs(grid.highest), 1), max(grid.highest - grid.lowest, 1)
        sizes = (Fraction(1), Fraction(span if known else reach), Fraction(reach**2))
        base: list[Fraction | None] = [None, None, None]
        for power in grid.powers:
            base[power] = sizes[power] / SHARES[query.statistic][power]
        if query.statistic == "mean" and not query.groups and not known and span > reach:
            # a changed row changes the sum by its span, an added one by its reach: the difference is left for the number
            base[0], base[1] = Fraction(span, span - reach), Fraction(span)
        rows = policy.dataset.unit.rows_per_person
        shape = {"grouped": bool(query.groups), "always": known}
        unscaled = Moments(grid.lowest, grid.highest, rows, (base[0], base[1], base[2]), **shape)
        factor = unscaled.loss / epsilon
        scales = [round_up(scale * factor) if scale is not None else None for scale in base]
        return Moments(grid.lowest, grid.highest, rows, (scales[0], scales[1], scales[2]), **shape)

    def average_event(self, query: Query, policy: Policy, *, z: Fraction) -> GaussianMoments:
        """Return Gaussian noise on the same sums, each with a sigma in units of its largest term.

        At equal parts the number of rows is free beside a sum, and the squares are if every row counts
        (`GaussianMoments`); of a variance over an unknown number of rows, all three share the loss.
        """
        grid = _Lattice(query, policy)
        reach = max(abs(grid.lowest), abs(grid.highest), 1)
        base = [Fraction(reach) ** power if power in grid.powers else None for power in range(3)]
        shape: dict[str, Any] = {"cells": cells_of(query, policy), "always": grid.known}
        rows = policy.dataset.unit.rows_per_person
        unscaled = GaussianMoments(grid.lowest, grid.highest, rows, (base[0], base[1], base[2]), **shape)
        factor = sigma_for((unscaled.squared_radius or LEAST) * rows**2, z)
        while True:
            sigmas = [round_up(sigma * factor) if sigma is not None else None for sigma in base]
            event = GaussianMoments(grid.lowest, grid.highest, rows, (sigmas[0], sigmas[1], sigmas[2]), **shape)
            if event.price.z.value <= z:
                return event
            factor *= 1 + ROUNDED  # sigmas that were rounded by different amounts

    def error(self, query: Query, policy: Policy, event: Summed, *, confidence: float) -> float | None:
        grid, rows = _Lattice(query, policy), rows_per_cell(query, policy)
        if query.statistic == "sum":
            return float(grid.unit * _required(noises_of(event)[1]).quantile(confidence))
        if query.statistic != "mean" or rows is None:
            return None
        half = _halves(event, confidence)
        if rows_are_public(query, policy):
            return float(grid.unit) * half[1] / float(rows)
        at_end = max(abs(grid.lowest), abs(grid.highest))
        return float(grid.unit) * (half[1] + at_end * half[0]) / max(1.0, float(rows) - half[0])

    def caution(self, query: Query, policy: Policy, event: Summed) -> str:
        attribute = measured_of(policy, query.column)
        if isinstance(attribute, Measured) and attribute.rounded:
            steps = f"values are rounded to steps of {say(attribute.step)}"
        else:
            steps = ""
        if query.statistic == "sum" or rows_are_public(query, policy):
            return steps
        rows = rows_per_cell(query, policy)
        even = (
            f"; the expected error is for about {float(rows):,.0f} rows in each number"
            if rows and query.statistic == "mean"
            else ""
        )
        return "; ".join(filter(None, [f"the number of rows is not public here, so it is noisy too{even}", steps]))

    def exact(self, query: Query, table: Table) -> Exact:
        """Return the integers that get noise: number, sum and squares in every cell, if the statistic needs them."""
        grid = _Lattice(query, table.policy)
        powers = sorted({0, *grid.powers} if grid.shifts and not grid.known else grid.powers)
        axes = axes_of(query, table.policy)
        sums = table.moments(query.column, by=axes, where=query.condition, center=grid.center, powers=powers)
        moments = {
            power: np.asarray(cells, dtype=object) for power, cells in zip(powers, sums, strict=True)
        }  # Python's own integers
        if grid.shifts:
            number: Any = table.policy.dataset.rows if grid.known else moments[0]
            moments[1] = np.asarray(grid.factor * moments[1] + grid.offset * number, dtype=object)
        return Exact(query, table.policy, tuple(moments[power] for power in grid.powers))

    def perturb(self, exact: Exact, event: Summed, *, bits: Bits, size: int | None = None) -> dict[str, Any]:
        noisy: list[Any] = [None, None, None]
        noises = [(power, noise) for power, noise in enumerate(noises_of(event)) if noise is not None]
        for (power, noise), numbers in zip(noises, exact.numbers, strict=True):
            cells = spread(numbers, size)
            drawn = noise.draw(cells.size, bits=bits).reshape(cells.shape)
            noisy[power] = np.asarray(cells + drawn, dtype=object).tolist()
        return {"moments": noisy}

    def read(self, query: Query, policy: Policy, event: Summed, stored: Any, *, confidence: float) -> Reading:
        grid = _Lattice(query, policy)
        noisy = [np.array(cells, np.float64) if cells is not None else None for cells in stored["moments"]]
        half = _halves(event, confidence)
        if query.statistic == "sum":
            total = np.array(stored["moments"][1], np.float64)
            parts = (float(grid.unit) * part for part in (total, total - half[1], total + half[1]))
            return clip_reading(*parts, ends=_sum_ends(grid, policy))
        if noisy[0] is None:
            noisy[0] = np.full(np.asarray(noisy[1]).shape, float(policy.dataset.rows or 0))
        box = _Box(grid, [np.asarray(n) for n in noisy if n is not None], half)
        if query.statistic == "mean":
            return _within(box.mean(), *box.mean_between(), noisy=box.noisy_mean())
        low, high = box.variance_between()
        if query.statistic == "variance":
            return _within(box.variance(), low, high, noisy=box.noisy_variance())
        deviation = np.sqrt(np.maximum(box.noisy_variance(), 0.0))
        return _within(np.sqrt(box.variance()), np.sqrt(low), np.sqrt(high), noisy=deviation)


def rows_are_public(query: Query, policy: Policy) -> bool:
    """Return whether every row counts regardless of its values, so that the policy states their number."""
    attributes = [measured_of(policy, name) for name in (query.column, *query.terms)]
    whole = query.condition is None and not query.groups and isinstance(policy.dataset.unit, EachRow)
    return whole and policy.dataset.rows is not None and all(getattr(a, "missing", "") == "lowest" for a in attributes)


def sum_unit(query: Query, policy: Policy) -> Fraction:
    """Return the unit in which a sum gets its integer noise."""
    return _Lattice(query, policy).unit


def _within(value: Floats, low: Floats, high: Floats, *, noisy: Floats) -> Reading:
    """Return a reading with the value clipped to its interval, which corrects rounding errors only."""
    return Reading(np.clip(value, low, high), low, high, noisy)


def _sum_ends(grid: _Lattice, policy: Policy) -> tuple[float | None, float | None]:
    """Return the public range of a sum: over all rows if every row counts, otherwise over any number of them."""
    low, high, rows = float(grid.attribute.low), float(grid.attribute.high), most_rows(policy)
    if grid.known:
        return grid.rows * low, grid.rows * high
    if rows is not None:
        return rows * min(0.0, low), rows * max(0.0, high)
    return (0.0 if low >= 0 else None), (0.0 if high <= 0 else None)


class _Lattice:
    """The whole numbers that a row adds.

    For means and variances: code - center, in steps of the grid. For a sum: the value itself in units of the largest number
    that divides both the grid's step and its start.
    """

    def __init__(self, query: Query, policy: Policy) -> None:
        attribute = measured_of(policy, query.column)
        assert isinstance(attribute, Numeric)  # noqa: S101  (Query.check has seen to it)
        self.attribute, self.known = attribute, rows_are_public(query, policy)
        self.rows = policy.dataset.rows or 0
        last = attribute.size - 1
        self.center = 0 if query.statistic == "sum" else last // 2
        self.unit, self.factor, self.offset = attribute.width, 1, -self.center
        if query.statistic == "sum":
            self.unit = _common(attribute.width, attribute.low) if attribute.low else attribute.width
            self.factor, self.offset = int(attribute.width / self.unit), int(attribute.low / self.unit)
        self.powers = [n for n, share in enumerate(SHARES[query.statistic]) if share and not (self.known and n == 0)]
        self.lowest, self.highest = self.offset, self.factor * last + self.offset
        self.middle = float(attribute.low + self.center * attribute.width)
        self.shifts = query.statistic == "sum" and self.offset != 0


class _Box:
    """Noisy moments and their errors; the box contains the true moments with the confidence of all three together."""

    def __init__(self, grid: _Lattice, noisy: list[Floats], half: list[float]) -> None:
        self.grid, self.width = grid, float(grid.attribute.width)
        self.number = np.maximum(noisy[0], 1.0)
        self.least, self.most = np.maximum(noisy[0] - half[0], 1.0), np.maximum(noisy[0] + half[0], 1.0)
        self.useless = noisy[0] - half[0] <= 0
        self.first, self.off1 = noisy[1], half[1]
        self.second, self.off2 = (noisy[2], half[2]) if len(noisy) > 2 else (noisy[1], 0.0)

    def noisy_mean(self) -> Floats:
        return np.asarray(self.grid.middle + self.width * self.first / self.number)

    def mean(self) -> Floats:
        return np.clip(self.noisy_mean(), float(self.grid.attribute.low), float(self.grid.attribute.high))

    def mean_between(self) -> tuple[Floats, Floats]:
        low, high = self._ratio(self.first - self.off1, self.first + self.off1)
        ends = float(self.grid.attribute.low), float(self.grid.attribute.high)
        shifted = [np.clip(self.grid.middle + self.width * end, *ends) for end in (low, high)]
        return np.where(self.useless, ends[0], shifted[0]), np.where(self.useless, ends[1], shifted[1])

    def _ratio(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        corners = [top / bottom for top in (low, high) for bottom in (self.least, self.most)]
        return np.minimum.reduce(corners), np.maximum.reduce(corners)

    def noisy_variance(self) -> Floats:
        spread = self.second / self.number - (self.first / self.number) ** 2
        return np.asarray(spread * self.width**2 * self._sample())

    def variance(self) -> Floats:
        return np.clip(self.noisy_variance(), 0.0, self._largest())

    def variance_between(self) -> tuple[Floats, Floats]:
        mean = self._ratio(self.first - self.off1, self.first + self.off1)
        square = self._ratio(self.second - self.off2, self.second + self.off2)
        far = np.maximum(mean[0] ** 2, mean[1] ** 2)
        near = np.where((mean[0] < 0) & (mean[1] > 0), 0.0, np.minimum(mean[0] ** 2, mean[1] ** 2))
        scale = self.width**2 * self._sample()
        low, high = (
            np.clip((square[0] - far) * scale, 0.0, self._largest()),
            np.clip((square[1] - near) * scale, 0.0, self._largest()),
        )
        return np.where(self.useless, 0.0, low), np.where(self.useless, self._largest(), high)

    def _sample(self) -> Floats:
        return np.asarray(self.number / np.maximum(self.number - 1, 1.0))

    def _largest(self) -> float:
        return float((self.grid.attribute.high - self.grid.attribute.low) ** 2) / 2


def _halves(event: Summed, confidence: float) -> list[float]:
    """Return the error of each noisy moment such that all hold together with the confidence (a union bound)."""
    noises = noises_of(event)
    each = 1 - (1 - confidence) / sum(noise is not None for noise in noises)
    return [float(noise.quantile(each)) if noise is not None else 0.0 for noise in noises]


def _required(noise: Noise | None) -> Noise:
    if noise is None:
        raise ValueError("A sum must have noise.")
    return noise


def _common(first: Fraction, second: Fraction) -> Fraction:
    """Return the largest fraction of which both are whole multiples."""
    return Fraction(
        math.gcd(first.numerator * second.denominator, second.numerator * first.denominator),
        first.denominator * second.denominator,
    )
