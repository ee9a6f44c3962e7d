"""What was collected, as the entries say; and whether the counts stand as they do."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tidegate.accounting.respondent import respondent_loss
from tidegate.ledger.entry import Entry, canonical, sha256
from tidegate.policy.toml import collection_from_dict


def counts_digest(counts: Mapping[str, bytes]) -> str:
    """A name of all counts of a collection, for its entry: of each question, 64-bit little-endian integers."""
    return sha256(canonical({name: hashlib.sha256(packed).hexdigest() for name, packed in counts.items()}))


class IdSum:
    """A digest of a set of report ids that grows with each batch, whatever the order: the table holds no order of arrival.

    Each id is hashed to 64 words of 64 bits, and words are added up. Finding another set with the same sum takes 2^128 steps
    by the generalized birthday attack, whose cost is 2^(2 sqrt(n)) for n bits.

    Reference: D. Wagner, "A generalized birthday problem", CRYPTO 2002; M. Bellare and D. Micciancio, "A new paradigm for
    collision-free hashing", EUROCRYPT 1997.
    """

    WORDS = 64
    AT_ONCE = 4096

    def __init__(self, text: str = "", size: int = 0) -> None:
        """Begin with nothing, or go on from the text of another sum."""
        self.size = size
        given = np.frombuffer(base64.b64decode(text, validate=True), "<u8") if text else np.zeros(self.WORDS, "<u8")
        self._words = given.astype(np.uint64)

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
    """One version of a collection as the replay has it."""

    version: int
    reports: int = 0
    digest: str = ""
    ids: str = ""  # the sum of all report ids; empty where the last batch is of an earlier version of Tidegate
    closed: bool = False
    batches: set[str] = field(default_factory=set)


@dataclass
class Collections:
    """Every version of every collection, by the number of the entry that opened it."""

    versions: dict[int, Standing] = field(default_factory=dict)
    latest: dict[str, int] = field(default_factory=dict)  # account -> the entry that opened its latest version

    def open(self, entry: Entry) -> list[str]:
        """Take an opening; what is wrong with it."""
        body = entry.content()
        read = collection_from_dict(body["description"])
        before = self.versions.get(self.latest.get(entry.account, 0))
        self.versions[entry.number] = Standing(read.version)
        self.latest[entry.account] = entry.number
        checks = (
            ("it describes another collection", entry.account.endswith(f"/{read.name}")),
            ("its fingerprint is not the description's", entry.policy == read.fingerprint),
            ("its version is not a later one", before is None or read.version > before.version),
            ("what one person gives does not follow", body["gives"] == respondent_loss(read).to_dict()),
        )
        return [problem for problem, holds in checks if not holds]

    def take(self, entry: Entry, payload: Any) -> list[str]:
        """Take a batch; what is wrong with it."""
        body = entry.content()
        now = self.versions[self.latest[entry.account]]
        now.reports += body["accepted"]
        kept = body["refused_sha256"]
        checks = (
            ("its number of reports does not add up", body["reports"] == now.reports and body["accepted"] > 0),
            ("its collection was closed before", not now.closed),
            ("its batch was taken before", entry.request not in now.batches),
            ("its time is not the scheduled one", body.get("scheduled", entry.at) == entry.at),
            ("it belongs to another version", body["opened"] == self.latest[entry.account]),
            ("its refusals are gone or were changed", kept == (sha256(payload) if isinstance(payload, str) else "")),
        )
        now.batches.add(entry.request)
        now.digest, now.ids = body["counts"], body.get("ids", "")
        return [problem for problem, holds in checks if not holds]

    def close(self, entry: Entry) -> list[str]:
        """Take a closing; what is wrong with it."""
        now = self.versions[self.latest[entry.account]]
        wrong = [] if entry.content()["reports"] == now.reports and not now.closed else ["it closes what is not open"]
        now.closed = True
        return wrong

    def compare(self, rows: Iterable[Mapping[str, Any]]) -> list[str]:
        """Whether the counts in the store are those that the last entry of each version names."""
        found: dict[int, dict[str, Mapping[str, Any]]] = {}
        for row in rows:
            found.setdefault(row["opened"], {})[row["question"]] = row
        wrong = []
        for opened in {**self.versions, **found}:
            said, counted = self.versions.get(opened), found.get(opened, {})
            if said is None or not _stands(said, counted):
                wrong.append(f"the counts of the collection of entry {opened:,} do not stand as its entries say.")
        return wrong

    def compare_ids(self, sums: Mapping[Any, tuple[int, str]]) -> tuple[list[str], list[str]]:
        """Whether the report ids in the store are those of the batches: problems, and what no entry covers."""
        wrong, open_still = [], []
        for opened in {**self.versions, **sums}:
            said, (size, text) = self.versions.get(opened), sums.get(opened, (0, ""))
            if said is None or size != said.reports or (said.ids and text != said.ids):
                wrong.append(f"the report ids of the collection of entry {opened} do not stand as its entries say.")
            elif said.batches and not said.ids:
                open_still.append(
                    f"the report ids of the collection of entry {opened:,} are counted, but not covered by its entries: they "
                    "are of an earlier version. The next batch covers them."
                )
        return wrong, open_still


def _stands(said: Standing, counted: Mapping[str, Mapping[str, Any]]) -> bool:
    if not said.batches:
        return not counted
    reports = {row["reports"] for row in counted.values()}
    packed = {name: bytes(row["counts"]) for name, row in counted.items()}
    return reports == {said.reports} and counts_digest(packed) == said.digest
