"""The book of a collection. Counts, ids of reports and entry are committed together, or not at all.

book = CollectionBook(ledger, collection, dataset="people")
book.open()                     an entry with the public description and the largest loss of one respondent
book.commit(batch)              one entry for a batch; its segment is written before
book.receive(groups, now=now)   single reports wait, without time and order; several requests share a transaction
book.flush(make, at=slot)       all waiting reports become a batch under its scheduled time
book.counts()                   the counts so far
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, select

from tidegate.accounting.respondent import respondent_loss
from tidegate.errors import KeyReused, PolicyLoosened, StalePolicy, Unsupported
from tidegate.ledger import arrivals, queries
from tidegate.ledger.arrivals import Arrival, Received, State
from tidegate.ledger.chain import add_result, append, ends, moment_text, unchanged
from tidegate.ledger.counts import AT_ONCE, Counted, Overtaken, add_counts, add_ids, counted, known_ids, packed
from tidegate.ledger.entry import CLOSED, COLLECTING, REPORTED, Entry, canonical, entry_from, sha256
from tidegate.ledger.invitations import key_name, known_tokens, settle_tokens, spend_tokens, waiting_tokens
from tidegate.ledger.ledger import Ledger
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
_LAST_BATCH = _BATCHES.order_by(None).order_by(entries.c.number.desc()).limit(1)
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
        self._is_opened = False

    @property
    def is_published(self) -> bool:
        """Whether this version is in the ledger."""
        with self._store.reading() as connection:
            return self._opened(connection) is not None

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
            self.collection.refuse_new(datetime.now(UTC))
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

    def close(self, *, make: Make, user: str = "", at: datetime | None = None) -> Entry:
        """Close this version: count the waiting reports and accept no more. It cannot be opened again.

        `at` is the scheduled time of a poll's close; its last batch and the closing have this time.

        Guarantee:
            No report is received between the last batch and the closing: they are one transaction.
        """
        opened = self.open()
        with self._store.writing() as connection:
            if closing := self._closing(connection):
                return closing
            scheduled = max(moment_text(at), opened.at) if at else ""
            self._flush(connection, opened, make, at=scheduled or moment_text(datetime.now(UTC)))
            end, head = ends(connection, self.account)
            body: dict[str, Any] = {"reports": self._reports(connection, opened), "who": user}
            if scheduled:
                body["scheduled"] = scheduled
            names = {"request": self._closing_name, "question": "", "body": canonical(body), "at": scheduled}
            entry = append(connection, end, kind=CLOSED, amount="0", **names, **unchanged(head or opened))
        self._store.forget_deleted()
        return entry

    def receive(self, groups: Sequence[Sequence[Received]], *, now: datetime) -> list[list[State] | None]:
        """Store the reports of several requests until their batch, in one transaction.

        Returns:
            For each request the state of each report; None, with nothing stored, if the collection is closed. "known": a
            report with this id was received before and counts once. "spent": its invitation was used for another report.
            "full": the poll has received as many reports as it accepts.

        Guarantee:
            The reports are on disk when this returns, each together with its spent invitation.
        """
        self._open_quickly()
        with self._store.writing() as connection:
            opened = self._opened(connection)
            if opened is None or self._closing(connection) or self._is_over(now):
                return [None] * len(groups)
            reports = [report for group in groups for report in group]
            known = self._known(connection, opened, [report.id for report in reports])
            name = self._key_name
            nonces = sorted({report.nonce for report in reports if report.nonce})
            spent = known_tokens(connection, name, nonces) if nonces else set()
            room = self._room(connection, opened)
            fresh: list[Received] = []
            states: list[list[State] | None] = []
            for group in groups:
                decided: list[State] = []
                for report in group:
                    state = _state(report, known, spent, room - len(fresh) if room is not None else 1)
                    decided.append(state)
                    if state == "waits":
                        fresh.append(report)
                        known.add(report.id)
                        spent.add(report.nonce)
                states.append(decided)
            arrivals.add(connection, self._waiting_name, [(report.id, report.body) for report in fresh])
            spend_tokens(connection, name, [report.nonce for report in fresh if report.nonce])
        return states

    def _open_quickly(self) -> None:
        """Open this version unless this object did so before; `receive` reads the ledger again in its transaction."""
        if not self._is_opened:
            self.open()
            self._is_opened = True

    def _is_over(self, now: datetime) -> bool:
        poll = self.collection.poll
        return poll is not None and now >= poll.closes

    def _room(self, connection: Connection, opened: Entry) -> int | None:
        """Return how many more reports an open poll accepts; None if there is no limit."""
        poll = self.collection.poll
        if poll is None or poll.at_most is None:
            return None
        received = arrivals.count(connection, self._waiting_name) + self._reports(connection, opened)
        return poll.at_most - received

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
        for number, batch in enumerate(batches, 1):  # the last one has the invitations of all of them
            self._commit(connection, opened, batch, scheduled=at, is_last=number == len(batches))
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

    def refusal_at(self, now: datetime) -> Callable[[Connection], None]:
        """Return a check for another transaction: it raises `Overtaken` if this version is not open at a moment."""

        def refuse(connection: Connection) -> None:
            if self._opened(connection) is None or self._closing(connection) or self._is_over(now):
                raise Overtaken

        return refuse

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
            if (room := self._room(connection, opened)) is not None and room < len(batch.ids):
                raise Unsupported(
                    f"The poll accepts {max(0, room):,} more reports, but the list has {len(batch.ids):,}.",
                    "Submit fewer. No report was accepted.",
                )
            if arrivals.known(connection, self._waiting_name, sorted(batch.ids)):
                raise Overtaken
            return self._commit(connection, opened, batch)

    def _commit(
        self, connection: Connection, opened: Entry, batch: Batch, *, scheduled: str = "", is_last: bool = False
    ) -> Entry:
        """Write counts, ids and entry of a batch. A scheduled batch has its scheduled time, not the current one."""
        end, head = ends(connection, self.account)
        before = self._reports(connection, opened)
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
            "reports": before + len(batch.ids),
            "segment": batch.segment,
            "sha256": batch.sha256,
            "counts": counts_digest({name: packed(total.counts) for name, total in totals.items()}),
            "ids": ids.text,
        }
        if scheduled:
            body["scheduled"] = scheduled
        tokens = waiting_tokens(connection, self._key_name) if is_last and self._has_invitations else None
        if tokens is not None:
            body["tokens"] = {"count": tokens.size, "sum": tokens.text}
        names = {"request": batch.name, "question": batch.given, "body": canonical(body), "at": scheduled}
        entry = append(connection, end, kind=REPORTED, amount="0", **names, **unchanged(head or opened))
        if tokens is not None:
            settle_tokens(connection, self._key_name, entry.number)
        if payload:
            add_result(connection, entry, payload)
        return entry

    @property
    def reports(self) -> int:
        """The number of counted reports."""
        with self._store.reading() as connection:
            opened = self._opened(connection)
            return self._reports(connection, opened) if opened else 0

    def _reports(self, connection: Connection, opened: Entry) -> int:
        named = {"account": self.account, "opened": opened.number}
        row = connection.execute(_LAST_BATCH, named).mappings().first()
        return int(entry_from(dict(row)).content()["reports"]) if row else 0

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
    def _has_invitations(self) -> bool:
        return self.collection.poll is not None and self.collection.poll.invited

    @cached_property
    def _key_name(self) -> str:
        """The name of the key of this version's invitations."""
        return key_name(self.account, self.collection.poll.invitation_key) if self.collection.poll else ""

    @property
    def _waiting_name(self) -> str:
        return f"{self.account}/{self.collection.version}"

    @property
    def _closing_name(self) -> str:
        return f"closing/{self.collection.version}"

    def _closing(self, connection: Connection) -> Entry | None:
        return queries.find(connection, self.account, CLOSED, self._closing_name)


def _state(report: Received, known: set[bytes], spent: set[bytes], room: int) -> State:
    """Return what becomes of a report."""
    if report.id in known:
        return "known"
    if report.nonce and report.nonce in spent:
        return "spent"
    return "waits" if room > 0 else "full"


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
