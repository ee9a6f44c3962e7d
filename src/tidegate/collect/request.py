"""A report, the only data that leaves a person's device, and the reasons to refuse one."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from typing import Any

from tidegate.collect.invitations import token_refusal
from tidegate.operators import Operator, Report
from tidegate.policy.collection import Collection

KEYS = ("collection", "fingerprint", "version", "answers", "id")
INVITED_KEYS = (*KEYS, "invitation")
IDENTITY = re.compile(r"[0-9a-f]{32}")


def make_report(collection: Collection, answers: Mapping[str, Report], identity: str) -> dict[str, Any]:
    """Return a report as JSON values: the collection, the randomized answers, and a random id."""
    about = {"collection": collection.name, "fingerprint": collection.fingerprint, "version": collection.version}
    return {**about, "answers": dict(answers), "id": identity}


def identity_of(secret: str, *parts: object) -> str:
    """Return 128 bits that only the client can compute: the same for the same parts, and revealing nothing about them."""
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=True)
    return hmac.new(bytes.fromhex(secret), text.encode(), hashlib.sha256).hexdigest()[:32]


def refusal(report: Any, collection: Collection, operators: Mapping[str, Operator]) -> str | None:
    """Return why a report is refused, without quoting it; None if it is accepted."""
    keys = keys_of(collection)
    if not isinstance(report, Mapping) or set(report) != set(keys):
        return f"malformed: a report has {', '.join(keys)}, and nothing else"
    if report["collection"] != collection.name:
        return "it belongs to another collection"
    if collection.closed:
        return f'the collection "{collection.name}" is closed'
    if report["version"] != collection.version or isinstance(report["version"], bool):
        return f"it answers another version; this is version {collection.version}"
    if report["fingerprint"] != collection.fingerprint:
        return "its fingerprint is not that of this collection: the client was shown other questions"
    if not isinstance(report["id"], str) or not IDENTITY.fullmatch(report["id"]):
        return "malformed: the id is 32 hexadecimal digits"
    if keys is INVITED_KEYS and (reason := token_refusal(report["invitation"])):
        return reason
    return _answers_refusal(report["answers"], collection, operators)


def keys_of(collection: Collection) -> tuple[str, ...]:
    """Return the keys of a report: those of an invited poll have an invitation as well."""
    return INVITED_KEYS if collection.poll is not None and collection.poll.invited else KEYS


def _answers_refusal(answers: Any, collection: Collection, operators: Mapping[str, Operator]) -> str | None:
    if not isinstance(answers, Mapping) or not collection.answers_units(answers):
        drawn = "" if collection.ask is None else f"{collection.ask} of "
        return f"malformed: it must answer {drawn}{', '.join(operators)}"
    for name, operator in operators.items():
        if name in answers and not operator.accepts(answers[name]):
            return f'the answer to "{name}" is outside of what {operator.name} can report here'
    return None
