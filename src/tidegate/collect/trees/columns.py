"""A column of reports: the intervals of its values, the channel between them, and the edges of both.

column_of(operator)                  reports and values are codes, as a collection stores them
noisy_column(noise, low, high)       continuous noise as published, values spread evenly in 100 intervals
atoms_column(noise, values)          the same for a few whole values
plain_column(values)                 no noise at all

Reports that are sets (unary encoding, subset selection) become codes: one member of the set is picked by the index of its
record, which is independent of the content. It has less information than the set and costs no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tidegate.arrays import Array, Floats, Ints32, Positions
from tidegate.collect.reconstruct import Channel, Dense, Noise, atoms_channel, bins_channel, build_channel, report_edges
from tidegate.collect.reconstruct.channel import OPEN_BEYOND
from tidegate.errors import Unsupported
from tidegate.operators import Operator, Pure

INTERVALS = 100  # as published


@dataclass(frozen=True, eq=False)
class Column:
    """P(report | interval) as a matrix, and the edges of intervals and reports in the column's own units.

    A report in the middle of its noise is `shift` above its value: clients send no negative codes.
    `ordered` is false for categories: a record then gets the interval of its report while there is room, not that of its rank.
    """

    channel: Dense = field(repr=False)  # (reports, intervals)
    value_edges: Floats = field(repr=False)  # (intervals + 1,)
    report_edges: Floats = field(repr=False)  # (reports + 1,)
    ordered: bool = True
    shift: int = 0

    @property
    def intervals(self) -> int:
        return self.channel.values

    @property
    def plain(self) -> bool:
        """Whether a report is its value."""
        matrix = self.channel.matrix
        return matrix.shape[0] == matrix.shape[1] and bool((matrix == np.eye(self.intervals)).all())

    @property
    def nearest(self) -> Ints32:
        """The interval that contains the middle of each report: its face value."""
        middle = (self.report_edges[1:] + self.report_edges[:-1]) / 2
        return self.interval(middle - self.shift)

    def interval(self, values: Floats) -> Ints32:
        """Return the interval of each value; values outside belong to the first or the last."""
        return _index_of(values, self.value_edges)

    def report(self, reports: Floats) -> Ints32:
        """Return the row of the channel in which each report is counted."""
        return _index_of(reports, self.report_edges)

    def without_noise(self) -> Column:
        """Return the same intervals, reported without noise."""
        return Column(Dense(np.eye(self.intervals)), self.value_edges, self.value_edges, self.ordered)


def noisy_column(noise: Noise, low: float, high: float, *, intervals: int = INTERVALS) -> Column:
    """Return a column of evenly spread values in equal intervals with noise; reports are binned at the same width."""
    edges = report_edges(intervals, noise.reach(beyond=OPEN_BEYOND), low=low, high=high)
    inner = np.linspace(low, high, intervals + 1)
    return Column(bins_channel(noise, inner, edges), inner, edges)


def atoms_column(noise: Noise, values: Sequence[float], *, reports: int = INTERVALS) -> Column:
    """Return a column of a few values with noise; `reports` bins are between the least and the greatest value."""
    atoms = np.asarray(values, np.float64)
    low, high = float(atoms[0]), float(atoms[-1])
    edges = report_edges(reports, noise.reach(beyond=OPEN_BEYOND), low=low, high=high)
    return Column(atoms_channel(noise, atoms, edges), _around(atoms), edges)


def plain_column(values: Floats, *, intervals: int = INTERVALS) -> Column:
    """Return a column without noise: an interval for each value, or `intervals` with equally many records each."""
    distinct = np.unique(values)
    if distinct.size > intervals:
        cuts = np.unique(np.quantile(values, np.arange(1, intervals) / intervals))
        edges = np.concatenate([[-np.inf], cuts, [np.inf]])
    else:
        edges = _around(distinct)
    return Column(Dense(np.eye(edges.size - 1)), edges, edges)


def column_of(operator: Operator, *, intervals: int = INTERVALS) -> Column:
    """Return the column of an operator's codes; long grids are merged into intervals of equally many values."""
    channel: Channel = Dense(picked_channel(operator)) if operator.form == "set" else build_channel(operator.channel())
    run = -(-operator.values // intervals)
    values, reports = _starts(channel.values, run), _starts(channel.reports, run)
    matrix, shift = Dense(channel.merged(reports, values)), (channel.reports - channel.values) // 2
    return Column(matrix, _before(values), _before(reports), operator.ordered, shift)


def _starts(size: int, run: int) -> Positions:
    return np.append(np.arange(0, size, run), size)


def _before(codes: Positions) -> Floats:
    return np.asarray(codes - 0.5, np.float64)


def _around(values: Floats) -> Floats:
    """Return edges halfway between the values; values beyond belong to the first or the last."""
    return np.concatenate([[-np.inf], (values[1:] + values[:-1]) / 2, [np.inf]])


def _index_of(values: Floats, edges: Floats) -> Ints32:
    return np.searchsorted(edges[1:-1], values, side="right").astype(np.int32)


STRIDE = 2_654_435_761  # 2**32 / golden ratio: neighbors pick different members
CHUNK = 1 << 22


def picked(sets: Array, *, values: int, first: int = 0) -> Ints32:
    """Return a member of each set of packed bits (value v is bit v % 8 of byte v // 8); of the empty set, any value."""
    step = max(1, CHUNK // values)
    parts = [_picked(sets[at : at + step], values, first + at) for at in range(0, len(sets), step)]
    return np.concatenate(parts) if parts else np.zeros(0, np.int32)


def _picked(sets: Array, values: int, first: int) -> Ints32:
    octets = np.ascontiguousarray(sets).view(np.uint8).reshape(len(sets), -1)
    contains = np.unpackbits(octets, axis=1, bitorder="little")[:, :values].astype(bool)
    contains[~contains.any(axis=1)] = True
    turn = (np.arange(first, first + len(sets), dtype=np.uint64) * np.uint64(STRIDE)) >> np.uint64(7)
    rank = (turn % contains.sum(axis=1).astype(np.uint64)).astype(np.int64)
    return np.asarray((np.cumsum(contains, axis=1) > rank[:, None]).argmax(axis=1), np.int32)


def picked_channel(operator: Operator) -> Floats:
    """Return P(picked | value): one probability for the true value, one for each other."""
    if not isinstance(operator, Pure):
        raise Unsupported(
            f"{operator.name} does not support single values.", "Use an operator for numbers or categories."
        )
    n, same = operator.values, operator.pick_chance()
    matrix = np.full((n, n), (1 - same) / (n - 1))
    np.fill_diagonal(matrix, same)
    return matrix
