"""A report, the only data that leaves a person's device, and the reasons to refuse one."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from typing import Any

from tidegate.operators import Operator, Report
from tidegate.policy.collection import Collection

KEYS = ("collection", "fingerprint", "version", "answers", "id")
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
    if not isinstance(report, Mapping) or set(report) != set(KEYS):
        return f"malformed: a report has {', '.join(KEYS)}, and nothing else"
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
    return _answers_refusal(report["answers"], operators)


def _answers_refusal(answers: Any, operators: Mapping[str, Operator]) -> str | None:
    if not isinstance(answers, Mapping) or set(answers) != set(operators):
        return f"malformed: it must answer {', '.join(operators)}"
    for name, operator in operators.items():
        if not operator.accepts(answers[name]):
            return f'the answer to "{name}" is outside of what {operator.name} can report here'
    return None
