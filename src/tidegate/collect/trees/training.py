"""The training data of a tree: the reports of every record, its class, and how both were randomized."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tidegate.arrays import Array, Floats, Ints32
from tidegate.collect.reconstruct.em import em
from tidegate.collect.trees._kernels import associated, kept
from tidegate.collect.trees.columns import Column


@dataclass(frozen=True, eq=False)
class Training:
    """Rows of channels, (attributes, records), and classes as reported; `unmix` turns counts of these into true ones."""

    reports: Ints32 = field(repr=False)
    labels: Ints32 = field(repr=False)
    columns: tuple[Column, ...]
    unmix: Floats

    @property
    def classes(self) -> int:
        return int(self.unmix.shape[0])

    @property
    def records(self) -> int:
        return int(self.labels.size)

    @cached_property
    def sizes(self) -> Ints32:
        """The number of intervals of each attribute."""
        return np.array([column.intervals for column in self.columns], np.int32)

    @property
    def plain(self) -> bool:
        """Whether there is nothing to reconstruct."""
        return all(column.plain for column in self.columns)

    def halves(self) -> tuple[Training, Training]:
        """Return two halves of the records by a fixed shuffle, so that the same records give the same tree."""
        order = np.random.default_rng(0).permutation(self.records)
        return self._of(order[::2]), self._of(order[1::2])

    def first(self, most: int) -> Training:
        """Return the first `most` records."""
        return self if most >= self.records else self._of(np.arange(most))

    def _of(self, records: Array) -> Training:
        return Training(np.ascontiguousarray(self.reports[:, records]), self.labels[records], self.columns, self.unmix)

    def all(self) -> Ints32:
        """Return the indexes of the records."""
        return np.arange(self.records, dtype=np.int32)

    def true(self, counts: Floats) -> Floats:
        """Return counts of true classes from counts of reported ones, the first axis."""
        return np.maximum(np.tensordot(self.unmix, counts, axes=1), 0)

    def masses(self, attribute: int, records: Ints32) -> Floats:
        """Return the reconstructed distribution of an attribute among some records: EM with the published stop."""
        channel = self.columns[attribute].channel
        seen = np.bincount(self.reports[attribute][records], minlength=channel.reports).astype(np.float64)
        return em(seen, channel, start=np.full(channel.values, 1 / channel.values)).masses

    def associate(self, attribute: int, records: Ints32, out: Ints32) -> None:
        """Assign records to intervals in the order of their reports, with the reconstructed masses."""
        column = self.columns[attribute]
        ends = records.size * np.cumsum(self.masses(attribute, records))
        if column.ordered:
            associated(self.reports[attribute], records, ends, column.channel.reports, out)
        else:
            kept(self.reports[attribute], records, np.diff(np.rint(ends), prepend=0.0), out)

    def by_class(self, records: Ints32) -> list[Ints32]:
        """Return the records of each reported class; empty classes are left out."""
        groups = (records[self.labels[records] == label] for label in range(self.classes))
        return [group for group in groups if group.size]
