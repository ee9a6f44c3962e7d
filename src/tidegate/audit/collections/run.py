"""Attacks on a collection, on the real client and the real server: one report, many reports, repeats, forgeries.

The survey is in a temporary folder with its own ledger; the answers are simulated from the policy's public lists.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tidegate.accounting.respondent import Loss, respondent_loss
from tidegate.audit.collections.forgery import Submit, fabricate_reports, forge_reports, replay_reports
from tidegate.audit.collections.posteriors import item_patterns, single_report, sizes_in_clear, stated_measures
from tidegate.audit.collections.repeats import answers_of, average_repeats, change_answer
from tidegate.audit.collections.report_samples import (
    Device,
    NewDevice,
    draw_reports,
    follows_channel,
    proven_loss,
    proven_loss_of_all,
)
from tidegate.audit.collections.value_pairs import ValuePair, value_pairs
from tidegate.audit.finding import Finding
from tidegate.collect.client import Client
from tidegate.collect.measures import measure
from tidegate.collect.survey import Survey
from tidegate.ledger import Ledger
from tidegate.operators import BasketOperator
from tidegate.operators.exact_draws import Bytes, SeededBytes
from tidegate.policy import Policy
from tidegate.policy.collection import Collection, Question, operator_for

MOST_DRAWS = 40_000  # of each of two persons
PERSONS = 12  # whose reports are sent to the server

MakeDevice = Callable[[Collection, dict[str, Any]], Device]  # from a collection and the device's memory


@dataclass(frozen=True)
class Target:
    """A collection under attack: how to create its devices, and its server."""

    collection: Collection
    new: NewDevice
    survey: Survey
    submit: Submit


def real_device(collection: Collection, memory: dict[str, Any], *, source: Bytes | None = None) -> Client:
    """Return the client as a person gets it: from the public description, with the operating system's randomness."""
    return Client(collection.public_dict(), memory=memory, fingerprint=collection.fingerprint, source=source)


def seeded_device(seed: int | str) -> MakeDevice:
    """Return the same client with reproducible randomness, for attacks that must be repeatable."""
    source = SeededBytes(str(seed))
    return lambda collection, memory: real_device(collection, memory, source=source)


def attack_reports(
    policy: Policy,
    collection: str,
    *,
    alpha: float,
    seconds: float,
    seed: int,
    most: int = MOST_DRAWS,
    device: MakeDevice | None = None,
    server: Callable[[Survey], Submit] | None = None,
) -> list[Finding]:
    """Run all attacks on one collection of a policy.

    Args:
        alpha: The probability with which one finding accuses correct code.
        seconds: The approximate time limit.
        seed: Draws the client's randomness, so that a finding can be reproduced; the real client uses the operating system.
        most: The maximum of reports drawn for each person.
        device: Replaces the real client (planted faults).
        server: Replaces the real server (planted faults).
    """
    make_device = device or seeded_device(seed)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(str(Path(folder) / "audit.ledger"))
        try:
            target = _target(policy, collection, ledger, folder, make_device, server)
            return [
                *_attack_exactly(target),
                *_attack_by_sampling(target, alpha=alpha, seconds=seconds, most=most),
                *_attack_server(target),
            ]
        finally:
            ledger.close()


def _target(
    policy: Policy,
    name: str,
    ledger: Ledger,
    folder: str,
    make_device: MakeDevice,
    server: Callable[[Survey], Submit] | None,
) -> Target:
    """Open the collection in its own folder."""
    opened = replace(policy, collections={n: replace(c, closed=False) for n, c in policy.collections.items()})
    survey = Survey(name, opened, ledger, location=Path(folder) / "reports")
    collection = survey.collection
    return Target(
        collection, lambda memory: make_device(collection, memory), survey, server(survey) if server else survey.submit
    )


def _attack_exactly(target: Target) -> list[Finding]:
    """Attack one report of every question, over all possible reports."""
    started, findings = time.monotonic(), []
    single, lifetime = _promised(target.collection)
    for name, question in target.collection.questions.items():
        operator = operator_for(question)
        findings += single_report(name, question, value_pairs(question, operator), single[name])
        if "each" in question.parameters:
            known = permanent_pairs(question)
            findings += single_report(name, question, known, lifetime[name], what="the permanent answer")
        if isinstance(operator, BasketOperator):
            findings.append(item_patterns(name, question, operator, lifetime[name]))
            findings += [sizes_in_clear(name, operator)] if operator.operator.needs_size else []
        elif not operator.of_sets:
            findings += stated_measures(name, operator, measure(operator))
    return _with_times(findings, started)


def permanent_pairs(question: Question) -> list[ValuePair]:
    """Return the value pairs of the permanent answer: those of the question without its second layer."""
    parameters = {name: value for name, value in question.parameters.items() if name != "each"}
    first_layer = Question(question.attribute, question.universe, question.operator, plans=question.plans, **parameters)
    return value_pairs(first_layer, operator_for(first_layer))


def _promised(collection: Collection) -> tuple[dict[str, Loss], dict[str, Loss]]:
    """Return the promised loss of a single report of each question, and of all reports of one answer."""
    lifetime = dict(respondent_loss(collection).questions)
    single = {name: question.parameters.get("each", lifetime[name]) for name, question in collection.questions.items()}
    return single, lifetime


def _attack_by_sampling(target: Target, *, alpha: float, seconds: float, most: int) -> list[Finding]:
    """Attack the real client: single reports, repeated ones, changed ones."""
    started = time.monotonic()
    candidates = {
        name: value_pairs(question, operator_for(question)) for name, question in target.collection.questions.items()
    }
    pairs = {name: listed[0] for name, listed in candidates.items() if listed}
    if not pairs:
        return []
    single, lifetime = _promised(target.collection)
    looks = _looks(candidates, pairs)
    findings: list[Finding] = []
    for attack, some in looks.items():
        drawn = draw_reports(target.collection, some, target.new, seconds=0.6 * seconds / len(looks), most=most)
        for name, pair in some.items():
            findings.append(proven_loss(name, pair, drawn[name], single[name], alpha=alpha, attack=attack))
            findings.append(follows_channel(name, pair, drawn[name], alpha=alpha))
        findings += proven_loss_of_all(some, drawn, respondent_loss(target.collection).each_report, alpha=alpha)
    findings += average_repeats(
        target.collection, pairs, lifetime, target.new, alpha=alpha, seconds=0.3 * seconds, most=most // 20
    )
    losses = {name: permanent_pairs(target.collection.questions[name])[0].loss for name in pairs}
    findings += change_answer(target.collection, pairs, losses, target.new)
    return _with_times(findings, started)


def _looks(candidates: Mapping[str, list[ValuePair]], pairs: dict[str, ValuePair]) -> dict[str, dict[str, ValuePair]]:
    """Return the worst pair of every question.

    If baskets of two sizes can be compared, also return those that differ most in size.
    """
    apart = {
        name: max(listed, key=lambda pair: abs(pair.here.bit_count() - pair.there.bit_count()))
        for name, listed in candidates.items()
        if len(listed) > 1
    }
    more = {name: pair for name, pair in apart.items() if pair.here.bit_count() != pair.there.bit_count()}
    more = {name: pair for name, pair in more.items() if pair is not pairs[name]}
    return {"worst two answers": pairs, **({"baskets of two sizes": more} if more else {})}


def _attack_server(target: Target) -> list[Finding]:
    started = time.monotonic()
    reports = [target.new({}).randomize(answers_of(target.collection, {}, "here")) for _ in range(PERSONS)]
    operators = target.survey.operators
    findings = [
        replay_reports(reports, target.submit, lambda: target.survey.reports),
        forge_reports(target.collection, operators, reports[0], target.submit),
        fabricate_reports(reports[0], target.submit),
    ]
    return _with_times(findings, started)


def _with_times(findings: list[Finding], started: float) -> list[Finding]:
    each = (time.monotonic() - started) / max(1, len(findings))
    return [replace(finding, seconds=each) for finding in findings]
