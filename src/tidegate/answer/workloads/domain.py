"""The cells that several counts share: all combinations of values of the columns that they use."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from tidegate.answer.mechanisms.mechanism import axes_of
from tidegate.answer.request import Query
from tidegate.arrays import Bools, Floats, Ints
from tidegate.policy import EachRow, Numeric, Policy
from tidegate.policy.predicates import OPERATORS as COMPARISONS
from tidegate.policy.predicates import Chain, Compare, Either, Opposite, Predicate, code_bounds, holds
from tidegate.policy.predicates import Missing as IsMissing
from tidegate.tables import Axis

MISSING = -1


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
            cells = cells_along(axis, self.axes[self.names.index(axis.name)])
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
        bounds = code_bounds(attribute, predicate.operator, predicate.value)
        if isinstance(bounds, bool):
            return [bounds] * attribute.size
        return list(COMPARISONS[bounds[0]](np.arange(attribute.size), bounds[1]))
    return [holds(predicate, policy, {predicate.column: code}) is True for code in range(attribute.size)]


def cells_along(target: Axis, source: Axis) -> Ints:
    """Return the cell of a target axis for every cell of the domain's axis; -1 where rows are not counted."""
    size = len(source.firsts) or source.attribute.size
    cells = np.arange(source.length)
    if target.firsts and not source.firsts:
        cells = np.searchsorted(np.array(target.firsts), np.arange(source.length), side="right") - 1
    if source.length > size:  # the last cell is that of missing values
        cells[size:] = target.missing_cell
    return np.asarray(cells, np.int64)


def domain_of(queries: Sequence[Query], policy: Policy) -> Domain:
    """Return the columns that the queries use, in the order of their first use, in bins where no query needs values."""
    names: dict[str, bool] = {}
    for query in queries:
        conditioned = sorted(query.condition.columns()) if query.condition is not None else []
        for name in (*query.groups, *conditioned):
            names[name] = False
        if query.statistic == "histogram":
            names[query.column] = names.get(query.column, True)
    return Domain(policy, tuple(names), frozenset(name for name, in_bins in names.items() if in_bins))
