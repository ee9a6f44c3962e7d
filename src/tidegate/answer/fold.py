"""Counts from other counts: cells that a condition leaves out are dropped, the others added up.

A fold is public: it comes from two questions and the policy. So does the error of what it gives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tidegate.answer.request import Query
from tidegate.arrays import Bools, Ints
from tidegate.noise import noise_quantile
from tidegate.policy import Numeric, Policy
from tidegate.policy.predicates import holds
from tidegate.tables import Axis

MOST_CELLS = 200_000


@dataclass(frozen=True)
class Fold:
    """Which cells of a source count, and how they are added up to cells of a target."""

    counted: Bools  # with a length of 1 along axes that the condition does not look at
    source: tuple[int, ...]
    order: tuple[int, ...]  # axes of the source in the target's order; the rest is added up
    starts: tuple[
        NDArray[np.intp] | None, ...
    ]  # of each target axis: the first cell of every bin, where values are binned

    def parts(self) -> Ints:
        """How many cells of the source make each cell of the target."""
        dropped = set(range(len(self.source))) - set(self.order)
        free = math.prod(self.source[axis] for axis in dropped if self.counted.shape[axis] == 1)
        shape = tuple(
            n if axis in self.order else m
            for axis, (n, m) in enumerate(zip(self.source, self.counted.shape, strict=True))
        )
        return self._added(np.broadcast_to(self.counted, shape).astype(np.int64)) * free

    def apply(self, cells: Ints) -> Ints:
        """The cells of the target."""
        return self._added(np.where(self.counted, cells, 0))

    def _added(self, cells: Ints) -> Ints:
        dropped = tuple(axis for axis in range(len(self.source)) if axis not in self.order)
        left = [axis for axis in range(len(self.source)) if axis in self.order]
        found = np.transpose(cells.sum(axis=dropped), [left.index(axis) for axis in self.order])
        for axis, starts in enumerate(self.starts):
            if starts is not None:
                found = np.add.reduceat(found, starts, axis=axis)
        return np.asarray(found, np.int64)


class Folding:
    """How one query follows from counts by other columns."""

    def __init__(self, query: Query, policy: Policy, target: list[Axis]) -> None:
        self.query, self.policy, self.target = query, policy, target
        self.looks = query.condition.columns() if query.condition is not None else set()
        self.names = [axis.name for axis in target]
        self.needed = {*self.names, *self.looks}
        self._masks: dict[tuple[Axis, ...], Bools | None] = {}

    def possible(self, names: list[str]) -> bool:
        """Whether the source's columns are enough, by their names alone."""
        return self.needed <= set(names) and len(set(names)) == len(names) and len(set(self.names)) == len(self.names)

    def fold(self, source: list[Axis]) -> Fold | None:
        """The fold from a source, or None where a cell of it belongs partly, or where rows are missing from it that the
        target counts."""
        names = [axis.name for axis in source]
        if math.prod(axis.length for axis in source) > MOST_CELLS or any(self._cuts(axis) for axis in source):
            return None
        dropped = [axis.name for axis in source if getattr(axis.attribute, "missing", "") == "dropped"]
        if any(not self._ignores_missing(name) for name in dropped):
            return None
        counted = self._counted(tuple(axis for axis in source if axis.name in self.looks))
        if counted is None:
            return None
        shape = tuple(axis.length if axis.name in self.looks else 1 for axis in source)
        order = tuple(names.index(name) for name in self.names)
        starts = tuple(_starts(source[at], axis) for at, axis in zip(order, self.target, strict=True))
        return Fold(counted.reshape(shape), tuple(axis.length for axis in source), order, starts)

    def _cuts(self, axis: Axis) -> bool:
        """A bin can only be kept as it is; ranges need single values."""
        if not axis.binned or _one_value_each(axis):
            return False
        return not any(other.name == axis.name and other.binned for other in self.target)

    def _counted(self, asked: tuple[Axis, ...]) -> Bools | None:
        if asked not in self._masks:
            self._masks[asked] = self._mask(asked)
        return self._masks[asked]

    def _mask(self, asked: tuple[Axis, ...]) -> Bools | None:
        """Of every cell whether its rows meet the condition; None where some of a bin do and some do not."""
        found = np.ones(tuple(axis.length for axis in asked), np.bool_)
        for cell in np.ndindex(found.shape) if self.query.condition is not None else ():
            counted = self._holds([(axis.name, _codes(axis, at)) for axis, at in zip(asked, cell, strict=True)])
            if counted is None:
                return None
            found[cell] = counted
        return found

    def _holds(self, asked: list[tuple[str, list[int | None]]]) -> bool | None:
        if self.query.condition is None or math.prod(len(codes) for _, codes in asked) > MOST_CELLS:
            return None
        names = [name for name, _ in asked]
        found = {
            holds(self.query.condition, self.policy, dict(zip(names, codes, strict=True))) is True
            for codes in product(*(codes for _, codes in asked))
        }
        return found.pop() if len(found) == 1 else None

    def _ignores_missing(self, name: str) -> bool:
        """Whether rows where a column is missing do not count for the query anyway."""
        if name in self.names:
            return True
        if self.query.condition is None or name not in self.looks:
            return False
        others = [other for other in self.looks if other != name]
        codes = [[*range(self.policy.attribute(other).size), None] for other in others]
        if math.prod(len(each) for each in codes) > 10_000:
            return False
        return not any(
            holds(self.query.condition, self.policy, {name: None, **dict(zip(others, row, strict=True))}) is True
            for row in product(*codes)
        )


def _one_value_each(axis: Axis) -> bool:
    return isinstance(axis.attribute, Numeric) and len(axis.attribute.bin_starts()) == axis.attribute.size


def _starts(source: Axis, target: Axis) -> NDArray[np.intp] | None:
    """Where single values must be added up to bins: the first value of each, and missing for itself."""
    if source.binned or not target.binned or not target.firsts:
        return None
    missing = [source.missing_cell] if target.missing_cell >= 0 else []
    return np.array([*target.firsts, *missing], np.intp)


def _codes(axis: Axis, place: int) -> list[int | None]:
    """The codes that a cell along an axis stands for."""
    found = axis.attribute
    if axis.binned and isinstance(found, Numeric):
        ends = [*found.bin_starts(), found.size]
        return list(range(ends[place], ends[place + 1])) if place + 1 < len(ends) else [None]
    return [place if place < found.size else None]


def half_widths(scale: Fraction, parts: Ints) -> Ints:
    """How far sums of so many noises may be off, 95 times in 100."""
    counts, places = np.unique(parts, return_inverse=True)
    widths = np.array([sum_quantile(scale, int(count), 0.95) for count in counts], np.int64)
    return np.asarray(widths[places.reshape(parts.shape)], np.int64)


@lru_cache(maxsize=10_000)
def sum_quantile(scale: Fraction, count: int, probability: float) -> int:
    """A bound on the sum of `count` independent noises that holds with the given probability (Chernoff; exact for one)."""
    if count <= 1:
        return noise_quantile(scale, probability) if count else 0
    log_r, wanted = -1 / float(scale), math.log(2 / (1 - probability))
    best = math.inf
    for step in range(1, 200):
        theta = -log_r * step / 200
        log_mgf = (
            2 * math.log1p(-math.exp(log_r))
            - math.log1p(-math.exp(log_r + theta))
            - math.log1p(-math.exp(log_r - theta))
        )
        best = min(best, (count * log_mgf + wanted) / theta)
    return math.ceil(best)
