"""Limits on connections: the size and the arrival time of request headers, and the number of open connections.

Guarantee:
    Size: of an incomplete request line with headers, at most `LONGEST` bytes and the chunk in which it began (at most 256 KiB)
    are stored; then the connection is closed.
    Time: the headers must be complete `DEADLINE` seconds after the connection was opened, or after the first byte that follows
    the previous request; otherwise the connection is closed. Bytes that trickle in do not extend the deadline.
    Reading: a client that does not read its response for `STALLED` seconds is disconnected.
    Connections: at most `MOST` are open. A new one replaces the oldest connection without an open request; if all have one,
    the new one is refused. Idle connections therefore cannot keep new ones out.

The deadline for a request body is in middleware.py.
"""

from __future__ import annotations

import asyncio
import time

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

LONGEST = 32 * 1024


class HeaderLimits(HttpToolsProtocol):
    """uvicorn's protocol with limits: ``uvicorn.Config(..., http=HeaderLimits)``."""

    DEADLINE, STALLED = 30.0, 120.0  # seconds
    MOST = 800  # connections per process: below the usual limit of 1,024 open files
    _began, _in_head, _size, _opened = False, False, 0, 0.0
    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._in_head, self._size, self._opened = True, 0, time.monotonic()
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
        self._in_head = False
        self._stop_head_timer()
        super().on_headers_complete()

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
        self._write_timer = self._write_timer or self.loop.call_later(self.STALLED, self.transport.abort)

    def resume_writing(self) -> None:
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

    def _make_room(self) -> None:
        """Close the oldest connection without an open request, or this one if there is none."""
        others = [
            other
            for other in self.connections
            if isinstance(other, HeaderLimits)
            and other is not self
            and not other._is_answering()
            and not other.transport.is_closing()
        ]
        if others:
            min(others, key=lambda other: other._opened).transport.abort()
        else:
            self._refuse(503, "Too many connections are open. Try again later.")

    def _refuse(self, status: int, text: str) -> None:
        """Send a short plain-text response and close the connection."""
        about = f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(text)}\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + about.encode() + text.encode())
        self.transport.close()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
