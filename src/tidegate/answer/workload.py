"""Several counts at once: one noisy measurement of shared cells, from which all of them follow by least squares.

Answers that are measured one by one split the loss. Here every row is counted in a few cells of one strategy instead:

    histogram    every combination of values of the columns that the queries use
    tree         ranges of one column: halves (or thirds ...) of halves, down to single values
    marginals    tables of the columns that are grouped by, each with its own noise

The error of each query follows from the strategy and the policy alone, so that the best strategy is chosen, and its error
shown, before anything is charged. All answers come from one table of estimates, so that they agree with each other; a public number
of rows is a measurement without noise.

Reference:
    Hay et al. 2010 (trees); Li et al. 2015, "The matrix mechanism" (least squares); McKenna et al. 2018 (marginals);
    Canonne, Kamath, Steinke 2020 (Gaussian noise).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from itertools import chain, combinations, pairwise
from typing import Any, Protocol

import numpy as np

from tidegate.accounting import Amount, DiscreteGaussian, DiscreteLaplace, Event, Together
from tidegate.answer.mechanisms.estimates import Estimated
from tidegate.answer.mechanisms.mechanism import axes_of, noise_of
from tidegate.answer.request import Query
from tidegate.answer.spending import RequestedLoss
from tidegate.arrays import Bools, Floats, Ints
from tidegate.noise import Bits, round_up, scale_for, sigma_for
from tidegate.policy import EachRow, Numeric, Policy
from tidegate.policy.predicates import OPERATORS as COMPARISONS
from tidegate.policy.predicates import Chain, Compare, Either, Opposite, Predicate, code_bounds, holds
from tidegate.policy.predicates import Missing as IsMissing
from tidegate.tables import Axis, Table

MOST_CELLS = 2048  # of a domain that is solved as one dense system
MOST_WEIGHTS = 20_000_000  # numbers in the matrix of all queries over all cells
BRANCHES = (2, 3, 4, 5, 6, 8, 10, 16, 32)
FEW_CELLS, FEWER_BRANCHES = 256, (2, 4, 8, 16, 32)
STATISTICS = ("count", "histogram")
STEPS = 300  # of the searches for a center and for weights
FINE = 2**20
MISSING = -1


class Strategy(Protocol):
    """A way to measure: its event, the integers that get noise, and the estimates that follow."""

    @property
    def name(self) -> str: ...

    @property
    def event(self) -> Event: ...

    def describe(self) -> dict[str, Any]:
        """Return the strategy as a part of the request's identity."""
        ...

    def variance(self) -> float:
        """Return the mean variance of the queries; of a query with several numbers, their mean."""
        ...

    def expected(self) -> list[Estimated]:
        """Return the deviations of every query; all values are 0."""
        ...

    def exact(self, table: Table) -> list[Ints]:
        """Read the table, and return the integers that get noise."""
        ...

    def perturb(self, exact: list[Ints], *, bits: Bits) -> list[Any]:
        """Return the noisy integers."""
        ...

    def estimate(self, noisy: list[Any]) -> list[Estimated]:
        """Return the estimates of every query."""
        ...


def plan_workload(queries: Sequence[Query], policy: Policy, loss: RequestedLoss) -> Strategy | None:
    """Return the strategy with the least mean variance, or None if queries one by one are at least as good.

    The queries must be counts (or histograms), and have been checked.
    """
    if len(queries) < 2 and not any(axes_of(query, policy) for query in queries):
        return None
    if not all(query.statistic in STATISTICS for query in queries):
        return None
    candidates: list[Strategy] = [*_dense(queries, policy, loss), *_marginal(queries, policy, loss)]
    alone = _one_by_one(queries, policy, loss)
    best = min(candidates, key=lambda strategy: strategy.variance(), default=None)
    return best if best is not None and best.variance() < alone else None


def _one_by_one(queries: Sequence[Query], policy: Policy, loss: RequestedLoss) -> float:
    """Return the mean variance of the answers if each query gets its own noise."""
    part = loss.part(len(queries))
    events: list[Any] = [part.event(query, policy) for query in queries]
    return sum(noise_of(event).variance for event in events) / len(events)


# The domain


@dataclass(frozen=True)
class Domain:
    """All combinations of values of some columns, missing ones included: every counted row is in exactly one cell."""

    policy: Policy
    names: tuple[str, ...]
    binned: frozenset[str] = frozenset()  # columns that are only used in bins

    @cached_property
    def axes(self) -> list[Axis]:
        return [Axis(name, _with_missing(self.policy.countable(name)), name in self.binned) for name in self.names]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.length for axis in self.axes)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def rows_per_unit(self) -> int:
        return self.policy.dataset.unit.rows_per_person

    @property
    def total(self) -> int | None:
        """The number of rows, if it is public."""
        return self.policy.dataset.rows if isinstance(self.policy.dataset.unit, EachRow) else None

    @property
    def can_be_absent(self) -> bool:
        """Whether a unit can have fewer rows: then nothing is a possible contribution as well."""
        return not isinstance(self.policy.dataset.unit, EachRow)

    def matrix(self, query: Query) -> Floats:
        """Return the cells that each number of a query adds up: (numbers, cells), zeros and ones."""
        counted = self._counted(query)
        target = axes_of(query, self.policy)
        shape = tuple(axis.length for axis in target)
        indexes = np.zeros(self.shape, np.int64)
        for axis in target:
            cells = _cells_of(axis, self.axes[self.names.index(axis.name)])
            spread = [1] * len(self.names)
            spread[self.names.index(axis.name)] = -1
            position = cells.reshape(spread)
            counted = counted & (position >= 0)
            indexes = indexes * axis.length + np.maximum(position, 0)
        matrix = np.zeros((math.prod(shape), self.size))
        flat = counted.reshape(-1)
        matrix[indexes.reshape(-1)[flat], np.flatnonzero(flat)] = 1.0
        return matrix

    def _counted(self, query: Query) -> Bools:
        """Return for every cell whether its rows meet the condition of a query."""
        counted = np.ones(self.shape, np.bool_)
        if query.condition is None:
            return counted
        codes = {}
        for index, (name, axis) in enumerate(zip(self.names, self.axes, strict=True)):
            shape = [-1 if other == index else 1 for other in range(len(self.names))]
            cells = np.arange(axis.length)
            codes[name] = np.where(cells < axis.attribute.size, cells, MISSING).reshape(shape)
        is_true, _ = _truth(query.condition, self.policy, codes)
        return np.asarray(counted & is_true, np.bool_)


def _with_missing(attribute: Any) -> Any:
    return replace(attribute, missing="value") if getattr(attribute, "missing", "") == "dropped" else attribute


def _truth(predicate: Predicate, policy: Policy, codes: Mapping[str, Ints]) -> tuple[Bools, Bools]:
    """Return where a condition is true, and where it is known: `tidegate.policy.predicates.holds` on arrays of codes."""
    if isinstance(predicate, IsMissing):
        is_missing = codes[predicate.column] == MISSING
        return is_missing, np.ones_like(is_missing)
    if isinstance(predicate, Opposite):
        is_true, known = _truth(predicate.inner, policy, codes)
        return known & ~is_true, known
    if isinstance(predicate, Chain):
        parts = [_truth(part, policy, codes) for part in predicate.parts]
        decisive = isinstance(predicate, Either)  # one true part decides "or", one false part decides "and"
        decided = reduce(np.logical_or, [known & (is_true == decisive) for is_true, known in parts])
        known = decided | reduce(np.logical_and, [known for _, known in parts])
        return (decided, known) if decisive else (known & ~decided, known)
    if not isinstance(predicate, Compare):
        raise TypeError("The condition is of an unknown type.")
    column = codes[predicate.column]
    outcomes = _outcomes(predicate, policy)
    known = column != MISSING
    return known & np.array(outcomes, np.bool_)[np.where(known, column, 0)], known


def _outcomes(predicate: Compare, policy: Policy) -> list[bool]:
    """Return for every code of a column whether a comparison holds."""
    attribute: Any = policy.attribute(predicate.column)
    if isinstance(attribute, Numeric):
        bounds = code_bounds(attribute, predicate.operator, predicate.value)  # type: ignore[arg-type]
        if isinstance(bounds, bool):
            return [bounds] * attribute.size
        return list(COMPARISONS[bounds[0]](np.arange(attribute.size), bounds[1]))
    return [holds(predicate, policy, {predicate.column: code}) is True for code in range(attribute.size)]


def _cells_of(target: Axis, source: Axis) -> Ints:
    """Return the cell of a target axis for every cell of the domain's axis; -1 where rows are not counted."""
    size = len(source.firsts) or source.attribute.size
    cells = np.arange(source.length)
    if target.firsts and not source.firsts:
        cells = np.searchsorted(np.array(target.firsts), np.arange(source.length), side="right") - 1
    if source.length > size:  # the last cell is that of missing values
        cells[size:] = target.missing_cell
    return np.asarray(cells, np.int64)


def _domain(queries: Sequence[Query], policy: Policy) -> Domain:
    """Return the columns that the queries use, in the order of their first use, in bins where no query needs values."""
    names: dict[str, bool] = {}
    for query in queries:
        conditioned = sorted(query.condition.columns()) if query.condition is not None else []
        for name in (*query.groups, *conditioned):
            names[name] = False
        if query.statistic == "histogram":
            names[query.column] = names.get(query.column, True)
    return Domain(policy, tuple(names), frozenset(name for name, in_bins in names.items() if in_bins))


# Dense strategies: histogram and trees


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


def _dense(queries: Sequence[Query], policy: Policy, loss: RequestedLoss) -> list[Dense]:
    """Return the histogram and, for one column, the trees."""
    domain = _domain(queries, policy)
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


# Marginals


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
    asked: tuple[tuple[int, ...], ...]  # the axes of each query, in its order
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
        return [self._estimated(None, index) for index in range(len(self.asked))]

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
        return [self._estimated(tables, index) for index in range(len(self.asked))]

    def _estimated(self, tables: list[Floats] | None, index: int) -> Estimated:
        axes = tuple(sorted(self.asked[index]))
        shape = [self.domain.shape[axis] for axis in axes]
        total = np.zeros(shape)
        for part in _subsets(axes):
            if tables is not None:
                total = total + self._part(tables, part, axes)
        order = [axes.index(axis) for axis in self.asked[index]]
        deviation = math.sqrt(
            cell_variance(self.domain.shape, axes, self._precisions, known_total=self.domain.total is not None)
        )
        source = [self.domain.axes[axis] for axis in self.asked[index]]
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
    found: dict[tuple[int, ...], float] = {}
    for axes, weight in zip(measured, weights, strict=True):
        for part in _subsets(axes):
            found[part] = found.get(part, 0.0) + weight * cells / math.prod(shape[axis] for axis in axes)
    return found


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


def _marginal(queries: Sequence[Query], policy: Policy, loss: RequestedLoss) -> list[Marginals]:
    """Return the weighted tables, if every query is a table of grouped columns without a condition."""
    domain = _domain(queries, policy)
    asked, shown = [], []
    for query in queries:
        target = axes_of(query, policy)
        if query.condition is not None or not target or len({axis.name for axis in target}) != len(target):
            return []
        asked.append(tuple(domain.names.index(axis.name) for axis in target))
        shown.append(tuple(target))
    tables = sorted({part for axes in asked for part in _subsets(tuple(sorted(axes))) if part})
    if not 2 <= len(tables) <= 200:
        return []
    weights = _tuned(domain.shape, tables, [tuple(sorted(axes)) for axes in asked], loss.unit, domain.total is not None)
    chosen = [(table, weight) for table, weight in zip(tables, weights, strict=True) if weight > 0]
    noises = _marginal_noises(domain, [table for table, _ in chosen], [weight for _, weight in chosen], loss)
    event: Event = Together(noises) if len(noises) > 1 else noises[0]
    measured = tuple(table for table, _ in chosen)
    return [Marginals(event, domain, measured, noises, tuple(asked), tuple(shown))]


@lru_cache(maxsize=64)
def _tuned_once(
    shape: tuple[int, ...],
    tables: tuple[tuple[int, ...], ...],
    asked: tuple[tuple[int, ...], ...],
    unit: str,
    known: bool,
) -> tuple[float, ...]:
    """Search the weights (precisions, or inverse scales) with the least mean variance, from several starts."""
    largest = [table for table in tables if not any(set(table) < set(other) for other in tables)]
    starts = [np.ones(len(tables)), np.array([1.0 if table in largest else 0.02 for table in tables])]
    if unit == "epsilon":
        starts.append(np.array([1.0 if table in largest else 0.0 for table in tables]))
    tried = [_descend(shape, tables, asked, unit, known, start) for start in starts]
    return tuple(min(tried, key=lambda result: result[0])[1].tolist())


def _tuned(
    shape: Sequence[int],
    tables: Sequence[tuple[int, ...]],
    asked: Sequence[tuple[int, ...]],
    unit: str,
    known: bool,
) -> Floats:
    return np.array(_tuned_once(tuple(shape), tuple(tables), tuple(asked), unit, known))


def _descend(
    shape: tuple[int, ...],
    tables: tuple[tuple[int, ...], ...],
    asked: tuple[tuple[int, ...], ...],
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
    for axes in asked:
        for index, part in enumerate(parts):
            if set(part) <= set(axes):
                alone = dict.fromkeys(_subsets(axes), math.inf)
                alone[part] = 1.0
                needs[index] += cell_variance(shape, axes, alone, known_total=known) / len(asked)
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
    kept = np.where(best[1] * costs > 1e-4, best[1], 0.0)
    kept = kept / (costs @ kept)
    return (variance(kept), kept) if variance(kept) < 1.01 * best[0] else best


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
        cells = _cells_of(axis, source[index])
        table, counts = (_add_up(part, cells, axis.length, index) for part in (table, counts))
    return table, counts


def _add_up(table: Floats, cells: Ints, length: int, axis: int) -> Floats:
    moved = np.moveaxis(table, axis, 0)
    out = np.zeros((length, *moved.shape[1:]))
    np.add.at(out, cells[cells >= 0], moved[cells >= 0])
    return np.moveaxis(out, 0, axis)
