"""A replay of collections from the entries, and a comparison with the stored counts and ids."""

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
            ("its fingerprint is not the description's", entry.policy == read.fingerprint),
            ("its version is not a later one", before is None or read.version > before.version),
            ("what one person gives does not follow", body["gives"] == respondent_loss(read).to_dict()),
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
            ("its batch was taken before", entry.request not in now.batches),
            ("its time is not the scheduled one", body.get("scheduled", entry.at) == entry.at),
            ("it belongs to another version", body["opened"] == self.latest[entry.account]),
            (
                "its refusals are gone or were changed",
                refused_hash == (sha256(payload) if isinstance(payload, str) else ""),
            ),
        )
        now.batches.add(entry.request)
        now.digest, now.ids = body["counts"], body.get("ids", "")
        return [problem for problem, holds in checks if not holds]

    def close(self, entry: Entry) -> list[str]:
        """Replay a closing; return its problems."""
        now = self.versions[self.latest[entry.account]]
        wrong = [] if entry.content()["reports"] == now.reports and not now.closed else ["it closes what is not open"]
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
                wrong.append(f"the counts of the collection of entry {opened:,} do not stand as its entries say.")
        return wrong

    def compare_ids(self, sums: Mapping[Any, tuple[int, str]]) -> tuple[list[str], list[str]]:
        """Compare the stored report ids with the batches; return problems, and notes on ids that no entry covers."""
        wrong, uncovered = [], []
        for opened in {**self.versions, **sums}:
            replayed, (size, text) = self.versions.get(opened), sums.get(opened, (0, ""))
            if replayed is None or size != replayed.reports or (replayed.ids and text != replayed.ids):
                wrong.append(f"the report ids of the collection of entry {opened} do not stand as its entries say.")
            elif replayed.batches and not replayed.ids:
                uncovered.append(
                    f"the report ids of the collection of entry {opened:,} are counted, but not covered by its entries: they "
                    "are of an earlier version. The next batch covers them."
                )
        return wrong, uncovered


def _stands(said: Standing, counted: Mapping[str, Mapping[str, Any]]) -> bool:
    if not said.batches:
        return not counted
    reports = {row["reports"] for row in counted.values()}
    packed = {name: bytes(row["counts"]) for name, row in counted.items()}
    return reports == {said.reports} and counts_digest(packed) == said.digest
