"""Channels: A[s, j], the chance of report s from value j. Dense, or shifted copies of one kernel for long grids.

A[s, j] of bins is exact for values spread evenly in bin j; of atoms, for the values themselves. Columns sum to one.

Reference:
    Agrawal & Aggarwal 2001, Section 3, with the widths of the intervals kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from tidegate.arrays import Complexes, Floats, Positions
from tidegate.collect.reconstruct.noise import Noise, SquareWave, UniformNoise
from tidegate.extras import extra
from tidegate.operators.channel import LONGEST_DENSE, ChannelSpec

with extra("collect", "Estimating from randomized reports"):
    from scipy.fft import irfft, next_fast_len, rfft  # type: ignore[import-untyped]

OPEN_BEYOND = 6.3e-5  # a dense channel's end bins are open: what lies farther out (4 sigma) is counted in them
CLOSED_BEYOND = 1e-9  # a shifted one has none: its kernel reaches until nothing is left


class Channel(Protocol):
    """The interface of A for reconstruction."""

    @property
    def reports(self) -> int: ...
    @property
    def values(self) -> int: ...
    def forward(self, masses: Floats) -> Floats: ...
    def back(self, weights: Floats) -> Floats: ...
    def columns(self, chosen: Positions) -> Dense: ...
    def merged(self, reports: Positions, values: Positions) -> Floats: ...
    def midpoints(self) -> Channel: ...


@dataclass(frozen=True, eq=False)
class Dense:
    """A as a matrix. `densities`, where given, are the noise's at the distances of midpoints, for the Bayes update."""

    matrix: Floats  # (reports, values)
    densities: Floats | None = field(default=None, repr=False)

    @property
    def reports(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def values(self) -> int:
        return int(self.matrix.shape[1])

    def forward(self, masses: Floats) -> Floats:
        return self.matrix @ masses

    def back(self, weights: Floats) -> Floats:
        return weights @ self.matrix

    def columns(self, chosen: Positions) -> Dense:
        densities = None if self.densities is None else self.densities[:, chosen]
        return Dense(np.ascontiguousarray(self.matrix[:, chosen]), densities)

    def merged(self, reports: Positions, values: Positions) -> Floats:
        """Return the channel of merged neighboring bins; both arguments list where each cell starts, and the end."""
        summed = np.add.reduceat(np.add.reduceat(self.matrix, reports[:-1], axis=0), values[:-1], axis=1)
        return np.asarray(summed / np.diff(values))

    def midpoints(self) -> Channel:
        return self if self.densities is None else Dense(self.densities)


@dataclass(frozen=True, eq=False)
class Shifted:
    """A[s, j] = kernel[s - j] + background[s]: products by FFT; the whole matrix is never formed.

    `clipped` reports at either end are never sent; the first or last possible report is sent instead.
    """

    kernel: Floats  # (reports + 2 clipped - values + 1,)
    values: int
    background: Floats | None = None  # (reports,)
    clipped: int = 0
    at_midpoints: Floats | None = field(default=None, repr=False)  # a kernel of densities, for the Bayes update

    @property
    def full(self) -> int:
        """Reports before clipping."""
        return int(self.kernel.size) + self.values - 1

    @property
    def reports(self) -> int:
        return self.full - 2 * self.clipped

    @cached_property
    def length(self) -> int:
        """Of the transforms."""
        return int(next_fast_len(self.full, real=True))

    @cached_property
    def spectrum(self) -> Complexes:
        return np.asarray(rfft(self.kernel, self.length))

    def forward(self, masses: Floats) -> Floats:
        shifted = irfft(rfft(masses, self.length) * self.spectrum, self.length)[: self.full]
        product = self._folded(np.maximum(shifted, 0))  # rounding leaves -1e-12 and the like
        return product if self.background is None else product + self.background * masses.sum()

    def back(self, weights: Floats) -> Floats:
        padded = np.pad(weights, self.clipped, mode="edge") if self.clipped else weights
        shifted = irfft(rfft(padded, self.length) * self.spectrum.conj(), self.length)[: self.values]
        product = np.maximum(shifted, 0)
        return np.asarray(product if self.background is None else product + self.background @ weights)

    def columns(self, chosen: Positions) -> Dense:
        matrix = np.zeros((self.full, chosen.size))
        for column, value in enumerate(chosen):
            matrix[value : value + self.kernel.size, column] = self.kernel
        folded = self._folded(matrix)
        return Dense(folded if self.background is None else folded + self.background[:, None])

    def merged(self, reports: Positions, values: Positions) -> Floats:
        """From the kernel summed twice: one matrix of the merged size, whatever the length of the grid."""
        ends = reports + self.clipped
        ends[0], ends[-1] = 0, self.full
        twice = np.concatenate([np.zeros(self.values + 1), np.cumsum(np.cumsum(self.kernel))])
        twice = np.concatenate([twice, twice[-1] + np.arange(1, self.values + 1) * self.kernel.sum()])
        corners = twice[ends[:, None] - values[None, :] + self.values]  # sum over s < report and j >= value
        matrix = np.maximum(np.diff(corners[:, :-1] - corners[:, 1:], axis=0) / np.diff(values), 0)
        if self.background is None:
            return np.asarray(matrix)
        return np.asarray(matrix + np.add.reduceat(self.background, reports[:-1])[:, None])

    def midpoints(self) -> Channel:
        return self if self.at_midpoints is None else Shifted(self.at_midpoints, self.values)

    def _folded(self, full: Floats) -> Floats:
        if not self.clipped:
            return full
        folded = full[self.clipped : -self.clipped].copy()
        folded[0] += full[: self.clipped].sum(axis=0)
        folded[-1] += full[-self.clipped :].sum(axis=0)
        return folded


def build_channel(spec: ChannelSpec) -> Channel:
    """Build the channel of an operator: `build_channel(operator.channel())`."""
    if spec.matrix is not None:
        return Dense(spec.matrix)
    if spec.kernel is None:
        raise ValueError("A channel needs a matrix or a kernel.")
    return Shifted(spec.kernel, spec.values, background=spec.background, clipped=spec.clipped)


def bins_channel(noise: Noise, value_edges: Floats, report_edges: Floats, *, open_ends: bool = True) -> Dense:
    """Return A for values spread evenly in bins, which may be unequal. Open ends: the outer report bins are unbounded."""
    edges = _opened(noise, value_edges, report_edges) if open_ends else report_edges
    corners = noise.integral(edges[:, None] - value_edges[None, :])
    matrix = np.diff(corners[:, :-1] - corners[:, 1:], axis=0) / np.diff(value_edges)
    return Dense(np.maximum(matrix, 0), noise.density(_middle(report_edges)[:, None] - _middle(value_edges)[None, :]))


def atoms_channel(noise: Noise, values: Floats, report_edges: Floats, *, open_ends: bool = True) -> Dense:
    """Return A for values that are exactly those listed."""
    below = noise.cumulative(report_edges[:, None] - values[None, :])
    if open_ends:
        below[0], below[-1] = 0, 1
    return Dense(np.diff(below, axis=0), noise.density(_middle(report_edges)[:, None] - values[None, :]))


def grid_channel(noise: Noise, bins: int, *, low: float = 0.0, high: float = 1.0, spread: bool = True) -> Channel:
    """Return A for `bins` equal bins of [low, high]; reports are binned at the same width, as far as the noise reaches.

    `spread`: values are spread evenly in their bin; otherwise they are at its center.
    """
    width, dense = (high - low) / bins, bins <= LONGEST_DENSE
    reach = noise.reach(beyond=OPEN_BEYOND if dense else CLOSED_BEYOND)
    if not dense:
        return _shifted(noise, bins, width, int(np.ceil(reach / width - 1e-9)), spread=spread)
    edges = report_edges(bins, reach, low=low, high=high)
    value_edges = np.asarray(low + width * np.arange(bins + 1))
    return bins_channel(noise, value_edges, edges) if spread else atoms_channel(noise, _middle(value_edges), edges)


def report_edges(bins: int, reach: float, *, low: float = 0.0, high: float = 1.0) -> Floats:
    """Return the grid of the values, extended by whole bins until it covers all reports."""
    width = (high - low) / bins
    more = int(np.ceil(reach / width - 1e-9))
    return np.asarray(low + width * np.arange(-more, bins + more + 1))


def square_wave_channel(wave: SquareWave, bins: int, *, spread: bool = True) -> Channel:
    """Return A of the square wave for `bins` equal bins of [0, 1]: a shifted box over an even background."""
    edges = report_edges(bins, wave.half)
    share = (wave.near - wave.far) * 2 * wave.half
    background = wave.far * np.diff(np.clip(edges, -wave.half, 1 + wave.half))
    box = UniformNoise(wave.half)
    if bins > LONGEST_DENSE:
        more = int(np.ceil(wave.half * bins - 1e-9))
        shifted = _shifted(box, bins, 1 / bins, more, spread=spread, share=share)
        return replace(shifted, background=background, at_midpoints=None)
    value_edges = np.arange(bins + 1) / bins
    inner = bins_channel(box, value_edges, edges) if spread else atoms_channel(box, _middle(value_edges), edges)
    return Dense(share * inner.matrix + background[:, None])


def _shifted(noise: Noise, bins: int, width: float, more: int, *, spread: bool, share: float = 1.0) -> Shifted:
    edges = np.asarray(width * (np.arange(-more, more + 2) - 0.5))  # of the reports around a value at zero
    if spread:
        corners = noise.integral(edges[:, None] + width * np.array([0.5, -0.5])[None, :])
        kernel = np.diff(corners[:, 0] - corners[:, 1]) / width
    else:
        kernel = np.diff(noise.cumulative(edges))
    kernel = np.maximum(kernel, 0)
    return Shifted(share * kernel / kernel.sum(), bins, at_midpoints=noise.density(_middle(edges)))


def _opened(noise: Noise, value_edges: Floats, report_edges: Floats) -> Floats:
    far = noise.reach(beyond=1e-18) + 1e-9
    opened = report_edges.copy()
    opened[0] = min(opened[0], value_edges[0] - far)
    opened[-1] = max(opened[-1], value_edges[-1] + far)
    return np.asarray(opened)


def _middle(edges: Floats) -> Floats:
    return np.asarray((edges[1:] + edges[:-1]) / 2)
