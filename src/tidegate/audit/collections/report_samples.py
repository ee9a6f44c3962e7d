"""COLLECT, many reports of the real client: whether they follow the stated channel, and the loss that they prove.

Two persons whose true answers a report distinguishes best answer repeatedly, each time on a new device. The counted event
follows from the stated channel before anything is drawn, so that all draws can bound it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.accounting.respondent import Loss
from tidegate.arrays import Ints
from tidegate.audit.bounds import best_event, epsilon_lower_bound, lower_bound, upper_bound
from tidegate.audit.collections.value_pairs import ValuePair, answer_of, plain_answer
from tidegate.audit.finding import Finding, judge
from tidegate.operators import Report
from tidegate.policy.collection import Collection

AT_ONCE = 250
MOST_EVENTS = 40  # per channel, each with its own share of alpha


class Device(Protocol):
    """A person's device, as far as an adversary can use it."""

    def randomize(self, answers: Mapping[str, Any]) -> dict[str, Any]: ...


NewDevice = Callable[[dict[str, Any]], Device]  # from the device's memory


@dataclass(frozen=True)
class ReportSamples:
    """The class of reports of every draw of the two persons (-1 if the channel has none), and the length of each report."""

    here: Ints
    there: Ints
    sizes: tuple[Ints, Ints]


def draw_reports(
    collection: Collection, pairs: Mapping[str, ValuePair], new: NewDevice, *, seconds: float, most: int
) -> dict[str, ReportSamples]:
    """Draw reports of both persons to all questions within the time, the same number for each."""
    memories: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    devices = [new(memory) for memory in memories]
    answers = [
        {
            name: answer_of(question, getattr(pairs[name], side)) if name in pairs else plain_answer(question)
            for name, question in collection.questions.items()
        }
        for side in ("here", "there")
    ]
    samples_of: dict[str, list[tuple[Report, Report]]] = {name: [] for name in pairs}
    until = time.monotonic() + seconds
    while len(next(iter(samples_of.values()))) < most and time.monotonic() < until:
        for _ in range(AT_ONCE):
            reports = [
                _report_once(device, memory, true_answers)
                for device, memory, true_answers in zip(devices, memories, answers, strict=True)
            ]
            for name, samples in samples_of.items():
                samples.append((reports[0][name], reports[1][name]))
    return {name: _classify(pairs[name], samples) for name, samples in samples_of.items()}


def _report_once(device: Device, memory: dict[str, Any], answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report of a device with empty memory: another person with the same answers."""
    for key in [key for key in memory if not key.endswith("/about")]:  # public facts about the collection can stay
        del memory[key]
    report: dict[str, Any] = device.randomize(answers)["answers"]
    return report


def _classify(pair: ValuePair, samples: list[tuple[Report, Report]]) -> ReportSamples:
    here, there = ([pair.class_of(reports[side]) for reports in samples] for side in (0, 1))
    sizes = ([_length(reports[side]) for reports in samples] for side in (0, 1))
    first, second = (np.array(lengths, np.int64) for lengths in sizes)
    return ReportSamples(np.array(here, np.int64), np.array(there, np.int64), (first, second))


def _length(report: Report) -> int:
    return len(report) if isinstance(report, list) else 0


# What the draws prove


def proven_loss(
    name: str, pair: ValuePair, drawn: ReportSamples, promised: Loss, *, alpha: float, attack: str = "worst two answers"
) -> Finding:
    """Return the loss that the draws prove: by the event that the stated channel suggests, and by one from the draws."""
    limit = inf if promised is None else float(promised)
    stated = _stated_event(pair, len(drawn.here))
    hits = [int(np.isin(side, stated).sum()) for side in (drawn.here, drawn.there)]
    by_channel = epsilon_lower_bound(hits[0], len(drawn.here), hits[1], len(drawn.there), alpha=alpha / 2)
    looks = [
        np.stack([_score(pair, side), size], axis=1)
        for side, size in zip((drawn.here, drawn.there), drawn.sizes, strict=True)
    ]
    by_draws, _ = best_event(*looks, alpha=alpha / 2)
    bound = max(by_channel, by_draws)
    return Finding(
        verb="collect",
        promise=f'the client draws reports of "{name}" with {"no stated limit of the loss" if promised is None else f"a loss of at most epsilon {limit:.7g}"}',
        attack=attack,
        knows="the operator and the two possible answers of a person, but not which one is true",
        bound=bound,
        promised=None if promised is None else limit,
        alpha=alpha,
        tries=2 * len(drawn.here),
        verdict="observed" if promised is None else judge(bound, limit),
        says=f'{len(drawn.here):,} reports of "{name}" for each of two answers ({attack}) prove an epsilon of {bound:.4g} '
        f"or more; {'none is promised' if promised is None else f'{limit:.4g} is promised'}.",
    )


def proven_loss_of_all(
    pairs: Mapping[str, ValuePair], drawn: Mapping[str, ReportSamples], promised: Loss, *, alpha: float
) -> list[Finding]:
    """Return the loss of all questions of a report together, by the sum of their evidence."""
    if len(pairs) < 2 or promised is None:
        return []
    sides = [
        np.sum([_score(pairs[name], getattr(drawn[name], side)) for name in pairs], axis=0)
        for side in ("here", "there")
    ]
    bound, _ = best_event(sides[0], sides[1], alpha=alpha)
    finding = Finding(
        verb="collect",
        promise=f"a whole report loses at most epsilon {float(promised):.7g}",
        attack="all questions together",
        knows="the operators and the two possible sets of answers of a person, but not which one is true",
        bound=bound,
        promised=float(promised),
        alpha=alpha,
        tries=2 * len(sides[0]),
        verdict=judge(bound, float(promised)),
        says=f"{len(sides[0]):,} whole reports of each of two persons who differ in every answer prove an epsilon of "
        f"{bound:.4g} or more; {float(promised):.4g} is promised.",
    )
    return [finding]


def follows_channel(name: str, pair: ValuePair, drawn: ReportSamples, *, alpha: float) -> Finding:
    """Check whether the draws follow the stated channel, event by event, with exact bounds."""
    tests = [(side, classes) for side in (0, 1) for classes in _events(pair)]
    each = alpha / (2 * len(tests))
    farthest, where = 0.0, ""
    for side, classes in tests:
        draws = drawn.there if side else drawn.here
        hits, stated = int(np.isin(draws, classes).sum()), float(pair.chances[classes, side].sum())
        low, high = lower_bound(hits, len(draws), alpha=each), upper_bound(hits, len(draws), alpha=each)
        gap = max(low - stated, stated - high) - 1e-12
        if gap > farthest:
            farthest, where = (
                gap,
                f" (an event stated to have probability {stated:.4g} has one from {low:.4g} to {high:.4g})",
            )
    strange = int((drawn.here < 0).sum() + (drawn.there < 0).sum())
    return Finding(
        verb="collect",
        promise=f'the client draws reports of "{name}" from the stated channel',
        attack="stated channel",
        knows="the operator and its parameters; reports of two known answers",
        unit="probability",
        bound=1.0 if strange else farthest,
        promised=0.0,
        alpha=alpha,
        tries=2 * len(drawn.here),
        verdict="broken" if strange else judge(farthest, 0.0),
        says=f'{strange:,} reports of "{name}" cannot come from the stated channel.'
        if strange
        else f'{2 * len(drawn.here):,} reports of "{name}" were compared with the stated channel by {len(tests)} events: '
        + (f"they do not follow it{where}." if farthest > 0 else "no event contradicts it."),
    )


def _events(pair: ValuePair) -> list[Ints]:
    """Return runs of classes ordered by their evidence for the first answer, and the likeliest single classes."""
    order = np.argsort(-pair.log_ratios(), kind="stable")
    cuts = np.unique(np.linspace(1, max(1, len(order) - 1), MOST_EVENTS // 2, dtype=int))
    likely = np.argsort(-pair.chances.max(axis=1), kind="stable")[: MOST_EVENTS // 2]
    return [order[:cut] for cut in cuts] + [np.array([index]) for index in likely]


def _stated_event(pair: ValuePair, draws: int) -> Ints:
    """Return the classes with the most evidence for the first answer.

    Their number maximizes the bound if the channel is as stated.
    """
    order = np.argsort(-pair.log_ratios(), kind="stable")
    here, there = (np.cumsum(pair.chances[order, side]) for side in (0, 1))
    low = here - 5 * np.sqrt(here * (1 - np.minimum(here, 1)) / max(draws, 1)) - 5 / max(draws, 1)
    high = there + 5 * np.sqrt(np.maximum(there * (1 - np.minimum(there, 1)), 0) / max(draws, 1)) + 15 / max(draws, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.where(low > 0, np.log(np.maximum(low, 1e-300)) - np.log(high), -inf)
    return np.asarray(order[: int(np.argmax(worth)) + 1])


def _score(pair: ValuePair, classes: Ints) -> NDArray[np.float64]:
    """Return the evidence of each draw for the first answer; draws outside the channel get a very large score."""
    return np.where(classes < 0, 1_000.0, pair.log_ratios()[np.maximum(classes, 0)])
