"""The processing of a batch of reports: check each, write the segment, commit counts, ids and entry.

Reports arrive in two ways. `submit` accepts a list that was gathered elsewhere as one batch, now. `receive` accepts single
reports: they wait, without time and order, until `flush` or `close` turns all of them into a batch under its scheduled time.

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
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.collect.request import make_report
from tidegate.collect.validation import REPLAYED, Checked, check, layout_of
from tidegate.collect.verdicts import SubmittedReports
from tidegate.errors import StalePolicy, Unsupported
from tidegate.frames import Row, Rows
from tidegate.ledger import Ledger
from tidegate.ledger.arrivals import Arrival
from tidegate.ledger.chain import moment_text
from tidegate.ledger.collection_book import Batch, CollectionBook, EarlierWaiting
from tidegate.ledger.counts import Overtaken
from tidegate.ledger.entry import canonical
from tidegate.operators import Operator
from tidegate.operators.exact_draws import SystemBytes
from tidegate.policy import Policy
from tidegate.policy.collection import Collection, operator_for
from tidegate.policy.toml import collection_from_dict
from tidegate.tables.segments import Segments

LARGEST_BATCH, LONGEST_NAME = 1_000_000, 200


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
        """Accept the valid reports of a batch and refuse the others, each with its reason."""
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
            A received report is on disk and counts once in a later batch. Neither its time nor its order is recorded.
        """
        submitted = _listed(reports)
        while True:
            checked = self._check(submitted)
            valid = [report for report, reason in zip(submitted, checked.reasons, strict=True) if reason is None]
            arrivals = [(name, canonical(report["answers"])) for name, report in zip(checked.ids, valid, strict=True)]
            try:  # only a closing or a report of another process can interfere
                known = self.book.receive(arrivals) if arrivals else set()
            except Overtaken:
                continue
            reasons = tuple(checked.without(known).reasons)
            return Submitted("", reasons, again=bool(reasons) and set(reasons) == {REPLAYED})

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
        """Turn all waiting reports into a batch if a scheduled time has passed that has none; return how many."""
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

    def _batches(self, waiting: list[Arrival]) -> list[Batch]:
        """Write the segments of waiting reports, in an order that secure bits decide and under random names."""
        shuffled = _shuffle(waiting)
        parts = (shuffled[start : start + LARGEST_BATCH] for start in range(0, len(shuffled), LARGEST_BATCH))
        return [self._batch(SystemBytes().take(16).hex(), "", self._recheck(part)) for part in parts]

    def _recheck(self, waiting: list[Arrival]) -> Checked:
        """Check waiting reports again; one that was changed since is refused and recorded in the entry."""
        collection = replace(self.collection, closed=False)
        reports = [{**make_report(collection, {}, name.hex()), "answers": _answers(body)} for name, body in waiting]
        return check(reports, collection, self.operators)

    def _earlier(self, name: str, digest: str, count: int) -> Submitted | None:
        """Return the result of this batch if it was accepted before."""
        if (earlier := self.book.earlier(name, digest)) is None:
            return None
        entry, refused = earlier
        return Submitted(name, _reasons(count, refused), entry.hash, again=True)

    def _check(self, reports: list[Any]) -> Checked:
        closed = self.collection.closed or self.book.closed
        checked = check(reports, replace(self.collection, closed=closed), self.operators)
        return checked.without(self.book.known(checked.ids))

    def _commit(self, name: str, digest: str, checked: Checked) -> Submitted:
        return Submitted(name, tuple(checked.reasons), self.book.commit(self._batch(name, digest, checked)).hash)

    def _batch(self, name: str, digest: str, checked: Checked) -> Batch:
        """Write the segment of a batch."""
        columns = checked.columns(self.segments.columns)
        segment = self.segments.write(columns, batch=name)
        adds = {question: column.count(columns[question]) for question, column in self.segments.columns.items()}
        return Batch(name, digest, segment.name, segment.sha256, checked.ids, adds, checked.refused())


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
    return Segments(location, layout_of(operators), below=f"{dataset}/{collection.name}/{collection.version}")


def _listed(reports: Iterable[Any], batch: str = "") -> list[Any]:
    listed = list(reports)
    if len(listed) > LARGEST_BATCH or len(batch) > LONGEST_NAME or not batch.isprintable():
        raise Unsupported(
            f"A batch can have at most {LARGEST_BATCH:,} reports and an id of at most {LONGEST_NAME} printable characters.",
            "Submit it in parts. No report was accepted.",
        )
    return listed


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
