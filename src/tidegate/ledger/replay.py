"""A replay of releases and collections from the entries, and a comparison with the stored requests, counts and ids."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidegate.accounting.respondent import respondent_loss
from tidegate.extras import late
from tidegate.ledger import scratch
from tidegate.ledger.entry import Entry, canonical, sha256
from tidegate.policy.toml import collection_from_dict

if TYPE_CHECKING:
    import numpy as np
else:
    np = late("numpy")

EXPIRED = "expired"  # instead of a hash: the content of a released record was deleted

# Collections


def counts_digest(counts: Mapping[str, bytes]) -> str:
    """Return the digest of all counts of a collection for its entry: 64-bit little-endian integers per question."""
    return sha256(canonical({name: hashlib.sha256(packed).hexdigest() for name, packed in counts.items()}))


class IdSum:
    """A digest of a growing set of report ids that does not depend on their order: the table has no order of arrival.

    Each id is hashed to 64 words of 64 bits, and words are added up. Finding another set with the same sum takes 2^128 steps
    by the generalized birthday attack, whose cost is 2^(2 sqrt(n)) for n bits.

    Reference: D. Wagner, "A generalized birthday problem", CRYPTO 2002; M. Bellare and D. Micciancio, "A new paradigm for
    collision-free hashing", EUROCRYPT 1997.
    """

    WORDS = 64
    AT_ONCE = 4096

    def __init__(self, text: str = "", size: int = 0) -> None:
        """Start with the empty set, or continue from the text of another sum."""
        self.size = size
        words = np.frombuffer(base64.b64decode(text, validate=True), "<u8") if text else np.zeros(self.WORDS, "<u8")
        self._words = words.astype(np.uint64)

    def add(self, ids: Iterable[bytes]) -> None:
        """Add ids that are not in the set yet."""
        names = list(ids)
        for start in range(0, len(names), self.AT_ONCE):
            hashed = b"".join(
                hashlib.shake_128(b"tidegate report id\0" + bytes(name)).digest(8 * self.WORDS)
                for name in names[start : start + self.AT_ONCE]
            )
            self._words += np.frombuffer(hashed, "<u8").reshape(-1, self.WORDS).sum(axis=0, dtype=np.uint64)
        self.size += len(names)

    @property
    def text(self) -> str:
        """The sum, for an entry."""
        return base64.b64encode(self._words.astype("<u8").tobytes()).decode()


@dataclass
class Standing:
    """The state of one version of a collection in the replay."""

    version: int
    reports: int = 0
    digest: str = ""
    ids: str = ""  # the sum of all report ids; empty if the last batch is of an earlier version of Tidegate
    closed: bool = False
    has_batches: bool = False


@dataclass
class Collections:
    """Every version of every collection, by the number of the entry that opened it."""

    versions: dict[int, Standing] = field(default_factory=dict)
    latest: dict[str, int] = field(default_factory=dict)  # account -> the entry that opened its latest version
    batches: scratch.Mapping = field(default_factory=scratch.Mapping)  # names, after the opening entry of their version

    def open(self, entry: Entry) -> list[str]:
        """Replay an opening; return its problems."""
        body = entry.content()
        read = collection_from_dict(body["description"])
        before = self.versions.get(self.latest.get(entry.account, 0))
        self.versions[entry.number] = Standing(read.version)
        self.latest[entry.account] = entry.number
        checks = (
            ("it describes another collection", entry.account.endswith(f"/{read.name}")),
            ("its fingerprint differs from the description's", entry.policy == read.fingerprint),
            ("its version is not a later one", before is None or read.version > before.version),
            (
                "the loss of one person does not follow from its description",
                body["gives"] == respondent_loss(read).to_dict(),
            ),
        )
        return [problem for problem, holds in checks if not holds]

    def take(self, entry: Entry, payload: Any) -> list[str]:
        """Replay a batch; return its problems."""
        body = entry.content()
        now = self.versions[self.latest[entry.account]]
        now.reports += body["accepted"]
        refused_hash, name = body["refused_sha256"], f"{self.latest[entry.account]}/{entry.request}"
        checks = (
            ("its number of reports does not add up", body["reports"] == now.reports and body["accepted"] > 0),
            ("its collection was closed before", not now.closed),
            ("its batch was counted before", name not in self.batches),
            ("its time is not the scheduled one", body.get("scheduled", entry.at) == entry.at),
            ("it belongs to another version", body["opened"] == self.latest[entry.account]),
            (
                "its refused reports are missing or were changed",
                refused_hash == (sha256(payload) if isinstance(payload, str) else ""),
            ),
        )
        self.batches[name], now.has_batches = 1, True
        now.digest, now.ids = body["counts"], body.get("ids", "")
        return [problem for problem, holds in checks if not holds]

    def close(self, entry: Entry) -> list[str]:
        """Replay a closing; return its problems."""
        now = self.versions[self.latest[entry.account]]
        wrong = (
            []
            if entry.content()["reports"] == now.reports and not now.closed
            else ["it closes a collection that is not open"]
        )
        now.closed = True
        return wrong

    def compare(self, rows: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return a problem for each version whose stored counts differ from its last entry."""
        rows_by_version: dict[int, dict[str, Mapping[str, Any]]] = {}
        for row in rows:
            rows_by_version.setdefault(row["opened"], {})[row["question"]] = row
        wrong = []
        for opened in {**self.versions, **rows_by_version}:
            replayed, counted = self.versions.get(opened), rows_by_version.get(opened, {})
            if replayed is None or not _stands(replayed, counted):
                wrong.append(f"The counts of the collection of entry {opened:,} differ from its entries.")
        return wrong

    def compare_ids(self, sums: Mapping[Any, tuple[int, str]]) -> tuple[list[str], list[str]]:
        """Compare the stored report ids with the batches; return problems, and notes on ids that no entry covers."""
        wrong, uncovered = [], []
        for opened in {**self.versions, **sums}:
            replayed, (size, text) = self.versions.get(opened), sums.get(opened, (0, ""))
            if replayed is None or size != replayed.reports or (replayed.ids and text != replayed.ids):
                wrong.append(f"The report ids of the collection of entry {opened} differ from its entries.")
            elif replayed.has_batches and not replayed.ids:
                uncovered.append(
                    f"The report ids of the collection of entry {opened:,} are counted, but not covered by its entries: they "
                    "are from an earlier version. The next batch covers them."
                )
        return wrong, uncovered


def _stands(said: Standing, counted: Mapping[str, Mapping[str, Any]]) -> bool:
    if not said.has_batches:
        return not counted
    reports = {row["reports"] for row in counted.values()}
    packed = {name: bytes(row["counts"]) for name, row in counted.items()}
    return reports == {said.reports} and counts_digest(packed) == said.digest


# Releases


@dataclass
class Releases:
    """The requests of one account in the replay."""

    # number -> state, key, hash, entry, position, hash while it was waiting
    requests: scratch.Mapping = field(default_factory=scratch.Mapping)
    live: scratch.Mapping = field(default_factory=scratch.Mapping)  # keys of all but withdrawn requests
    last: int = 0
    released: int = 0

    def decide(self, body: Any, entry: int) -> list[str]:
        """Replay a batch of decisions; return its problems."""
        wrong = []
        for number, key, said in body["released"]:
            state, known, hidden, _, position, waited = self.requests.get(str(number), ("", "", "", 0, None, ""))
            new = not state and number > self.last and key not in self.live
            if not new and (state, known) != ("waiting", key):
                wrong.append(
                    f"request {number:,} is released, but it was released or withdrawn before, or its key belongs to another request"
                )
            if position is None:
                self.released += 1
            waited = hidden if state == "waiting" else waited
            self.requests[str(number)] = ["released", key, said, entry, position or self.released, waited]
            self.live[key] = 1
        withheld = body.get("withheld", ())
        for number, key, said in body["waiting"]:
            wrong += self._defer(number, key, "deferred")
            self.requests[str(number)] = ["waiting", key, said, entry, None, ""]
        for number, key in withheld:
            wrong += self._defer(number, key, "withheld")
            self.requests[str(number)] = ["withheld", key, "", entry, None, ""]
        self.last = max([self.last, *(number for number, *_ in (*body["released"], *body["waiting"], *withheld))])
        return wrong

    def _defer(self, number: int, key: str, state: str) -> list[str]:
        known = number <= self.last or str(number) in self.requests or key in self.live
        self.live[key] = 1
        return [f"request {number:,} is {state}, but was decided before"] if known else []

    def withdraw(self, body: Any, entry: int) -> list[str]:
        """Replay a withdrawal; return its problems."""
        number, key = body["withdrawn"]
        state, known, *_ = self.requests.get(str(number), ("", ""))
        wrong = [] if (state, known) == ("waiting", key) else [f"request {number:,} is withdrawn, but was not waiting"]
        self.requests[str(number)] = ["withdrawn", key, body.get("remains", ""), entry, None, ""]
        self.live.pop(key)
        return wrong

    def expire(self, body: Any) -> list[str]:
        """Replay the deletion of contents; return its problems."""
        wrong = []
        for number, hashed in body["records"]:
            state, key, _, entry, position, _ = self.requests.get(str(number), ("", "", "", 0, None, ""))
            if state != "released":
                wrong.append(f"the content of request {number:,} is deleted, but it was not released")
            self.requests[str(number)] = ["released", key, hashed, entry, position, EXPIRED]
        return wrong


def compare(releases: Mapping[str, Releases], requests: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a problem for each request that differs from the entries: its state, its entry, or its record."""
    different: list[tuple[str, Any]] = []
    sizes, before = dict.fromkeys(releases, 0), ("", 0)
    for row in requests:
        account, number = row["account"], row["number"]
        replayed = releases.get(account)
        expected = replayed.requests.get(str(number)) if replayed and type(number) is int else None
        if expected is None or (account, number) == before or _standing(row, expected) != (*expected[:5], ""):
            different.append((account, number))
        sizes[account], before = sizes.get(account, 0) + (expected is not None), (account, number)
    for account, replayed in releases.items():
        if sizes[account] != len(replayed.requests):
            stored = {str(row["number"]) for row in requests if row["account"] == account}
            different += [(account, number) for number, _ in replayed.requests.items() if number not in stored]
    return [f"Request {number} of {account} differs from its entries." for account, number in different]


def digest(row: Mapping[str, Any]) -> str:
    """Return the hash of a record and its cells. For a waiting request it includes a nonce: records are easy to guess."""
    hidden = [row["nonce"]] if row["state"] == "waiting" else []
    return sha256(canonical([*hidden, row["cells"], row["record"]]))[:32]


def remains(row: Mapping[str, Any]) -> str:
    """Return the hash of the rest of a withdrawn request: its cells, hidden by the nonce. Its record is deleted."""
    return sha256(canonical([row["nonce"], row["cells"]]))[:32]


def _standing(row: Mapping[str, Any], expected: Sequence[Any]) -> tuple[Any, ...]:
    """Return a request as stored; the last field names another problem."""
    state, covered, waited = row["state"], expected[2], expected[5]
    if not all(isinstance(row[name], str) for name in ("key", "cells", "record", "nonce")):
        return "a field has the wrong type", row["number"]
    if state == "withdrawn":
        hashed, odd = remains(row) if covered else "", row["record"] and "a record"
    elif state == "withheld":  # nothing of its record is stored
        hashed, odd = "", row["record"] + row["cells"] + row["nonce"]
    elif waited == EXPIRED:
        hashed, odd = remains(row), row["record"] and "a record"
    else:
        hashed = digest(row)
        odd = "another nonce" if waited and waited != digest({**row, "state": "waiting"}) else ""
    return state, row["key"], hashed, row["entry"], row["place"], odd
