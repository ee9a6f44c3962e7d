"""Slow clients and surplus connections are disconnected; complete requests of any size pass, also several in one packet.

Time passes in jumps: the server's event loop has a clock that a test sets forward, so that a busy machine changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from service.processes import run_server, write_policies
from support.service import quiet_settings, run_service
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidegate.service.connection_limits import LONGEST, ConnectionLimits
from tidegate.service.server import KEEP_ALIVE, OPEN_FILES
from tidegate.service.settings import Settings

PATIENCE = 30.0  # seconds for what must happen at once


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the number of bytes that it was sent."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def answer_later(scope: Any, receive: Any, send: Any) -> None:
    """Answers after ten minutes of the server's clock; `/health` at once."""
    if scope["path"] != "/health":
        await asyncio.sleep(600)
    await echo(scope, receive, send)


async def answer_at_length(scope: Any, receive: Any, send: Any) -> None:
    """Send until the server closes the connection."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(2_000):
        await send({"type": "http.response.body", "body": b"a" * 65_536, "more_body": True})


class Few(ConnectionLimits):
    """The same protocol with room for a few connections."""

    MOST, RESERVED = 5, 3


class ClockLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be set forward."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


@dataclass
class Listener:
    """A running server: its port, its open connections, and its clock."""

    port: int
    server: uvicorn.Server
    loop: ClockLoop

    def advance(self, seconds: float) -> None:
        """Set the server's clock forward, once it has read what was sent."""
        time.sleep(0.05)
        done = threading.Event()

        def set_forward() -> None:
            self.loop.ahead += seconds
            done.set()

        self.loop.call_soon_threadsafe(set_forward)
        assert done.wait(PATIENCE)

    def wait_for(self, true: Callable[[list[Any]], bool]) -> None:
        """Wait until something is true of the open connections."""
        until = time.monotonic() + PATIENCE
        while not true(list(self.server.server_state.connections)):
            assert time.monotonic() < until
            time.sleep(0.005)

    def connect(self, sent: bytes = b"") -> socket.socket:
        line = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        line.sendall(sent)
        return line


@contextmanager
def listen(protocol: Any = ConnectionLimits, app: Any = echo) -> Iterator[Listener]:
    config = uvicorn.Config(
        app, http=protocol, lifespan="off", log_config=None, timeout_graceful_shutdown=1, timeout_keep_alive=KEEP_ALIVE
    )
    server, loop = uvicorn.Server(config), ClockLoop()
    socket_ = socket.create_server(("127.0.0.1", 0), backlog=2_048)

    def serve() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(server.serve(sockets=[socket_]))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    listener = Listener(socket_.getsockname()[1], server, loop)
    try:
        yield listener
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        socket_.close()


def read_until_closed(line: socket.socket) -> bytes:
    """Return all that the server sends until it closes the connection."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while part := line.recv(1 << 16):
            received += part
    return received


def is_open(line: socket.socket) -> bool:
    line.settimeout(0.05)
    try:
        return line.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
BODY = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"


# Size


def count_sent_until_closed(port: int, start: bytes, piece: bytes) -> int:
    """Return the number of header bytes that were read before the server closed; at most 64 times the limit."""
    taken = 0
    with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
        line.sendall(start)
        try:
            while taken < 64 * LONGEST:
                line.sendall(piece)
                taken += len(piece)
                if taken % (LONGEST // 2) < len(piece):
                    time.sleep(0.02)  # the server reads it
        except OSError:
            pass
    return taken


ENDLESS = [
    (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X-A: " + b"a" * 1000 + b"\r\n"),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ", b"a" * 1000),
    (b"GET /", b"a" * 1000),
    (b"", b"\r\n" * 500),
]


@pytest.mark.parametrize(("start", "piece"), ENDLESS, ids=["headers", "a header", "an address", "nothing"])
def test_endless_headers_are_refused(start: bytes, piece: bytes) -> None:
    with listen() as listener:
        assert count_sent_until_closed(listener.port, start, piece) < 64 * LONGEST


def test_plain_protocol_accepts_endless_headers() -> None:
    with listen(HttpToolsProtocol) as listener:
        assert count_sent_until_closed(listener.port, *ENDLESS[0]) >= 64 * LONGEST, "so the test above can fail"


def test_too_long_headers_are_refused() -> None:
    with listen() as listener, listener.connect(b"GET / HTTP/1.1\r\n") as line:
        listener.wait_for(lambda connections: any(connection.parser is not None for connection in connections))
        time.sleep(0.05)
        line.sendall(b"X-A: " + b"a" * (LONGEST + 10))
        assert line.recv(1000).startswith(b"HTTP/1.1 400")


def test_pipelined_requests_are_answered() -> None:
    large = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000\r\n\r\n" + b"b" * 300_000
    small = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 10_000 + b"\r\n\r\n"
    with listen() as listener, listener.connect(large + small + large + small[:200]) as line:
        time.sleep(0.05)
        line.sendall(small[200:])
        received = b""
        while received.count(b"HTTP/1.1 200") < 4 or not received.endswith(b"\r\n\r\n0"):
            part = line.recv(65536)
            assert part, received[-300:]
            received += part
    assert received.count(b"\r\n\r\n300000") == 2


# Time


SLOW_HEADS = [
    (b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ", b"a", False),
    (b"GE", b"", False),
    (b"", b"", False),
    (b"", b"\r\n", False),
    (REQUEST, b"\r\n", True),
    (REQUEST + b"GET / HT", b"", True),
]
NAMES = ["a header", "a word", "nothing", "empty lines", "empty lines after a request", "a second head"]


@pytest.mark.parametrize(("start", "piece", "is_answered"), SLOW_HEADS, ids=NAMES)
def test_late_headers_end_the_connection(start: bytes, piece: bytes, is_answered: bool) -> None:
    with listen() as listener, listener.connect(start) as line:
        if is_answered:
            assert line.recv(1000).startswith(b"HTTP/1.1 200")
        for _ in range(2):
            line.sendall(piece)
            listener.advance(0.6 * ConnectionLimits.DEADLINE)
        assert b"200" not in read_until_closed(line)


def test_plain_protocol_waits_for_slow_headers() -> None:
    with listen(HttpToolsProtocol) as listener, listener.connect(SLOW_HEADS[0][0]) as line:
        listener.advance(10 * ConnectionLimits.DEADLINE)
        assert is_open(line), "so the test above can fail"


def test_header_deadline_does_not_end_a_slow_response() -> None:
    with listen(app=answer_later) as listener, listener.connect(REQUEST + b"\r\nGET") as line:
        listener.wait_for(lambda connections: any(connection.cycle is not None for connection in connections))
        for _ in range(20):
            listener.advance(1.02 * ConnectionLimits.DEADLINE)
        assert line.recv(1000).startswith(b"HTTP/1.1 200"), "some clients send the next head early"


def test_idle_connection_is_closed_after_a_response() -> None:
    with listen() as listener, listener.connect(REQUEST) as line:
        assert line.recv(1000).startswith(b"HTTP/1.1 200")
        listener.advance(0.5 * KEEP_ALIVE)
        assert is_open(line)
        line.settimeout(PATIENCE)
        listener.advance(0.6 * KEEP_ALIVE)
        assert read_until_closed(line) == b""


def test_late_body_ends_the_connection(tmp_path: Path) -> None:
    with (
        run_service(str(tmp_path / "all.ledger"), settings=quiet_settings()) as service,
        listen(app=service.app) as listener,
        listener.connect(BODY.replace(b"/ ", b"/v1/sign-in ", 1)) as line,
    ):
        for _ in range(2):
            listener.advance(0.6 * Settings().patience)
            with contextlib.suppress(OSError):
                line.sendall(b" ")
        received = read_until_closed(line)
        assert received.startswith(b"HTTP/1.1 413"), "and the connection is closed at once: the rest is not read"
        assert b"connection: close" in received.lower()


# Readers


def test_client_that_does_not_read_is_disconnected() -> None:
    with listen(app=answer_at_length) as listener, listener.connect(REQUEST) as line:
        listener.wait_for(lambda connections: any(getattr(c, "_is_paused", False) for c in connections))
        listener.advance(1.1 * ConnectionLimits.STALLED)
        listener.wait_for(lambda connections: not connections)
        assert len(read_until_closed(line)) < 2_000 * 65_536, "only what fits into the buffers, not all of it"


async def answer_pages(scope: Any, receive: Any, send: Any) -> None:
    """Answers with 32 KiB, less than the server's buffer."""
    body = b"a" * 32_768
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"32768")]})
    await send({"type": "http.response.body", "body": body})


def test_client_that_does_not_read_the_end_of_its_responses_is_disconnected() -> None:
    """The rest of the last response stays in the server's buffer: closing the connection would wait for its reader."""
    with listen(app=answer_pages) as listener, socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        line.settimeout(PATIENCE)
        line.connect(("127.0.0.1", listener.port))

        def has_rest(connections: list[Any]) -> bool:
            return any(c.transport.get_write_buffer_size() and not c._is_answering() for c in connections)

        until = time.monotonic() + PATIENCE
        while not has_rest(list(listener.server.server_state.connections)):
            assert time.monotonic() < until
            line.sendall(REQUEST)
            time.sleep(0.02)
        listener.advance(1.1 * KEEP_ALIVE)
        listener.wait_for(lambda connections: all(c.transport.is_closing() for c in connections))
        listener.wait_for(lambda connections: len(connections) == 1)
        listener.advance(1.1 * ConnectionLimits.STALLED)
        listener.wait_for(lambda connections: not connections)


# Number


@pytest.mark.parametrize("start", [b"GET / HT", b""], ids=["half a head", "nothing"])
def test_idle_connections_do_not_block_a_new_one(start: bytes) -> None:
    with listen(Few) as listener, contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(listener.connect(start)) for _ in range(20)]
        listener.wait_for(lambda connections: len(connections) == Few.MOST)
        with listener.connect(REQUEST) as line:
            assert line.recv(1000).startswith(b"HTTP/1.1 200")
        assert sum(is_open(line) for line in waiting) <= Few.MOST


def hold(listener: Listener, stack: contextlib.ExitStack, sent: bytes, count: int) -> list[socket.socket]:
    """Open connections whose requests are not answered, and wait until the server reads them."""
    lines = [stack.enter_context(listener.connect(sent)) for _ in range(count)]
    listener.wait_for(lambda connections: sum(c._is_answering() for c in connections) == count)
    return lines


def test_new_request_is_refused_if_all_connections_are_busy_but_health_answers() -> None:
    with listen(Few, answer_later) as listener, contextlib.ExitStack() as stack:
        lines = hold(listener, stack, REQUEST, Few.MOST)
        with listener.connect(REQUEST) as line:
            refused = read_until_closed(line)
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"retry-after" in refused.lower()
        with listener.connect(HEALTH) as line:
            assert line.recv(1000).startswith(b"HTTP/1.1 200")
        listener.advance(601)
        assert all(line.recv(1000).startswith(b"HTTP/1.1 200") for line in lines), "they are answered"


def test_connections_for_health_are_limited_too() -> None:
    with listen(Few, answer_later) as listener, contextlib.ExitStack() as stack:
        hold(listener, stack, REQUEST, Few.MOST)
        for _ in range(Few.RESERVED + 3):
            stack.enter_context(listener.connect(b"GET /he"))
        listener.wait_for(lambda connections: len(connections) <= Few.MOST + Few.RESERVED)
        with listener.connect(HEALTH) as line:
            assert line.recv(1000).startswith(b"HTTP/1.1 200"), "it replaces one that is half open"


def test_trickled_bodies_give_way_to_a_new_request() -> None:
    with listen(Few) as listener, contextlib.ExitStack() as stack:
        lines = hold(listener, stack, BODY, Few.MOST)
        lines[0].sendall(b" " * 50)  # the others are slower
        listener.wait_for(lambda connections: max(c._body_size for c in connections) == 51)
        with listener.connect(REQUEST) as line:
            assert line.recv(1000).startswith(b"HTTP/1.1 503"), "they have just begun"
        listener.advance(1.1 * Few.SETTLED)
        with listener.connect(REQUEST) as line:
            assert line.recv(1000).startswith(b"HTTP/1.1 200")
        assert is_open(lines[0])


def test_body_that_arrives_fast_enough_keeps_its_connection() -> None:
    with listen(Few) as listener, contextlib.ExitStack() as stack:
        large = BODY.replace(b"100", b"99999")
        lines = hold(listener, stack, large + b" " * 20_000, Few.MOST)
        listener.wait_for(lambda connections: min(c._body_size for c in connections) == 20_001)
        listener.advance(1.1 * Few.SETTLED)
        with listener.connect(REQUEST) as line:
            assert line.recv(1000).startswith(b"HTTP/1.1 503")
        assert all(is_open(line) for line in lines)


HALF_OPEN = 1_500


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "start",
    [b"GET /health HT", b"", b"POST /v1/sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"],
    ids=["half a head", "nothing", "half a body"],
)
def test_half_open_connections_do_not_stop_health(service_port: int, open_files: None, start: bytes) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(HALF_OPEN):
            line = stack.enter_context(socket.socket())
            line.settimeout(PATIENCE)
            line.connect(("127.0.0.1", service_port))
            with contextlib.suppress(OSError):  # the service can have closed it already
                line.sendall(start)
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", service_port), timeout=PATIENCE) as line:
                line.sendall(HEALTH)
                assert line.recv(1000).startswith(b"HTTP/1.1 200")


@pytest.fixture(scope="module")
def service_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a service that the command line started, with the usual limit of open files."""
    folder = write_policies(tmp_path_factory.mktemp("half-open"))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1_024, before[1]))
    try:
        with run_server(folder, str(folder / "people.toml")) as (url, process):
            limits = Path(f"/proc/{process.pid}/limits").read_text()
            assert f"Max open files            {min(OPEN_FILES, before[1])}" in limits
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            yield int(url.rpartition(":")[2])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def open_files() -> Iterator[None]:
    """As many open files as 1,500 clients need."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 2 * HALF_OPEN), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


# Docs


def test_docs_state_the_limits_of_connections() -> None:
    text = " ".join((Path(__file__).parents[2] / "docs" / "service.md").read_text().split())
    assert f"{ConnectionLimits.DEADLINE:g} seconds for its head" in text
    assert f"{Settings().patience:g} seconds for its body" in text
    assert f"{KEEP_ALIVE} seconds for its next request" in text
    assert f"{ConnectionLimits.MOST:,} open connections" in text
    assert f"{ConnectionLimits.RESERVED} connections are reserved" in text


def test_every_service_runs_with_connection_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidegate.service import server as running

    configs: list[uvicorn.Config] = []
    monkeypatch.setattr(running._Supervisor, "serve", configs.append)
    running.run("some:app", workers=2)
    assert configs[0].http is ConnectionLimits
    assert (configs[0].timeout_keep_alive, configs[0].ws) == (KEEP_ALIVE, "none")
