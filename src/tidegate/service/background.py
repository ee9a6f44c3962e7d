"""Background work: a thread that repeats one task until the service stops, and the schedule of collections.

Every process counts the received reports on the schedule of their collections. Two processes never count the same reports:
a flush happens under the ledger's lock, and a slot has one batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime

from tidegate.ledger import arrivals, queries
from tidegate.service.datasets import ServedDatasets
from tidegate.service.errors import source_location
from tidegate.service.logs import log_event
from tidegate.service.metrics import Metrics

PATIENCE = 10.0  # seconds to wait for a running task at shutdown


class BackgroundTask:
    """Repeats a task with a pause before each run.

    A failed run is logged as the event `failure` with its source location only: its message could hold a private value.
    The next run starts after `failure_pause` seconds, because most failures are a ledger that does not respond for a while.
    """

    def __init__(
        self, name: str, task: Callable[[], None], *, pause: float, failure: str, failure_pause: float | None = None
    ) -> None:
        self._task, self._pause, self._failure = task, pause, failure
        self._failure_pause = pause if failure_pause is None else failure_pause
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Start no more runs, and wait for the current one."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=PATIENCE)

    def _run(self) -> None:
        pause = self._pause
        while not self._stop.wait(pause):
            pause = self._pause
            try:
                self._task()
            except Exception as error:
                log_event(self._failure, place=source_location(error))
                pause = self._failure_pause


PAUSE = 15.0  # seconds between two checks of the clock


class Schedule:
    """Checks each slot once: a slot with too few reports is skipped, even if more reports arrive later.

    A poll is closed when its time has come, whether reports wait or not.
    """

    def __init__(self, datasets: ServedDatasets, metrics: Metrics) -> None:
        self._datasets, self._metrics = datasets, metrics
        self._checked: dict[tuple[str, str], datetime] = {}
        self._closed: set[tuple[str, str, int]] = set()  # data set, poll, version
        self._has_traces = False
        self._background = BackgroundTask(
            "schedule", lambda: self.check(datetime.now(UTC)), pause=PAUSE, failure="flush-failed"
        )

    def start(self) -> None:
        self._background.start()

    def stop(self) -> None:
        """Stop after the current flush."""
        self._background.stop()

    def check(self, now: datetime) -> None:
        """Count the waiting reports of every collection whose slot has started since the last check; then check the witnesses."""
        store = self._datasets.ledger.store
        with store.reading() as connection:
            waiting = arrivals.collections(connection)
        for name in waiting:
            dataset, collection, _ = name.split("/")
            if dataset in self._datasets and collection in self._datasets[dataset].policy.collections:
                self._count(dataset, collection, now)
        for dataset, collection in self._polls_over(now):
            self._close(dataset, collection, now)
        if self._has_traces:
            self._has_traces = not store.forget_deleted()
        if self._datasets.ledger.witnesses is not None:  # also for a process that ended before it could send
            self._datasets.ledger.witnesses.send()

    def _polls_over(self, now: datetime) -> list[tuple[str, str]]:
        """Return the polls whose time has come since the last check, if they were opened at all."""
        over = [
            (dataset, name, poll.version)
            for dataset in self._datasets
            for name, poll in self._datasets[dataset].policy.polls.items()
            if poll.poll is not None and now >= poll.poll.closes and (dataset, name, poll.version) not in self._closed
        ]
        if not over:
            return []
        with self._datasets.ledger.store.reading() as connection:
            opened = {of[:2]: queries.collection(connection, f"{of[0]}/{of[1]}") for of in over}
        versions = {of: entry.content()["description"]["version"] for of, entry in opened.items() if entry}
        return [(dataset, name) for dataset, name, version in over if versions.get((dataset, name)) == version]

    def _close(self, dataset: str, collection: str, now: datetime) -> None:
        survey = self._datasets[dataset].survey(collection)
        if not survey.closed:
            counted = survey.flush_if_due(now=now)
            self._has_traces = True
            self._metrics.reports(taken=counted)
            log_event("closed", dataset=dataset, collection=collection, reports=counted)
        self._closed.add((dataset, collection, survey.collection.version))

    def _count(self, dataset: str, collection: str, now: datetime) -> None:
        survey = self._datasets[dataset].survey(collection)  # this counts the waiting reports of an earlier version
        slot = survey.collection.batches.slot(now)
        if slot is None or self._checked.get((dataset, collection)) == slot:
            return
        self._checked[dataset, collection] = slot
        if counted := survey.flush_if_due(now=now):
            self._has_traces = True
            self._metrics.reports(taken=counted)
            log_event("flushed", dataset=dataset, collection=collection, reports=counted)
