"""The story of a batch of reports: check each, write the segment, commit counts, ids and entry.

Only what is committed counts. A crash before the commit leaves at most a segment that no entry names, which is never
counted; the same batch given again is taken then, and one that was taken is told again what it was told.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tidegate.collect.checking import Checked, check
from tidegate.collect.mechanisms import Operator
from tidegate.collect.verdicts import SubmittedReports
from tidegate.errors import Unsupported
from tidegate.ledger.reports import Batch, Collected, Overtaken
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
    book: Collected
    segments: Segments

    def submit(self, reports: Iterable[Any], *, batch: str = "") -> Submitted:
        """Take the good reports of a batch and refuse the others, each with its reason."""
        given = list(reports)
        if len(given) > LARGEST_BATCH or len(batch) > LONGEST_NAME or not batch.isprintable():
            raise Unsupported(
                f"a batch has at most {LARGEST_BATCH:,} reports, and an id of at most {LONGEST_NAME} printable letters.",
                "Give it in parts; nothing was taken.",
            )
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
        columns = checked.columns(self.segments.columns)
        segment = self.segments.write(columns, batch=name)
        adds = {question: column.count(columns[question]) for question, column in self.segments.columns.items()}
        batch = Batch(name, named, segment.name, segment.sha256, checked.ids, adds, checked.refused())
        return Submitted(name, tuple(checked.reasons), self.book.commit(batch).hash)


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
