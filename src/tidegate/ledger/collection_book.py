"""The book of a collection. Counts, ids of reports and entry are committed together, or not at all.

book = CollectionBook(ledger, collection, dataset="people")
book.open()                     an entry with the public description and the largest loss of one respondent
book.commit(batch)              one entry for a batch; its segment is written before
book.receive(arrivals)          single reports wait, without time and order
book.flush(make, at=slot)       all waiting reports become a batch under its scheduled time
book.counts()                   the counts so far
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, select

from tidegate.accounting.respondent import respondent_loss
from tidegate.errors import KeyReused, PolicyLoosened, StalePolicy
from tidegate.ledger import arrivals, queries
from tidegate.ledger.arrivals import Arrival
from tidegate.ledger.chain import append, ends, moment_text, unchanged
from tidegate.ledger.counts import AT_ONCE, Counted, Overtaken, add_counts, add_ids, counted, known_ids, packed
from tidegate.ledger.entry import CLOSED, COLLECTING, REPORTED, Entry, canonical, entry_from, sha256
from tidegate.ledger.ledger import ADD_RESULT, Ledger
from tidegate.ledger.replay import IdSum, counts_digest
from tidegate.ledger.schema import entries, report_ids
from tidegate.policy.collection import Collection

if TYPE_CHECKING:
    from tidegate.arrays import Ints

_BATCHES = (
    select(entries)
    .where(
        entries.c.account == bindparam("account"),
        entries.c.kind == REPORTED,
        entries.c.number > bindparam("opened"),
    )
    .order_by(entries.c.number)
)
_AT_MOMENT = (
    select(entries.c.number)
    .where(
        entries.c.account == bindparam("account"),
        entries.c.kind == REPORTED,
        entries.c.number > bindparam("opened"),
        entries.c.at == bindparam("moment"),
    )
    .limit(1)
)


class EarlierWaiting(Exception):
    """Reports of the earlier version must be counted before a new version opens."""

    def __init__(self, description: dict[str, Any]) -> None:
        super().__init__("Reports of an earlier version are not counted yet.")
        self.description = description


@dataclass(frozen=True, eq=False)
class Batch:
    """A batch of reports: their location, ids and counts, and the refused reports.

    `given` is the SHA-256 of the ids in their order: the name of a batch identifies one list of reports.
    """

    name: str
    given: str
    segment: str
    sha256: str
    ids: Sequence[bytes]
    adds: Mapping[str, Ints]
    refused: Sequence[tuple[int, str]]  # index in the list, reason


Make = Callable[[list[Arrival]], Sequence[Batch]]  # writes the segments of waiting reports


class CollectionBook:
    """The account of one collection, in the version of the policy."""

    def __init__(self, ledger: Ledger, collection: Collection, *, dataset: str) -> None:
        self._store, self.collection = ledger.store, collection
        self.account = f"{dataset}/{collection.name}"  # no data set has a slash in its name

    def open(self, *, user: str = "") -> Entry:
        """Return the entry that opened this version; write it if the version is new.

        Guarantee:
            The description of a version never changes: the promise to respondents is in the chain before the first
            report is accepted.

        Raises:
            EarlierWaiting: Reports of the earlier version are not counted yet. Nothing was written.
        """
        with self._store.reading() as connection:
            if entry := self._opened(connection):
                return entry
        with self._store.writing() as connection:
            if entry := self._opened(connection):
                return entry
            self.collection.refuse_cuts()
            self._refuse_earlier(connection)
            gives = respondent_loss(self.collection)
            body = {
                "description": self.collection.public_dict(),
                "gives": gives.to_dict(),
                "says": str(gives),
                "who": user,
            }
            return append(
                connection,
                queries.last(connection),
                account=self.account,
                kind=COLLECTING,
                policy=self.collection.fingerprint,
                request=f"version/{self.collection.version}",
                question="",
                amount="0",
                spent="0",
                ceiling="0",
                body=canonical(body),
            )

    def close(self, *, make: Make, user: str = "") -> Entry:
        """Close this version: count the waiting reports and accept no more. It cannot be opened again.

        Guarantee:
            No report is received between the last batch and the closing: they are one transaction.
        """
        opened = self.open()
        with self._store.writing() as connection:
            if closing := self._closing(connection):
                return closing
            self._flush(connection, opened, make, at=moment_text(datetime.now(UTC)))
            end, head = ends(connection, self.account)
            found_counts = counted(connection, opened.number)
            reports = next((counted.reports for counted in found_counts.values()), 0)
            names = {
                "request": self._closing_name,
                "question": "",
                "body": canonical({"reports": reports, "who": user}),
            }
            entry = append(connection, end, kind=CLOSED, amount="0", **names, **unchanged(head or opened))
        self._store.forget_deleted()
        return entry

    def receive(self, received: Sequence[Arrival]) -> set[bytes]:
        """Store reports until their batch; return the ids that were known already, which count once.

        Guarantee:
            The reports are on disk when this returns. Raises `Overtaken`, with nothing written, if the
            collection is closed.
        """
        self.open()
        with self._store.writing() as connection:
            opened = self._opened(connection)
            if opened is None or self._closing(connection):
                raise Overtaken
            known = self._known(connection, opened, [name for name, _ in received])
            arrivals.add(connection, self._waiting_name, [arrival for arrival in received if arrival[0] not in known])
        return known

    def flush(self, make: Make, *, at: datetime, least: int = 1, once: bool = False) -> int:
        """Count all waiting reports under their scheduled time; return their number.

        Nothing happens if fewer than `least` wait, or (`once`) if there is a batch of this time.

        Guarantee:
            One process at a time: segment, counts, ids, entry and the removal of waiting reports happen under the
            ledger's lock. A crash before the commit leaves at most a segment that no entry names.
        """
        opened = self.open()
        with self._store.writing() as connection:
            self._opened(connection)
            scheduled = max(moment_text(at), opened.at)
            named = {"account": self.account, "opened": opened.number, "moment": scheduled}
            if self._closing(connection) or (once and connection.execute(_AT_MOMENT, named).first()):
                return 0
            if arrivals.count(connection, self._waiting_name) < least:
                return 0
            counted = self._flush(connection, opened, make, at=scheduled)
        self._store.forget_deleted()
        return counted

    def _flush(self, connection: Connection, opened: Entry, make: Make, *, at: str) -> int:
        waiting = arrivals.read(connection, self._waiting_name)
        batches = make(waiting) if waiting else ()
        for batch in batches:
            self._commit(connection, opened, batch, scheduled=at)
        arrivals.remove(connection, self._waiting_name, [name for name, _ in waiting])
        return sum(len(batch.ids) for batch in batches)

    @property
    def waiting(self) -> int:
        """The number of waiting reports. For decisions only: show it rounded."""
        with self._store.reading() as connection:
            return arrivals.count(connection, self._waiting_name)

    @property
    def closed(self) -> bool:
        """Whether this version accepts no more reports."""
        with self._store.reading() as connection:
            return self._closing(connection) is not None

    def earlier(self, name: str, digest: str) -> tuple[Entry, list[tuple[int, str]]] | None:
        """Return the entry of an earlier batch, and its refused reports."""
        with self._store.reading() as connection:
            entry = queries.find(connection, self.account, REPORTED, name)
            if entry is None:
                return None
            if entry.question != digest:
                raise KeyReused(
                    "This batch id was used for other reports.", "Use a new id for a new batch, or omit the id."
                )
            refused_hash = entry.content()["refused_sha256"]
            refused = json.loads(queries.payload(connection, entry.number)) if refused_hash else []
        return entry, [(index, reason) for index, reason in refused]

    def known(self, ids: Sequence[bytes]) -> set[bytes]:
        """Return the ids that were counted before, or wait."""
        with self._store.reading() as connection:
            opened = self._opened(connection)
            return self._known(connection, opened, ids) if opened else set()

    def commit(self, batch: Batch) -> Entry:
        """Commit a batch whose segment is stored.

        Guarantee:
            Counts, ids and entry are written together, or none of them; a report id is counted once. Raises
            `Overtaken`, with nothing written, if one of the ids was counted or the collection closed in the meantime.
        """
        opened = self.open()
        with self._store.writing() as connection:
            self._opened(connection)
            if self._closing(connection) or queries.find(connection, self.account, REPORTED, batch.name):
                raise Overtaken
            if arrivals.known(connection, self._waiting_name, sorted(batch.ids)):
                raise Overtaken
            return self._commit(connection, opened, batch)

    def _commit(self, connection: Connection, opened: Entry, batch: Batch, *, scheduled: str = "") -> Entry:
        """Write counts, ids and entry of a batch. A scheduled batch has its scheduled time, not the current one."""
        end, head = ends(connection, self.account)
        ids = _id_sum(connection, head, opened.number)
        add_ids(connection, opened.number, batch.ids)
        ids.add(batch.ids)
        totals = add_counts(connection, opened.number, batch.adds, reports=len(batch.ids))
        payload = canonical(list(map(list, batch.refused))) if batch.refused else ""
        body = {
            "opened": opened.number,
            "accepted": len(batch.ids),
            "refused": dict(Counter(reason for _, reason in batch.refused)),
            "refused_sha256": sha256(payload) if payload else "",
            "reports": next(iter(totals.values())).reports,
            "segment": batch.segment,
            "sha256": batch.sha256,
            "counts": counts_digest({name: packed(total.counts) for name, total in totals.items()}),
            "ids": ids.text,
        }
        if scheduled:
            body["scheduled"] = scheduled
        names = {"request": batch.name, "question": batch.given, "body": canonical(body), "at": scheduled}
        entry = append(connection, end, kind=REPORTED, amount="0", **names, **unchanged(head or opened))
        if payload:
            connection.execute(ADD_RESULT, {"number": entry.number, "payload": payload})
        return entry

    def counts(self) -> dict[str, Counted]:
        """Return the counts of each question so far; empty if there are none."""
        with self._store.reading() as connection:
            opened = self._opened(connection)
            return counted(connection, opened.number) if opened else {}

    def batches(self) -> tuple[list[Entry], dict[str, Counted]]:
        """Return the entries of all batches of this version, and the counts at the same moment."""
        with self._store.reading() as connection:
            opened = self._opened(connection)
            if opened is None:
                return [], {}
            rows = connection.execute(_BATCHES, {"account": self.account, "opened": opened.number}).mappings()
            return [entry_from(dict(row)) for row in rows], counted(connection, opened.number)

    def _opened(self, connection: Connection) -> Entry | None:
        """Return the entry that opened this version; refuse an older version, or one with another description."""
        last = queries.collection(connection, self.account)
        version = last.content()["description"]["version"] if last else 0
        if last is None or version < self.collection.version:
            return None
        if version > self.collection.version:
            raise StalePolicy(
                f'Version {version} of the collection "{self.collection.name}" is open, but this policy has version '
                f"{self.collection.version}.",
                "Use the newer policy. Reports of older versions are no longer accepted.",
            )
        if last.policy != self.collection.fingerprint:
            raise PolicyLoosened(
                f'The collection "{self.collection.name}" was published as version {version} with other questions.',
                f"Write version = {version + 1}, so that every client sees the change, or restore the questions.",
            )
        return last

    def _refuse_earlier(self, connection: Connection) -> None:
        """Refuse to open a version while reports of the earlier one wait."""
        last = queries.collection(connection, self.account)
        description = last.content()["description"] if last else {"version": 0}
        if arrivals.count(connection, f"{self.account}/{description['version']}"):
            raise EarlierWaiting(description)

    def _known(self, connection: Connection, opened: Entry, ids: Sequence[bytes]) -> set[bytes]:
        ordered = sorted(ids)
        counted = known_ids(connection, opened.number, ordered)
        return counted | arrivals.known(connection, self._waiting_name, ordered)

    @property
    def _waiting_name(self) -> str:
        return f"{self.account}/{self.collection.version}"

    @property
    def _closing_name(self) -> str:
        return f"closing/{self.collection.version}"

    def _closing(self, connection: Connection) -> Entry | None:
        return queries.find(connection, self.account, CLOSED, self._closing_name)


def _id_sum(connection: Connection, head: Entry | None, opened: int) -> IdSum:
    """Return the sum of all report ids of this version so far. If the last batch does not have it, compute it once."""
    body = head.content() if head is not None and head.kind == REPORTED else {}
    if "ids" in body:
        return IdSum(body["ids"])
    ids = IdSum()
    rows = connection.execute(select(report_ids.c.id).where(report_ids.c.opened == opened))
    for part in rows.partitions(AT_ONCE):
        ids.add(name for (name,) in part)
    return ids
