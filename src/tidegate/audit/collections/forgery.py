"""COLLECT, the server: replayed reports, reports that no device can produce, and fabricated ones."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations, islice
from typing import Any

from tidegate.audit.finding import Finding
from tidegate.collect.run import Submitted
from tidegate.operators import BasketOperator, Operator, Pure
from tidegate.policy.collection import Collection

Submit = Callable[[Iterable[Mapping[str, Any]]], Submitted]
FEW_ITEMS = 5  # up to which all baskets and reports are enumerated
PROMISE = "a report counts once, by its id, and only if a device can have produced it"
SEND = "they can send anything to the server, including reports of others that they have seen"


def replay_reports(reports: list[dict[str, Any]], submit: Submit, counted: Callable[[], int]) -> Finding:
    """Send the same reports again: in the same batch, another batch, another order, with another answer under the id."""
    before = counted()
    submit([*reports, *reports[:2]])
    genuine = counted() - before
    other = copy.deepcopy(reports[0])
    other["answers"] = reports[-1]["answers"]
    tries = [reports[::-1], reports[:1], [other], [dict(reports[0]), dict(reports[1])]]
    for batch in tries:
        submit(batch)
    extra = counted() - before - len(reports)
    wrong = extra != 0 or genuine != len(reports)
    sent = 2 + sum(map(len, tries))
    return Finding(
        verb="collect",
        promise=PROMISE,
        attack="replayed reports",
        knows=SEND,
        unit="probability",
        bound=max(0, extra) / sent,
        promised=0.0,
        alpha=0.0,
        tries=sent,
        verdict="broken" if wrong else "held",
        says=f"{len(reports)} reports were sent, and {sent} copies of them in five ways: {genuine + extra} were counted.",
    )


def forge_reports(
    collection: Collection, operators: Mapping[str, Operator], report: Mapping[str, Any], submit: Submit
) -> Finding:
    """Send impossible answers, wrong keys and wrong fingerprints, each by itself under its own id."""
    tries = [*_answers(report, operators), *_envelopes(report)]
    accepted = [
        why for why, forgery in tries if submit([{**forgery, "id": forgery.get("id", secrets.token_hex(16))}]).accepted
    ]
    return Finding(
        verb="collect",
        promise=PROMISE,
        attack="forged reports",
        knows=SEND,
        unit="probability",
        bound=len(accepted) / len(tries),
        promised=0.0,
        alpha=0.0,
        tries=len(tries),
        verdict="broken" if accepted else "held",
        says=f'{len(tries)} reports that no device can have produced were sent to "{collection.name}": '
        + (f"accepted were {', '.join(dict.fromkeys(accepted))}." if accepted else "all were refused."),
    )


def _answers(report: Mapping[str, Any], operators: Mapping[str, Operator]) -> list[tuple[str, dict[str, Any]]]:
    tries = []
    for name, operator in operators.items():
        for why, answer in _impossible(operator):
            tries.append((f'{why} for "{name}"', _with(report, {**report["answers"], name: answer})))
    return tries


def _with(report: Mapping[str, Any], answers: Any) -> dict[str, Any]:
    return {key: value for key, value in {**report, "answers": answers}.items() if key != "id"}


def _impossible(operator: Operator) -> list[tuple[str, Any]]:
    if operator.form == "code":
        ends = [("a code below the first", -1), ("a code past the last", operator.report_size)]
        return [*ends, ("a fraction", 0.5), ("a Boolean", True), ("text", "0"), ("nothing", None), ("a list", [0])]
    last = operator.report_size
    wrong = [("an item past the last", [last]), ("an item twice", [0, 0]), ("a descending list", [1, 0]), ("a code", 0)]
    return [*wrong, ("text", "0"), ("nothing", None), ("Booleans", [True]), *_impossible_sets(operator)]


def _impossible_sets(operator: Operator) -> list[tuple[str, Any]]:
    """Return sets of the right form that never occur."""
    if isinstance(operator, Pure):
        possible = operator.member_counts()
        sizes = {0, min(possible) - 1, max(possible) + 1, operator.values} - set(possible)
        never = sorted(size for size in sizes if 0 <= size <= operator.values)
        return [("a set of a size that never happens", list(range(size))) for size in never]
    if not isinstance(operator, BasketOperator):
        return []
    size_codes = [operator.items + index for index in range(operator.report_size - operator.items)]
    twice = [("two sizes", size_codes[:2])] if len(size_codes) > 1 else []
    return [*twice, *([("no size", [0])] if size_codes else []), *_impossible_baskets(operator)]


def _impossible_baskets(operator: BasketOperator) -> list[tuple[str, Any]]:
    """Return a report that has probability 0 under any basket, if there is one."""
    if operator.items > FEW_ITEMS:
        return []
    baskets = [basket for size in operator.operator.taken_sizes for basket in combinations(range(operator.items), size)]
    never = (
        report
        for report in operator.reports()
        if not any(operator.probability_of(report, basket) for basket in baskets)
    )
    return [("a basket that never happens", report) for report in islice(never, 1)]


def _envelopes(report: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    answers = dict(report["answers"])
    bare = {key: value for key, value in report.items() if key != "id"}
    return [
        ("another fingerprint", {**bare, "fingerprint": "0" * 64}),
        ("another version", {**bare, "version": report["version"] + 1}),
        ("another collection", {**bare, "collection": "elsewhere"}),
        ("an answer left out", _with(report, dict(list(answers.items())[1:]))),
        ("an answer to an unknown question", _with(report, {**answers, "more": 0})),
        ("an additional key", {**bare, "person": "somebody"}),
        ("an id that is not valid", {**bare, "id": "f" * 31}),
    ]


def fabricate_reports(report: Mapping[str, Any], submit: Submit) -> Finding:
    """Submit fabricated reports. No promise covers them; the result is reported, not judged."""
    reports = [{**report, "id": secrets.token_hex(16)} for _ in range(10)]
    accepted = submit(reports).accepted
    return Finding(
        verb="collect",
        promise="none: reports are anonymous, so one sender cannot be kept from sending several",
        attack="fabricated reports",
        knows=SEND,
        unit="probability",
        bound=accepted / len(reports),
        alpha=0.0,
        tries=len(reports),
        verdict="observed",
        says=f"of {len(reports)} reports that one dishonest client fabricated under its own ids {accepted} were counted. Where that "
        "matters, admit only people whom you know; their names need not be stored.",
    )
