"""What was collected, as the entries say; and whether the counts stand as they do."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.accounting.respondent import given_by_one
from tidegate.ledger.entry import Entry, canonical, sha256
from tidegate.policy.toml import collection_from_dict


def counts_digest(counts: Mapping[str, bytes]) -> str:
    """A name of all counts of a collection, for its entry: of each question, 64-bit little-endian integers."""
    return sha256(canonical({name: hashlib.sha256(packed).hexdigest() for name, packed in counts.items()}))


@dataclass
class Standing:
    """One version of a collection as the replay has it."""

    version: int
    reports: int = 0
    digest: str = ""
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
            ("what one person gives does not follow", body["gives"] == given_by_one(read).to_dict()),
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
        now.digest = body["counts"]
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


def _stands(said: Standing, counted: Mapping[str, Mapping[str, Any]]) -> bool:
    if not said.batches:
        return not counted
    reports = {row["reports"] for row in counted.values()}
    packed = {name: bytes(row["counts"]) for name, row in counted.items()}
    return reports == {said.reports} and counts_digest(packed) == said.digest
