"""Sums of cells with one noise, solved as one dense system: the histogram of all cells, and trees of ranges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.accounting import DiscreteGaussian, DiscreteLaplace
from tidegate.answer.mechanisms.estimates import Estimated
from tidegate.answer.mechanisms.mechanism import axes_of, noise_of
from tidegate.answer.request import Query
from tidegate.answer.spending import RequestedLoss
from tidegate.answer.workloads.domain import Domain, domain_of
from tidegate.arrays import Floats, Ints
from tidegate.noise import Bits, scale_for, sigma_for
from tidegate.policy import Policy

if TYPE_CHECKING:
    from tidegate.tables import Table

MOST_CELLS = 2048  # of a domain that is solved as one dense system
MOST_WEIGHTS = 20_000_000  # numbers in the matrix of all queries over all cells
BRANCHES = (2, 3, 4, 5, 6, 8, 10, 16, 32)
FEW_CELLS, FEWER_BRANCHES = 256, (2, 4, 8, 16, 32)
STEPS = 300  # of the search for a center
FINE = 2**20


@dataclass(frozen=True)
class Dense:
    """Sums of cells, all with the same noise, and all queries as one matrix over the cells."""

    name: str
    event: DiscreteLaplace | DiscreteGaussian
    domain: Domain
    sums: Ints  # (measured sums, cells), zeros and ones
    answers: Floats  # (numbers of all queries, cells), zeros and ones
    shapes: tuple[tuple[int, ...], ...]

    def describe(self) -> dict[str, Any]:
        return {"strategy": self.name, "columns": list(self.domain.names)}

    @cached_property
    def _covariance(self) -> Floats:
        """The covariance of the estimated cells for noise of variance 1."""
        inverse = np.linalg.inv(_products(self.sums).astype(np.float64))
        if self.domain.total is None:
            return inverse
        ones = inverse.sum(axis=1)
        return np.asarray(inverse - np.outer(ones, ones) / ones.sum())

    def variance(self) -> float:
        return float(np.mean([part.mean() for part in self._split(self._variances)]))

    @cached_property
    def _variances(self) -> Floats:
        """The variance of every answer."""
        spread = np.einsum("ij,ij->i", self.answers @ self._covariance, self.answers)
        return np.asarray(np.maximum(spread, 0.0) * noise_of(self.event).variance)

    def _split(self, numbers: Floats) -> list[Floats]:
        """Return the numbers of each query, in its shape."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])[:-1]
        return [part.reshape(shape) for part, shape in zip(np.split(numbers, ends), self.shapes, strict=True)]

    def expected(self) -> list[Estimated]:
        return self._estimated(np.zeros(self.domain.size))

    def _estimated(self, cells: Floats) -> list[Estimated]:
        parts = zip(self._split(self.answers @ cells), self._split(np.sqrt(self._variances)), strict=True)
        return [Estimated(values, deviations, self._largest) for values, deviations in parts]

    @cached_property
    def _largest(self) -> float:
        """The largest scale of a single noise in an answer; 0 for Gaussian noise."""
        if isinstance(self.event, DiscreteGaussian):
            return 0.0
        weights = self.answers @ self._covariance @ self.sums.T.astype(np.float64)
        return float(np.abs(weights).max(initial=0.0)) * float(self.event.scale)

    def exact(self, table: Table) -> list[Ints]:
        return [self.sums @ np.asarray(table.count(self.domain.axes), np.int64).reshape(-1)]

    def perturb(self, exact: list[Ints], *, bits: Bits) -> list[Any]:
        return [(exact[0] + noise_of(self.event).draw(exact[0].size, bits=bits)).tolist()]

    def estimate(self, noisy: list[Any]) -> list[Estimated]:
        measured = np.array(noisy[0], np.float64)
        total = self.domain.total
        start = np.full(self.domain.size, total / self.domain.size) if total is not None else np.zeros(self.domain.size)
        cells = start + self._covariance @ (self.sums.T @ (measured - self.sums @ start))
        return self._estimated(cells)


def dense_strategies(queries: Sequence[Query], policy: Policy, loss: RequestedLoss) -> list[Dense]:
    """Return the histogram and, for one column, the trees."""
    domain = domain_of(queries, policy)
    numbers = sum(math.prod(axis.length for axis in axes_of(query, policy)) for query in queries)
    if not 2 <= domain.size <= MOST_CELLS or numbers * domain.size > MOST_WEIGHTS:
        return []
    answers = np.vstack([domain.matrix(query) for query in queries])
    shapes = tuple(tuple(axis.length for axis in axes_of(query, policy)) for query in queries)
    strategies = {"histogram": np.eye(domain.size, dtype=np.int64)}
    if len(domain.names) == 1:
        branches = BRANCHES if domain.size <= FEW_CELLS else FEWER_BRANCHES
        strategies |= {f"tree of {branch}": _tree(domain.size, branch) for branch in branches if branch < domain.size}
    return [Dense(name, _noise(sums, domain, loss), domain, sums, answers, shapes) for name, sums in strategies.items()]


def _tree(size: int, branch: int) -> Ints:
    """Return the ranges of a tree without its root, down to single cells: (ranges, cells)."""
    rows = []
    level = [(0, size)]
    while level:
        parts = [part for start, end in level for part in _split(start, end, branch)]
        rows += parts
        level = [(start, end) for start, end in parts if end - start > 1]
    sums = np.zeros((len(rows), size), np.int64)
    for index, (start, end) in enumerate(rows):
        sums[index, start:end] = 1
    return sums


def _split(start: int, end: int, branch: int) -> list[tuple[int, int]]:
    ends = [start + (end - start) * part // branch for part in range(branch + 1)]
    return [(low, high) for low, high in pairwise(ends) if low < high]


def _noise(sums: Ints, domain: Domain, loss: RequestedLoss) -> DiscreteLaplace | DiscreteGaussian:
    """Return the noise of sums of zeros and ones. A unit moves from one column to another, with each of its rows."""
    products = _products(sums)
    norms = np.diag(products)
    distances = norms[:, None] + norms[None, :] - 2 * products
    absent = int(norms.max()) if domain.can_be_absent else 0
    widest = max(int(distances.max()), absent)
    rows = domain.rows_per_unit
    amount = loss.part(1).amount
    if loss.unit == "epsilon":
        sensitivity = Fraction(rows * widest)
        return DiscreteLaplace(sensitivity, scale_for(sensitivity, amount))
    radius = rows**2 * _squared_radius(products, absent=domain.can_be_absent)
    return DiscreteGaussian(radius, Fraction(rows**2 * widest), sigma_for(radius, amount))


def _products(sums: Ints) -> Ints:
    """Return the inner products of the columns: whole numbers, computed in floating point, which is exact for them."""
    real = sums.astype(np.float64)
    return np.rint(real.T @ real).astype(np.int64)


def _squared_radius(products: Ints, *, absent: bool) -> Fraction:
    """Return the squared radius of a ball around all columns (and nothing, if `absent`), from their inner products.

    Any center is sound. Start in the middle of all columns and move toward the farthest, with smaller and smaller steps; the
    radius around the last center, a mixture with whole weights, is computed exactly.
    """
    if absent:
        products = np.pad(products, (0, 1))
    size = len(products)
    norms = np.diag(products).astype(np.float64)
    mixture = np.full(size, 1 / size)
    best, best_radius = mixture, math.inf
    along = products.mean(axis=1)
    for step in range(STEPS):
        distances = norms - 2 * along + mixture @ along
        farthest = int(distances.argmax())
        if distances[farthest] < best_radius:
            best, best_radius = mixture, float(distances[farthest])
        part = 1 / (step + size)
        mixture = mixture * (1 - part)
        mixture[farthest] += part
        along = along * (1 - part) + products[farthest] * part
    weights = np.round(best * FINE).astype(np.int64)
    total = int(weights.sum())
    along = products @ weights
    inner = int((weights.astype(object) * along.astype(object)).sum())
    farthest = max(int(norm) * total - 2 * int(part) for norm, part in zip(np.diag(products), along, strict=True))
    return Fraction(farthest, total) + Fraction(inner, total**2)
