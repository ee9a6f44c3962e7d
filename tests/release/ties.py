"""Plans whose critical value is arbitrarily close to a statistic, and the statistics in 80 digits."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np

from tidegate.policy import Concealment
from tidegate.release.gate import BLOCK_ABOVE, Gate
from tidegate.release.plan import REACHED, TARGET, TOTAL, Plan
from tidegate.risk.simulation import CriticalTable

DIGITS = 80
OFFSETS = [sign * size for size in (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9) for sign in (1, -1)]
Counts = np.ndarray[Any, np.dtype[np.int64]]  # (values, targets)
Column = Sequence[int] | Counts


class CountingGate(Gate):
    """A gate that records its exact decisions."""

    def __init__(self, plan: Plan, *, block_above: int = BLOCK_ABOVE) -> None:
        super().__init__(plan, block_above=block_above)
        self.settled: list[tuple[int, int]] = []

    def _settle(self, cell: int, test: int) -> None:
        self.settled.append((cell, test))
        assert len(self.settled) < 10_000, "it asks for ever"
        super()._settle(cell, test)


def loaded_gate(plan: Plan, counts: Counts) -> CountingGate:
    """Return a gate with released records."""
    gate = CountingGate(plan)
    gate.load(np.ascontiguousarray(counts.T).ravel())
    return gate


def is_admitted(gate: CountingGate, value: int, target: int) -> bool:
    """Return whether the next request is released, by all three methods."""
    cell = gate.cell(value, target)
    first = bool(gate.admissible()[cell])
    assert gate.admits(cell) == first
    assert (gate.decide(np.array([cell]), np.array([1])).released.size == 1) == first
    return first


# Statistics in 80 digits, from their definitions


def divergence(column: Column, baseline: Sequence[Fraction]) -> Any:
    """Return 2 sum c ln(c / (n b))."""
    with mpmath.workdps(DIGITS):
        size = sum(int(c) for c in column)
        parts = [
            int(c) * mpmath.log(mpmath.mpf(int(c)) * b.denominator / (size * b.numerator))
            for c, b in zip(column, baseline, strict=True)
            if c
        ]
        return 2 * mpmath.fsum(parts)


def total(counts: Counts, baseline: Sequence[Fraction]) -> Any:
    """Return the sum over all targets."""
    with mpmath.workdps(DIGITS):
        return mpmath.fsum(divergence(column, baseline) for column in counts.T)


def dixon(counts: Counts, baseline: Sequence[Fraction]) -> Any:
    """Return (largest - second) / (largest - smallest) of the targets' distances, all of which differ."""
    with mpmath.workdps(DIGITS):
        result = sorted(divergence(column, baseline) / (2 * int(column.sum())) for column in counts.T)
        return (result[-1] - result[-2]) / (result[-1] - result[0])


def pearson(column: Column, baseline: Sequence[Fraction]) -> Fraction:
    """Return sum (O - E)^2 / E if no value is sparse."""
    size = sum(int(c) for c in column)
    return sum(((int(c) - size * b) ** 2 / (size * b) for c, b in zip(column, baseline, strict=True)), Fraction(0))


def odds(column: Column, baseline: Sequence[Fraction], prior: Fraction, profile: Sequence[Fraction]) -> Fraction:
    """Return the odds of one profile against the baseline, by Bayes' rule."""
    result = prior / (1 - prior)
    for count, share, value in zip(column, baseline, profile, strict=True):
        for _ in range(int(count)):
            result *= value / share
    return result


def below(statistic: Any, critical: float) -> bool:
    """Return whether it is strictly below, in 80 digits."""
    with mpmath.workdps(DIGITS):
        return bool(statistic < mpmath.mpf(critical))


def nearness(statistic: Any, critical: float) -> float:
    """Return the relative distance."""
    with mpmath.workdps(DIGITS):
        return float(abs(statistic - mpmath.mpf(critical)) / abs(statistic))


# Plans


def plan_for(test: str | tuple[str, ...], baseline: Sequence[int], targets: int, **more: Any) -> Plan:
    """Return a promise with few values; `critical` are the tables of its tests as {size: value}, the last of which stays."""
    table = more.pop("critical", {1: 1e9})
    sizes, values = np.array(sorted(table)), np.array([table[size] for size in sorted(table)])
    tables = {name: CriticalTable(sizes, values, float(values[-1])) for name in (TOTAL, TARGET)}
    promise = Concealment(reveals="x", about="y", tests=test, **more)
    shares = tuple(Fraction(weight, sum(baseline)) for weight in baseline)
    return Plan(promise, shares, (Fraction(1, targets),) * targets, tables)


def table_value_near(statistic: Any, offset: float) -> float:
    """Return a table value whose critical value is at this relative distance above the statistic."""
    with mpmath.workdps(DIGITS):
        return float(statistic * (1 + mpmath.mpf(offset)) / mpmath.mpf(REACHED))
