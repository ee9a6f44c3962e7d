"""A replay of releases and collections from the entries, and a comparison with the stored requests, counts and ids."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidegate.accounting.respondent import respondent_loss
from tidegate.extras import late
from tidegate.ledger.entry import Entry, canonical, sha256
from tidegate.policy.toml import collection_from_dict

if TYPE_CHECKING:
    import numpy as np
else:
    np = late("numpy")

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
    batches: set[str] = field(default_factory=set)


@dataclass
class Collections:
    """Every version of every collection, by the number of the entry that opened it."""

    versions: dict[int, Standing] = field(default_factory=dict)
    latest: dict[str, int] = field(default_factory=dict)  # account -> the entry that opened its latest version

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
        refused_hash = body["refused_sha256"]
        checks = (
            ("its number of reports does not add up", body["reports"] == now.reports and body["accepted"] > 0),
            ("its collection was closed before", not now.closed),
            ("its batch was counted before", entry.request not in now.batches),
            ("its time is not the scheduled one", body.get("scheduled", entry.at) == entry.at),
            ("it belongs to another version", body["opened"] == self.latest[entry.account]),
            (
                "its refused reports are missing or were changed",
                refused_hash == (sha256(payload) if isinstance(payload, str) else ""),
            ),
        )
        now.batches.add(entry.request)
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
            elif replayed.batches and not replayed.ids:
                uncovered.append(
                    f"The report ids of the collection of entry {opened:,} are counted, but not covered by its entries: they "
                    "are from an earlier version. The next batch covers them."
                )
        return wrong, uncovered


def _stands(said: Standing, counted: Mapping[str, Mapping[str, Any]]) -> bool:
    if not said.batches:
        return not counted
    reports = {row["reports"] for row in counted.values()}
    packed = {name: bytes(row["counts"]) for name, row in counted.items()}
    return reports == {said.reports} and counts_digest(packed) == said.digest


# Releases


@dataclass
class Releases:
    """The requests of one account in the replay."""

    left: dict[int, tuple[str, str, int]] = field(
        default_factory=dict
    )  # number -> key, hash of the record, entry; in order
    waiting: dict[int, tuple[str, str, int]] = field(default_factory=dict)  # number -> key, hash, entry
    withdrawn: dict[int, tuple[str, str, int]] = field(
        default_factory=dict
    )  # number -> key, hash of what remains, entry
    withheld: dict[int, tuple[str, str, int]] = field(default_factory=dict)  # number -> key, nothing, entry
    waited: dict[int, str] = field(default_factory=dict)  # number -> hash of a released record while it was waiting
    live: set[str] = field(default_factory=set)  # keys of released records and waiting requests
    last: int = 0

    def decide(self, body: Any, entry: int) -> list[str]:
        """Replay a batch of decisions; return its problems."""
        wrong = []
        for number, key, said in body["released"]:
            waited, hidden, _ = self.waiting.pop(number, (None, "", 0))
            new = waited is None and number > self.last and number not in self.left and key not in self.live
            if not new and waited != key:
                wrong.append(
                    f"request {number:,} is released, but it was released or withdrawn before, or its key belongs to another request"
                )
            if hidden:
                self.waited[number] = hidden
            self.left[number] = key, said, entry
            self.live.add(key)
        for number, key, said in body["waiting"]:
            if number <= self.last or number in self.left or number in self.waiting or key in self.live:
                wrong.append(f"request {number:,} is deferred, but was decided before")
            self.waiting[number] = key, said, entry
            self.live.add(key)
        withheld = body.get("withheld", ())
        for number, key in withheld:
            if number <= self.last or number in self.left or key in self.live:
                wrong.append(f"request {number:,} is withheld, but was decided before")
            self.withheld[number] = key, "", entry
            self.live.add(key)
        self.last = max([self.last, *(number for number, *_ in (*body["released"], *body["waiting"], *withheld))])
        return wrong

    def withdraw(self, body: Any, entry: int) -> list[str]:
        """Replay a withdrawal; return its problems."""
        number, key = body["withdrawn"]
        wrong = (
            []
            if self.waiting.pop(number, (None, "", 0))[0] == key
            else [f"request {number:,} is withdrawn, but was not waiting"]
        )
        self.withdrawn[number] = key, body.get("remains", ""), entry
        self.live.discard(key)
        return wrong


def compare(releases: Mapping[str, Releases], requests: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a problem for each request that differs from the entries: its state, its entry, or its record."""
    rows_by_account: dict[str, dict[int, Mapping[str, Any]]] = {}
    for row in requests:
        rows_by_account.setdefault(row["account"], {})[row["number"]] = row
    wrong = []
    for account in {**releases, **rows_by_account}:
        replayed, rows = releases.get(account, Releases()), rows_by_account.get(account, {})
        stored = {number: _standing(row, replayed) for number, row in rows.items()}
        expected: dict[int, tuple[Any, ...]] = {
            **{n: ("released", *fields, position, "") for position, (n, fields) in enumerate(replayed.left.items(), 1)},
            **{n: ("waiting", *fields, None, "") for n, fields in replayed.waiting.items()},
            **{n: ("withdrawn", *fields, None, "") for n, fields in replayed.withdrawn.items()},
            **{n: ("withheld", *fields, None, "") for n, fields in replayed.withheld.items()},
        }
        different = [n for n in {**expected, **stored} if expected.get(n) != stored.get(n)]
        wrong += [f"Request {n} of {account} differs from its entries." for n in sorted(different, key=str)]
    return wrong


def digest(row: Mapping[str, Any]) -> str:
    """Return the hash of a record and its cells. For a waiting request it includes a nonce: records are easy to guess."""
    hidden = [row["nonce"]] if row["state"] == "waiting" else []
    return sha256(canonical([*hidden, row["cells"], row["record"]]))[:32]


def remains(row: Mapping[str, Any]) -> str:
    """Return the hash of the rest of a withdrawn request: its cells, hidden by the nonce. Its record is deleted."""
    return sha256(canonical([row["nonce"], row["cells"]]))[:32]


def _standing(row: Mapping[str, Any], replayed: Releases) -> tuple[Any, ...]:
    """Return a request as stored; the last field names another problem."""
    number, state = row["number"], row["state"]
    if not all(isinstance(row[name], str) for name in ("key", "cells", "record", "nonce")):
        return "a field has the wrong type", number
    if state == "withdrawn":
        covered = replayed.withdrawn.get(number, ("", "", 0))[1]
        hashed, odd = remains(row) if covered else "", row["record"] and "a record"
    elif state == "withheld":  # nothing of its record is stored
        hashed, odd = "", row["record"] + row["cells"] + row["nonce"]
    else:
        hashed, hidden = digest(row), replayed.waited.get(number)
        odd = "another nonce" if hidden and hidden != digest({**row, "state": "waiting"}) else ""
    return state, row["key"], hashed, row["entry"], row["place"], odd
