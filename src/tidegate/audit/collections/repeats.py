"""COLLECT, several reports of one person: the same answer again and again, and a changed one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import exp, isinf
from typing import Any

from tidegate.accounting.respondent import Loss
from tidegate.audit.bounds import lowest
from tidegate.audit.collections.report_samples import Device, NewDevice
from tidegate.audit.collections.value_pairs import Twosome, answer_of, plain_answer
from tidegate.audit.finding import Finding
from tidegate.errors import Unsupported
from tidegate.policy.collection import Collection

TIMES = 25
ROUNDING = 1e-9


def averaged(
    collection: Collection,
    pairs: Mapping[str, Twosome],
    lifetime: Mapping[str, Loss],
    new: NewDevice,
    *,
    alpha: float,
    seconds: float,
    most: int,
) -> list[Finding]:
    """Persons who answer the same 25 times; the attacker adds up what the reports say and names one of two answers."""
    right, changed, persons, until = dict.fromkeys(pairs, 0), dict.fromkeys(pairs, 0), 0, time.monotonic() + seconds
    favours = {name: pair.favours() for name, pair in pairs.items()}
    while persons < most and (persons < 2 or time.monotonic() < until):
        side = persons % 2
        memory: dict[str, Any] = {}
        reports = _repeated(collection, pairs, new(memory), side)
        for name, pair in pairs.items():
            said = [report[name] for report in reports]
            told = sum(float(favours[name][place]) for place in map(pair.place, said) if place >= 0)
            right[name] += (told > 0) == (side == 0) if told else persons // 2 % 2
            changed[name] += any(one != said[0] for one in said)
        persons += 1
    return [
        _averaged(name, collection.repeats, pairs[name], lifetime[name], right[name], changed[name], persons, alpha)
        for name in pairs
    ]


def _repeated(collection: Collection, pairs: Mapping[str, Twosome], device: Device, side: int) -> list[dict[str, Any]]:
    given = answers_of(collection, pairs, "there" if side else "here")
    return [device.randomize(given)["answers"] for _ in range(TIMES)]


def _averaged(
    name: str, repeats: str, pair: Twosome, allowed: Loss, right: int, changed: int, persons: int, alpha: float
) -> Finding:
    fresh = repeats == "two-layers"
    limit = _surest(allowed) if fresh else (1 + pair.advantage) / 2
    bound = lowest(right, persons, alpha=alpha)
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
    """How sure a guess between two answers can be where all reports ever change the odds by e^loss at most."""
    return 1.0 if loss is None else 1 / (1 + exp(-float(loss)))


def answers_of(collection: Collection, pairs: Mapping[str, Twosome], side: str) -> dict[str, Any]:
    """One of the two answers to every question that has a pair; the first value of the others."""
    return {
        name: answer_of(question, getattr(pairs[name], side)) if name in pairs else plain_answer(question)
        for name, question in collection.questions.items()
    }


# A changed answer


def changed_answer(
    collection: Collection, pairs: Mapping[str, Twosome], permanent: Mapping[str, float], new: NewDevice
) -> list[Finding]:
    """Somebody whose true answers change: what both reports give away, and what the client says that they do.

    `permanent` holds the loss of all reports of one answer, as it was found by looking at all of them.
    """
    device = new({})
    device.randomize(answers_of(collection, pairs, "here"))
    refused = ""
    try:
        device.randomize(answers_of(collection, pairs, "there"))
    except Unsupported as error:
        refused = error.what
    said = {given.question: given.epsilon for given in getattr(device, "given", list)()}
    return [_changed(collection.repeats, name, permanent[name], said.get(name, 0.0), refused) for name in pairs]


def _changed(repeats: str, name: str, one: float, said: float, refused: str) -> Finding:
    bound = one if refused else 2 * one  # two independent answers: the ratios multiply
    once = repeats == "once"
    wrong = (once and not refused) or bound > said + ROUNDING
    told = "unlimited" if isinf(said) else f"{said:.6g}"
    return Finding(
        verb="collect",
        promise=f'a changed answer to "{name}" '
        + ("is not accepted" if once else "costs its part of epsilon again, and the client says so"),
        attack="changed answer",
        knows="both reports, and that they are one person's",
        bound=bound,
        promised=None if isinf(said) else said,
        alpha=0.0,
        tries=2,
        verdict="broken" if wrong else "held" if once or not isinf(said) else "observed",
        says=f'after a second, different answer to "{name}" the client '
        + (f"refuses ({refused.rstrip('.')})" if refused else f"states that epsilon {told} was spent")
        + f"; the reports allow {'no limit' if isinf(bound) else f'{bound:.6g}'}.",
    )
