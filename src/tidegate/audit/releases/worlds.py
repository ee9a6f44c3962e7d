"""Simulated data sets with or without a sensitive group, and the records that a control releases from them.

Randomness only simulates data sets and requests here; it protects no one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.release.gate import Decisions, Gate
from tidegate.release.plan import Plan

NOBODY = -1


class Control(Protocol):
    """Decides requests: a gate, or a faulty version of one."""

    def decide(self, cells: Ints, numbers: Ints) -> Decisions: ...


Controlled = Callable[[Plan], Control]


class Everything:
    """No control: every requested record is released at once."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def decide(self, cells: Ints, numbers: Ints) -> Decisions:
        return Decisions(numbers, np.arange(1, len(cells) + 1))


@dataclass(frozen=True)
class World:
    """A data set: the cells of all records in the order of requests, and the sensitive group (or NOBODY)."""

    cells: Ints
    sensitive: int


@dataclass(frozen=True)
class ObservedRelease:
    """What an observer sees: value and target of the released records in order, and the moment of each release.

    Args:
        sizes: The number of records of each target, for observers who know it.
        moments: The number of the request that released a record: several records of one moment are a burst.
    """

    plan: Plan
    profile: Floats
    values: Ints
    targets: Ints
    moments: Ints
    sizes: Ints

    @property
    def counts(self) -> Ints:
        """Released records, (values, targets)."""
        table = np.zeros((self.plan.values, self.plan.targets), np.int64)
        np.add.at(table, (self.values, self.targets), 1)
        return table

    @property
    def evidence(self) -> Floats:
        """ln(profile / baseline) of every released record."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.profile / self.plan.floats)[self.values])

    def by_target(self, amounts: Floats) -> Floats:
        """Sums of amounts over the records of each target."""
        return np.asarray(np.bincount(self.targets, weights=amounts, minlength=self.plan.targets), np.float64)


def draw_world(plan: Plan, profile: Floats, records: int, sensitive: int, random: np.random.Generator) -> World:
    """Draw records by the shares of the plan; values of the sensitive group follow the profile, others the baseline."""
    sizes = [max(int(records * share), 1) for share in plan.shares]
    drawn = [
        y * plan.values + random.choice(plan.values, size, p=profile if y == sensitive else plan.floats)
        for y, size in enumerate(sizes)
    ]
    return World(random.permutation(np.concatenate(drawn)), sensitive)


def draw_pair(plan: Plan, profile: Floats, records: int, random: np.random.Generator) -> tuple[World, World]:
    """Draw a world with a sensitive group, chosen uniformly, and one without."""
    chosen = int(random.integers(plan.targets))
    return draw_world(plan, profile, records, chosen, random), draw_world(plan, profile, records, NOBODY, random)


def observe_release(plan: Plan, profile: Floats, world: World, control: Controlled = Gate) -> ObservedRelease:
    """Return what an observer sees of a world when all of it is requested."""
    decisions = control(plan).decide(world.cells, np.arange(world.cells.size))
    released = world.cells[decisions.released]
    moments = np.repeat(np.arange(world.cells.size), np.diff(decisions.ends, prepend=0))
    targets, values = np.divmod(released, plan.values)
    sizes = np.bincount(world.cells // plan.values, minlength=plan.targets)
    return ObservedRelease(plan, profile, values, targets, moments, sizes)
