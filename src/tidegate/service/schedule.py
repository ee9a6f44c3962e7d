"""Counting of received reports by the schedule of their collections, in every process of a service.

Two processes never count the same reports: a flush happens under the ledger's lock, and a slot has one batch.
"""

from __future__ import annotations

from datetime import UTC, datetime

from tidegate.ledger import arrivals
from tidegate.service.background import BackgroundTask
from tidegate.service.datasets import Holdings
from tidegate.service.logs import tell
from tidegate.service.metrics import Metrics

PAUSE = 15.0  # seconds between two looks at the clock


class Schedule:
    """Looks at each slot once: a slot with too few reports is left alone, whenever more arrive after it."""

    def __init__(self, holdings: Holdings, metrics: Metrics) -> None:
        self._holdings, self._metrics = holdings, metrics
        self._looked: dict[tuple[str, str], datetime] = {}
        self._has_traces = False
        self._background = BackgroundTask(
            "schedule", lambda: self.look(datetime.now(UTC)), pause=PAUSE, failure="flush-failed"
        )

    def start(self) -> None:
        self._background.start()

    def stop(self) -> None:
        """Stop after the flush under way."""
        self._background.stop()

    def look(self, now: datetime) -> None:
        """Count the waiting reports of every collection whose slot has begun since the last look."""
        store = self._holdings.ledger.store
        with store.reading() as connection:
            waiting = arrivals.collections(connection)
        for name in waiting:
            dataset, collection, _ = name.split("/")
            if dataset in self._holdings and collection in self._holdings[dataset].policy.collections:
                self._count(dataset, collection, now)
        if self._has_traces:
            self._has_traces = not store.forget_deleted()

    def _count(self, dataset: str, collection: str, now: datetime) -> None:
        survey = self._holdings[dataset].survey(collection)  # which counts what waits for an earlier version
        slot = survey.collection.batches.slot(now)
        if slot is None or self._looked.get((dataset, collection)) == slot:
            return
        self._looked[dataset, collection] = slot
        if counted := survey.flush_if_due(now=now):
            self._has_traces = True
            self._metrics.reports(taken=counted)
            tell("flushed", dataset=dataset, collection=collection, reports=counted)
