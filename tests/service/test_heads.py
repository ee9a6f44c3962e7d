"""Endless headers and slow clients are disconnected; complete requests of any size pass, also several in one packet."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from support.service import quiet_settings, run_service
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidegate.service.header_limits import LONGEST, HeaderLimits
from tidegate.service.settings import Settings


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the number of bytes that it was sent."""
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def answer_slowly(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.sleep(4 * Hasty.DEADLINE)
    await echo(scope, receive, send)


async def answer_at_length(scope: Any, receive: Any, send: Any) -> None:
    """Send until the server closes the connection."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(2_000):
        await send({"type": "http.response.body", "body": b"a" * 65_536, "more_body": True})


class Hasty(HeaderLimits):
    """The same protocol with limits that a test can wait for."""

    DEADLINE, STALLED, MOST = 0.5, 0.5, 5


def serving(protocol: Any, app: Any = echo) -> Iterator[int]:
    config = uvicorn.Config(app, port=0, http=protocol, lifespan="off", log_config=None)
    server, listening = uvicorn.Server(config), socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join(20)
    listening.close()


@pytest.fixture
def port() -> Iterator[int]:
    yield from serving(HeaderLimits)


@pytest.fixture
def unbounded() -> Iterator[int]:
    yield from serving(HttpToolsProtocol)


@pytest.fixture
def hasty() -> Iterator[int]:
    yield from serving(Hasty)


@pytest.fixture
def hasty_and_slow() -> Iterator[int]:
    yield from serving(Hasty, answer_slowly)


@pytest.fixture
def hasty_and_long() -> Iterator[int]:
    yield from serving(Hasty, answer_at_length)


def sent_until_closed(port: int, start: bytes, piece: bytes) -> int:
    """Return the number of header bytes that were read before the server closed; at most 64 times the limit."""
    taken = 0
    with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
        line.sendall(start)
        try:
            while taken < 64 * LONGEST:
                line.sendall(piece)
                taken += len(piece)
                time.sleep(0.001)
        except OSError:
            pass
    return taken


ENDLESS = [
    (b"GET / HTTP/1.1\r\nHost: x\r\n", b"X-A: " + b"a" * 1000 + b"\r\n"),
    (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ", b"a" * 1000),
    (b"GET /", b"a" * 1000),
    (b"", b"\r\n" * 500),
]


@pytest.mark.parametrize(("start", "piece"), ENDLESS, ids=["headers", "a header", "an address", "nothing"])
def test_endless_headers_are_refused(port: int, start: bytes, piece: bytes) -> None:
    assert sent_until_closed(port, start, piece) < 16 * LONGEST, "the rest is what was on its way"


def test_plain_protocol_accepts_endless_headers(unbounded: int) -> None:
    assert sent_until_closed(unbounded, *ENDLESS[0]) >= 64 * LONGEST, "so the test above can fail"


# Time


REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def trickle(port: int, start: bytes, piece: bytes, *, answered: bool = False) -> bytes:
    """Send a byte every tenth of a second until the server closes, for at most 10 deadlines; return the response."""
    with socket.create_connection(("127.0.0.1", port), timeout=10 * Hasty.DEADLINE) as line:
        line.sendall(start)
        if answered:
            assert line.recv(1000).startswith(b"HTTP/1.1 200")
        line.settimeout(0.1)
        said, until = b"", time.monotonic() + 10 * Hasty.DEADLINE
        while time.monotonic() < until:
            try:
                line.sendall(piece)
                part = line.recv(1000)
            except TimeoutError:
                continue
            except OSError:
                return said
            said += part
            if not part:
                return said
    raise TimeoutError("it is still open")


@pytest.mark.parametrize(
    ("start", "piece", "answered"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ", b"a", False),
        (b"GE", b"", False),
        (b"", b"", False),
        (b"", b"\r\n", False),
        (REQUEST, b"\r\n", True),
        (REQUEST + b"GET / HT", b"", True),
    ],
    ids=["a header", "a word", "nothing", "empty lines", "empty lines after a request", "a second head"],
)
def test_late_headers_end_the_connection(hasty: int, start: bytes, piece: bytes, answered: bool) -> None:
    assert b"200" not in trickle(hasty, start, piece, answered=answered)


def test_plain_protocol_waits_for_slow_headers(unbounded: int) -> None:
    with pytest.raises(TimeoutError):
        trickle(unbounded, b"GET / HTTP/1.1\r\nX-A: ", b"a")


def test_header_deadline_does_not_end_a_slow_response(hasty_and_slow: int) -> None:
    with socket.create_connection(("127.0.0.1", hasty_and_slow), timeout=20) as line:
        line.sendall(REQUEST + b"\r\nGET")  # some clients send an empty line after a body, some the next head
        assert line.recv(1000).startswith(b"HTTP/1.1 200")


def test_client_that_does_not_read_is_disconnected(hasty_and_long: int) -> None:
    with socket.create_connection(("127.0.0.1", hasty_and_long), timeout=20) as line:
        line.sendall(REQUEST)
        time.sleep(4 * Hasty.STALLED)
        size = 0
        with contextlib.suppress(ConnectionResetError):
            while part := line.recv(1 << 20):
                size += len(part)
    assert size < 2_000 * 65_536, "only what fits into the buffers, not all of it"


def test_idle_connections_do_not_block_a_new_one() -> None:
    class Few(HeaderLimits):
        MOST = 5

    for port in serving(Few):
        waiting = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(20)]
        try:
            for line in waiting:
                line.sendall(b"GET / HT")
            time.sleep(0.3)
            with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
                line.sendall(REQUEST)
                assert line.recv(1000).startswith(b"HTTP/1.1 200")
            assert sum(is_open(line) for line in waiting) <= Few.MOST
        finally:
            for line in waiting:
                line.close()


def is_open(line: socket.socket) -> bool:
    line.settimeout(0.05)
    try:
        return line.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


def test_new_connection_is_refused_if_all_others_are_busy(hasty_and_slow: int) -> None:
    lines = [socket.create_connection(("127.0.0.1", hasty_and_slow), timeout=20) for _ in range(Hasty.MOST)]
    try:
        for line in lines:
            line.sendall(REQUEST)
        time.sleep(0.2)
        with socket.create_connection(("127.0.0.1", hasty_and_slow), timeout=20) as line:
            assert line.recv(1000).startswith(b"HTTP/1.1 503")
        assert all(line.recv(1000).startswith(b"HTTP/1.1 200") for line in lines), "they are answered"
    finally:
        for line in lines:
            line.close()


def test_late_body_ends_the_connection(tmp_path: Path) -> None:
    with run_service(str(tmp_path / "all.ledger"), settings=quiet_settings(patience=0.5)) as service:
        for port in serving(Hasty, service.app):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
                line.sendall(b"POST /v1/sign-in HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
                said = b""
                while part := line.recv(1000):
                    said += part
            assert said.startswith(b"HTTP/1.1 413"), "and the connection is closed at once: the rest is not read"
            assert b"connection: close" in said.lower()


def test_docs_state_the_limits_of_connections() -> None:
    text = " ".join((Path(__file__).parents[2] / "docs" / "service.md").read_text().split())
    assert f"{HeaderLimits.DEADLINE:g} seconds for its head" in text
    assert f"{Settings().patience:g} seconds for its body" in text
    assert f"{HeaderLimits.MOST:,} open connections" in text


def test_too_long_headers_are_refused(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
        line.sendall(b"GET / HTTP/1.1\r\n")
        time.sleep(0.1)
        line.sendall(b"X-A: " + b"a" * (LONGEST + 10))
        assert line.recv(1000).startswith(b"HTTP/1.1 400")


def test_pipelined_requests_are_answered(port: int) -> None:
    large = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n" + b"b" * 300_000
    small = b"GET / HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 10_000 + b"\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        line.sendall(large + small + large + small[:200])
        time.sleep(0.2)
        line.sendall(small[200:])
        got = b""
        while got.count(b"HTTP/1.1 200") < 4 or not got.endswith(b"\r\n\r\n0"):
            part = line.recv(65536)
            assert part, got[-300:]
            got += part
    assert got.count(b"\r\n\r\n300000") == 2


def test_every_service_runs_with_header_limits(monkeypatch: pytest.MonkeyPatch) -> None:

    from tidegate.service import server as running

    configs: list[uvicorn.Config] = []
    monkeypatch.setattr(running._Supervisor, "serve", configs.append)
    running.run("some:app", workers=2)
    assert configs[0].http is HeaderLimits
