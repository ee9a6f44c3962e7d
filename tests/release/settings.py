"""Small and random promises, and reference implementations with the same critical values."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from reference.release import (
    ReferenceChiSquare,
    ReferenceController,
    ReferenceDixon,
    ReferenceKullbackLeibler,
    ReferenceMutualInformation,
    ReferencePosterior,
)

from tidegate.policy import Concealment, Profile
from tidegate.release.mechanisms import REGISTERED
from tidegate.release.plan import Plan
from tidegate.risk.critical import chi_square_critical
from tidegate.risk.simulation import CriticalTable

RULES = ("forward", "smaller-neighbour", "smallest-first")


def random_plan(tests: tuple[str, ...], random: np.random.Generator, *, values: int = 0, targets: int = 0) -> Plan:
    """Return a plan with arbitrary critical values for few records: a gate must follow any table."""
    values, targets = values or int(random.integers(2, 7)), targets or int(random.integers(2, 6))
    significance = Fraction(int(random.integers(2, 12)), 20)
    more: dict[str, Any] = {}
    if "posterior" in tests:
        shapes = {f"p{k}": _profile(values, random) for k in range(int(random.integers(1, 3)))}
        more = {"profiles": shapes, "rho": Fraction(int(random.integers(9, 16)), 20)}
    promise = Concealment(
        reveals="x", about="y", tests=tests, significance=significance, merging=RULES[int(random.integers(3))], **more
    )
    baseline = tuple(Fraction(int(w), 1) for w in random.integers(1, 30, values))
    tables = {
        "total": _table((values - 1) * targets, float(significance), random),
        "target": _table(values - 1, float(significance), random),
    }
    shares = tuple(Fraction(1, targets) for _ in range(targets))
    return Plan(promise, tuple(b / sum(baseline) for b in baseline), shares, tables)


def _profile(values: int, random: np.random.Generator) -> Profile:
    weights = [int(w) for w in random.integers(0, 12, values)]
    weights[0] += 1
    return Profile(prior=Fraction(int(random.integers(1, 5)), 20), values=weights)


def _table(freedom: int, significance: float, random: np.random.Generator) -> CriticalTable:
    beyond = chi_square_critical(freedom, significance)
    sizes = np.unique(np.concatenate([np.arange(1, 8), random.integers(8, 60, 5)]))
    return CriticalTable(sizes, beyond * (0.4 + 0.7 * np.sort(random.random(sizes.size))), beyond)


def reference_of(plan: Plan) -> ReferenceController:
    """Return the reference implementation of a gate."""
    return ReferenceController(reference_tests(plan), plan.baseline, plan.targets)


def reference_tests(plan: Plan) -> list[Any]:
    level = float(plan.promise.significance)
    ours = {name: REGISTERED[name](plan) for name in plan.promise.tests}
    profiles = [(p.prior, [v / sum(p.values) for v in p.values]) for p in plan.promise.profiles.values()]
    values = {
        "mutual-information": lambda: ReferenceMutualInformation(ours["mutual-information"]._critical),
        "kullback-leibler": lambda: ReferenceKullbackLeibler(ours["kullback-leibler"]._critical),
        "chi-square": lambda: ReferenceChiSquare(level, plan.promise.merging),
        "dixon": lambda: ReferenceDixon(ours["dixon"]._critical),
        "posterior": lambda: ReferencePosterior([q for _, q in profiles], [p for p, _ in profiles], plan.promise.rho),
    }
    return [values[name]() for name in plan.promise.tests]


def skewed_requests(plan: Plan, count: int, random: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Yield requests whose values depend on the target, so that many must wait."""
    tilt = random.random((plan.values, plan.targets)) ** 3 + 0.02
    chances = tilt / tilt.sum()
    for cell in random.choice(tilt.size, count, p=chances.ravel()):
        yield divmod(int(cell), plan.targets)
