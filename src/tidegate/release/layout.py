"""The form of released records: only columns that the policy allows, with the precision of the promises."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np

from tidegate.arrays import Ints
from tidegate.exact import plain
from tidegate.ledger.entry import canonical
from tidegate.policy import Key, Numeric, Policy
from tidegate.tables import Axis
from tidegate.tables.mappings import DROPPED


@dataclass(frozen=True)
class Layout:
    """The columns of all promises for released records: their cells, and how they are shown."""

    policy: Policy

    @cached_property
    def axes(self) -> list[Axis]:
        """One axis for each column that a promise uses."""
        promises = self.policy.release_promises.values()
        names = dict.fromkeys(name for promise in promises for name in (*promise.reveals, *promise.about))
        return [Axis(name, self.policy.countable(name), binned=True) for name in names]

    @cached_property
    def columns(self) -> list[str]:
        """Every column that can be released."""
        return list(
            dict.fromkeys(name for promise in self.policy.release_promises.values() for name in promise.releases)
        )

    @cached_property
    def raw(self) -> list[str]:
        """The columns released unchanged: keys, and those that the policy shows by their value."""
        return [name for name in self.columns if isinstance(self.policy.attribute(name), Key) or not self._coarse(name)]

    def _coarse(self, name: str) -> bool:
        promises = self.policy.release_promises.values()
        return any(p.shows == "bins" for p in promises if name in (*p.reveals, *p.about))

    @cached_property
    def labels(self) -> dict[str, list[Any]]:
        """The label of each cell of a column in a released record."""
        return {axis.name: _labels(axis) for axis in self.axes}

    def cells(self, positions: Sequence[int]) -> tuple[int, ...] | None:
        """Return the cell of a record under each promise from its positions on the axes; None if it has none."""
        if DROPPED in positions:
            return None
        return tuple(sum(positions[axis] * stride for axis, stride in strides) for strides in self._strides)

    @cached_property
    def _strides(self) -> list[list[tuple[int, int]]]:
        """For each promise, what a position on an axis adds to the cell.

        Targets come before values; of several columns the last changes fastest.
        """
        axis_index = {axis.name: number for number, axis in enumerate(self.axes)}
        all_strides = []
        for _, promise in sorted(self.policy.release_promises.items()):  # by name: the order of a file may change
            strides, stride = [], 1
            for name in reversed((*promise.about, *promise.reveals)):
                strides.append((axis_index[name], stride))
                stride *= self.policy.attribute(name).cells
            all_strides.append(strides)
        return all_strides

    def value_names(self, promise: str) -> list[str]:
        """Return the labels of the cells of the revealed columns."""
        return self._names(self.policy.release_promises[promise].reveals)

    def target_names(self, promise: str) -> list[str]:
        """Return the labels of the groups."""
        return self._names(self.policy.release_promises[promise].about)

    # The joint cells of all hiding promises: group * values + value

    @cached_property
    def _joint(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        hiding = self.policy.hiding
        return (hiding.about, hiding.reveals) if hiding else ((), ())

    @cached_property
    def joint_groups(self) -> list[str]:
        """The labels of the groups of all hiding promises together."""
        return self._names(self._joint[0])

    @cached_property
    def joint_values(self) -> list[str]:
        """The labels of the cells of all revealed columns together."""
        return self._names(self._joint[1])

    @cached_property
    def groups(self) -> int:
        """The number of groups of all hiding promises together."""
        return self.policy.cells(self._joint[0])

    @cached_property
    def values(self) -> int:
        """The number of cells of all revealed columns together."""
        return self.policy.cells(self._joint[1])

    @cached_property
    def _joint_axes(self) -> list[tuple[int, int]]:
        """The position among all axes, and the number of cells, of each column of the joint cell."""
        index = {axis.name: number for number, axis in enumerate(self.axes)}
        return [(index[name], self.policy.attribute(name).cells) for name in (*self._joint[0], *self._joint[1])]

    def joint_cells(self, positions: Ints) -> Ints:
        """Return the joint cell of each record from its positions on the axes (one row each); -1 if it has none."""
        cells = np.zeros(len(positions), np.int64)
        for axis, size in self._joint_axes:
            cells = cells * size + positions[:, axis]
        return np.where((positions == DROPPED).any(axis=1), -1, cells)

    def margin(self, promise: str, cell: int) -> tuple[int, int]:
        """Return the value and the group of a joint cell under one promise."""
        position: dict[str, int] = {}
        for name in reversed([*self._joint[0], *self._joint[1]]):
            cell, position[name] = divmod(cell, self.policy.attribute(name).cells)
        indexes = []
        for columns in (self.policy.hidings[promise].reveals, self.policy.hidings[promise].about):
            index = 0
            for name in columns:
                index = index * self.policy.attribute(name).cells + position[name]
            indexes.append(index)
        return indexes[0], indexes[1]

    def _names(self, columns: Sequence[str]) -> list[str]:
        parts = [["missing" if label is None else str(label) for label in self.labels[column]] for column in columns]
        return [", ".join(joint) for joint in product(*parts)]

    def shown_text(self, row: dict[str, Any], positions: Sequence[int]) -> str:
        """Return a record in the form in which it is released, as canonical JSON."""
        parts = [
            head + (canonical(_plain(row[name])) if texts is None else texts[positions[axis]])
            for name, head, axis, texts in self._parts
        ]
        return "{" + ",".join(parts) + "}"

    @cached_property
    def _parts(self) -> list[tuple[str, str, int, list[str] | None]]:
        """For each released column in sorted order: its name, the start of its text, its axis, and the text of each label."""
        index = {axis.name: number for number, axis in enumerate(self.axes)}
        return [
            (name, f"{canonical(name)}:", 0, None)
            if name in self.raw
            else (name, f"{canonical(name)}:", index[name], [canonical(label) for label in self.labels[name]])
            for name in sorted(self.columns)
        ]


def _labels(axis: Axis) -> list[Any]:
    attribute = axis.attribute
    labels = axis.labels()
    if not isinstance(attribute, Numeric) or not attribute.cuts:
        return [_plain(label) for label in labels]
    starts = [*attribute.bin_starts(), attribute.size]
    spans = [(plain(attribute.value(a)), plain(attribute.value(b - 1))) for a, b in pairwise(starts)]
    texts = [str(low) if low == high else f"{low}-{high}" for low, high in spans]
    return [*texts, None] if len(labels) > len(texts) else texts


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it: infinities become text, NaN becomes null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)
