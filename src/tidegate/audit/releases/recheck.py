"""RELEASE: whether all released records passed every named test at every moment, and what observers infer from them.

The first is promised and checked exactly, record by record, without rounding: on simulated data sets, and on the user's own
released records. The second is not promised, because an observer who ranks groups can often name the sensitive one.
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
from tidegate.audit.releases.worlds import Controlled, draw_pair, observe_release
from tidegate.ledger import Ledger
from tidegate.ledger.release_book import ReleaseBook
from tidegate.policy import Concealment, Policy
from tidegate.release.gate import Gate
from tidegate.release.mechanisms import REGISTERED
from tidegate.release.plan import Plan, make_plan, plan_from_dict

RECORDS = 600  # of a simulated data set
FEWEST, MOST = 12, 200  # pairs of data sets for observers
TILT = 3.0  # how much likelier the first half of the values is in a sensitive group if the policy has no profile
SEES = "the baseline, all released records in order, and when each was released"


def attack_release(
    policy: Policy, *, alpha: float, seconds: float, seed: int, address: str = "", control: Controlled = Gate
) -> list[Finding]:
    """Attack every concealment promise of a policy. `control` decides requests; tests pass a faulty one."""
    clock = Clock(seconds)
    stored = _stored_plans(policy, address)
    findings: list[Finding] = []
    for index, (name, promise) in enumerate(policy.concealments.items()):
        part = clock.part(1 / (len(policy.concealments) - index))
        plan = _plan(promise, policy, stored.get(name))
        if plan is None:
            findings.append(_not_tried(name, promise))
            continue
        findings.append(recheck(name, plan, clock=part.part(0.4), seed=seed, control=control))
        if name in stored:
            findings.append(recheck_history(name, plan, stored[name]["history"]))
        findings += run_observers(
            name, plan, alpha=alpha / len(policy.concealments), clock=part, seed=seed, control=control
        )
    return findings


def recheck(name: str, plan: Plan, *, clock: Clock, seed: int, control: Controlled = Gate) -> Finding:
    """Request all records of simulated data sets, and test all released records again after each release, exactly."""
    wrong, records, sets, profile = "", 0, 0, profile_of(plan)
    while not wrong and (not clock.over or not sets):
        with_one, _ = draw_pair(plan, profile, RECORDS, np.random.default_rng([seed, 17, sets]))
        seen = observe_release(plan, profile, with_one, control)
        cells = seen.targets * plan.values + seen.values
        wrong, some = first_failure(plan, cells.tolist(), clock if sets else None)  # at least one whole set
        records, sets = records + some, sets + 1
    says = f"{records:,} records of {sets} simulated data sets were released, and all released records were tested again after each: "
    return _exact(name, plan, "every moment, tested again", says, wrong, records, clock.spent)


def recheck_history(name: str, plan: Plan, history: list[int]) -> Finding:
    """Test the user's own released records again, in the order of their release."""
    clock = Clock(0)
    wrong, records = first_failure(plan, history, None)
    says = (
        f"{records:,} records were released under this promise so far, and all of them were tested again after each: "
    )
    return _exact(name, plan, "released records, tested again", says, wrong, records, clock.spent)


def first_failure(plan: Plan, cells: Iterable[int], clock: Clock | None) -> tuple[str, int]:
    """Return the first record after which a test fails (empty if none), and the number of records tested."""
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


def run_observers(
    name: str, plan: Plan, *, alpha: float, clock: Clock, seed: int, control: Controlled = Gate
) -> list[Finding]:
    """Let observers try to name the sensitive group. Not covered by a promise; reported for information."""
    profile, spent = profile_of(plan), Clock(0)
    options: dict[str, Any] = {"records": RECORDS, "seed": seed, "control": control, "name": name}
    observe(plan, profile, worlds=1, **options)
    pace = max(spent.spent, 1e-3)
    worlds = int(np.clip(clock.remaining / pace, FEWEST, MOST))
    observations = observe(plan, profile, worlds=worlds, confidence=1 - alpha / 11, **options)
    best = max(observations, key=lambda observation: max(observation.low, 1 - observation.high))
    says = (
        f"{worlds} pairs of simulated data sets of {RECORDS} records, {_whose(plan)}; {observations[0].released:.0%} were released. The best of "
        f"{len(observations)} observers uses {best.observer} and ranks a sensitive group above an ordinary one in {best.auc:.2f} "
        f"of all cases ({best.low:.2f} to {best.high:.2f}; 0.50 is random guessing)."
    )
    bound = max(best.low, 1 - best.high)
    figures: dict[str, Any] = {"alpha": alpha, "tries": 2 * worlds, "seconds": spent.spent}
    promise = f"none: {name} prevents records from being evidence; it does not prevent guesses"
    return [Finding("release", promise, "observers", SEES, says, "observed", "area", bound, **figures)]


def profile_of(plan: Plan) -> Floats:
    """Return the profile of a sensitive group: the policy's first one.

    If the policy has none, the first half of the values is likelier than in the baseline.
    """
    for profile in plan.promise.profiles.values():
        weights = np.array([float(value) for value in profile.values])
        return np.asarray(weights / weights.sum())
    tilted = plan.floats * np.where(np.arange(plan.values) < plan.values / 2, TILT, 1.0)
    return np.asarray(tilted / tilted.sum())


def _whose(plan: Plan) -> str:
    name = next(iter(plan.promise.profiles), "")
    return (
        f'one group with the profile "{name}"' if name else f"one group with the first values {TILT:g} times as likely"
    )


def _exact(name: str, plan: Plan, attack: str, says: str, wrong: str, records: int, seconds: float) -> Finding:
    promise = f"{name}: all released records pass {' and '.join(plan.promise.tests)} at every moment"
    sentence = says + (f"{wrong}." if wrong else "every test passed every time.")
    verdict: Any = "broken" if wrong else "held"
    return Finding("release", promise, attack, SEES, sentence, verdict, tries=records, seconds=seconds)


def _not_tried(name: str, promise: Concealment) -> Finding:
    says = "Its baseline is computed from the table when the release desk opens, and the desk is not open yet."
    return Finding("release", f"{name}: {promise}", "every moment, tested again", SEES, says, "not tried")


def _plan(promise: Concealment, policy: Policy, stored: Mapping[str, Any] | None) -> Plan | None:
    """Return the plan in the ledger, otherwise one from the policy, otherwise None."""
    if stored is not None:
        return plan_from_dict(promise, stored["plan"])
    if not promise.baseline:
        return None
    return make_plan(promise, promise.baseline, promise.shares or (Fraction(1),) * policy.cells(promise.about))


def _stored_plans(policy: Policy, address: str) -> dict[str, Any]:
    """Return the plans and released cells in the user's ledger, if a desk is open under this policy."""
    if not address or ("://" not in address and not Path(address).exists()):
        return {}
    ledger = Ledger(address, read_only=True)
    try:
        book = ReleaseBook(ledger, policy)
        desk = book.desk()
        if desk is None or desk[0].policy != policy.fingerprint:
            return {}
        with book.look() as view:
            histories = [[int(cell) for cell in record.cells.split(",")] for record in view.released(0, None)]
        names = sorted(policy.concealments)  # the order of its cells
        return {
            name: {"plan": desk[1][name], "history": [cells[index] for cells in histories]}
            for index, name in enumerate(names)
        }
    finally:
        ledger.close()
