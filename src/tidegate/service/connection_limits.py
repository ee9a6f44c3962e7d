"""Limits on connections: the size and the arrival time of requests, slow readers, and the number of open connections.

Guarantee:
    Size: of an incomplete request line with headers, at most `LONGEST` bytes and the chunk in which it began (at most 256 KiB)
    are stored; then the connection is closed.
    Time: the headers must be complete `DEADLINE` seconds after the connection was opened, or after the first byte that follows
    the previous request; otherwise the connection is closed. Bytes that trickle in do not extend the deadline.
    Reading: a client that does not read its response for `STALLED` seconds is disconnected, also if the response is complete.
    Connections: at most `MOST` are open. A new one replaces, in this order, one that is being closed, the oldest one without
    complete headers, and the slowest of those whose body has arrived at less than `SLOWEST` bytes per second for `SETTLED` seconds.
    If there is none, the new one can only ask for `/health` or `/ready`, for which `RESERVED` connections are set aside;
    any other request gets 503. Clients that hold connections open therefore cannot hide that the service works.

The deadline for a request body is in middleware.py.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

LONGEST = 32 * 1024
ALWAYS = (b"/health", b"/ready")
BUSY = "Too many connections are open. Try again later."


class ConnectionLimits(HttpToolsProtocol):
    """uvicorn's protocol with limits: ``uvicorn.Config(..., http=ConnectionLimits)``."""

    DEADLINE, STALLED, SETTLED = 30.0, 120.0, 5.0  # seconds
    MOST, RESERVED = 800, 64  # connections per process: below the usual limit of 1,024 open files
    SLOWEST = 2_048  # bytes per second: the largest body of most addresses in its time
    _began, _in_head, _size, _opened = False, False, 0, 0.0
    _in_body, _body_began, _body_size = False, 0.0, 0
    _is_surplus, _is_paused = False, False
    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._in_head, self._size, self._opened = True, 0, self.loop.time()
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(self.DEADLINE, self._on_deadline)
        if len(self.connections) > self.MOST:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._began, self._in_head, self._size = True, True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head, self._in_body = False, True
        self._body_began, self._body_size = self.loop.time(), 0
        self._stop_head_timer()
        if self._is_surplus and not self.url.partition(b"?")[0].endswith(ALWAYS):
            self.app = _answer_busy
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_size += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self._start_write_timer()

    def data_received(self, data: bytes) -> None:
        self._began = False
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._head_timer is None and self._is_waiting():
            self._head_timer = self.loop.call_later(self.DEADLINE, self._on_deadline)
        if not self._in_head or self._began:  # the first chunk may contain the end of the previous body
            return
        self._size += len(data)
        if self._size > LONGEST:
            self._refuse(400, f"The request headers are longer than {LONGEST:,} bytes.")

    def pause_writing(self) -> None:
        super().pause_writing()
        self._is_paused = True
        self._start_write_timer()

    def resume_writing(self) -> None:
        self._is_paused = False
        self._stop_write_timer()
        super().resume_writing()

    def _is_answering(self) -> bool:
        """Return whether a request is being handled: its headers are complete, its response is not."""
        return self.cycle is not None and not self.cycle.response_complete

    def _is_waiting(self) -> bool:
        """Return whether the next bytes belong to request headers."""
        return self._in_head or not self._is_answering()

    def _on_deadline(self) -> None:
        self._head_timer = None
        if self.transport.is_closing():
            return
        if self._is_answering():  # part of the next request came early: its time starts after this response
            self._head_timer = self.loop.call_later(self.DEADLINE, self._on_deadline)
            return
        self._refuse(408, f"The request headers did not arrive within {self.DEADLINE:g} seconds.")

    def _on_stalled(self) -> None:
        self._write_timer = None
        if not self.transport.get_write_buffer_size():
            return
        if self._is_paused or not self._is_answering():
            self.transport.abort()
        else:  # the rest of an earlier response was read: these are bytes of the current one
            self._start_write_timer()

    def _make_room(self) -> None:
        """Close the connection that is needed least; if all are in use, set this one aside for `/health`, or refuse it."""
        others = [other for other in self.connections if isinstance(other, ConnectionLimits) and other is not self]
        if others and (least := min(others, key=ConnectionLimits._need))._need()[0] < IN_USE:
            least.transport.abort()
            self.connections.discard(least)  # at once: the transport reports the end later
        elif len(self.connections) <= self.MOST + self.RESERVED:
            self._is_surplus = True
        else:
            self._refuse(503, BUSY)

    def _need(self) -> tuple[int, float]:
        """Return how much a connection is needed: the class, and within it the lowest goes first."""
        if self.transport.is_closing():
            return CLOSING, 0.0
        if not self._is_answering():
            return IDLE, self._opened
        seconds = self.loop.time() - self._body_began
        if self._in_body and seconds >= self.SETTLED and self._body_size < self.SLOWEST * seconds:
            return SLOW, self._body_size / seconds
        return IN_USE, 0.0

    def _refuse(self, status: int, text: str) -> None:
        """Send a short plain-text response and close the connection."""
        about = f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(text)}\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + about.encode() + text.encode())
        self.transport.close()
        self._start_write_timer()

    def _start_write_timer(self) -> None:
        self._stop_write_timer()
        self._write_timer = self.loop.call_later(self.STALLED, self._on_stalled)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


CLOSING, IDLE, SLOW, IN_USE = range(4)  # how much a connection is needed


async def _answer_busy(scope: Any, receive: Any, send: Any) -> None:
    """Answer any request with 503, and close its connection."""
    text = BUSY.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(text)).encode())]
    headers += [(b"retry-after", b"5"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": text})
