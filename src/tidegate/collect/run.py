"""The processing of a batch of reports: check each, write the segment, commit counts, ids and entry.

Reports arrive in two ways. `submit` accepts a list that was gathered elsewhere as one batch, now. `receive` accepts single
reports: they wait, without time and order, until `flush` or `close` turns all of them into a batch under its scheduled time.
Requests that arrive together share one transaction. A poll closes at its time, whoever looks first.

Only committed reports count. A crash before the commit leaves at most a segment that no entry names, which is never
counted. The same batch can then be submitted again; a batch that was already accepted returns the same result again.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.collect.invitations import (
    FULL,
    SPENT,
    UNSIGNED,
    code_hash,
    from_text,
    key_bytes,
    new_code,
    read_code,
    to_text,
)
from tidegate.collect.request import make_report, refusal
from tidegate.collect.validation import REPLAYED, Checked, check, layout_of
from tidegate.collect.verdicts import SubmittedReports
from tidegate.errors import NotAllowed, StalePolicy, Unsupported
from tidegate.frames import Row, Rows
from tidegate.ledger import Ledger
from tidegate.ledger.arrivals import Arrival, Received, State
from tidegate.ledger.chain import moment_text
from tidegate.ledger.collection_book import Batch, CollectionBook, EarlierWaiting
from tidegate.ledger.counts import Overtaken
from tidegate.ledger.entry import canonical
from tidegate.ledger.group_commit import GroupCommit
from tidegate.ledger.invitations import CodeRefused, InvitationBook
from tidegate.operators import Operator
from tidegate.operators.exact_draws import SystemBytes
from tidegate.policy import Policy
from tidegate.policy.collection import Collection, operator_for
from tidegate.policy.toml import collection_from_dict
from tidegate.tables.segments import Segments

LARGEST_BATCH, LONGEST_NAME = 1_000_000, 200
FEW = 32  # reports that are checked one by one, which is faster for a few
MOST_CODES = 100_000  # created at once
REASONS: dict[State, str | None] = {"waits": None, "known": REPLAYED, "spent": SPENT, "full": FULL}


@dataclass(frozen=True)
class Submitted(Rows):
    """The result of a batch: `reasons` has None for each accepted report.

    `again`: the same batch was accepted before, and nothing was done now. `entry` is the hash of its entry; empty if no
    report was accepted.
    """

    batch: str
    reasons: tuple[str | None, ...]
    entry: str = ""
    again: bool = False

    @property
    def accepted(self) -> int:
        return self.reasons.count(None)

    @property
    def refused(self) -> dict[str, int]:
        """The number of refused reports by reason, the most frequent first."""
        return dict(Counter(reason for reason in self.reasons if reason is not None).most_common())

    def __str__(self) -> str:
        refused = sum(self.refused.values())
        summary = f"{self.accepted:,} reports accepted{' before' if self.again else ''}; {refused:,} refused."
        return "\n".join([summary, *(f"  {number:,}: {reason}" for reason, number in self.refused.items())])

    def rows(self) -> list[Row]:
        """Return one dictionary per report: whether it was accepted, and otherwise why not."""
        return [{"report": n, "accepted": why is None, "reason": why} for n, why in enumerate(self.reasons)]

    def _kinds(self) -> dict[str, type]:
        return {"report": int, "accepted": bool, "reason": str}

    def response(self) -> SubmittedReports:
        """Return the typed response, as the service sends it."""
        return SubmittedReports.of(self.reasons, batch=self.batch, entry=self.entry, again=self.again)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return self.response().model_dump(mode="json")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy | None = None) -> Submitted:
        """Return what `to_dict` wrote; raises pydantic's ValidationError for anything else."""
        response = SubmittedReports.model_validate(data)
        return cls(response.batch, tuple(response.all_reasons()), response.entry, response.again)


@dataclass(frozen=True, eq=False)
class Server:
    """The receiving side of one collection."""

    collection: Collection
    operators: Mapping[str, Operator]
    book: CollectionBook
    segments: Segments

    def submit(self, reports: Iterable[Any], *, batch: str = "") -> Submitted:
        """Accept the valid reports of a batch and refuse the others, each with its reason.

        Raises:
            Unsupported: The collection is an invited poll. Its reports are received, not submitted: an invitation is spent in
                one way only, and a list in the ledger with the time at which it was submitted would undo the shuffle.
        """
        if self._key:
            raise Unsupported(
                f'Reports of the invited poll "{self.collection.name}" cannot be submitted as a list.',
                "Send them one by one: survey.receive([report]). No report was accepted.",
            )
        submitted = _listed(reports, batch)
        digest = _digest(submitted)
        name = batch or digest
        while True:
            if earlier := self._earlier(name, digest, len(submitted)):
                return earlier
            checked = self._check(submitted)
            if not checked.ids:  # all refused, perhaps as replays because another process accepted this batch meanwhile
                return self._earlier(name, digest, len(submitted)) or Submitted(name, tuple(checked.reasons))
            try:  # only a commit of another process can interfere: each attempt has fewer reports left to accept
                return self._commit(name, digest, checked)
            except Overtaken:
                continue

    def receive(self, reports: Iterable[Any]) -> Submitted:
        """Let the valid reports wait for their batch and refuse the others, each with its reason.

        Guarantee:
            A received report is on disk and counts once. Neither its time nor its order is recorded. If the poll is invited,
            its token is spent in the same transaction, and another report with that token is refused.
        """
        submitted = _listed(reports)
        reasons = self._reasons(submitted)
        valid = [index for index, reason in enumerate(reasons) if reason is None]
        states = self._store([self._received(submitted[index]) for index in valid])
        if states is None:
            return Submitted("", tuple(check(submitted, self._closed_collection, self.operators).reasons))
        for index, state in zip(valid, states, strict=True):
            reasons[index] = REASONS[state]
        return Submitted("", tuple(reasons), again=bool(reasons) and set(reasons) == {REPLAYED})

    def _store(self, received: list[Received]) -> list[State] | None:
        """Store reports together with those of other threads; None if the collection is closed."""
        if not received:
            return None if self._is_closed() else []
        return self._commits.submit(received)

    @cached_property
    def _commits(self) -> GroupCommit[list[Received], list[State] | None]:
        return GroupCommit(lambda groups: self.book.receive(groups, now=current_time()))

    def _reasons(self, reports: list[Any]) -> list[str | None]:
        """Return why each report is refused, whether or not it was received before."""
        collection = self._open_collection
        if len(reports) <= FEW:
            reasons = [refusal(report, collection, self.operators) for report in reports]
        else:
            reasons = check(reports, collection, self.operators).reasons
        if self._key:
            pairs = zip(reports, reasons, strict=True)
            return [self._unsigned(report) if reason is None else reason for report, reason in pairs]
        return reasons

    def _unsigned(self, report: Mapping[str, Any]) -> str | None:
        from tidegate.collect.invitation_keys import verify  # here: only servers of invited polls need it

        token = report["invitation"]
        is_signed = verify(self._key, bytes.fromhex(token["nonce"]), from_text(token["signature"]))
        return None if is_signed else UNSIGNED

    def _received(self, report: Mapping[str, Any]) -> Received:
        nonce = hashlib.sha256(bytes.fromhex(report["invitation"]["nonce"])).digest() if self._key else b""
        return Received(bytes.fromhex(report["id"]), canonical(report["answers"]), nonce)

    @cached_property
    def _key(self) -> bytes:
        """The public key of the invitations; empty if the collection needs none."""
        poll = self.collection.poll
        return key_bytes(poll.invitation_key) if poll is not None and poll.invited else b""

    @cached_property
    def _open_collection(self) -> Collection:
        return replace(self.collection, closed=False)

    @cached_property
    def _closed_collection(self) -> Collection:
        return replace(self.collection, closed=True)

    def _is_closed(self) -> bool:
        poll = self.collection.poll
        return self.collection.closed or (poll is not None and current_time() >= poll.closes) or self.book.closed

    # Invitations

    def invite(self, invitations: InvitationBook, count: int, *, user: str = "") -> list[str]:
        """Create single-use codes; return them. Only their hashes are stored, so this is the only time they are known.

        Raises:
            Unsupported: The collection has no invitations, is closed, or its key is not in this ledger.
        """
        key = self._invitation_key()
        if not 1 <= count <= MOST_CODES:
            raise Unsupported(f"The number of invitations must be from 1 to {MOST_CODES:,}.", "Create them in parts.")
        self._private_key(invitations, key)  # codes without a key could not be used
        self._refuse_closed()
        self.book.open()
        codes = [new_code() for _ in range(count)]
        invitations.add(key, [code_hash(read_code(code)) for code in codes], user=user)
        return codes

    def sign(self, invitations: InvitationBook, code: str, blinded: str) -> str:
        """Return the blind signature for a code, and mark the code as used for this blinded message.

        The same request again returns the same signature.

        Raises:
            NotAllowed: The code does not exist, or was used for another blinded message.
            Unsupported: The collection has no invitations, or is closed.
        """
        key = self._invitation_key()
        self._refuse_closed()
        private, message, hashed = self._private_key(invitations, key), from_text(blinded), _hash_of(code)
        if invitations.find(key, hashed) is None:
            raise _unknown_code()
        signature = private.sign(message)  # outside the transaction: it takes some milliseconds
        is_used = False
        try:
            named = {"blinded": message, "signature": signature}
            return to_text(invitations.use(key, hashed, **named, refuse=self.book.refusal_at(current_time())))
        except CodeRefused as refused:
            is_used = refused.is_used
        except Overtaken:
            raise self._closed() from None
        raise _used_code() if is_used else _unknown_code()

    def _private_key(self, invitations: InvitationBook, key: str) -> Any:
        from tidegate.collect.invitation_keys import InvitationKey  # here: only servers of invited polls need it

        if key not in self._private_keys:
            value = invitations.private_key(key)
            if value is None:
                raise Unsupported(
                    "The key of this poll's invitations was not created in this ledger.",
                    "Use the ledger with which the poll was opened.",
                )
            self._private_keys[key] = InvitationKey.from_text(value)
        return self._private_keys[key]

    @cached_property
    def _private_keys(self) -> dict[str, Any]:
        return {}

    def _invitation_key(self) -> str:
        if self.collection.poll is None or not self.collection.poll.invited:
            raise Unsupported(
                f'"{self.collection.name}" has no invitations: anyone can answer it.',
                'Only a poll with access = "invited" has them.',
            )
        return self.collection.poll.invitation_key

    def _refuse_closed(self) -> None:
        if self._is_closed():
            raise self._closed()

    def _closed(self) -> Unsupported:
        return Unsupported(
            f'The collection "{self.collection.name}" is closed.', "It accepts no more reports.", reason="closed"
        )

    # Batches

    def flush(self, *, at: datetime, least: int = 1, once: bool = False) -> int:
        """Turn all waiting reports into a batch; return how many were counted. See `CollectionBook.flush`."""
        return self.book.flush(self._batches, at=at, least=least, once=once)

    def flush_slot(self, now: datetime) -> int:
        """Turn all waiting reports into the batch of the last scheduled time; return how many were counted."""
        name, rule = self.collection.name, self.collection.batches
        slot = rule.slot(now)
        if slot is None:
            raise Unsupported(
                f'The reports of "{name}" are counted when it closes (`batch = "close"`).',
                "Close the collection: write `closed = true` into the policy.",
            )
        if counted := self.flush(at=slot, least=rule.at_least):
            return counted
        raise Unsupported(
            f'Fewer than {rule.at_least:,} reports of "{name}" are waiting, the minimum of a batch.',
            "Wait for more, or close the collection: write `closed = true` into the policy.",
        )

    def flush_if_due(self, now: datetime) -> int:
        """Turn all waiting reports into a batch if a scheduled time has passed that has none; return how many.

        A poll whose time has come is closed, under that time.
        """
        poll = self.collection.poll
        if poll is not None and now >= poll.closes:
            return self._close_on_time(poll.closes)
        rule = self.collection.batches
        slot = rule.slot(now)
        if slot is None or moment_text(slot) <= self.book.open().at:
            return 0
        return self.flush(at=slot, least=rule.at_least, once=True)

    def verify(self, engine: str) -> list[str]:
        """Compare the counts with the segments that the entries name; return a text for each difference."""
        entries, counted = self.book.batches()
        bodies = [entry.content() for entry in entries]
        changed = [body["segment"] for body in bodies if self.segments.digest(body["segment"]) != body["sha256"]]
        if changed:
            return [f"The segment {name} is missing or differs from its entry." for name in changed]
        again = self.segments.count([body["segment"] for body in bodies], engine=engine)
        return [
            f'The counts of "{question}" differ from those of its segments.'
            for question, counts in counted.items()
            if not np.array_equal(again[question], counts.counts)
        ]

    def close(self, *, user: str = "") -> None:
        """Count the waiting reports and accept no more."""
        self.book.close(make=self._batches, user=user)

    def _close_on_time(self, at: datetime) -> int:
        """Close a poll under its scheduled time, once; return how many reports were counted."""
        if self.book.closed:
            return 0
        before = self.book.reports
        return int(self.book.close(make=self._batches, at=at).content()["reports"]) - before

    def _batches(self, waiting: list[Arrival]) -> list[Batch]:
        """Write the segments of waiting reports, in an order that secure bits decide and under random names."""
        shuffled = _shuffle(waiting)
        parts = (shuffled[start : start + LARGEST_BATCH] for start in range(0, len(shuffled), LARGEST_BATCH))
        return [self._batch(SystemBytes().take(16).hex(), "", self._recheck(part)) for part in parts]

    def _recheck(self, waiting: list[Arrival]) -> Checked:
        """Check waiting reports again; one that was changed since is refused and recorded in the entry."""
        collection = replace(
            self.collection, closed=False, poll=None
        )  # its invitation was checked when it was received
        reports = [{**make_report(collection, {}, name.hex()), "answers": _answers(body)} for name, body in waiting]
        return check(reports, collection, self.operators)

    def _earlier(self, name: str, digest: str, count: int) -> Submitted | None:
        """Return the result of this batch if it was accepted before."""
        if (earlier := self.book.earlier(name, digest)) is None:
            return None
        entry, refused = earlier
        return Submitted(name, _reasons(count, refused), entry.hash, again=True)

    def _check(self, reports: list[Any]) -> Checked:
        collection = self._closed_collection if self._is_closed() else self._open_collection
        checked = check(reports, collection, self.operators)
        return checked.without(self.book.known(checked.ids))

    def _commit(self, name: str, digest: str, checked: Checked) -> Submitted:
        return Submitted(name, tuple(checked.reasons), self.book.commit(self._batch(name, digest, checked)).hash)

    def _batch(self, name: str, digest: str, checked: Checked) -> Batch:
        """Write the segment of a batch."""
        columns = checked.columns(self.segments.columns)
        segment = self.segments.write(columns, batch=name)
        adds = {question: column.count(columns[question]) for question, column in self.segments.columns.items()}
        return Batch(name, digest, segment.name, segment.sha256, checked.ids, adds, checked.refused())


def current_time() -> datetime:
    """Return the time by which polls close."""
    return datetime.now(UTC)


def open_collection(
    ledger: Ledger, collection: Collection, *, dataset: str, location: str | Path, user: str = ""
) -> None:
    """Open a version of a collection in the ledger. Waiting reports of the previous version are counted first."""
    book = CollectionBook(ledger, collection, dataset=dataset)
    while True:
        try:
            book.open(user=user)
            return
        except EarlierWaiting as earlier:
            before = collection_from_dict(earlier.description)
        operators = operators_of(before)
        segments = segments_of(before, operators, dataset=dataset, location=location)
        server = Server(before, operators, CollectionBook(ledger, before, dataset=dataset), segments)
        with suppress(StalePolicy):  # another process was faster; `open` decides what follows
            server.flush(at=datetime.now(UTC))


def operators_of(collection: Collection) -> dict[str, Operator]:
    """Build the operator of each question."""
    return {name: operator_for(question) for name, question in collection.questions.items()}


def segments_of(
    collection: Collection, operators: Mapping[str, Operator], *, dataset: str, location: str | Path
) -> Segments:
    """Return where the reports of a collection are stored."""
    layout = layout_of(operators, optional=collection.ask is not None)
    return Segments(location, layout, below=f"{dataset}/{collection.name}/{collection.version}")


def _listed(reports: Iterable[Any], batch: str = "") -> list[Any]:
    listed = list(reports)
    if len(listed) > LARGEST_BATCH or len(batch) > LONGEST_NAME or not batch.isprintable():
        raise Unsupported(
            f"A batch can have at most {LARGEST_BATCH:,} reports and an id of at most {LONGEST_NAME} printable characters.",
            "Submit it in parts. No report was accepted.",
        )
    return listed


def _hash_of(code: str) -> bytes:
    """Return the hash of a code; text that is no code is refused like an unknown one."""
    with suppress(Unsupported):
        return code_hash(read_code(code))
    raise _unknown_code()


def _unknown_code() -> NotAllowed:
    return NotAllowed(
        "This invitation code is not known.",
        "Check it for typing errors. Every code is for one poll.",
        reason="unknown",
    )


def _used_code() -> NotAllowed:
    return NotAllowed(
        "This invitation code was used before, on another device or in another browser.",
        "Answer where you first opened the form. If that was not you, ask the holder for a new code.",
        reason="used",
    )


def _answers(body: str) -> Any:
    """Return the answers of a waiting report; None, which is refused, if they were damaged."""
    try:
        return json.loads(body)
    except ValueError:
        return None


def _shuffle(waiting: list[Arrival]) -> list[Arrival]:
    """Return the reports in a uniformly random order: sorted by 128 secure bits each, which do not repeat."""
    bits = SystemBytes().take(16 * len(waiting))
    keys = [bits[start : start + 16] for start in range(0, len(bits), 16)]
    return [waiting[index] for _, index in sorted(zip(keys, range(len(waiting)), strict=True))]


def _reasons(count: int, refused: Iterable[tuple[int, str]]) -> tuple[str | None, ...]:
    reasons: list[str | None] = [None] * count
    for index, reason in refused:
        reasons[index] = reason
    return tuple(reasons)


def _digest(reports: Iterable[Any]) -> str:
    """Return the digest of a list of reports: of their ids, in order."""
    whole = hashlib.sha256()
    for report in reports:
        name = report.get("id") if isinstance(report, Mapping) else None
        whole.update(name.encode("utf-8", "surrogatepass") if isinstance(name, str) else b"?")
        whole.update(b"\n")
    return whole.hexdigest()
