"""Attacks on a collection, on the real client and the real server: one report, many reports, repeats, forgeries.

The survey is in a temporary folder with its own ledger; the answers are simulated from the policy's public lists.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tidegate.accounting.respondent import Loss, respondent_loss
from tidegate.audit.collections.batches import attack_batches
from tidegate.audit.collections.forgery import Submit, fabricate_reports, forge_reports, replay_reports
from tidegate.audit.collections.invitations import InvitedTarget, attack_invitations
from tidegate.audit.collections.lifetime import attack_lifetime
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
from tidegate.collect.invitations import create_key
from tidegate.collect.measures import measure
from tidegate.collect.run import Submitted
from tidegate.collect.survey import Survey
from tidegate.ledger import Ledger
from tidegate.operators import BasketOperator, Operator
from tidegate.operators.exact_draws import Bytes, SeededBytes
from tidegate.policy import Policy
from tidegate.policy.collection import Collection, Question, operator_for

MOST_DRAWS = 40_000  # of each of two persons
LATE = datetime(9000, 1, 1, tzinfo=UTC)  # when a poll under attack closes
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
        ledger = Ledger(str(Path(folder) / "audit.ledger"), is_witnessed=False)
        try:
            target = _target(policy, collection, ledger, folder, make_device, server)
            return [
                *_attack_exactly(target),
                *_attack_by_sampling(target, alpha=alpha, seconds=seconds, most=most),
                *_attack_over_time(target, make_device, alpha=alpha, seed=seed),
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
    """Open the collection in its own folder. A poll gets a new key and closes late; devices are attacked without wording."""
    collections = {n: replace(c, closed=False) for n, c in policy.collections.items()}
    if (poll := collections[name].poll) is not None:
        key = create_key(ledger, dataset=policy.dataset.name, poll=name) if poll.invited else ""
        poll = replace(poll, closes=LATE, at_most=None, accept_error=True, invitation_key=key)
        collections[name] = replace(collections[name], poll=poll)
    survey = Survey(name, replace(policy, collections=collections), ledger, location=Path(folder) / "reports")
    collection = survey.collection
    if poll is not None:  # all questions, so that each is attacked; a lifetime for some of them would not suffice
        collection = replace(collection, poll=None, ask=None, together=(), lifetime=None)
    submit = server(survey) if server else survey.submit if poll is None else survey.receive
    return Target(collection, lambda memory: make_device(collection, memory), survey, submit)


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
        elif not operator.of_sets and not operator.of_texts:
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


def _attack_over_time(target: Target, make_device: MakeDevice, *, alpha: float, seed: int) -> list[Finding]:
    """Attack a shuffled batch, and all that one device ever sends."""
    started, questions = time.monotonic(), target.collection.questions
    candidates = {name: value_pairs(question, operator_for(question)) for name, question in questions.items()}
    pairs = {name: listed[0] for name, listed in candidates.items() if listed}
    findings = attack_batches(target.survey.collection, pairs, alpha=alpha, seed=seed)
    findings += attack_lifetime(target.collection, pairs, make_device)
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
    if target.survey.collection.poll is not None:
        return _attack_poll(target)
    started = time.monotonic()
    reports = [target.new({}).randomize(answers_of(target.collection, {}, "here")) for _ in range(PERSONS)]
    operators = target.survey.operators
    findings = [
        replay_reports(reports, target.submit, lambda: target.survey.reports),
        forge_reports(target.collection, operators, reports[0], target.submit),
        fabricate_reports(reports[0], target.submit),
    ]
    return _with_times(findings, started)


def _attack_poll(target: Target) -> list[Finding]:
    """Attack the server of a poll: its reports wait, and those of an invited poll need a token each."""
    started, survey = time.monotonic(), target.survey
    poll, collection = survey.collection.poll, survey.collection

    def new_report() -> dict[str, Any]:
        client = Client(collection.public_dict(), memory={}, fingerprint=collection.fingerprint)
        answers = answers_of(target.collection, {}, "here")
        return client.draft({name: answers[name] for name in client.asked})

    invited = InvitedTarget(survey, lambda reports: target.submit(reports), new_report)

    def submit(reports: Iterable[Mapping[str, Any]]) -> Submitted:
        """Send reports, each with the token of a new code if the poll is invited."""
        if poll is None or not poll.invited:
            return target.submit(reports)
        return target.submit([{**report, "invitation": invited.token()} for report in reports])

    reports = [new_report() for _ in range(PERSONS)]
    findings = [
        replay_reports(reports, submit, lambda: survey.received),
        forge_reports(collection, _asked_operators(survey, reports[0]), reports[0], submit),
    ]
    if poll is not None and poll.invited:
        findings += attack_invitations(invited)
    else:
        findings.append(fabricate_reports(reports[0], submit))
    return _with_times(findings, started)


def _asked_operators(survey: Survey, report: Mapping[str, Any]) -> dict[str, Operator]:
    return {name: operator for name, operator in survey.operators.items() if name in report["answers"]}


def _with_times(findings: list[Finding], started: float) -> list[Finding]:
    each = (time.monotonic() - started) / max(1, len(findings))
    return [replace(finding, seconds=each) for finding in findings]
