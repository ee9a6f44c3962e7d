"""How a connection is read: uvicorn's parser in C, with limits on the size and the time of request headers.

Guarantee  Of a request whose head (its address and headers) is not complete, at most `LONGEST` bytes and the piece in which it
           began (a quarter of a megabyte at most) are kept; then the connection is closed.
           A head is complete within `DEADLINE` seconds from the opening of the connection, or from the first byte after
           the request before, or the connection is closed. Bytes that trickle in do not extend the deadline.
           A client that does not read its response for `STALLED` seconds is disconnected.
           At most `MOST` connections are open. A further one takes the place of the oldest that has no request under way;
           where all have one, it is refused. So waiting connections cannot keep new ones out.
The deadline of a request body is in doorway.py.
"""

from __future__ import annotations

import asyncio
import time

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

LONGEST = 32 * 1024


class BoundedHeads(HttpToolsProtocol):
    """uvicorn's protocol with limits: ``uvicorn.Config(..., http=BoundedHeads)``."""

    DEADLINE, STALLED = 30.0, 120.0  # seconds
    MOST = 800  # connections of a process: below the usual limit of 1,024 open files
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
        if not self._in_head or self._began:  # the piece in which it began may end the body of the one before
            return
        self._size += len(data)
        if self._size > LONGEST:
            self._refuse(400, "The head of this request is longer than is read.")

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self._write_timer or self.loop.call_later(self.STALLED, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_write_timer()
        super().resume_writing()

    def _is_answering(self) -> bool:
        """Whether a request is complete enough to be worked on, and its response is not complete."""
        return self.cycle is not None and not self.cycle.response_complete

    def _is_waiting(self) -> bool:
        """Whether the next thing to arrive is (the rest of) a head."""
        return self._in_head or not self._is_answering()

    def _on_deadline(self) -> None:
        self._head_timer = None
        if self.transport.is_closing():
            return
        if self._is_answering():  # a part of the next head came early: its time begins after this response
            self._head_timer = self.loop.call_later(self.DEADLINE, self._on_deadline)
            return
        self._refuse(408, f"The head of this request did not arrive within {self.DEADLINE:g} seconds.")

    def _make_room(self) -> None:
        """Close the oldest connection without a request under way; where there is none, this one."""
        others = [
            other
            for other in self.connections
            if isinstance(other, BoundedHeads)
            and other is not self
            and not other._is_answering()
            and not other.transport.is_closing()
        ]
        if others:
            min(others, key=lambda other: other._opened).transport.abort()
        else:
            self._refuse(503, "Too many connections are open. Try again later.")

    def _refuse(self, status: int, text: str) -> None:
        """Send a short response in plain text and close."""
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
