"""COLLECT, one device over time: new versions, renamed questions, and rounds with answers that change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tidegate.accounting.respondent import respondent_loss
from tidegate.audit.collections.repeats import answers_of
from tidegate.audit.collections.report_samples import Device
from tidegate.audit.collections.value_pairs import ValuePair, answer_of
from tidegate.audit.finding import Finding, judge
from tidegate.errors import Unsupported
from tidegate.operators import HashResponse, Operator, RandomizedResponse
from tidegate.operators.exact_draws import WHOLE
from tidegate.policy.collection import Collection, Question, operator_for

VERSIONS, ROUNDS = 30, 52
NewDevice = Callable[[Collection, dict[str, Any]], Device]


def attack_lifetime(collection: Collection, pairs: Mapping[str, ValuePair], new: NewDevice) -> list[Finding]:
    """Run all attacks on what one device ever sends to a holder."""
    findings = [bump_versions(collection, pairs, new), *rename_subject(collection, pairs, new)]
    for name, question in collection.questions.items():
        if "each" in question.parameters:
            findings += change_every_round(collection, name, question, new)
            findings += date_of_change(name, operator_for(question))
    return findings


def bump_versions(collection: Collection, pairs: Mapping[str, ValuePair], new: NewDevice) -> Finding:
    """Publish the same questions in 30 versions: a device must not draw its answers again."""
    memory: dict[str, Any] = {}
    answers = answers_of(collection, pairs, "here")
    reports = []
    for number in range(VERSIONS):
        device = new(replace(collection, version=collection.version + number), memory)
        with suppress(Unsupported):  # one that draws again is stopped by its lifetime
            reports.append(device.randomize(answers)["answers"])
    fresh = collection.repeats == "two-layers"
    permanent = len([key for key in memory if key.startswith("answer/")])
    draws = permanent / len(collection.questions) if fresh else len({str(report) for report in reports})
    return Finding(
        verb="collect",
        promise="a new version that asks the same does not draw an answer again",
        attack="new versions",
        knows=f"the reports of one person to {VERSIONS} versions of a collection",
        unit="probability",
        bound=float(draws),
        promised=1.0,
        alpha=0.0,
        tries=VERSIONS,
        verdict=judge(float(draws), 1.0),
        says=f"a device that answered {VERSIONS} versions with the same values drew "
        f"{'one permanent answer' if draws == 1 else f'{draws:g} different answers'} for each question.",
    )


def rename_subject(collection: Collection, pairs: Mapping[str, ValuePair], new: NewDevice) -> list[Finding]:
    """Ask the same under 30 names: every name is a new answer, and only the lifetime stops the device."""
    loss = respondent_loss(collection)
    limit = loss.default_lifetime if collection.lifetime is None else collection.lifetime
    if limit is None or loss.in_all is None:
        return []
    memory: dict[str, Any] = {}
    answers, accepted = answers_of(collection, pairs, "here"), 0
    holder = collection.holder or collection.name
    for number in range(VERSIONS):
        questions = {
            name: Question(
                f"{question.attribute} {number}",
                question.universe,
                question.operator,
                plans=question.plans,
                **question.parameters,
            )
            for name, question in collection.questions.items()
        }
        renamed = replace(collection, questions=questions, version=number + 1, holder=holder, lifetime=limit)
        try:
            new(renamed, memory).randomize(answers)
        except Unsupported:
            break
        accepted += 1
    bound = accepted * loss.in_all
    return [
        Finding(
            verb="collect",
            promise=f"all answers of one device to a holder together lose at most epsilon {float(limit):.7g}",
            attack="renamed questions",
            knows="all reports of one device; the holder asks the same under new names",
            bound=float(bound),
            promised=float(limit),
            alpha=0.0,
            tries=VERSIONS,
            verdict=judge(float(bound), float(limit)),
            says=f"of {VERSIONS} collections that ask the same under new names, the device answered {accepted}: epsilon {float(bound):.4g} of "
            f"{float(limit):.4g}.",
        )
    ]


def change_every_round(collection: Collection, name: str, question: Question, new: NewDevice) -> list[Finding]:
    """Answer 52 rounds with another value each time: how many permanent answers are drawn."""
    loss = respondent_loss(collection)
    most = loss.ever.get(name)
    if most is None:
        return []
    single = replace(collection, questions={name: question}, lifetime=Fraction(10**6))
    memory: dict[str, Any] = {}
    device = new(single, memory)
    for number in range(ROUNDS):
        device.randomize({name: answer_of(question, number % question.size)})
    permanent = [record for key, record in memory.items() if key.startswith("answer/")]
    bound = len(permanent) * (loss.questions[name] or 0)
    return [
        Finding(
            verb="collect",
            promise=f'the permanent answers to "{name}" lose at most epsilon {float(most):.7g}, however often the value changes',
            attack="a new value in every round",
            knows=f"the reports of one person in {ROUNDS} rounds",
            bound=float(bound),
            promised=float(most),
            alpha=0.0,
            tries=ROUNDS,
            verdict=judge(float(bound), float(most)),
            says=f'in {ROUNDS} rounds with changing values of "{name}" the device drew {len(permanent)} permanent answers: epsilon '
            f"{float(bound):.4g}, of {float(most):.4g} that are stated.",
        )
    ]


def date_of_change(name: str, operator: Operator) -> list[Finding]:
    """Compare a value that never changes with one that changes after half of the rounds. Nothing is promised about this."""
    chain = operator.cells if isinstance(operator, HashResponse) else operator
    if not isinstance(chain, RandomizedResponse):
        return []
    bound = change_loss(chain, ROUNDS)
    return [
        Finding(
            verb="collect",
            promise="none: permanent answers do not hide when a value changed; only the noise of each round does",
            attack="the round of a change",
            knows=f"the reports of one person in {ROUNDS} rounds, in their order, and the two values",
            bound=bound,
            alpha=0.0,
            tries=ROUNDS,
            verdict="observed",
            says=f'whether the value of "{name}" changed after {ROUNDS // 2} of {ROUNDS} rounds is revealed with epsilon {bound:.4g} or more to an '
            "adversary who can link the reports of one person.",
        )
    ]


def change_loss(chain: RandomizedResponse, rounds: int) -> float:
    """Return the largest ratio, as a logarithm, over reports that are the same within either half of the rounds."""
    half = rounds // 2
    first = _layer(chain.values, chain.keep)
    second = _layer(chain.values, chain.again) ** half
    once = first[0]  # the permanent answer to the first value
    constant = np.einsum("b,bx,by->xy", once, second, second)
    changed = np.einsum("b,c,bx,cy->xy", once, first[1], second, second)
    return float(np.abs(np.log(changed) - np.log(constant)).max())


def _layer(values: int, keep: int) -> Any:
    """Return P(sent | held), (held, sent)."""
    stay = keep / WHOLE
    return np.full((values, values), (1 - stay) / (values - 1)) + np.eye(values) * (stay - (1 - stay) / (values - 1))
