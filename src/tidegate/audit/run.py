"""All attacks that a policy's promises call for, within a shared time limit."""

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

ALPHA = 1e-3  # the probability with which all sampled findings of a report together accuse correct code
VERBS = ("answer", "release", "collect", "synthesize", "ledger")
FINDINGS = 40  # of an attack that applies alpha to each finding
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Attack:
    """An attack to run, its description while it runs, and its share of the time."""

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
    if policy.tables:
        raise Unsupported(
            f'The policy "{policy.dataset.name}" has several tables, and attacks simulate one.',
            "Audit a policy of its own for one of the tables.",
        )
    budget_of(policy).refuse_infeasible()
    planned = [attack for attack in plan(policy, ledger=ledger) if not verbs or attack.verb in verbs]
    used_seed = secrets.randbits(32) if seed is None else seed
    progress("loading the engine and a temporary ledger")
    _load_imports(policy)
    clock, findings = Clock(seconds), list[Finding]()
    for index, attack in enumerate(planned):
        progress(f"{attack.verb}: {attack.says}")
        weights = [attack.weight for attack in planned[index:]]
        part = clock.remaining * attack.weight / sum(weights)
        findings += attack.run(policy, alpha=alpha / len(planned), seconds=max(part, 0.5), seed=used_seed)
    return Audit(
        policy.dataset.name,
        policy.fingerprint,
        datetime.now(UTC).isoformat(timespec="seconds"),
        tuple(findings),
        alpha=alpha,
        seed=used_seed,
        seconds=clock.spent,
        verbs=tuple(dict.fromkeys(attack.verb for attack in planned)),
    )


def plan(policy: Policy, *, ledger: str = "") -> list[Attack]:
    """Return the attacks that apply to a policy.

    Answers and synthetic tables are attacked if identification or a loss is promised, releases if something is concealed or
    hidden, reports if something is collected, and the ledger always.
    """
    attacks = []
    if policy.identification or policy.loss:
        attacks += [
            Attack("answer", "the informed adversary", 3, _informed),
            Attack("answer", "black-box loss of every mechanism", 3, _losses),
            Attack("answer", "differencing and averaging", 1.5, _differences),
            Attack("answer", "response times", 0.5, _timing),
        ]
    if policy.concealments:
        attacks.append(Attack("release", "every moment tested again, and observers", 3, _released(ledger)))
    if policy.hidings:
        attacks.append(Attack("release", "quotas counted again, and observers", 3, _hidden(ledger)))
    attacks += [Attack("collect", f"reports of {name}", 2, _reports(name)) for name in policy.collections]
    attacks.append(Attack("ledger", "undetected changes", 0.7, _ledger(ledger)))
    if policy.identification or policy.loss:  # last: its steps are the longest and would delay the others
        attacks.append(Attack("synthesize", "membership and neighbors", 4, _synthesis))
    return attacks


def _refuse_unknown(verbs: Sequence[str]) -> None:
    unknown = [verb for verb in verbs if verb not in VERBS]
    if unknown:
        raise Unsupported(f'There is no verb "{unknown[0]}" to attack.', f"Use one of {', '.join(VERBS)}.")


def _load_imports(policy: Policy) -> None:
    """Load late imports now, so that they do not count in any attack's time."""
    from tidegate.audit.tampering import simulate_ledger

    simulate_ledger(policy)


# Imported when they run: compilers and engines take long to load


def _informed(policy: Policy, **options: Any) -> list[Finding]:
    from tidegate.audit.answers.adversary import attack_answers

    return attack_answers(policy, **options)


def _losses(policy: Policy, **options: Any) -> list[Finding]:
    from tidegate.audit.answers.black_box import attack_losses

    return attack_losses(policy, **options)


def _differences(policy: Policy, **options: Any) -> list[Finding]:
    from tidegate.audit.answers.differencing import attack_differences

    return attack_differences(policy, **options)


def _timing(policy: Policy, **options: Any) -> list[Finding]:
    from tidegate.audit.answers.timing import attack_timing

    return attack_timing(policy, **options)


def _synthesis(policy: Policy, *, alpha: float, **options: Any) -> list[Finding]:
    from tidegate.audit.syntheses.membership import attack_synthesis

    return attack_synthesis(policy, alpha=alpha / FINDINGS, **options)


def _released(ledger: str) -> Callable[..., list[Finding]]:
    def run(policy: Policy, **options: Any) -> list[Finding]:
        from tidegate.audit.releases.recheck import attack_release

        return attack_release(policy, address=ledger, **options)

    return run


def _hidden(ledger: str) -> Callable[..., list[Finding]]:
    def run(policy: Policy, **options: Any) -> list[Finding]:
        from tidegate.audit.releases.hiding import attack_hiding

        return attack_hiding(policy, address=ledger, **options)

    return run


def _reports(name: str) -> Callable[..., list[Finding]]:
    def run(policy: Policy, *, alpha: float, **options: Any) -> list[Finding]:
        from tidegate.audit.collections.run import attack_reports

        findings = max(
            FINDINGS, 5 * len(policy.collections[name].questions) + 2
        )  # up to five for each question, two for the whole
        return attack_reports(policy, name, alpha=alpha / findings, **options)

    return run


def _ledger(ledger: str) -> Callable[..., list[Finding]]:
    def run(policy: Policy, **options: Any) -> list[Finding]:
        from tidegate.audit.tampering import attack_ledger

        return attack_ledger(policy, address=ledger, **options)

    return run
