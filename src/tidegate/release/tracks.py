"""The measure of every test against its critical value, as records are released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.release.mechanisms import REGISTERED, Reading, Test
from tidegate.release.plan import Plan

POINTS = 160
DENSE = 100


@dataclass(frozen=True)
class Track:
    """One measure, of one target or (None) of all together, by the number of its released records.

    `critical` is infinite where there are too few records to test.
    """

    test: str
    measure: str
    target: int | None
    records: Ints
    values: Floats
    critical: Floats

    @property
    def closest(self) -> float:
        """The largest share of its critical value that the measure reached; 1 would be a broken promise."""
        return float((self.values / self.critical).max()) if self.records.size else 0.0

    @property
    def latest(self) -> float:
        """The share of its critical value that the measure has now."""
        return float(self.values[-1] / self.critical[-1]) if self.records.size else 0.0


def tracks(plan: Plan, order: Sequence[int] | Ints, *, points: int = POINTS) -> list[Track]:
    """Return the tracks of all tests of a plan, from the cells in order of release (`Desk.history()`)."""
    cells = np.asarray(order, np.int64)
    return [track for name in plan.promise.tests for track in _tracks_of(REGISTERED[name](plan), cells, points)]


def counts_after(plan: Plan, cells: Ints) -> Ints:
    """Count the released records, (values, targets), after these cells."""
    counts = np.bincount(cells, minlength=plan.values * plan.targets)
    return np.asarray(counts.reshape(plan.targets, plan.values).T)


def _tracks_of(test: Test, cells: Ints, points: int) -> list[Track]:
    final = test.readings(counts_after(test.plan, cells)) if cells.size else []
    return [_track(test, reading.target, cells, points) for reading in final]


def _track(test: Test, target: int | None, cells: Ints, points: int) -> Track:
    mask = np.ones(cells.size, bool) if target is None else cells // test.plan.values == target
    moments = np.flatnonzero(mask) + 1  # the number of records released after each of its own
    numbers = _spaced(moments.size, points)
    readings = [_reading(test, target, cells[: moments[number - 1]]) for number in numbers]
    values, critical = (np.array([getattr(reading, part) for reading in readings]) for part in ("value", "critical"))
    return Track(test.name, test.measure, target, numbers, values, critical)


def _reading(test: Test, target: int | None, cells: Ints) -> Reading:
    readings = test.readings(counts_after(test.plan, cells))
    return next(reading for reading in readings if reading.target == target)


def _spaced(last: int, points: int) -> Ints:
    """Return the first hundred numbers, then evenly spaced ones on a logarithmic axis; always the last."""
    later = np.geomspace(1, last, points).round().astype(np.int64)
    return np.union1d(np.arange(1, min(last, DENSE) + 1), later)
