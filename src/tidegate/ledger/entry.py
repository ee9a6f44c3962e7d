"""One entry of the ledger, chained by hash to the entry before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from json.encoder import encode_basestring_ascii
from operator import itemgetter
from typing import Any

from tidegate.frames import Row

FORMAT = 1
GENESIS = "0" * 64
AMOUNTS = ("amount", "spent", "ceiling")

CREATED = "genesis"  # entry 0, the creation of a ledger: the body contains the format and commitments to its secrets
ADOPTED = "adoption"  # a ledger of an earlier version without genesis: the same body
WRITTEN_OFF = "write-off"  # a backup was restored: later spending is charged again; the body names the newest head
OPENED = "policy"  # the policy of a data set, new or changed: the body contains it
CHARGED = "charge"  # the highest possible cost of a request, before a row is read
REPEATED = "again"  # a charged query under another idempotency key, at no cost
ANSWERED = "result"  # the result of a charge: the body contains the SHA-256 of the stored result
FAILED = "failure"  # a charge whose run failed: the body names it
INSPECTED = "inspection"  # the owner compared the data with the policy after failures
SECOND = "second-account"  # the source has another account elsewhere: the body contains the reason for this one
DESK = "desk"  # a release desk opens: the body names its promises and the SHA-256 of its plans
HIDING_KEY = "hiding-key"  # a commitment to the key of a selection, before the table is read
HIDING_OPEN = "hiding-open"  # a selection opens: mix, sizes and quotas, with salted digests of the chosen records
DECIDED = "release"  # requests for records were decided: records released, requests waiting or withheld
WITHDRAWN = "withdrawal"  # a waiting request was withdrawn
COLLECTING = "collection"  # a collection opens, new or in a new version: the body contains its public description
REPORTED = "reports"  # a batch of randomized reports was accepted: their number, location, and the counts after it
INVITATION_KEY = "invitation-key"  # a key for the invitations of a collection: the body contains the public part
INVITED = "invitations"  # invitation codes were created: how many, and a digest of the set of their hashes
WITNESSED = "witness"  # the witnesses or the signing key changed: the public key, and keyed hashes of the addresses
ROTATED = "rotation"  # the secret of the service was replaced: the body commits to the new one
EXPIRED = "expiry"  # contents of released records were deleted: the body names them, with hashes of what remains
MOVED = "moved"  # the ledger was copied to another store: nothing can follow here
ARRIVED = "arrival"  # the same, in the other store: it continues from here
CLOSED = "closing"  # a collection accepts no more reports
ACCESS = "access"  # access to the service: tokens created, changed or revoked, links, sign-ins, totals of refusals


@dataclass(frozen=True)
class Entry:
    """An entry as it is stored. All amounts are exact decimals as text; `body` is canonical JSON.

    `request` is the idempotency key, `question` the SHA-256 of the query. `spent` and `ceiling` are the account's totals
    after this entry: they follow from the entries before, and `verify` recomputes them.
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
        """Return the SHA-256 over every field except the hash, in canonical form."""
        values = self.__dict__
        before = map(encode_basestring_ascii, _before(values))
        after = map(encode_basestring_ascii, _after(values))
        return hashlib.sha256((_SEALED % (*before, values["number"], *after)).encode()).hexdigest()

    def content(self) -> Any:
        """Return the body as values."""
        return json.loads(self.body)

    def line(self) -> str:
        """Return the entry as a line of an export."""
        return canonical(self.__dict__)

    def row(self) -> Row:
        """Return the entry as a row of a table: amounts as the nearest floats, the time as a time."""
        amounts = {name: float(text) if (text := getattr(self, name)) else None for name in AMOUNTS}
        return {**self.__dict__, "at": datetime.fromisoformat(self.at), **amounts}


def canonical(value: Any) -> str:
    """Return canonical JSON: sorted keys, no white space, ASCII."""
    return "".join(_encode(value, 0))


def _encoder() -> Callable[[Any, int], Iterable[str]]:
    """Return the encoder of canonical JSON, built once: to build it takes longer than to encode a small value."""
    encoder = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # an interpreter without it
        return lambda value, level: encoder.encode(value)
    options = {"sort_keys": True, "skipkeys": False, "allow_nan": False}
    fields = (None, encoder.default, encode_basestring_ascii, None, ":", ",", *options.values())
    return make(*fields)  # type: ignore[no-any-return]


_encode = _encoder()
# What the hash covers, in canonical form: the texts whose names are before "number" in the alphabet, the number, the others.
_TEXTS = sorted(set(Entry.__dataclass_fields__) - {"number", "hash"})
_BEFORE, _AFTER = [name for name in _TEXTS if name < "number"], [name for name in _TEXTS if name > "number"]
_before, _after = itemgetter(*_BEFORE), itemgetter(*_AFTER)
_MARKS = {**dict.fromkeys(_TEXTS, "%s"), "number": "%d", "format": str(FORMAT)}
_SEALED = "{" + ",".join(f'"{name}":{_MARKS[name]}' for name in sorted(_MARKS)) + "}"


def entry_from(row: Mapping[Any, Any]) -> Entry:
    return Entry(**{name: row[name] for name in Entry.__dataclass_fields__})


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
