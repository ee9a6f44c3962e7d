"""Both kinds of release promises on the same simulated data sets: how much is released, and who finds the sensitive group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tidegate.audit.releases.equal_composition import EqualComposition
from tidegate.audit.releases.observers import Observation, observe
from tidegate.audit.releases.worlds import Everything
from tidegate.policy import Concealment, Hiding, Profile
from tidegate.policy.concealment import TESTS
from tidegate.release.plan import Plan, make_plan

RARE = Fraction(1, 100)  # the weight of a value that is not released, as a part of an equal share
FEW_CELLS = 2_000  # larger tables are compared with one test: critical values of the others take minutes
ONE_TEST = "kullback-leibler"
TILT = 3.0


def compare(
    promise: Hiding,
    mix: Sequence[Fraction],
    sizes: Sequence[int],
    profile: Sequence[float],
    *,
    worlds: int,
    records: int,
    seed: int,
) -> list[Observation]:
    """Run all observers without control, under the tests of concealment promises, and under a hiding promise.

    The sensitive group is compared with the ordinary groups of its own data set: naming the group is what a hiding promise
    prevents under every mix.

    Args:
        mix: The shares of an open selection. Ordinary groups have these values, normalized; where a share is 0, few.
        sizes: The public sizes of the groups.
        profile: The distribution of values in a sensitive group, as weights. If it is empty, the first half of the values is
            three times as likely as in ordinary groups.
    """
    floor = sum(mix, Fraction(0)) * RARE / len(mix) or Fraction(1)
    baseline, shares = [max(share, floor) for share in mix], [Fraction(max(size, 1)) for size in sizes]
    profile = profile or [float(weight) * (TILT if 2 * x < len(mix) else 1) for x, weight in enumerate(baseline)]
    options: dict[str, Any] = {"worlds": worlds, "records": records, "seed": seed, "same_data_set": True}
    plan = _plan(promise, (ONE_TEST,), baseline, shares, profile)
    observations = observe(plan, profile, control=Everything, **options) + observe(plan, profile, **options)
    tests = tests_for(len(sizes)) if len(sizes) * len(mix) <= FEW_CELLS else ()
    if tests:
        several = _plan(promise, tests, baseline, shares, profile)
        observations += observe(several, profile, **options, name=f"all {len(tests)} tests")
    return observations + observe_hiding(plan, promise, profile, **options)


def observe_hiding(
    plan: Plan, promise: Hiding, profile: Sequence[float], *, seed: int, **more: Any
) -> list[Observation]:
    """Run all observers under a hiding promise; no result if no simulated desk opens.

    A declared mix that does not fit the simulated data sets is replaced by their own mix, and the name says so.
    """
    for name, tried in (("hiding", promise), ("hiding, mix of the simulated tables", replace(promise, mix="table"))):
        control = EqualComposition(tried, seed=seed)
        observations = observe(plan, profile, control=control, seed=seed, **more, name=name)
        if observations or tried.mix == "table":
            return observations
    return []


def tests_for(groups: int) -> tuple[str, ...]:
    """Return all tests that can be used with a number of groups: Dixon's needs three, and so does a prior below 1/2."""
    return tuple(test for test in TESTS if groups > 2 or test not in ("dixon", "posterior"))


def _plan(
    promise: Hiding,
    tests: tuple[str, ...],
    baseline: Sequence[Fraction],
    shares: Sequence[Fraction],
    profile: Sequence[float],
) -> Plan:
    posterior: dict[str, Any] = {}
    if "posterior" in tests:
        weights = tuple(Fraction(weight).limit_denominator(10**6) for weight in profile)
        posterior = {"profiles": {"sensitive": Profile(prior=Fraction(1, len(shares)), values=weights)}, "rho": "0.5"}
    concealment = Concealment(reveals=promise.reveals, about=promise.about, tests=tests, **posterior)
    return make_plan(concealment, baseline, shares)
