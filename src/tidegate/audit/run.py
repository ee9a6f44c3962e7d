"""All attacks that a policy's promises call for, within a time that they share fairly."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tidegate.accounting import budget_of
from tidegate.audit.finding import Clock, Finding
from tidegate.audit.report import Audit
from tidegate.errors import Unsupported
from tidegate.policy import Policy

ALPHA = 1e-3  # the chance with which all sampled findings of one report together accuse true code
VERBS = ("answer", "release", "collect", "synthesize", "ledger")
MANY = 40  # findings of an attack that takes its alpha for each of them
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Attack:
    """What to run, what to call it while it runs, and how much of the time it gets."""

    verb: str
    says: str
    weight: float
    run: Callable[..., list[Finding]]


def audit(
    policy: Policy,
    *,
    seconds: float = 60.0,
    verbs: Sequence[str] = (),
    alpha: float = ALPHA,
    seed: int | None = None,
    ledger: str = "",
    progress: Progress = lambda line: None,
) -> Audit:
    """Attack every promise of a policy and report what was found.

    Args:
        seconds: The approximate time limit. Exact attacks run to their end.
        verbs: Attack only these: answer, release, collect, synthesize, ledger.
        ledger: The address of the user's own ledger. It is read and copied, never written.

    Guarantee:
        All sampled findings together accuse correct code with probability at most `alpha`. Nothing is spent and no row of
        the user's table is read: attacks simulate data sets from the policy's public universes.
    """
    _refuse_unknown(verbs)
    budget_of(policy).refuse_infeasible()
    planned = [one for one in plan(policy, ledger=ledger) if not verbs or one.verb in verbs]
    chosen = secrets.randbits(32) if seed is None else seed
    progress("loading the engine and a temporary ledger")
    _loaded(policy)
    clock, found = Clock(seconds), list[Finding]()
    for place, attack in enumerate(planned):
        progress(f"{attack.verb}: {attack.says}")
        weights = [one.weight for one in planned[place:]]
        part = clock.left * attack.weight / sum(weights)
        found += attack.run(policy, alpha=alpha / len(planned), seconds=max(part, 0.5), seed=chosen)
    return Audit(
        policy.dataset.name,
        policy.fingerprint,
        datetime.now(UTC).isoformat(timespec="seconds"),
        tuple(found),
        alpha=alpha,
        seed=chosen,
        seconds=clock.spent,
        verbs=tuple(dict.fromkeys(one.verb for one in planned)),
    )


def plan(policy: Policy, *, ledger: str = "") -> list[Attack]:
    """The attacks that apply: answers and synthetic tables where identification or a loss is promised, releases where
    something is concealed, reports where something is collected, and the ledger always."""
    found = []
    if policy.identification or policy.loss:
        found += [
            Attack("answer", "the informed adversary", 3, _informed),
            Attack("answer", "black-box loss of every mechanism", 3, _losses),
            Attack("answer", "differencing and averaging", 1.5, _differences),
            Attack("answer", "response times", 0.5, _timing),
        ]
    if policy.concealments:
        found.append(Attack("release", "every moment tested again, and observers", 3, _released(ledger)))
    found += [Attack("collect", f"reports of {name}", 2, _reports(name)) for name in policy.collections]
    found.append(Attack("ledger", "undetected changes", 0.7, _ledger(ledger)))
    if policy.identification or policy.loss:  # the last: its steps are the longest, and others would pay for it
        found.append(Attack("synthesize", "membership and neighbors", 4, _synthesis))
    return found


def _refuse_unknown(verbs: Sequence[str]) -> None:
    unknown = [verb for verb in verbs if verb not in VERBS]
    if unknown:
        raise Unsupported(f'There is no verb "{unknown[0]}" to attack.', f"Use one of {', '.join(VERBS)}.")


def _loaded(policy: Policy) -> None:
    """What is loaded late is loaded now: it is no part of any attack's time."""
    from tidegate.audit.tampering import made_up

    made_up(policy)


# Imported when they run: compilers and engines take long to load


def _informed(policy: Policy, **given: Any) -> list[Finding]:
    from tidegate.audit.answers.adversary import attack_answers

    return attack_answers(policy, **given)


def _losses(policy: Policy, **given: Any) -> list[Finding]:
    from tidegate.audit.answers.black_box import attack_losses

    return attack_losses(policy, **given)


def _differences(policy: Policy, **given: Any) -> list[Finding]:
    from tidegate.audit.answers.differencing import attack_differences

    return attack_differences(policy, **given)


def _timing(policy: Policy, **given: Any) -> list[Finding]:
    from tidegate.audit.answers.timing import attack_timing

    return attack_timing(policy, **given)


def _synthesis(policy: Policy, *, alpha: float, **given: Any) -> list[Finding]:
    from tidegate.audit.syntheses.membership import attack_synthesis

    return attack_synthesis(policy, alpha=alpha / MANY, **given)


def _released(ledger: str) -> Callable[..., list[Finding]]:
    def run(policy: Policy, **given: Any) -> list[Finding]:
        from tidegate.audit.releases.recheck import attack_release

        return attack_release(policy, address=ledger, **given)

    return run


def _reports(name: str) -> Callable[..., list[Finding]]:
    def run(policy: Policy, *, alpha: float, **given: Any) -> list[Finding]:
        from tidegate.audit.collections.run import attack_reports

        many = max(MANY, 5 * len(policy.collections[name].questions) + 2)  # up to five of a question, two of the whole
        return attack_reports(policy, name, alpha=alpha / many, **given)

    return run


def _ledger(ledger: str) -> Callable[..., list[Finding]]:
    def run(policy: Policy, **given: Any) -> list[Finding]:
        from tidegate.audit.tampering import attack_ledger

        return attack_ledger(policy, address=ledger, **given)

    return run
