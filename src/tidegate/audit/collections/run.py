"""Attacks on a collection: one report, many reports, repeated ones, forged ones. On the real client and the real server.

posteriors.py   one report, exactly: the worst step from prior to posterior, and the stated measures
drawn.py        many reports of the real client: do they follow the channel, and which loss do they prove
repeats.py      the same answer 25 times, and a changed one        forging.py   replays and forgeries at the server

The survey lies in a temporary folder with a ledger of its own; the answers are made up from the policy's public lists.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tidegate.accounting.respondent import Loss, respondent_loss
from tidegate.audit.collections.forgery import Submit, forged, made_up, replayed
from tidegate.audit.collections.posteriors import item_patterns, single_report, sizes_in_clear, stated_measures
from tidegate.audit.collections.repeats import answers_of, averaged, changed_answer
from tidegate.audit.collections.report_samples import (
    Device,
    NewDevice,
    draw,
    follows_channel,
    proven_in_all,
    proven_loss,
)
from tidegate.audit.collections.value_pairs import Twosome, twosomes
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
PERSONS = 12  # of the reports that are sent to the server

MakeDevice = Callable[[Collection, dict[str, Any]], Device]  # a collection and the memory that the device keeps


@dataclass(frozen=True)
class Target:
    """A collection under attack: how its devices are made, and its server."""

    collection: Collection
    new: NewDevice
    survey: Survey
    submit: Submit


def real_device(collection: Collection, memory: dict[str, Any], *, source: Bytes | None = None) -> Client:
    """The client as a person gets it: from the public description, with the operating system's own bits."""
    return Client(collection.public_dict(), memory=memory, fingerprint=collection.fingerprint, source=source)


def seeded_device(seed: int | str) -> MakeDevice:
    """The same client with bits that can be drawn again: for attacks that must be repeatable."""
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
    """All attacks on one collection of a policy. `alpha` is the chance with which one finding accuses true code.

    At most `most` reports of each person are drawn, in at most about `seconds`. `device` and `server` put others in the place of the real client and server (planted faults). `seed` draws the
    client's bits, so that a finding can be looked at again; the real client has them from the operating system.
    """
    made = device or seeded_device(seed)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(str(Path(folder) / "audit.ledger"))
        try:
            target = _target(policy, collection, ledger, folder, made, server)
            return [
                *_exactly(target),
                *_sampled(target, alpha=alpha, seconds=seconds, most=most),
                *_at_the_server(target),
            ]
        finally:
            ledger.close()


def _target(
    policy: Policy,
    name: str,
    ledger: Ledger,
    folder: str,
    made: MakeDevice,
    server: Callable[[Survey], Submit] | None,
) -> Target:
    """The collection as an open one, in a folder of its own."""
    opened = replace(policy, collections={n: replace(c, closed=False) for n, c in policy.collections.items()})
    survey = Survey(name, opened, ledger, place=Path(folder) / "reports")
    asked = survey.collection
    return Target(asked, lambda memory: made(asked, memory), survey, server(survey) if server else survey.submit)


def _exactly(target: Target) -> list[Finding]:
    """One report of every question, over all that there can be."""
    started, found = time.monotonic(), []
    single, lifetime = _promised(target.collection)
    for name, question in target.collection.questions.items():
        operator = operator_for(question)
        found += single_report(name, question, twosomes(question, operator), single[name])
        if "each" in question.parameters:
            known = permanent(question)
            found += single_report(name, question, known, lifetime[name], what="the permanent answer")
        if isinstance(operator, BasketOperator):
            found.append(item_patterns(name, question, operator, lifetime[name]))
            found += [sizes_in_clear(name, operator)] if operator.operator.needs_size else []
        else:
            found += stated_measures(name, operator, measure(operator))
    return _timed(found, started)


def permanent(question: Question) -> list[Twosome]:
    """Pairs of answers as the permanent answer tells them apart: that of a question without its second layer."""
    kept = {name: value for name, value in question.parameters.items() if name != "each"}
    below = Question(question.attribute, question.universe, question.operator, plans=question.plans, **kept)
    return twosomes(below, operator_for(below))


def _promised(collection: Collection) -> tuple[dict[str, Loss], dict[str, Loss]]:
    """What the description promises of a single report of each question, and of all reports of one answer."""
    lifetime = dict(respondent_loss(collection).questions)
    single = {name: asked.parameters.get("each", lifetime[name]) for name, asked in collection.questions.items()}
    return single, lifetime


def _sampled(target: Target, *, alpha: float, seconds: float, most: int) -> list[Finding]:
    """The real client: single reports, repeated ones, changed ones."""
    started = time.monotonic()
    asked = {name: twosomes(question, operator_for(question)) for name, question in target.collection.questions.items()}
    pairs = {name: found[0] for name, found in asked.items() if found}
    if not pairs:
        return []
    single, lifetime = _promised(target.collection)
    looks = _looks(asked, pairs)
    found: list[Finding] = []
    for attack, some in looks.items():
        drawn = draw(target.collection, some, target.new, seconds=0.6 * seconds / len(looks), most=most)
        for name, pair in some.items():
            found.append(proven_loss(name, pair, drawn[name], single[name], alpha=alpha, attack=attack))
            found.append(follows_channel(name, pair, drawn[name], alpha=alpha))
        found += proven_in_all(some, drawn, respondent_loss(target.collection).each_report, alpha=alpha)
    found += averaged(
        target.collection, pairs, lifetime, target.new, alpha=alpha, seconds=0.3 * seconds, most=most // 20
    )
    losses = {name: permanent(target.collection.questions[name])[0].loss for name in pairs}
    found += changed_answer(target.collection, pairs, losses, target.new)
    return _timed(found, started)


def _looks(asked: Mapping[str, list[Twosome]], pairs: dict[str, Twosome]) -> dict[str, dict[str, Twosome]]:
    """The worst pair of every question; and where baskets of two sizes can be compared, the two that differ most in size."""
    apart = {
        name: max(found, key=lambda pair: abs(pair.here.bit_count() - pair.there.bit_count()))
        for name, found in asked.items()
        if len(found) > 1
    }
    more = {name: pair for name, pair in apart.items() if pair.here.bit_count() != pair.there.bit_count()}
    more = {name: pair for name, pair in more.items() if pair is not pairs[name]}
    return {"worst two answers": pairs, **({"baskets of two sizes": more} if more else {})}


def _at_the_server(target: Target) -> list[Finding]:
    started = time.monotonic()
    reports = [target.new({}).randomize(answers_of(target.collection, {}, "here")) for _ in range(PERSONS)]
    operators = target.survey.operators
    found = [
        replayed(reports, target.submit, lambda: target.survey.reports),
        forged(target.collection, operators, reports[0], target.submit),
        made_up(reports[0], target.submit),
    ]
    return _timed(found, started)


def _timed(found: list[Finding], started: float) -> list[Finding]:
    each = (time.monotonic() - started) / max(1, len(found))
    return [replace(one, seconds=each) for one in found]
