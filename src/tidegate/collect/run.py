"""The story of a batch of reports: check each, write the segment, commit counts, ids and entry.

Reports come in two ways. `submit` takes a list that was gathered elsewhere as one batch, now. `receive` takes single
reports: they wait, without time and order, until `flush` or `close` turns all of them into a batch under its scheduled time.

Only what is committed counts. A crash before the commit leaves at most a segment that no entry names, which is never
counted; the same batch given again is taken then, and one that was taken is told again what it was told.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from tidegate.collect.checking import REPLAYED, Checked, check
from tidegate.collect.request import make_report
from tidegate.collect.verdicts import SubmittedReports
from tidegate.errors import Unsupported
from tidegate.ledger.arrivals import Arrival
from tidegate.ledger.collection_book import Batch, CollectionBook
from tidegate.ledger.counts import Overtaken
from tidegate.ledger.entry import canonical
from tidegate.operators import Operator
from tidegate.operators.exact_draws import SystemBytes
from tidegate.policy.collection import Collection
from tidegate.tables.segments import Segments

LARGEST_BATCH, LONGEST_NAME = 1_000_000, 200


@dataclass(frozen=True)
class Submitted:
    """What became of a batch, report by report: `reasons` has None where a report was taken.

    `again`: this very batch was taken before, and nothing was done now. `entry` is the hash of its entry; empty where
    nothing was taken.
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
        """How many were refused for each reason, the most frequent first."""
        return dict(Counter(reason for reason in self.reasons if reason is not None).most_common())

    def __str__(self) -> str:
        refused = sum(self.refused.values())
        told = f"{self.accepted:,} reports taken{', before' if self.again else ''}; {refused:,} refused."
        return "\n".join([told, *(f"  {number:,}: {reason}" for reason, number in self.refused.items())])

    def response(self) -> SubmittedReports:
        """The typed response, as the service sends it."""
        return SubmittedReports.of(self.reasons, batch=self.batch, entry=self.entry, again=self.again)

    def to_dict(self) -> dict[str, Any]:
        return self.response().model_dump(mode="json")


@dataclass(frozen=True, eq=False)
class Server:
    """Where reports of one collection are taken."""

    collection: Collection
    operators: Mapping[str, Operator]
    book: CollectionBook
    segments: Segments

    def submit(self, reports: Iterable[Any], *, batch: str = "") -> Submitted:
        """Take the good reports of a batch and refuse the others, each with its reason."""
        given = _listed(reports, batch)
        named = _digest(given)
        name = batch or named
        while True:
            if earlier := self._earlier(name, named, len(given)):
                return earlier
            checked = self._check(given)
            if not checked.ids:  # all refused; as replays perhaps, where this very batch was taken meanwhile
                return self._earlier(name, named, len(given)) or Submitted(name, tuple(checked.reasons))
            try:  # only a commit of others can come between: each turn has fewer reports left to take
                return self._take(name, named, checked)
            except Overtaken:
                continue

    def receive(self, reports: Iterable[Any]) -> Submitted:
        """Let the good reports wait for their batch and refuse the others, each with its reason.

        Guarantee  A report that was received is on disk, and counts once in a later batch. Neither its time nor its order is
                   recorded.
        """
        given = _listed(reports)
        while True:
            checked = self._check(given)
            good = [report for report, reason in zip(given, checked.reasons, strict=True) if reason is None]
            arrivals = [(name, canonical(report["answers"])) for name, report in zip(checked.ids, good, strict=True)]
            try:  # only a closing, or a report of others, can come between
                known = self.book.receive(arrivals) if arrivals else set()
            except Overtaken:
                continue
            reasons = tuple(checked.without(known).reasons)
            return Submitted("", reasons, again=bool(reasons) and set(reasons) == {REPLAYED})

    def flush(self, *, at: datetime, least: int = 1, once: bool = False) -> int:
        """Turn all waiting reports into a batch; return how many were counted. See `CollectionBook.flush`."""
        return self.book.flush(self._batches, at=at, least=least, once=once)

    def close(self, *, user: str = "") -> None:
        """Count what waits, and take no more reports."""
        self.book.close(make=self._batches, who=user)

    def _batches(self, waiting: list[Arrival]) -> list[Batch]:
        """Write the segments of waiting reports, in an order that secure bits decide and under random names."""
        shuffled = _shuffled(waiting)
        parts = (shuffled[start : start + LARGEST_BATCH] for start in range(0, len(shuffled), LARGEST_BATCH))
        return [self._batch(SystemBytes().take(16).hex(), "", self._recheck(part)) for part in parts]

    def _recheck(self, waiting: list[Arrival]) -> Checked:
        """Reports as they were received; one that somebody changed since is refused, and its entry says so."""
        collection = replace(self.collection, closed=False)
        reports = [{**make_report(collection, {}, name.hex()), "answers": _answers(body)} for name, body in waiting]
        return check(reports, collection, self.operators)

    def _earlier(self, name: str, named: str, many: int) -> Submitted | None:
        """What was told of this batch, where it was taken before."""
        if (found := self.book.earlier(name, named)) is None:
            return None
        entry, refused = found
        return Submitted(name, _told(many, refused), entry.hash, again=True)

    def _check(self, given: list[Any]) -> Checked:
        closed = self.collection.closed or self.book.closed
        checked = check(given, replace(self.collection, closed=closed), self.operators)
        return checked.without(self.book.known(checked.ids))

    def _take(self, name: str, named: str, checked: Checked) -> Submitted:
        return Submitted(name, tuple(checked.reasons), self.book.commit(self._batch(name, named, checked)).hash)

    def _batch(self, name: str, named: str, checked: Checked) -> Batch:
        """Write the segment of a batch."""
        columns = checked.columns(self.segments.columns)
        segment = self.segments.write(columns, batch=name)
        adds = {question: column.count(columns[question]) for question, column in self.segments.columns.items()}
        return Batch(name, named, segment.name, segment.sha256, checked.ids, adds, checked.refused())


def _listed(reports: Iterable[Any], batch: str = "") -> list[Any]:
    given = list(reports)
    if len(given) > LARGEST_BATCH or len(batch) > LONGEST_NAME or not batch.isprintable():
        raise Unsupported(
            f"a batch has at most {LARGEST_BATCH:,} reports, and an id of at most {LONGEST_NAME} printable letters.",
            "Give it in parts; nothing was taken.",
        )
    return given


def _answers(body: str) -> Any:
    """The answers of a waiting report; None, which is no answer, where somebody changed them."""
    try:
        return json.loads(body)
    except ValueError:
        return None


def _shuffled(waiting: list[Arrival]) -> list[Arrival]:
    """In a uniformly random order: by 128 secure bits each, which are never the same twice."""
    bits = SystemBytes().take(16 * len(waiting))
    keys = [bits[start : start + 16] for start in range(0, len(bits), 16)]
    return [waiting[index] for _, index in sorted(zip(keys, range(len(waiting)), strict=True))]


def _told(many: int, refused: Iterable[tuple[int, str]]) -> tuple[str | None, ...]:
    reasons: list[str | None] = [None] * many
    for place, reason in refused:
        reasons[place] = reason
    return tuple(reasons)


def _digest(reports: Iterable[Any]) -> str:
    """A name of a list of reports: of their ids, in their order."""
    whole = hashlib.sha256()
    for report in reports:
        name = report.get("id") if isinstance(report, Mapping) else None
        whole.update(name.encode("utf-8", "surrogatepass") if isinstance(name, str) else b"?")
        whole.update(b"\n")
    return whole.hexdigest()
