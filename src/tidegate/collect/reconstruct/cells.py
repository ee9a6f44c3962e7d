"""Cells: the values of a fit. They are single bins, merged neighboring bins, or the values of a list.

Neighboring reports with the same likelihood ratios are counted together, mostly the tails of the noise. Beyond the
values, all reports under Laplace noise are equivalent; 400 different reports become 102.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats, Positions
from tidegate.collect.reconstruct.channel import Channel
from tidegate.collect.reconstruct.families import Family
from tidegate.collect.reconstruct.fit import Data, Fit
from tidegate.extras import extra

with extra("collect", "Estimating from randomized reports"):
    from numba import njit

MOST = 128  # cells of one fit: its cost grows with their cube, and noise hides finer details


@dataclass(frozen=True, eq=False)
class Rows:
    """Functionals on cells, and the row of each requested one."""

    coefficients: Floats  # (rows, cells)
    wanted: Positions


@dataclass(frozen=True, eq=False)
class Cells:
    """The cell of each value, and the data on cells."""

    of: Positions  # (listed values,) the cell of each, ascending
    listed: Positions  # (listed values,) its index on the grid
    grid: int  # values of the grid
    value_centers: Floats  # (listed values,) on [0, 1]
    value_widths: Floats  # (listed values,)
    centers: Floats  # (cells,) on [0, 1]
    data: Data

    @property
    def merged(self) -> bool:
        return self.listed.size > self.centers.size

    def spread(self, fitted: Fit, family: Family) -> Floats:
        """Return a fit's masses on the grid: u interpolated inside a cell (constant for jumps), each cell keeping its mass."""
        fine = fitted.masses if not self.merged else self._inside(fitted, family)
        return self.placed(fine)

    def placed(self, listed: Floats) -> Floats:
        """Return numbers of the listed values at their grid indexes, the last axis; zero elsewhere."""
        if self.listed.size == self.grid:
            return listed
        whole = np.zeros((*listed.shape[:-1], self.grid))
        whole[..., self.listed] = listed
        return whole

    def gathered(self, masses: Floats) -> Floats:
        """Return the masses of the cells."""
        return np.bincount(self.of, masses[self.listed]).astype(np.float64)

    def rows(self, of: Floats) -> tuple[Rows, Rows]:
        """Return functionals on the grid as functionals on cells: the smallest and the largest value of each in a cell."""
        starts, each = np.searchsorted(self.of, np.arange(self.centers.size)), np.arange(of.shape[0])
        inner = of[:, self.listed]
        least, most = np.minimum.reduceat(inner, starts, axis=1), np.maximum.reduceat(inner, starts, axis=1)
        return Rows(least, each), Rows(most, each)

    def named(self, of: str) -> tuple[Rows, Rows]:
        """Return the same for all bins or the whole distribution function, with each row only once."""
        size, zero = self.centers.size, np.zeros((1, self.centers.size))
        if of == "cdf":
            rows = np.concatenate([zero, np.tri(size)])
            listed = np.searchsorted(self.listed, np.arange(self.grid), side="right")  # how many up to here
            ends = np.searchsorted(self.of, np.arange(size), side="right")
            return Rows(rows, np.searchsorted(ends, listed, side="right")), Rows(
                rows, np.searchsorted(ends, listed) + (listed > 0)
            )
        rows = np.concatenate([zero, np.eye(size)])
        cell = self.placed((self.of + 1).astype(np.float64)).astype(np.intp)
        alone = np.append(False, np.bincount(self.of) == 1)
        return Rows(rows, np.where(alone[cell], cell, 0)), Rows(rows, cell)

    def _inside(self, fitted: Fit, family: Family) -> Floats:
        shape = self.value_widths
        if family.order > 1:
            shape = shape * family.link(_interpolated(self.value_centers, self.centers, fitted.u))[0]
        return np.asarray(shape * (fitted.masses / np.bincount(self.of, shape))[self.of])


def cells(counts: Floats, channel: Channel, *, values: Positions | None, widths: Floats | None) -> Cells:
    """Return the cells of a grid or of a list of its values: one for each value up to 128, else equal runs of neighbors."""
    grid = channel.values
    breadth = np.ones(grid) if widths is None else widths
    ends = np.cumsum(breadth) / breadth.sum()
    centers = ends - breadth / breadth.sum() / 2
    listed = np.arange(grid) if values is None else values
    inner = channel if values is None else channel.columns(listed)
    breadth = breadth[listed] if values is None else np.ones(listed.size)  # a listed value is an atom
    run = -(-listed.size // MOST)
    starts, report_starts = _starts(listed.size, run), _starts(counts.size, run)
    of = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    across = np.bincount(of, breadth)
    merged = np.add.reduceat(counts, report_starts[:-1])
    matrix = inner.merged(report_starts, starts) if widths is None else _weighted(inner, report_starts, starts, breadth)
    middle = np.bincount(of, breadth * centers[listed]) / across
    data = Data(*joined(merged, matrix), across / across.mean())
    return Cells(of, listed, grid, centers[listed], breadth, middle, data)


def _starts(size: int, run: int) -> Positions:
    return np.append(np.arange(0, size, run), size)


def _weighted(channel: Channel, reports: Positions, values: Positions, widths: Floats) -> Floats:
    """A cell of unequal bins: the mass inside goes by width."""
    if values.size == widths.size + 1:
        return channel.merged(reports, values)
    dense = channel.columns(np.arange(channel.values)).matrix * widths
    summed = np.add.reduceat(np.add.reduceat(dense, reports[:-1], axis=0), values[:-1], axis=1)
    return np.asarray(summed / np.add.reduceat(widths, values[:-1]))


def _interpolated(at: Floats, nodes: Floats, heights: Floats) -> Floats:
    """Interpolate linearly between the nodes, and continue beyond the first and the last."""
    left = np.clip(np.searchsorted(nodes, at) - 1, 0, nodes.size - 2)
    share = (at - nodes[left]) / (nodes[left + 1] - nodes[left])
    return np.asarray(heights[left] + share * (heights[left + 1] - heights[left]))


LOST = 1e-3  # information about the masses that one joining can cost; a feature is visible from 10 on


def joined(counts: Floats, matrix: Floats) -> tuple[Floats, Floats]:
    """Return counts and channel with equivalent reports joined."""
    starts = np.flatnonzero(joining_starts(np.ascontiguousarray(matrix), float(counts.sum()), LOST))
    return np.add.reduceat(counts, starts), np.add.reduceat(matrix, starts, axis=0)


@njit(cache=True)
def joining_starts(matrix: Floats, total: float, lost: float) -> Floats:
    """1 where a group of reports starts. A report joins the group before it if the information lost,
    N a b / (a + b) mean (A / a - B / b)^2 with a and b the mean chances of both, is small."""
    reports, values = matrix.shape
    starts = np.zeros(reports)
    starts[0] = 1.0
    group = matrix[0].copy()
    for s in range(1, reports):
        a, b = group.mean(), matrix[s].mean()
        apart = 0.0 if (a > 0) == (b > 0) else np.inf  # impossible reports are joined only with each other
        if a > 0 and b > 0:
            for j in range(values):
                apart += (group[j] / a - matrix[s, j] / b) ** 2
            apart *= total * a * b / (a + b) / values
        if apart <= lost:
            group += matrix[s]
        else:
            starts[s] = 1.0
            group = matrix[s].copy()
    return starts
