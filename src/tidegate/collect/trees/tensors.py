"""EM of several attributes at once: masses on cells, counts of combined reports, one channel for each axis.

The steps are those of `reconstruct.em`, with A the product of the channels: never formed, applied one axis after another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Floats, Ints32
from tidegate.collect.reconstruct.em import TINY
from tidegate.collect.trees.columns import Column
from tidegate.collect.trees.training import Training

FEWEST_ROWS = 16  # kinds of reports across the range of the values
RARE = 0.004  # a kind of report less frequent than this (of even values) is joined with its neighbour: the tails


@dataclass(frozen=True, eq=False)
class Axis:
    """One attribute of a joint reconstruction: neighbouring intervals as cells, reports that say the same joined."""

    attribute: int
    matrix: Floats  # (joined reports, cells)
    joined: Ints32  # (reports,) which of them each is
    starts: Ints32  # (cells + 1,) the first interval of each


def axis(column: Column, attribute: int, *, cells: int, rows: int = 1_000) -> Axis:
    """At most so many cells, and rows; kinds of reports are as wide as a cell, but not too few, and none is rare."""
    run = -(-column.intervals // cells)
    starts = np.append(np.arange(0, column.intervals, run), column.intervals)
    matrix = column.channel.merged(np.arange(column.channel.reports + 1), starts)
    width = max(_width(column, starts.size - 1), -(-column.channel.reports // rows))
    firsts = _firsts(matrix.mean(axis=1), width)
    joined = (np.cumsum(firsts) - 1).astype(np.int32)
    return Axis(attribute, np.add.reduceat(matrix, np.flatnonzero(firsts), axis=0), joined, starts.astype(np.int32))


def _width(column: Column, cells: int) -> int:
    """How many neighbouring reports are joined: by how far the reports of the first and the last interval are apart."""
    matrix = column.channel.matrix
    if not column.ordered or column.intervals < 2:
        return 1
    ends = np.arange(len(matrix)) @ matrix[:, [0, -1]]
    across = (ends[1] - ends[0]) * column.intervals / (column.intervals - 1)
    return max(1, int(across / max(cells, FEWEST_ROWS) + 1e-9))


def _firsts(shares: Floats, width: int) -> NDArray[np.bool_]:
    """Where a group of neighbours starts: each has `width` at least, and is not rare; the last takes what is left."""
    found, many, share = np.zeros(shares.size, bool), width, 1.0
    for place, here in enumerate(shares):
        if many >= width and share >= RARE and shares[place:].sum() >= RARE:
            found[place], many, share = True, 0, 0.0
        many, share = many + 1, share + float(here)
    found[0] = True
    return found


def tally(given: Training, axes: Sequence[Axis]) -> Floats:
    """How often each combination of reports came from each reported class: (classes, reports, reports, ...)."""
    shape = (given.classes, *(one.matrix.shape[0] for one in axes))
    places = (given.labels, *(one.joined[given.reports[one.attribute]] for one in axes))
    flat = np.ravel_multi_index(places, shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def forward(masses: Floats, axes: Sequence[Axis]) -> Floats:
    """The chances of combined reports. Each product takes the first axis and puts its successor last."""
    for one in axes:
        masses = np.tensordot(masses, one.matrix, axes=(0, 1))
    return masses


def back(weights: Floats, axes: Sequence[Axis]) -> Floats:
    """The transpose of `forward`."""
    for one in axes:
        weights = np.tensordot(weights, one.matrix, axes=(0, 0))
    return weights


def joint_em(counts: Floats, axes: Sequence[Axis], *, steps: Sequence[int]) -> Iterator[Floats]:
    """Masses on cells after each of these numbers of steps, from the even distribution; they sum to the counts."""
    total, shape = counts.sum(), tuple(one.matrix.shape[1] for one in axes)
    masses, done = np.full(shape, total / np.prod(shape)), 0
    for wanted in steps:
        for _ in range(wanted - done):
            masses = masses * back(counts / np.maximum(forward(masses, axes), TINY), axes)
            masses *= total / max(masses.sum(), TINY)
        done = wanted
        yield masses
