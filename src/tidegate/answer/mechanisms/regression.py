"""Linear regression from integer sums with integer noise.

Least squares needs a few sums: of every column, of products of two. They get noise once, all else is arithmetic. Two ways:

k-norm        noise measured by the box in which one unit can change the sums: all sums share it (default)
functional    discrete Laplace noise on each sum, as wide as the range of its own product: the functional mechanism

Reference:
    Zhang et al. 2012, "Functional mechanism" (PVLDB 5); Awan & Slavkovic 2018, arXiv:1801.09236 (K-norm).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidegate.accounting import DiscreteLaplace, Event, GaussianBox, KNorm, Together
from tidegate.answer.mechanisms.mechanism import Exact, Reading
from tidegate.answer.mechanisms.sums import rows_are_public
from tidegate.answer.request import Query
from tidegate.arrays import Floats
from tidegate.noise import STEPS, Bits, box_noise, discrete_gaussian, discrete_laplace, round_up, scale_for, sigma_for
from tidegate.policy import Numeric, Policy

if TYPE_CHECKING:
    from tidegate.tables import Table

FLAT = 1e-4
AGAIN = 2_000  # simulated noises, to estimate the error


class Regressions:
    """Noisy sums of products, from which the coefficients follow.

    Guarantee:
        With d = code - center and |d| <= B, a row that is added, removed or changed changes a sum of d by at most the span
        of the column, of d**2 by B**2, of d e by 2 B C, and the number of rows by 1; k rows by k times that. All these at once
        are a box: the K-norm event prices the box, the functional mechanism adds up its sides, and the Gaussian event adds
        up their squares.
    """

    def event(self, query: Query, policy: Policy, *, epsilon: Fraction) -> Event:
        bounds = Sums(query, policy).bounds
        if query.method == "functional":
            scales = self._functional_scales(query, policy, epsilon)
            return Together(tuple(DiscreteLaplace(Fraction(b), s) for b, s in zip(bounds, scales, strict=True)))
        return KNorm(bounds, STEPS, round_up(STEPS / epsilon))

    def average_event(self, query: Query, policy: Policy, *, z: Fraction) -> GaussianBox:
        """Return Gaussian noise on every sum, with the sigma of each in units of its largest term."""
        sums = Sums(query, policy)
        squares = sum((Fraction(b, u) ** 2 for b, u in zip(sums.bounds, sums.units, strict=True)), Fraction(0))
        factor = sigma_for(squares / 4, z)
        return GaussianBox(sums.bounds, tuple(round_up(factor * unit) for unit in sums.units))

    def _functional_scales(self, query: Query, policy: Policy, epsilon: Fraction) -> list[Fraction]:
        """The same scale for every sum, in units of its largest term."""
        sums = Sums(query, policy)
        total = sum((Fraction(b, u) for b, u in zip(sums.bounds, sums.units, strict=True)), Fraction(0))
        return [scale_for(total * unit, epsilon) for unit in sums.units]

    def error(self, query: Query, policy: Policy, event: Event, *, confidence: float) -> float | None:
        return None

    def caution(self, query: Query, policy: Policy, event: Event) -> str:
        caution = "the interval was estimated by simulating the noise around the noisy sums"
        if not rows_are_public(query, policy):
            caution = f"the number of rows is not public here, so it is noisy too; {caution}"
        return caution

    def exact(self, query: Query, table: Table) -> Exact:
        """Return the sums that get noise, as Python's own integers."""
        sums = Sums(query, table.policy)
        gram = table.products(sums.columns, where=query.condition, centers=sums.centers)
        return Exact(query, table.policy, (np.array([int(gram[i, j]) for i, j in sums.pairs], dtype=object),))

    def perturb(self, exact: Exact, event: Any, *, bits: Bits, size: int | None = None) -> dict[str, Any]:
        (sums,) = exact.numbers
        if size is not None:
            return {"sums": [(sums + self._draw(event, bits)).tolist() for _ in range(size)]}
        return {"sums": (sums + self._draw(event, bits)).tolist()}

    def _draw(self, event: Any, bits: Bits) -> NDArray[Any]:
        """Draw the noise of all sums at once."""
        if isinstance(event, KNorm):
            noise = box_noise(event.bounds, event.scale, steps=event.steps, bits=bits)
        elif isinstance(event, GaussianBox):
            noise = [int(discrete_gaussian(sigma, size=1, bits=bits)[0]) for sigma in event.sigmas]
        else:
            noise = [int(discrete_laplace(part.scale, size=1, bits=bits)[0]) for part in event.parts]
        return np.array(noise, dtype=object)

    def read(self, query: Query, policy: Policy, event: Any, stored: Any, *, confidence: float) -> Reading:
        sums, noisy = Sums(query, policy), np.array(stored["sums"], np.float64)
        if noisy.ndim > 1:
            return self._read_each(query, policy, event, stored["sums"], confidence)
        coefficients = sums.coefficients(noisy[None])[0]
        again = sums.coefficients(
            noisy + float_noise(event, np.random.default_rng(1), AGAIN)
        )  # a fixed seed: read twice, it says the same
        tail = 100 * (1 - confidence) / 2
        low, high = np.percentile(2 * coefficients - again, [tail, 100 - tail], axis=0)
        return Reading(coefficients, np.minimum(low, coefficients), np.maximum(high, coefficients), coefficients)

    def _read_each(self, query: Query, policy: Policy, event: Any, results: Any, confidence: float) -> Reading:
        """Read several results: the interval of each needs its own repetition of the noise."""
        each = [self.read(query, policy, event, {"sums": result}, confidence=confidence) for result in results]
        ends = ((reading.values, reading.low, reading.high) for reading in each)
        values, low, high = (np.array(column, np.float64) for column in zip(*ends, strict=True))
        return Reading(values, low, high, values)


def float_noise(event: Any, random: np.random.Generator, times: int) -> Floats:
    """Return the noise again, in floating point, which is enough for an interval: (times, sums)."""
    if isinstance(event, KNorm):
        bounds = np.array(event.bounds, np.float64)
        norm = random.gamma(bounds.size + 1, float(event.scale) / event.steps, times)
        return np.asarray(norm[:, None] * random.uniform(-1, 1, (times, bounds.size)) * bounds)
    if isinstance(event, GaussianBox):
        return np.asarray(random.normal(0, [float(sigma) for sigma in event.sigmas], (times, len(event.sigmas))))
    scales = np.array([float(part.scale) for part in event.parts])
    return np.asarray(random.laplace(0, 1, (times, scales.size)) * scales)


@dataclass(frozen=True)
class Sums:
    """The sums of a regression, their bounds for one unit, and the coefficients that follow from them."""

    query: Query
    policy: Policy

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns on the right side, then the one on the left side."""
        return (*self.query.terms, self.query.column)

    @cached_property
    def attributes(self) -> list[Numeric]:
        attributes = [self.policy.attribute(name) for name in self.columns]
        return [attribute for attribute in attributes if isinstance(attribute, Numeric)]

    @property
    def centers(self) -> list[int]:
        return [(attribute.size - 1) // 2 for attribute in self.attributes]

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Of products of (1, x, ..., y): the number of rows where it is not public, sums, products without y times y."""
        count = len(self.columns)
        counted = [] if rows_are_public(self.query, self.policy) else [(0, 0)]
        pairs = [pair for pair in combinations_with_replacement(range(1, count + 1), 2) if pair != (count, count)]
        return [*counted, *((0, index) for index in range(1, count + 1)), *pairs]

    @property
    def units(self) -> list[int]:
        """The largest size of a term of each sum."""
        reach = [1, *(max(attribute.size - 1 - (attribute.size - 1) // 2, 1) for attribute in self.attributes)]
        return [reach[i] * reach[j] for i, j in self.pairs]

    @property
    def bounds(self) -> tuple[int, ...]:
        """The largest change of each sum by one unit."""
        spans = [1, *(max(attribute.size - 1, 1) for attribute in self.attributes)]
        rows = self.policy.dataset.unit.rows_per_person
        bounds = []
        for (i, j), unit in zip(self.pairs, self.units, strict=True):
            turns = 1 if j == 0 else spans[j] if i == 0 else unit if i == j else 2 * unit
            bounds.append(rows * turns)
        return tuple(bounds)

    def coefficients(self, sums: Floats) -> Floats:
        """Return intercept and slopes in the columns' units, for each of several noisy sums: (times, sums)."""
        count, times = len(self.columns), len(sums)
        gram = np.zeros((times, count + 1, count + 1))
        gram[:, 0, 0] = float(self.policy.dataset.rows or 0)
        for index, (i, j) in enumerate(self.pairs):
            gram[:, i, j] = gram[:, j, i] = sums[:, index]
        reach = np.array(
            [max(attribute.size - 1 - (attribute.size - 1) // 2, 1) for attribute in self.attributes], np.float64
        )
        rows = np.maximum(gram[:, 0, 0], 1.0)[:, None]
        means = gram[:, 0, 1:] / rows / reach
        widths = np.array([float(attribute.width) for attribute in self.attributes])
        middles = np.array(
            [float(attribute.value(c)) for attribute, c in zip(self.attributes, self.centers, strict=True)]
        )
        spread = gram[:, 1:, 1:] / rows[:, None] / np.outer(reach, reach) - means[:, :, None] * means[:, None]
        units = reach * widths
        slopes = _slopes(spread) * units[-1] / units[:-1]
        middle = np.clip(means, -1, 1) * units + middles
        return np.column_stack([middle[:, -1] - (slopes * middle[:, :-1]).sum(1), slopes])

    def spreads(self, sums: Floats) -> tuple[float, float, float]:
        """Return the variance of the first predictor, its covariance with the outcome, and the number of rows."""
        by_pair = dict(zip(self.pairs, sums.tolist(), strict=True))
        rows = max(by_pair.get((0, 0), float(self.policy.dataset.rows or 0)), 1.0)
        outcome = len(self.columns)
        means = by_pair[0, 1] / rows, by_pair[0, outcome] / rows
        widths = float(self.attributes[0].width), float(self.attributes[-1].width)
        variance = (by_pair[1, 1] / rows - means[0] ** 2) * widths[0] ** 2
        covariance = (by_pair[1, outcome] / rows - means[0] * means[1]) * widths[0] * widths[1]
        return variance, covariance, rows


def _slopes(spread: Floats) -> Floats:
    """Return the least squares of the last column on the others, all scaled to [-1, 1].

    Directions whose variance the noise made flat or negative are raised to a variance of FLAT.
    """
    values, vectors = np.linalg.eigh(spread[:, :-1, :-1])
    along = np.einsum("tji,tj->ti", vectors, spread[:, :-1, -1]) / np.maximum(values, FLAT)
    return np.asarray(np.einsum("tij,tj->ti", vectors, along))
