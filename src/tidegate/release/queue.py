"""The queue of a release desk for the data holder: who waits since when, and the tests that hold each record."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tidegate.arrays import Ints
from tidegate.ledger.release_book import StoredRequest
from tidegate.release.gate import Cells
from tidegate.release.mechanisms import REGISTERED, Reading, Test
from tidegate.release.plan import Plan
from tidegate.release.run import DeskState, catch_up, parse_cells


@dataclass(frozen=True)
class Obstacle:
    """A test that would fail if a waiting record were released now, with its measure and its critical value then."""

    promise: str
    test: str
    target: int | None
    value: float
    critical: float

    @property
    def excess(self) -> float | None:
        """How far the measure would be above its critical value, as a share of it; None if it cannot be computed."""
        if not (math.isfinite(self.value) and math.isfinite(self.critical) and self.critical > 0):
            return None
        return max(0.0, self.value / self.critical - 1)  # decided exactly: a tie can round to just below


@dataclass(frozen=True)
class WaitingRequest:
    """A waiting request: the time since it waits, its group under the desk's promise, and what holds it."""

    request: StoredRequest
    since: str
    target: int
    obstacles: tuple[Obstacle, ...]


def read_queue(desk: DeskState, after: int, limit: int, *, newest: bool = False) -> tuple[list[WaitingRequest], int]:
    """Return a page of waiting requests after a number, and how many wait in total.

    The tests are computed for the records of the page only, once for all records of the same cells.
    """
    with desk.lock, desk.book.look() as view:
        catch_up(desk, view)
        counts = [gate.counts.copy() for gate in desk.controller.gates]
        total, rows = desk.controller.waiting, view.queue(after, limit, newest=newest)
    tests = {name: [REGISTERED[test](plan) for test in plan.promise.tests] for name, plan in desk.plans.items()}
    by_kind: dict[Cells, tuple[Obstacle, ...]] = {}
    page = []
    for request, since in rows:
        cells = parse_cells(request.cells)
        if cells not in by_kind:
            by_kind[cells] = _obstacles(desk.plans, tests, counts, cells)
        target = cells[desk.index] // desk.plans[desk.promise].values
        page.append(WaitingRequest(request, since, target, by_kind[cells]))
    return page, total


def _obstacles(
    plans: dict[str, Plan], tests: dict[str, list[Test]], counts: list[Ints], cells: Cells
) -> tuple[Obstacle, ...]:
    """Return the tests of all promises that one more record of these cells would break, the largest excess first."""
    obstacles = []
    for (name, plan), released, cell in zip(plans.items(), counts, cells, strict=True):
        target, value = divmod(cell, plan.values)
        after = released.copy()
        after[value, target] += 1
        for test in tests[name]:
            if not test.holds(after, target):
                reading = _reading(test, after, target)
                obstacles.append(Obstacle(name, test.name, reading.target, reading.value, reading.critical))
    return tuple(sorted(obstacles, key=lambda obstacle: -(obstacle.excess or 0.0)))


def _reading(test: Test, counts: Ints, target: int) -> Reading:
    """Return the measure that a new record of a target changes."""
    readings = [reading for reading in test.readings(counts) if reading.target in (None, target)]
    return readings[0] if readings else Reading(target, math.nan, math.nan)
