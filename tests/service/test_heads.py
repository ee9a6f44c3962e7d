"""A head that never ends is not kept; whole requests of any size pass, also several in one piece."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidegate.service.heads import LONGEST, BoundedHeads


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


def serving(protocol: Any) -> Iterator[int]:
    config = uvicorn.Config(echo, port=0, http=protocol, lifespan="off", log_config=None)
    server, listening = uvicorn.Server(config), socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join(20)
    listening.close()


@pytest.fixture
def port() -> Iterator[int]:
    yield from serving(BoundedHeads)


@pytest.fixture
def unbounded() -> Iterator[int]:
    yield from serving(HttpToolsProtocol)


def sent_until_closed(port: int, start: bytes, piece: bytes) -> int:
    """How many bytes of a head were taken before the server closed; 64 times the longest at most."""
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
def test_a_head_that_never_ends_is_given_up(port: int, start: bytes, piece: bytes) -> None:
    assert sent_until_closed(port, start, piece) < 16 * LONGEST, "the rest is what was on its way"


def test_the_plain_protocol_would_take_it_all(unbounded: int) -> None:
    assert sent_until_closed(unbounded, *ENDLESS[0]) >= 64 * LONGEST, "so the test above can fail"


def test_who_sends_too_long_a_head_is_told_so(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
        line.sendall(b"GET / HTTP/1.1\r\n")
        time.sleep(0.1)
        line.sendall(b"X-A: " + b"a" * (LONGEST + 10))
        assert line.recv(1000).startswith(b"HTTP/1.1 400")


def test_whole_requests_pass_one_after_another_and_in_one_piece(port: int) -> None:
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


def test_every_service_is_run_with_bounded_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    import uvicorn

    from tidegate.service import running

    given: list[Any] = []
    monkeypatch.setattr(uvicorn, "run", lambda app, **how: given.append(how))
    running.run("some:app", workers=2)
    assert given[0]["http"] is BoundedHeads
