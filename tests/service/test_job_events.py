"""Progress as server-sent events: each state once, signs of life, an end, and a limit on open streams."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from service.test_jobs import ASKED, JOBS, WORKING
from support.console_service import on_loopback
from support.service import RunningService, quiet_settings, run_service

from tidegate.ledger.jobs import Jobs
from tidegate.service.access.sessions import cookie_name

T = TypeVar("T")


def run_apart(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine, run in a thread of its own: a browser of other tests keeps a loop in this one."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()


def events_in(text: str) -> list[dict[str, str]]:
    """Return the events of a stream, field by field; comments are left out."""
    blocks = [
        [line.split(": ", 1) for line in block.splitlines() if not line.startswith(":")] for block in text.split("\n\n")
    ]
    return [dict(block) for block in blocks if block and "data" in dict(block)]


def test_stream_sends_each_state_once_and_ends_with_the_job(tmp_path: Path) -> None:
    with run_service(str(tmp_path / "all.ledger"), settings=WORKING) as service:
        job = service.post(JOBS, ASKED).json()["id"]
        response = service.get(f"{JOBS}/{job}/events", "analyst")
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.text.startswith("retry: 1000\n\n")
        events = events_in(response.text)
        assert [event["event"] for event in events] == [*["progress"] * (len(events) - 1), "end"]
        assert len({event["id"] for event in events}) == len(events)
        last = json.loads(events[-1]["data"])
        assert {**last, "seconds": 0} == {**service.get(f"{JOBS}/{job}").json(), "seconds": 0}
        assert last["state"] == "done"
        again = service.get(f"{JOBS}/{job}/events", headers={"Last-Event-ID": events[-1]["id"]})
        assert events_in(again.text) == [], "the client has seen the end"
        assert events_in(service.get(f"{JOBS}/{job}/events", headers={"Last-Event-ID": "x"}).text) == events[-1:]


@pytest.fixture
def brief_service(tmp_path: Path) -> Any:
    """A service that runs no jobs, and whose streams end after a second."""
    with service_with_streams(tmp_path, seconds=1) as service:
        yield service


@contextmanager
def service_with_streams(folder: Path, *, seconds: float) -> Iterator[RunningService]:
    settings = quiet_settings(stream_seconds=seconds, stream_beat=0.2, most_streams=25, caller_streams=20, threads=2)
    with run_service(str(folder / "all.ledger"), settings=settings) as service:
        yield service


def test_quiet_stream_shows_signs_of_life_and_ends_by_itself(brief_service: RunningService) -> None:
    job = brief_service.post(JOBS, ASKED).json()["id"]
    begun = time.monotonic()
    text = brief_service.get(f"{JOBS}/{job}/events").text
    assert 0.9 < time.monotonic() - begun < 10
    assert [json.loads(event["data"])["state"] for event in events_in(text)] == ["waiting"]
    assert text.count(": still running\n\n") >= 2


def test_stream_works_with_the_cookie_of_the_console(brief_service: RunningService) -> None:
    job = brief_service.post(JOBS, ASKED).json()["id"]
    brief_service.client.post("/v1/sign-in", json={"token": brief_service.tokens["owner"]})
    assert cookie_name(brief_service.app.state.settings) in brief_service.client.cookies
    assert len(events_in(brief_service.client.get(f"{JOBS}/{job}/events").text)) == 1
    brief_service.client.cookies.clear()
    assert brief_service.client.get(f"{JOBS}/{job}/events").status_code == 401
    assert brief_service.get(f"{JOBS}/{'0' * 20}/events").status_code == 404


def test_streams_hold_no_threads_and_their_number_is_limited(tmp_path: Path) -> None:
    """Twenty streams are open at once in a service with two threads, and other requests are answered."""
    with service_with_streams(tmp_path, seconds=60) as service:
        check_streams(service)


def check_streams(service: RunningService) -> None:
    job = service.post(JOBS, ASKED).json()["id"]
    owner, analyst = (service.as_role(role) for role in ("owner", "analyst"))

    async def open_all(address: str) -> tuple[list[int], float, list[str]]:
        limits = httpx.Limits(max_connections=60)
        async with httpx.AsyncClient(base_url=address, timeout=30, limits=limits) as client:
            path = f"{JOBS}/{job}/events"
            streams = [asyncio.create_task(client.get(path, headers=owner)) for _ in range(21)]
            streams += [asyncio.create_task(client.get(path, headers=analyst)) for _ in range(6)]
            await asyncio.sleep(1)
            begun = time.monotonic()
            (await client.get("/v1/data/people", headers=owner)).raise_for_status()
            taken = time.monotonic() - begun
            cancel = await client.post(f"{JOBS}/{job}/cancellation", headers=owner)
            assert cancel.json()["state"] == "cancelled"
            responses = [await stream for stream in streams]
            assert (await client.get(path, headers=owner)).status_code == 200, "ended streams are counted no more"
            return [response.status_code for response in responses], taken, [response.text for response in responses]

    with on_loopback(service.app) as address:
        statuses, taken, texts = run_apart(open_all(address))
    assert sorted(statuses) == [200] * 25 + [429] * 2
    assert taken < 5
    ends = [events_in(text)[-1]["event"] for text, status in zip(texts, statuses, strict=True) if status == 200]
    assert ends == ["end"] * 25, "the cancellation reached every stream"


def test_one_read_serves_all_streams(brief_service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    read = Jobs.read

    def count(self: Jobs, names: Any) -> Any:
        reads.append(len(list(names)))
        return read(self, names)

    monkeypatch.setattr(Jobs, "read", count)
    jobs = [brief_service.post(JOBS, {**ASKED, "seed": number}).json()["id"] for number in range(3)]

    async def follow(address: str) -> None:
        async with httpx.AsyncClient(base_url=address, timeout=30, headers=brief_service.as_role("owner")) as client:
            await asyncio.gather(*(client.get(f"{JOBS}/{job}/events") for job in jobs * 4))

    with on_loopback(brief_service.app) as address:
        run_apart(follow(address))
    assert 1 <= len(reads) <= 8, "one read every half second"
    assert max(reads) == 3
