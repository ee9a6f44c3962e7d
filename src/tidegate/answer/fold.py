"""Counts derived from other counts: cells outside a condition are dropped, the others are added up.

A fold is public: it depends on two queries and the policy alone. So does the error of its result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tidegate.answer.request import Query
from tidegate.arrays import Bools, Ints
from tidegate.noise import Noise
from tidegate.policy import Numeric, Policy
from tidegate.policy.predicates import holds
from tidegate.tables import Axis

MOST_CELLS = 200_000


@dataclass(frozen=True)
class Fold:
    """The cells of a source that count, and the cells of a target that they are added to."""

    counted: Bools  # length 1 along axes that the condition does not use
    source: tuple[int, ...]
    order: tuple[int, ...]  # axes of the source in the target's order; the others are summed
    starts: tuple[
        NDArray[np.intp] | None, ...
    ]  # of each target axis: the first cell of every bin, where values are binned

    def parts(self) -> Ints:
        """Return the number of source cells in each target cell."""
        dropped = set(range(len(self.source))) - set(self.order)
        free = math.prod(self.source[axis] for axis in dropped if self.counted.shape[axis] == 1)
        shape = tuple(
            n if axis in self.order else m
            for axis, (n, m) in enumerate(zip(self.source, self.counted.shape, strict=True))
        )
        return self._fold_cells(np.broadcast_to(self.counted, shape).astype(np.int64)) * free

    def apply(self, cells: Ints) -> Ints:
        """Return the cells of the target."""
        return self._fold_cells(np.where(self.counted, cells, 0))

    def _fold_cells(self, cells: Ints) -> Ints:
        dropped = tuple(axis for axis in range(len(self.source)) if axis not in self.order)
        remaining = [axis for axis in range(len(self.source)) if axis in self.order]
        folded = np.transpose(cells.sum(axis=dropped), [remaining.index(axis) for axis in self.order])
        for axis, starts in enumerate(self.starts):
            if starts is not None:
                folded = np.add.reduceat(folded, starts, axis=axis)
        return np.asarray(folded, np.int64)


class Folding:
    """The derivation of one query from counts by other columns."""

    def __init__(self, query: Query, policy: Policy, target: list[Axis]) -> None:
        self.query, self.policy, self.target = query, policy, target
        self.looks = query.condition.columns() if query.condition is not None else set()
        self.names = [axis.name for axis in target]
        self.needed = {*self.names, *self.looks}
        self._masks: dict[tuple[Axis, ...], Bools | None] = {}

    def possible(self, names: list[str]) -> bool:
        """Return whether the source's columns suffice, by their names alone."""
        if self.query.condition is not None and self.query.condition.tests():
            return False  # conditions on expressions are not folded
        return self.needed <= set(names) and len(set(names)) == len(names) and len(set(self.names)) == len(self.names)

    def fold(self, source: list[Axis]) -> Fold | None:
        """Return the fold from a source, or None.

        There is none if a source cell belongs to the target in part, or if the source lacks rows that the target counts.
        """
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
        """Return whether the axis has bins that would have to be cut; ranges need single values."""
        if not axis.binned or _one_value_each(axis):
            return False
        return not any(other.name == axis.name and other.binned for other in self.target)

    def _counted(self, axes: tuple[Axis, ...]) -> Bools | None:
        if axes not in self._masks:
            self._masks[axes] = self._mask(axes)
        return self._masks[axes]

    def _mask(self, axes: tuple[Axis, ...]) -> Bools | None:
        """Return for every cell whether its rows meet the condition; None if only some rows of a bin do."""
        mask = np.ones(tuple(axis.length for axis in axes), np.bool_)
        for cell in np.ndindex(mask.shape) if self.query.condition is not None else ():
            counted = self._holds([(axis.name, _codes(axis, at)) for axis, at in zip(axes, cell, strict=True)])
            if counted is None:
                return None
            mask[cell] = counted
        return mask

    def _holds(self, codes_by_name: list[tuple[str, list[int | None]]]) -> bool | None:
        if self.query.condition is None or math.prod(len(codes) for _, codes in codes_by_name) > MOST_CELLS:
            return None
        names = [name for name, _ in codes_by_name]
        outcomes = {
            holds(self.query.condition, self.policy, dict(zip(names, codes, strict=True))) is True
            for codes in product(*(codes for _, codes in codes_by_name))
        }
        return outcomes.pop() if len(outcomes) == 1 else None

    def _ignores_missing(self, name: str) -> bool:
        """Return whether rows with a missing value in a column never count for the query."""
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
    """Return the first value of each bin, and missing separately, if single values must be added up to bins."""
    if source.binned or not target.binned or not target.firsts:
        return None
    missing = [source.missing_cell] if target.missing_cell >= 0 else []
    return np.array([*target.firsts, *missing], np.intp)


def _codes(axis: Axis, cell: int) -> list[int | None]:
    """Return the codes in a cell along an axis."""
    attribute = axis.attribute
    if axis.binned and isinstance(attribute, Numeric):
        ends = [*attribute.bin_starts(), attribute.size]
        return list(range(ends[cell], ends[cell + 1])) if cell + 1 < len(ends) else [None]
    return [cell if cell < attribute.size else None]


def half_widths(noise: Noise, parts: Ints) -> Ints:
    """Return the error, at 95%, of sums of `parts` independent noises."""
    counts, inverse = np.unique(parts, return_inverse=True)
    widths = np.array([noise.sum_quantile(int(count), 0.95) for count in counts], np.int64)
    return np.asarray(widths[inverse.reshape(parts.shape)], np.int64)
