"""One line of the ledger: what was charged to which account, chained by hash to the line before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

FORMAT = 1
GENESIS = "0" * 64

CREATED = "genesis"  # entry 0, the creation of a ledger: body holds the format and commitments to its secrets
ADOPTED = "adoption"  # a ledger of an earlier version that has no genesis: the same body, from here on
WRITTEN_OFF = "write-off"  # a backup was restored: what was spent after it is charged again, body names the newest head
OPENED = "policy"  # the policy of a data set, at first or changed: body holds it
CHARGED = "charge"  # the most that a request can cost, before a row is read
REPEATED = "again"  # a charged question under another idempotency key, for nothing
ANSWERED = "result"  # the result of a charge: body holds the SHA-256 of what was stored
DESK = "desk"  # a release desk opens: body names its promises and the SHA-256 of the plans they are decided by
DECIDED = "release"  # requests for records were decided: who left, who waits
WITHDRAWN = "withdrawal"  # a waiting request was taken back
COLLECTING = "collection"  # a collection opens, at first or in a new version: body holds its public description
REPORTED = "reports"  # a batch of randomized reports was taken: how many, where they are, what the counts are now
CLOSED = "closing"  # a collection takes no more reports


@dataclass(frozen=True)
class Entry:
    """An entry as it is stored. All amounts are exact decimals as text; `body` is canonical JSON.

    `request` is the idempotency key, `question` the SHA-256 of what was asked.
    `spent` and `ceiling` are the account's totals after this entry: they follow from the entries before, and
    `verify` works them out again.
    """

    number: int
    at: str
    account: str
    kind: str
    policy: str
    request: str
    question: str
    amount: str
    spent: str
    ceiling: str
    body: str
    previous: str
    hash: str = ""

    def sealed(self) -> Entry:
        """The entry with its hash."""
        return replace(self, hash=self.digest())

    def digest(self) -> str:
        """SHA-256 over every field but the hash, in one unambiguous form."""
        fields = {name: value for name, value in self.__dict__.items() if name != "hash"}
        return hashlib.sha256(canonical({"format": FORMAT, **fields}).encode()).hexdigest()

    def content(self) -> Any:
        """The body as values."""
        return json.loads(self.body)

    def line(self) -> str:
        """The entry as a line of an export."""
        return canonical(self.__dict__)


def canonical(value: Any) -> str:
    """JSON with one form for each value: sorted keys, no white space, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def entry_from(row: Mapping[Any, Any]) -> Entry:
    return Entry(**{name: row[name] for name in Entry.__dataclass_fields__})


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
