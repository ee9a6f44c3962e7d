"""A thread that repeats one task beside the requests, until the service stops."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tidegate.service.errors import place_of
from tidegate.service.logs import tell

PATIENCE = 10.0  # seconds that a task under way may take to end


class BackgroundTask:
    """Repeats a task with a pause before each run.

    A run that fails is logged under `failure`, by its place alone: its message could hold a private value. The next run
    comes after `failure_pause` seconds, since most failures are a ledger that does not answer for a while.
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
        """Start no more runs, and wait for the one under way."""
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
                tell(self._failure, place=place_of(error))
                pause = self._failure_pause
