"""Progress of jobs as server-sent events.

One task per process reads the states of all watched jobs, and every stream waits for it: a stream holds no thread and no
connection to the database. A stream ends with its job, and after a minute in any case; its client connects again with the id of
the last event that it has seen, and its permission is checked again.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import anyio.to_thread
from fastapi import Request
from starlette.responses import StreamingResponse

from tidegate.errors import LedgerError, TooOften
from tidegate.ledger.entry import canonical, sha256
from tidegate.ledger.jobs import ENDED, Job, Jobs
from tidegate.ledger.store import Store
from tidegate.service.access.callers import Caller
from tidegate.service.jobs import job_to_dict
from tidegate.service.settings import Settings

PAUSE = 0.5  # seconds between two reads of the watched jobs
RETRY = 1000  # milliseconds after which a browser connects again
EVENTS: Any = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}


class JobFeed:
    """The open streams of one process."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._jobs, self._settings = Jobs(store), settings
        self._watched: Counter[str] = Counter()  # streams by job
        self._callers: Counter[str] = Counter()  # streams by token
        self._states: dict[str, Job] = {}
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()  # replaced after every read

    async def respond(self, request: Request, caller: Caller, job: Job) -> StreamingResponse:
        """Return the stream of a job.

        Raises:
            TooOften: The process, or this token, has too many streams open.
        """
        most, own = self._settings.most_streams, self._settings.caller_streams
        if self._watched.total() >= most or self._callers[caller.token] >= own:
            raise TooOften(
                f"Too many streams of progress are open (at most {own:,} with one token and {most:,} in all).",
                "Close one, or read the state of the job instead.",
            )
        self._watched[job.id] += 1
        self._callers[caller.token] += 1
        seen = request.headers.get("last-event-id", "")
        return StreamingResponse(self._stream(job, caller.token, seen), media_type="text/event-stream")

    async def _stream(self, job: Job, token: str, seen: str) -> AsyncIterator[str]:
        until = time.monotonic() + self._settings.stream_seconds
        try:
            self._states.setdefault(job.id, job)
            self._start()
            yield f"retry: {RETRY}\n\n"
            while True:
                content = job_to_dict(job)
                name = event_id(content)
                if name != seen:
                    yield f"id: {name}\nevent: {'end' if job.state in ENDED else 'progress'}\ndata: {json.dumps(content)}\n\n"
                    seen = name
                if job.state in ENDED or time.monotonic() > until:
                    return
                if not await self._changed(job, min(until, time.monotonic() + self._settings.stream_beat)):
                    yield ": still running\n\n"
                job = self._states.get(job.id, job)
        finally:
            self._leave(job.id, token)

    async def _changed(self, job: Job, until: float) -> bool:
        """Wait for another state of a job; return False if there is none in time."""
        while self._states.get(job.id, job) == job:
            remaining = until - time.monotonic()
            if remaining <= 0:
                return False
            try:
                async with asyncio.timeout(remaining):
                    await self._news.wait()
            except TimeoutError:
                return False
        return True

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        """Read the watched jobs while there are any."""
        while self._watched:
            try:
                states = await anyio.to_thread.run_sync(self._jobs.read, list(self._watched))
                self._states = {**self._states, **states}
            except LedgerError:  # streams stay open: the ledger can respond again
                pass
            news, self._news = self._news, asyncio.Event()
            news.set()
            await asyncio.sleep(PAUSE)

    def _leave(self, job: str, token: str) -> None:
        for counter, name in ((self._watched, job), (self._callers, token)):
            counter[name] -= 1
            if counter[name] <= 0:
                del counter[name]
        if job not in self._watched:
            self._states.pop(job, None)


def event_id(content: dict[str, Any]) -> str:
    """Return the id of an event: the same for the same state, on every machine."""
    return sha256(canonical({name: value for name, value in content.items() if name != "seconds"}))[:16]


async def follow(request: Request, caller: Caller, job: Job) -> StreamingResponse:
    """Return the stream of a job from the feed of this process."""
    feed: JobFeed = request.app.state.job_feed
    return await feed.respond(request, caller, job)
