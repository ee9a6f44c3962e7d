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


def told(entries: Iterable[Entry]) -> Iterator[tuple[Entry, str]]:
    """Each entry with what it says. The targets of the policy in force say what the spending means."""
    targets: dict[str, tuple[Target, ...]] = {}
    for entry in entries:
        body = entry.content()
        if entry.kind == OPENED:
            targets[entry.account] = _targets(body)
        yield entry, SENTENCES[entry.kind](entry, body, targets.get(entry.account, ()))


def moment(entry: Entry) -> str:
    """When, for a person: ``15 Nov 2026 10:02``."""
    return datetime.fromisoformat(entry.at).strftime("%d %b %Y %H:%M")


def _targets(body: Any) -> tuple[Target, ...]:
    return tuple(Target(name, Fraction(t["worlds"]), Fraction(t["rho"])) for name, t in body["targets"].items())


def _opened(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    ceiling = Amount.parse(entry.ceiling).say()
    if not body["changes"]:
        return f"policy {entry.policy[:8]} opened: {ceiling} may be spent in all"
    return f"policy changed to {entry.policy[:8]} ({'; '.join(body['changes'])}): {ceiling} may be spent in all"


def _charged(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    spent = Amount.parse(entry.spent)
    worst = max(((float(target.identification(spent)), target.name) for target in targets), default=None)
    certain = f", yes/no certainty at most {float(yes_no_certainty(spent)):.3g}"
    means = f"; identification of {worst[1]} at most {worst[0]:.3g}{certain}" if worst else ""
    asked = f"{body['who'] or 'somebody'} asked {body['says'] or 'a question'}"
    return f"{asked}: {Amount.parse(entry.amount).say()} charged, {spent.say()} of {Amount.parse(entry.ceiling).say()} spent{means}"


def _answered(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"entry {body['charge']:,} was answered (result {body['sha256'][:8]})"


def _repeated(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"entry {body['charge']:,} was asked again under another key, for nothing"


def _desk(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"the release desk opened under {', '.join(body['promises'])} (baselines and critical values {body['sha256'][:8]})"


def _decided(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    left, wait = len(body["released"]), len(body["waiting"])
    return f"{body['who'] or 'somebody'} asked for records: {left:,} left, {wait:,} more wait"


def _withdrawn(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"{body['who'] or 'somebody'} withdrew request {body['withdrawn'][0]:,}; its record is forgotten"


def _collecting(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    described = body["description"]
    asked = ", ".join(described["questions"])
    return f"the collection opened, version {described['version']} ({entry.policy[:8]}), asking {asked}: {body['says']}"


def _reported(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    refused = sum(body["refused"].values())
    more = f", {refused:,} refused" if refused else ""
    return f"{body['accepted']:,} reports taken{more}: {body['reports']:,} in all (segment {body['sha256'][:8]})"


def _closed(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"the collection closed with {body['reports']:,} reports; it takes no more"


def _created(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return f"The ledger was created (format {body['format']}). Nothing was charged before."


def _adopted(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return "The ledger was migrated from an earlier version. From here on its entries commit to its secrets."


def _written_off(entry: Entry, body: Any, targets: tuple[Target, ...]) -> str:
    return (
        f"A backup was restored: {Amount.parse(entry.amount).say()} that was spent after it was written off (newest known "
        f"entry {body['number']:,}, {body['head'][:8]}); {Amount.parse(entry.spent).say()} of "
        f"{Amount.parse(entry.ceiling).say()} spent"
    )


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
