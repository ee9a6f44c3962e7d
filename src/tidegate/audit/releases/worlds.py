"""Simulated data sets in which one group is sensitive or none is, and what leaves of them under a control.

Chance only makes up data sets and requests here; it protects nobody.
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
    """Who decides requests: a gate, or one with a fault."""

    def decide(self, cells: Ints, numbers: Ints) -> Decisions: ...


Controlled = Callable[[Plan], Control]


class Everything:
    """No control at all: every requested record leaves at once."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def decide(self, cells: Ints, numbers: Ints) -> Decisions:
        return Decisions(numbers, np.arange(1, len(cells) + 1))


@dataclass(frozen=True)
class World:
    """A data set: the cells of all records in the order in which they are asked for, and the sensitive group (or NOBODY)."""

    cells: Ints
    sensitive: int


@dataclass(frozen=True)
class Seen:
    """What an observer sees: value and target of the released records in order, and the moment at which each left.

    sizes     how many records each target has, for observers who know
    moments   the number of the request that let a record out: several records of one moment are a burst
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


def world(plan: Plan, profile: Floats, records: int, sensitive: int, random: np.random.Generator) -> World:
    """Records divided by the shares of the plan; values of the sensitive group follow the profile, others the baseline."""
    sizes = [max(int(records * share), 1) for share in plan.shares]
    drawn = [
        y * plan.values + random.choice(plan.values, size, p=profile if y == sensitive else plan.floats)
        for y, size in enumerate(sizes)
    ]
    return World(random.permutation(np.concatenate(drawn)), sensitive)


def pair(plan: Plan, profile: Floats, records: int, random: np.random.Generator) -> tuple[World, World]:
    """A world with a sensitive group, any of them alike, and one without."""
    chosen = int(random.integers(plan.targets))
    return world(plan, profile, records, chosen, random), world(plan, profile, records, NOBODY, random)


def watched(plan: Plan, profile: Floats, given: World, control: Controlled = Gate) -> Seen:
    """What leaves of a world when all of it is asked for."""
    decisions = control(plan).decide(given.cells, np.arange(given.cells.size))
    left = given.cells[decisions.released]
    moments = np.repeat(np.arange(given.cells.size), np.diff(decisions.ends, prepend=0))
    targets, values = np.divmod(left, plan.values)
    sizes = np.bincount(given.cells // plan.values, minlength=plan.targets)
    return Seen(plan, profile, values, targets, moments, sizes)
