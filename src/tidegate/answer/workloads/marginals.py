"""Tables of the grouped columns, each with its own noise, and the weights that make their mean error least."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.accounting import Amount, DiscreteGaussian, DiscreteLaplace, Event, Together
from tidegate.answer.mechanisms.estimates import Estimated
from tidegate.answer.mechanisms.mechanism import axes_of, noise_of
from tidegate.answer.request import Query
from tidegate.answer.spending import RequestedLoss
from tidegate.answer.workloads.domain import Domain, cells_along, domain_of
from tidegate.arrays import Floats, Ints
from tidegate.noise import Bits, round_up, sigma_for
from tidegate.policy import Policy
from tidegate.tables import Axis

if TYPE_CHECKING:
    from tidegate.tables import Table

STEPS = 300  # of the search for weights
FINE = 2**20


@dataclass(frozen=True)
class Marginals:
    """Tables of some of the grouped columns, each with its own noise; the queries are such tables.

    Every table is a sum of parts that belong to one set of columns each (an analysis of variance). The part of a set is
    estimated from all measured tables that contain it, weighted by their precision.
    """

    event: Event
    domain: Domain
    measured: tuple[tuple[int, ...], ...]  # sets of axes
    noises: tuple[DiscreteLaplace | DiscreteGaussian, ...]
    queried: tuple[tuple[int, ...], ...]  # the axes of each query, in its order
    shown: tuple[tuple[Axis, ...], ...]  # the axes as the query shows them
    name: str = "marginals"

    def describe(self) -> dict[str, Any]:
        tables = [[self.domain.names[axis] for axis in axes] for axes in self.measured]
        return {"strategy": self.name, "columns": list(self.domain.names), "tables": tables}

    @cached_property
    def _weights(self) -> list[float]:
        """The precision of each measured table."""
        return [1 / _variance_bound(noise) for noise in self.noises]

    @cached_property
    def _precisions(self) -> dict[tuple[int, ...], float]:
        return precisions(self.domain.shape, self.measured, self._weights)

    def variance(self) -> float:
        return float(np.mean([(part.deviations**2).mean() for part in self.expected()]))

    def expected(self) -> list[Estimated]:
        return [self._estimated(None, index) for index in range(len(self.queried))]

    def exact(self, table: Table) -> list[Ints]:
        tables = [[self.domain.axes[axis] for axis in axes] for axes in self.measured]
        return [np.asarray(table.count(axes), np.int64) for axes in tables]

    def perturb(self, exact: list[Ints], *, bits: Bits) -> list[Any]:
        noisy = []
        for cells, noise in zip(exact, self.noises, strict=True):
            drawn = noise_of(noise).draw(cells.size, bits=bits).reshape(cells.shape)
            noisy.append((cells + drawn).tolist())
        return noisy

    def estimate(self, noisy: list[Any]) -> list[Estimated]:
        tables = [np.array(cells, np.float64) for cells in noisy]
        return [self._estimated(tables, index) for index in range(len(self.queried))]

    def _estimated(self, tables: list[Floats] | None, index: int) -> Estimated:
        axes = tuple(sorted(self.queried[index]))
        shape = [self.domain.shape[axis] for axis in axes]
        total = np.zeros(shape)
        for part in _subsets(axes):
            if tables is not None:
                total = total + self._part(tables, part, axes)
        order = [axes.index(axis) for axis in self.queried[index]]
        deviation = math.sqrt(
            cell_variance(self.domain.shape, axes, self._precisions, known_total=self.domain.total is not None)
        )
        source = [self.domain.axes[axis] for axis in self.queried[index]]
        values, counts = _folded(np.transpose(total, order), source, self.shown[index])
        deviations = deviation * counts  # an upper bound for bins of several values
        return Estimated(values, deviations, self._largest(axes) * float(counts.max(initial=1.0)))

    def _part(self, tables: list[Floats], part: tuple[int, ...], axes: tuple[int, ...]) -> Floats:
        """Return what one set of columns adds to the cells of a table."""
        scale = self.domain.size / math.prod(self.domain.shape[axis] for axis in axes)
        if not part and self.domain.total is not None:
            return np.asarray(self.domain.total / math.prod(self.domain.shape[axis] for axis in axes))
        summed: Floats = np.zeros([self.domain.shape[axis] for axis in part])
        for measured, weight, table in zip(self.measured, self._weights, tables, strict=True):
            if set(part) <= set(measured):
                outside = tuple(index for index, axis in enumerate(measured) if axis not in part)
                summed = summed + weight * _centered(np.asarray(table.mean(axis=outside)))
        shape = [self.domain.shape[axis] if axis in part else 1 for axis in axes]
        return np.asarray((scale / self._precisions[part]) * summed.reshape(shape))

    def _largest(self, axes: tuple[int, ...]) -> float:
        """Return a bound on the scale of a single noise in one cell; 0 for Gaussian noise."""
        largest = 0.0
        scale = self.domain.size / math.prod(self.domain.shape[axis] for axis in axes)
        for measured, weight, noise in zip(self.measured, self._weights, self.noises, strict=True):
            if isinstance(noise, DiscreteGaussian):
                continue
            shared = [part for part in _subsets(axes) if part and set(part) <= set(measured)]
            outside = [math.prod(self.domain.shape[axis] for axis in measured if axis not in part) for part in shared]
            terms = (
                scale * weight / self._precisions[part] / count for part, count in zip(shared, outside, strict=True)
            )
            largest = max(largest, float(noise.scale) * sum(terms))
        return largest


def precisions(
    shape: Sequence[int], measured: Sequence[tuple[int, ...]], weights: Sequence[float]
) -> dict[tuple[int, ...], float]:
    """Return the precision of the part of each set of axes: the sum over tables that contain it."""
    cells = math.prod(shape)
    sums: dict[tuple[int, ...], float] = {}
    for axes, weight in zip(measured, weights, strict=True):
        for part in _subsets(axes):
            sums[part] = sums.get(part, 0.0) + weight * cells / math.prod(shape[axis] for axis in axes)
    return sums


def cell_variance(
    shape: Sequence[int], axes: tuple[int, ...], precision: dict[tuple[int, ...], float], *, known_total: bool
) -> float:
    """Return the variance of one cell of a table: each part adds its own."""
    scale = math.prod(shape) / math.prod(shape[axis] for axis in axes)
    variance = 0.0
    for part in _subsets(axes):
        if not part and known_total:
            continue
        inside = math.prod(1 - 1 / shape[axis] for axis in part)
        outside = math.prod(1 / shape[axis] for axis in axes if axis not in part)  # of this table's axes only
        variance += scale * inside * outside / precision[part]
    return variance


def marginal_strategies(queries: Sequence[Query], policy: Policy, loss: RequestedLoss) -> list[Marginals]:
    """Return the weighted tables, if every query is a table of grouped columns without a condition."""
    domain = domain_of(queries, policy)
    queried, shown = [], []
    for query in queries:
        target = axes_of(query, policy)
        if query.condition is not None or not target or len({axis.name for axis in target}) != len(target):
            return []
        queried.append(tuple(domain.names.index(axis.name) for axis in target))
        shown.append(tuple(target))
    tables = sorted({part for axes in queried for part in _subsets(tuple(sorted(axes))) if part})
    if not 2 <= len(tables) <= 200:
        return []
    weights = _tuned(
        domain.shape, tables, [tuple(sorted(axes)) for axes in queried], loss.unit, domain.total is not None
    )
    chosen = [(table, weight) for table, weight in zip(tables, weights, strict=True) if weight > 0]
    noises = _marginal_noises(domain, [table for table, _ in chosen], [weight for _, weight in chosen], loss)
    event: Event = Together(noises) if len(noises) > 1 else noises[0]
    measured = tuple(table for table, _ in chosen)
    return [Marginals(event, domain, measured, noises, tuple(queried), tuple(shown))]


@lru_cache(maxsize=64)
def _tuned_once(
    shape: tuple[int, ...],
    tables: tuple[tuple[int, ...], ...],
    queried: tuple[tuple[int, ...], ...],
    unit: str,
    known: bool,
) -> tuple[float, ...]:
    """Search the weights (precisions, or inverse scales) with the least mean variance, from several starts."""
    largest = [table for table in tables if not any(set(table) < set(other) for other in tables)]
    starts = [np.ones(len(tables)), np.array([1.0 if table in largest else 0.02 for table in tables])]
    if unit == "epsilon":
        starts.append(np.array([1.0 if table in largest else 0.0 for table in tables]))
    tried = [_descend(shape, tables, queried, unit, known, start) for start in starts]
    return tuple(min(tried, key=lambda result: result[0])[1].tolist())


def _tuned(
    shape: Sequence[int],
    tables: Sequence[tuple[int, ...]],
    queried: Sequence[tuple[int, ...]],
    unit: str,
    known: bool,
) -> Floats:
    return np.array(_tuned_once(tuple(shape), tuple(tables), tuple(queried), unit, known))


def _descend(
    shape: tuple[int, ...],
    tables: tuple[tuple[int, ...], ...],
    queried: tuple[tuple[int, ...], ...],
    unit: str,
    known: bool,
    start: Floats,
) -> tuple[float, Floats]:
    """Improve weights step by step: a weight grows if its table lowers the variance by more than its cost.

    The variance is a sum of C[T] / precision[T], and precisions are sums of weights, or of their squares where the loss is
    the sum of inverse scales.
    """
    parts = sorted({part for table in tables for part in _subsets(table) if part or not known})
    cells = math.prod(shape)
    sizes = [math.prod(shape[axis] for axis in table) for table in tables]
    contains = np.array(
        [
            [cells / size if set(part) <= set(table) else 0.0 for table, size in zip(tables, sizes, strict=True)]
            for part in parts
        ]
    )
    needs = np.zeros(len(parts))
    for axes in queried:
        for index, part in enumerate(parts):
            if set(part) <= set(axes):
                alone = dict.fromkeys(_subsets(axes), math.inf)
                alone[part] = 1.0
                needs[index] += cell_variance(shape, axes, alone, known_total=known) / len(queried)
    costs = np.array([1 - 1 / size for size in sizes]) if unit == "z" else np.ones(len(tables))
    power = 1 if unit == "z" else 2

    def variance(weights: Floats) -> float:
        precision = contains @ weights**power
        return float((needs[needs > 0] / np.maximum(precision[needs > 0], 1e-300)).sum())

    weights = start / (costs @ start)
    best = (variance(weights), weights)
    for _ in range(STEPS):
        precision = np.maximum(contains @ weights**power, 1e-300)
        gain = (contains.T @ (needs / precision**2)) * power * weights ** (power - 1)
        weights = weights * np.sqrt(gain / costs)
        weights = weights / (costs @ weights)
        if variance(weights) < best[0]:
            best = (variance(weights), weights)
    pruned = np.where(best[1] * costs > 1e-4, best[1], 0.0)
    pruned = pruned / (costs @ pruned)
    return (variance(pruned), pruned) if variance(pruned) < 1.01 * best[0] else best


def _marginal_noises(
    domain: Domain, tables: Sequence[tuple[int, ...]], weights: Sequence[float], loss: RequestedLoss
) -> tuple[DiscreteLaplace | DiscreteGaussian, ...]:
    """Return the noise of each table. A unit's k rows move from one cell of each table to another."""
    rows = domain.rows_per_unit
    amount = loss.part(1).amount - Amount(len(tables)).value  # the price of each table is rounded up to a grain
    if loss.unit == "epsilon":
        scales = [Fraction(1 / weight).limit_denominator(FINE) for weight in weights]
        factor = sum((2 * rows / scale for scale in scales), Fraction(0)) / amount
        return tuple(DiscreteLaplace(Fraction(2 * rows), round_up(scale * factor)) for scale in scales)
    sigmas = [Fraction(1 / math.sqrt(weight)).limit_denominator(FINE) for weight in weights]
    radii = [rows**2 * (1 - Fraction(1, math.prod(domain.shape[axis] for axis in table))) for table in tables]
    squares = sum((radius / sigma**2 for radius, sigma in zip(radii, sigmas, strict=True)), Fraction(0))
    factor = sigma_for(squares, amount)
    diameter = Fraction(2 * rows**2)
    return tuple(
        DiscreteGaussian(radius, diameter, round_up(sigma * factor))
        for radius, sigma in zip(radii, sigmas, strict=True)
    )


def _variance_bound(noise: DiscreteLaplace | DiscreteGaussian) -> float:
    """Return the variance of continuous noise of the same scale, which is never below that of the whole numbers."""
    return 2 * float(noise.scale) ** 2 if isinstance(noise, DiscreteLaplace) else float(noise.sigma) ** 2


def _subsets(axes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return all subsets, the empty one first."""
    return list(chain.from_iterable(combinations(axes, size) for size in range(len(axes) + 1)))


def _centered(table: Floats) -> Floats:
    """Return a table minus its means along every axis."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def _folded(table: Floats, source: list[Axis], target: tuple[Axis, ...]) -> tuple[Floats, Floats]:
    """Return a table of all values as the query shows it: bins added up, missing values dropped; and the summed cells."""
    counts = np.ones(table.shape)
    for index, axis in enumerate(target):
        cells = cells_along(axis, source[index])
        table, counts = (_add_up(part, cells, axis.length, index) for part in (table, counts))
    return table, counts


def _add_up(table: Floats, cells: Ints, length: int, axis: int) -> Floats:
    moved = np.moveaxis(table, axis, 0)
    out = np.zeros((length, *moved.shape[1:]))
    np.add.at(out, cells[cells >= 0], moved[cells >= 0])
    return np.moveaxis(out, 0, axis)
