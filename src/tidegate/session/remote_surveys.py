"""A collection, from afar: reports are randomized on this side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate.errors import Unreachable
from tidegate.session.http import ServiceClient

if TYPE_CHECKING:
    from tidegate.collect.client import Client
    from tidegate.collect.memory import Memory
    from tidegate.collect.verdicts import SubmittedReports

BATCH = 10_000  # reports sent at once


@dataclass(frozen=True)
class RemoteSurvey:
    """A collection. Its description is read once; true values are randomized by `client`, on this side."""

    _client: ServiceClient
    _place: str
    _kept: dict[str, Any] = field(default_factory=dict)

    @property
    def description(self) -> dict[str, Any]:
        """The public description."""
        if not self._kept:
            self._kept.update(self._client.get(self._place))
        return self._kept

    def client(self, *, memory: Memory | str | Path | None = None, fingerprint: str | None = None) -> Client:
        """The person's side. Give the `fingerprint` that the holder published elsewhere, and no other will do."""
        from tidegate.collect.client import Client

        return Client(self.description, memory=memory, fingerprint=fingerprint)

    def submit(self, reports: Iterable[Mapping[str, Any]], *, batch: str = "") -> dict[str, Any]:
        """Send randomized reports, and return a verdict for each: the keys are those of `SubmittedReports`.

        Accepted reports wait and are counted later, together with others. A report is counted once by its own id,
        however often it is sent; a named batch is sent whole.
        """
        from tidegate.collect.verdicts import SubmittedReports

        given = list(reports)
        if batch or len(given) <= BATCH:
            return self._send(given, key=batch).model_dump(mode="json")
        parts = [self._send(given[start : start + BATCH]) for start in range(0, len(given), BATCH)]
        reasons = [reason for part in parts for reason in part.all_reasons()]
        again = all(part.again for part in parts)
        return SubmittedReports.of(reasons, batch="", entry=parts[-1].entry, again=again).model_dump(mode="json")

    def _send(self, reports: list[Mapping[str, Any]], *, key: str = "") -> SubmittedReports:
        from pydantic import ValidationError

        from tidegate.collect.verdicts import SubmittedReports

        content = self._client.post(f"{self._place}/reports", {"reports": reports}, key=key, again=True)
        try:
            response = SubmittedReports.model_validate(content)
        except ValidationError:
            response = None
        if response is None or len(response.verdicts) != len(reports):
            raise Unreachable(
                "The service did not confirm which reports it received: its answer has another form.",
                "Submit the same reports again: each counts once. Check that the service has this version or a newer one.",
            )
        return response

    def distribution(self, question: str, **wanted: Any) -> dict[str, Any]:
        """The distribution of the true values."""
        return dict(self._client.get(f"{self._place}/distributions/{question}", **wanted))

    def tree(self, label: str, *, by: Sequence[str] = (), strategy: str = "best") -> dict[str, Any]:
        """A decision tree."""
        return dict(self._client.get(f"{self._place}/tree", label=label, by=list(by), strategy=strategy))

    def rules(self, question: str = "", *, min_support: float, **wanted: Any) -> dict[str, Any]:
        """Frequent itemsets and association rules."""
        return dict(self._client.get(f"{self._place}/rules", question=question, min_support=min_support, **wanted))

    def state(self) -> dict[str, Any]:
        """How many reports were counted, how many wait (rounded down), and what one person gives."""
        return dict(self._client.get(f"{self._place}/state"))

    def close(self) -> None:
        """Take no more reports, for good: for an owner. A new version can be opened."""
        self._client.post(f"{self._place}/closing", {"version": self.state()["version"]})
