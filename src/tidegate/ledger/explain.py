"""Entries as sentences that a data steward can read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from fractions import Fraction
from typing import Any

from tidegate.accounting import Amount, Target, yes_no_certainty
from tidegate.ledger.entry import (
    ADOPTED,
    ANSWERED,
    CHARGED,
    CLOSED,
    COLLECTING,
    CREATED,
    DECIDED,
    DESK,
    OPENED,
    REPEATED,
    REPORTED,
    WITHDRAWN,
    WRITTEN_OFF,
    Entry,
)


def explain_entries(entries: Iterable[Entry]) -> Iterator[tuple[Entry, str]]:
    """Yield each entry with its explanation. The targets of the current policy give spending its meaning."""
    targets: dict[str, tuple[Target, ...]] = {}
    for entry in entries:
        body = entry.content()
        if entry.kind == OPENED:
            targets[entry.account] = _targets(body)
        yield entry, SENTENCES[entry.kind](entry, body, targets.get(entry.account, ()))


def moment(entry: Entry) -> str:
    """Return the time of an entry for a reader: ``15 Nov 2026 10:02``."""
    return datetime.fromisoformat(entry.at).strftime("%d %b %Y %H:%M")


def _targets(body: Any) -> tuple[Target, ...]:
    return tuple(Target(name, Fraction(t["worlds"]), Fraction(t["rho"])) for name, t in body["targets"].items())


def _opened(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    ceiling = Amount.parse(entry.ceiling).say()
    if not body["changes"]:
        return f"Policy {entry.policy[:8]} opened: the total budget is {ceiling}."
    return f"Policy changed to {entry.policy[:8]} ({'; '.join(body['changes'])}): the total budget is {ceiling}."


def _charged(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    spent = Amount.parse(entry.spent)
    worst = max(((float(target.identification(spent)), target.name) for target in targets), default=None)
    certain = f", yes/no certainty at most {float(yes_no_certainty(spent)):.3g}"
    means = f"; identification of {worst[1]} at most {worst[0]:.3g}{certain}" if worst else ""
    query = f"{_user(body)} {_request(body['says'])}"
    return f"{query}: {Amount.parse(entry.amount).say()} charged, {spent.say()} of {Amount.parse(entry.ceiling).say()} spent{means}."


def _answered(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"Entry {body['charge']:,} was answered (result {body['sha256'][:8]})."


def _repeated(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"Entry {body['charge']:,} was requested again under another key, at no cost."


def _desk(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"The release desk opened under {', '.join(body['promises'])} (baselines and critical values {body['sha256'][:8]})."


def _decided(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    released, waiting = len(body["released"]), len(body["waiting"])
    return f"{_user(body)} requested records: {released:,} released, {waiting:,} waiting."


def _withdrawn(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"{_user(body)} withdrew request {body['withdrawn'][0]:,}; its record was deleted."


def _collecting(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    described = body["description"]
    questions = ", ".join(described["questions"])
    return f"The collection opened, version {described['version']} ({entry.policy[:8]}), with questions {questions}: {body['says']}."


def _reported(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    refused = sum(body["refused"].values())
    more = f", {refused:,} refused" if refused else ""
    return f"{body['accepted']:,} reports accepted{more}: {body['reports']:,} in total (segment {body['sha256'][:8]})."


def _closed(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"The collection closed with {body['reports']:,} reports and accepts no more."


def _created(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"The ledger was created (format {body['format']}). Nothing was charged before."


def _adopted(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return "The ledger was migrated from an earlier version. From this entry on, it commits to its secrets."


def _written_off(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return (
        f"A backup was restored: {Amount.parse(entry.amount).say()} that was spent after it was written off (newest known "
        f"entry {body['number']:,}, {body['head'][:8]}); {Amount.parse(entry.spent).say()} of "
        f"{Amount.parse(entry.ceiling).say()} spent."
    )


def _request(says: str) -> str:
    """Return what was requested; the text of a synthesis begins with "for" in the ledger."""
    return f"requested {says.removeprefix('for ')}" if says.startswith("for ") else f"queried {says or 'the data'}"


def _user(body: Any) -> str:
    return str(body["who"] or "Unknown user")


SENTENCES = {
    CREATED: _created,
    ADOPTED: _adopted,
    WRITTEN_OFF: _written_off,
    OPENED: _opened,
    CHARGED: _charged,
    REPEATED: _repeated,
    ANSWERED: _answered,
    DESK: _desk,
    DECIDED: _decided,
    WITHDRAWN: _withdrawn,
    COLLECTING: _collecting,
    REPORTED: _reported,
    CLOSED: _closed,
}
