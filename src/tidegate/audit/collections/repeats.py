"""COLLECT, several reports of one person: the same answer repeatedly, and a changed one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import exp, isinf
from typing import Any

from tidegate.accounting.respondent import Loss
from tidegate.audit.bounds import lower_bound
from tidegate.audit.collections.report_samples import Device, NewDevice
from tidegate.audit.collections.value_pairs import ValuePair, answer_of, plain_answer
from tidegate.audit.finding import Finding
from tidegate.errors import Unsupported
from tidegate.operators import HashResponse, Operator
from tidegate.policy.collection import Collection, operator_for

TIMES = 25
ROUNDING = 1e-9


def average_repeats(
    collection: Collection,
    pairs: Mapping[str, ValuePair],
    lifetime: Mapping[str, Loss],
    new: NewDevice,
    *,
    alpha: float,
    seconds: float,
    most: int,
) -> list[Finding]:
    """Simulate persons who answer the same 25 times; the adversary adds up the evidence and names one of two answers."""
    right, changed, persons, until = dict.fromkeys(pairs, 0), dict.fromkeys(pairs, 0), 0, time.monotonic() + seconds
    log_ratios = {name: pair.log_ratios() for name, pair in pairs.items()}
    while persons < most and (persons < 2 or time.monotonic() < until):
        side = persons % 2
        memory: dict[str, Any] = {}
        reports = _repeated(collection, pairs, new(memory), side)
        for name, pair in pairs.items():
            answers = [report[name] for report in reports]
            evidence = sum(float(log_ratios[name][index]) for index in map(pair.class_of, answers) if index >= 0)
            right[name] += (evidence > 0) == (side == 0) if evidence else persons // 2 % 2
            changed[name] += any(answer != answers[0] for answer in answers)
        persons += 1
    return [
        _average_finding(
            name, collection.repeats, pairs[name], lifetime[name], right[name], changed[name], persons, alpha
        )
        for name in pairs
    ]


def _repeated(
    collection: Collection, pairs: Mapping[str, ValuePair], device: Device, side: int
) -> list[dict[str, Any]]:
    answers = answers_of(collection, pairs, "there" if side else "here")
    return [device.randomize(answers)["answers"] for _ in range(TIMES)]


def _average_finding(
    name: str, repeats: str, pair: ValuePair, allowed: Loss, right: int, changed: int, persons: int, alpha: float
) -> Finding:
    fresh = repeats == "two-layers"
    limit = _surest(allowed) if fresh else (1 + pair.advantage) / 2
    bound = lower_bound(right, persons, alpha=alpha)
    broken = (changed > 0 and not fresh) or bound > limit
    again = (
        "give the same report every time"
        if not changed
        else f"gave different reports ({changed:,} of {persons:,} persons)"
    )
    return Finding(
        verb="collect",
        promise=f'{TIMES} reports of one answer to "{name}" reveal no more than '
        + ("the permanent answer does" if fresh else "one report"),
        attack="averaging over repeats",
        knows=f"{TIMES} reports of one person, the two possible answers, and that the answer is always the same",
        unit="probability",
        bound=bound,
        promised=limit,
        alpha=alpha,
        tries=persons * TIMES,
        verdict="broken" if broken else "held",
        says=f'persons who answer "{name}" {TIMES} times with the same value {again}; of two answers the adversary names the '
        f"right one with probability {right / persons:.3g} ({bound:.3g} or more is proven), and {limit:.3g} "
        f"{'is allowed by all reports together' if fresh else 'is what a single report allows'}.",
    )


def _surest(loss: Loss) -> float:
    """Return the highest probability of a right guess between two answers if all reports lose at most `loss`."""
    return 1.0 if loss is None else 1 / (1 + exp(-float(loss)))


def answers_of(collection: Collection, pairs: Mapping[str, ValuePair], side: str) -> dict[str, Any]:
    """Return one of the two answers to every question that has a pair; the first value of the others."""
    return {
        name: answer_of(question, getattr(pairs[name], side)) if name in pairs else plain_answer(question)
        for name, question in collection.questions.items()
    }


# A changed answer


def change_answer(
    collection: Collection, pairs: Mapping[str, ValuePair], permanent: Mapping[str, float], new: NewDevice
) -> list[Finding]:
    """Change the true answers of a person: what both reports reveal, and what the client states.

    Args:
        permanent: The loss of all reports of one answer, found by enumeration.
    """
    device = new({})
    sent = device.randomize(answers_of(collection, pairs, "here"))["answers"]
    refused = ""
    try:
        device.randomize(answers_of(collection, pairs, "there"))
    except Unsupported as error:
        refused = error.what
    stated = {spent.question: spent.epsilon for spent in getattr(device, "given", list)()}
    return [
        _change_finding(
            collection.repeats,
            name,
            permanent[name],
            stated.get(name, 0.0),
            refused,
            share_answer(operator_for(collection.questions[name]), pair, sent[name]),
        )
        for name, pair in pairs.items()
    ]


def share_answer(operator: Operator, pair: ValuePair, report: Any) -> bool:
    """Return whether both answers of a device have one permanent answer, because its seed sends them to the same cell."""
    return isinstance(operator, HashResponse) and operator.cell(pair.here, report >> 1) == operator.cell(
        pair.there, report >> 1
    )


def _change_finding(repeats: str, name: str, permanent: float, stated: float, refused: str, shared: bool) -> Finding:
    bound = permanent if refused or shared else 2 * permanent  # two independent answers: the ratios multiply
    once = repeats == "once"
    wrong = (once and not refused) or bound > stated + ROUNDING
    shown = "unlimited" if isinf(stated) else f"{stated:.6g}"
    return Finding(
        verb="collect",
        promise=f'a changed answer to "{name}" '
        + ("is not accepted" if once else "costs its part of epsilon again, and the client says so"),
        attack="changed answer",
        knows="both reports, and that they are one person's",
        bound=bound,
        promised=None if isinf(stated) else stated,
        alpha=0.0,
        tries=2,
        verdict="broken" if wrong else "held" if once or not isinf(stated) else "observed",
        says=f'after a second, different answer to "{name}" the client '
        + (f"refuses ({refused.rstrip('.')})" if refused else f"states that epsilon {shown} was spent")
        + f"; the reports allow {'no limit' if isinf(bound) else f'{bound:.6g}'}.",
    )
