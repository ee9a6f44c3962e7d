"""ANSWER: the informed adversary, who knows every unit but one and works out the likeliest world from the answers.

Two figures of him: how often his guess is right, and how often he is right when he speaks only when he is sure. The promise
bounds both; the second comes near to it (a count of one value meets equation 15), so that a fault cannot hide.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tidegate import answer as ask
from tidegate.answer.mechanisms.sums import rows_are_public
from tidegate.answer.spending import resolve_loss
from tidegate.audit.answers.ask import Door, Run, honest
from tidegate.audit.answers.sampling import Means, Sampled
from tidegate.audit.answers.sessions import KNOWS, until_refused
from tidegate.audit.answers.situations import Situation, situations, unasked
from tidegate.audit.clock import Clock
from tidegate.audit.finding import Finding, judged
from tidegate.noise import SeededBits
from tidegate.policy import Numeric, Policy
from tidegate.session import Session

SLOW = ("quantile",)  # drawn one at a time: attacked one by one only
FINDINGS = 5  # about one situation


def attack_answers(
    policy: Policy, *, alpha: float, seconds: float, seed: int, run: Run = honest, door: Door = Session
) -> list[Finding]:
    """The informed adversary against everything that a policy protects."""
    found, clock, random = situations(policy), Clock(seconds), np.random.default_rng([seed, 3])
    told = [_unasked(name) for name in unasked(policy)]
    for place, situation in enumerate(found):
        share = clock.part(0.6 / (len(found) - 0.6 * place))
        bits = SeededBits(f"{seed}/informed/{place}")
        means = Means(alpha / len(found) / FINDINGS, share, random, bits, run)
        told += one_by_one(situation, replace(means, clock=share.part(0.6)))
        told += calibrated(situation, replace(means, clock=share.part(0.3))) if policy.dataset.rows else []
        told.append(together(situation, means))
    for place, situation in enumerate(found):
        share = clock.part(1 / (len(found) - place))
        each = alpha / len(found) / FINDINGS
        told.append(until_refused(situation, alpha=each, clock=share, random=random, door=door))
    return told


def one_by_one(situation: Situation, means: Means) -> list[Finding]:
    """Every statistic for all that may be spent: the best of them, for a guess and for a claim."""
    asked = situation.questions()
    right: list[tuple[float, str]] = []
    sure: list[tuple[float, str]] = []
    tries, each = 0, means.alpha / len(asked)
    for place, query in enumerate(asked):
        few = means.most // 40 if query.statistic in SLOW else means.most
        seen = Sampled(situation, [query], means).collected(means.clock.part(1 / (len(asked) - place)), most=few)
        right.append((seen.guessed(each), query.says()))
        sure.append((situation.proven(seen.loss(each)), query.says()))
        tries += 3 * seen.times
    named = {"tries": tries, "alpha": means.alpha, "seconds": means.clock.spent}
    found = [_finding(situation, "informed adversary, when he is sure", sure, **named)]
    if situation.unit == "probability" and situation.codes.size > 2:
        found.insert(0, _finding(situation, "informed adversary, his best guess", right, **named))
    return found


def together(situation: Situation, means: Means) -> Finding:
    """All statistics at once, each for its part of what may be spent."""
    asked = [query for query in situation.questions() if query.statistic not in SLOW]
    seen = Sampled(situation, asked, means).collected(means.clock, most=means.most)
    bound = situation.proven(seen.loss(means.alpha))
    named = {"tries": 3 * seen.times, "alpha": means.alpha, "seconds": means.clock.spent}
    best = [(bound, f"{len(asked)} statistics together")]
    return _finding(situation, "informed adversary, many questions", best, **named)


def calibrated(situation: Situation, means: Means) -> list[Finding]:
    """One sum with the least noise that keeps the same rho, where that can be asked for. It costs more than equation 15
    allows for that rho; what is attacked is the rho."""
    query = ask.sum(situation.column) if isinstance(situation.attribute, Numeric) else None
    if situation.unit != "probability" or query is None or not rows_are_public(query, situation.policy):
        return []
    if situation.blind > 1 / situation.codes.size:  # it is for a value about which nothing is known beforehand
        return []
    epsilon = resolve_loss((query,), situation.policy, rho=situation.promised, calibration="tight")
    seen = Sampled(situation, [query], means, epsilon=epsilon).collected(means.clock, most=means.most)
    best = [(situation.proven(seen.loss(means.alpha)), query.says())]
    named = {"tries": 3 * seen.times, "alpha": means.alpha, "seconds": means.clock.spent}
    return [_finding(situation, "informed adversary, tight calibration", best, **named)]


def _unasked(name: str) -> Finding:
    says = "No statistic is about it: it holds sets, or a single value"
    return Finding("answer", f"{name} is protected", f"informed adversary of {name}", KNOWS, f"{says}.", "not tried")


def _finding(situation: Situation, attack: str, bounds: list[tuple[float, str]], **named: Any) -> Finding:
    bound, best = max(bounds)
    promised, guess = situation.promised, situation.unit == "probability"
    says = (
        f"{named['tries']:,} answers about {situation.target}: by {best} he proves {situation.amount(bound)}"
        f" of {situation.amount(promised)} that {'is' if guess else 'are'} promised"
        + (f"; a blind guess is right in {situation.blind:.3g}." if guess else ".")
    )
    verdict = judged(bound, promised)
    return Finding("answer", situation.promise, attack, KNOWS, says, verdict, situation.unit, bound, promised, **named)
