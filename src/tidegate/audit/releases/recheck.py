"""RELEASE: whether all that left passed every named test at every moment, and what observers make of it.

The first is promised and checked exactly, record by record, in arithmetic without rounding: on made-up data sets, and on
what left of the user's own. The second is not promised: whoever ranks groups can often name the sensitive one. It is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.arrays import Floats
from tidegate.audit.finding import Clock, Finding
from tidegate.audit.releases.observers import observe
from tidegate.audit.releases.worlds import Controlled, pair, watched
from tidegate.ledger import Ledger
from tidegate.ledger.release_book import ReleaseBook
from tidegate.policy import Concealment, Policy
from tidegate.release.gate import Gate
from tidegate.release.mechanisms import REGISTERED
from tidegate.release.plan import Plan, make_plan, plan_from_dict

RECORDS = 600  # of a made-up data set
FEWEST, MOST = 12, 200  # pairs of data sets for observers
TILT = 3.0  # how much likelier the first half of the values is in a sensitive group, where the policy has no profile
SEES = "the baseline, all released records in order, and when each was released"


def attack_release(
    policy: Policy, *, alpha: float, seconds: float, seed: int, address: str = "", control: Controlled = Gate
) -> list[Finding]:
    """Every concealment promise of a policy. `control` decides; tests pass one with a fault."""
    clock = Clock(seconds)
    kept = _kept(policy, address)
    found: list[Finding] = []
    for place, (name, promise) in enumerate(policy.concealments.items()):
        part = clock.part(1 / (len(policy.concealments) - place))
        plan = _plan(promise, policy, kept.get(name))
        if plan is None:
            found.append(_untold(name, promise))
            continue
        found.append(rechecked(name, plan, clock=part.part(0.4), seed=seed, control=control))
        if name in kept:
            found.append(left_so_far(name, plan, kept[name]["history"]))
        found += watched_by(name, plan, alpha=alpha / len(policy.concealments), clock=part, seed=seed, control=control)
    return found


def rechecked(name: str, plan: Plan, *, clock: Clock, seed: int, control: Controlled = Gate) -> Finding:
    """Made-up data sets, all records asked for; after each that left, all that left is tested again, exactly."""
    wrong, records, sets, profile = "", 0, 0, profile_of(plan)
    while not wrong and (not clock.over or not sets):
        with_one, _ = pair(plan, profile, RECORDS, np.random.default_rng([seed, 17, sets]))
        seen = watched(plan, profile, with_one, control)
        cells = seen.targets * plan.values + seen.values
        wrong, some = first_failure(plan, cells.tolist(), clock if sets else None)  # one whole set at least
        records, sets = records + some, sets + 1
    says = f"{records:,} records of {sets} simulated data sets were released, and all released records were tested again after each: "
    return _exact(name, plan, "every moment, tested again", says, wrong, records, clock.spent)


def left_so_far(name: str, plan: Plan, history: list[int]) -> Finding:
    """The same for what left of the user's own data set, in the order in which it left."""
    clock = Clock(0)
    wrong, records = first_failure(plan, history, None)
    says = (
        f"{records:,} records were released under this promise so far, and all of them were tested again after each: "
    )
    return _exact(name, plan, "released records, tested again", says, wrong, records, clock.spent)


def first_failure(plan: Plan, cells: Iterable[int], clock: Clock | None) -> tuple[str, int]:
    """The first record after which a test does not hold (empty where none), and how many were looked at."""
    tests = [REGISTERED[name](plan) for name in plan.promise.tests]
    counts, number = np.zeros((plan.values, plan.targets), np.int64), 0
    for number, cell in enumerate(cells, start=1):
        target, value = divmod(int(cell), plan.values)
        counts[value, target] += 1
        for test in tests:
            if not test.holds(counts, target):
                return f"{test.name} fails after record {number:,}", number
        if clock is not None and clock.over:
            break
    return "", number


def watched_by(
    name: str, plan: Plan, *, alpha: float, clock: Clock, seed: int, control: Controlled = Gate
) -> list[Finding]:
    """Observers try to name the sensitive group. Nothing is promised about who ranks; it is told."""
    profile, spent = profile_of(plan), Clock(0)
    given: dict[str, Any] = {"records": RECORDS, "seed": seed, "control": control, "name": name}
    observe(plan, profile, worlds=1, **given)
    pace = max(spent.spent, 1e-3)
    worlds = int(np.clip(clock.left / pace, FEWEST, MOST))
    found = observe(plan, profile, worlds=worlds, confidence=1 - alpha / 11, **given)
    best = max(found, key=lambda one: max(one.low, 1 - one.high))
    says = (
        f"{worlds} pairs of simulated data sets of {RECORDS} records, {_whose(plan)}; {found[0].released:.0%} were released. The best of "
        f"{len(found)} observers uses {best.observer} and ranks a sensitive group above an ordinary one in {best.auc:.2f} "
        f"of all cases ({best.low:.2f} to {best.high:.2f}; 0.50 is random guessing)."
    )
    bound = max(best.low, 1 - best.high)
    named: dict[str, Any] = {"alpha": alpha, "tries": 2 * worlds, "seconds": spent.spent}
    promise = f"none: {name} prevents records from being evidence; it does not prevent guesses"
    return [Finding("release", promise, "observers", SEES, says, "observed", "area", bound, **named)]


def profile_of(plan: Plan) -> Floats:
    """What a sensitive group looks like: the policy's first profile; else the first half of the values is likelier."""
    for profile in plan.promise.profiles.values():
        weights = np.array([float(value) for value in profile.values])
        return np.asarray(weights / weights.sum())
    tilted = plan.floats * np.where(np.arange(plan.values) < plan.values / 2, TILT, 1.0)
    return np.asarray(tilted / tilted.sum())


def _whose(plan: Plan) -> str:
    given = next(iter(plan.promise.profiles), "")
    return (
        f'one group with the profile "{given}"'
        if given
        else f"one group with the first values {TILT:g} times as likely"
    )


def _exact(name: str, plan: Plan, attack: str, says: str, wrong: str, records: int, seconds: float) -> Finding:
    promise = f"{name}: all released records pass {' and '.join(plan.promise.tests)} at every moment"
    told = says + (f"{wrong}." if wrong else "every test passed every time.")
    verdict: Any = "broken" if wrong else "held"
    return Finding("release", promise, attack, SEES, told, verdict, tries=records, seconds=seconds)


def _untold(name: str, promise: Concealment) -> Finding:
    says = "Its baseline is computed from the table when the release desk opens, and the desk is not open yet."
    return Finding("release", f"{name}: {promise}", "every moment, tested again", SEES, says, "not tried")


def _plan(promise: Concealment, policy: Policy, kept: Mapping[str, Any] | None) -> Plan | None:
    """The plan in the ledger; else one from the policy; else none."""
    if kept is not None:
        return plan_from_dict(promise, kept["plan"])
    if not promise.baseline:
        return None
    return make_plan(promise, promise.baseline, promise.shares or (Fraction(1),) * policy.cells(promise.about))


def _kept(policy: Policy, address: str) -> dict[str, Any]:
    """The plans in the user's ledger and the cells of what left, where a desk is open under this very policy."""
    if not address or ("://" not in address and not Path(address).exists()):
        return {}
    ledger = Ledger(address, read_only=True)
    try:
        book = ReleaseBook(ledger, policy)
        desk = book.desk()
        if desk is None or desk[0].policy != policy.fingerprint:
            return {}
        with book.look() as view:
            left = [[int(cell) for cell in one.cells.split(",")] for one in view.released(0, None)]
        names = sorted(policy.concealments)  # the order of the cells that it keeps
        return {
            name: {"plan": desk[1][name], "history": [cells[place] for cells in left]}
            for place, name in enumerate(names)
        }
    finally:
        ledger.close()
