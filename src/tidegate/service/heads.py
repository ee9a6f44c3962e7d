"""How a connection is read: by uvicorn's parser in C, which by itself would keep a head that never ends.

Guarantee  Of a request whose head (its address and headers) is not whole yet, no more is kept than `LONGEST` bytes and the
           piece in which it began (a quarter of a megabyte at most); then the connection is closed.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONGEST = 32 * 1024


class BoundedHeads(HttpToolsProtocol):
    """uvicorn's protocol, with an end to heads: ``uvicorn.Config(..., http=BoundedHeads)``."""

    _began, _in_head, _size = False, False, 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._in_head, self._size = True, 0
        super().connection_made(transport)

    def on_message_begin(self) -> None:
        self._began, self._in_head, self._size = True, True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        self._began = False
        super().data_received(data)
        if not self._in_head or self._began:  # the piece in which it began may end the body of the one before
            return
        self._size += len(data)
        if self._size > LONGEST and not self.transport.is_closing():
            self.send_400_response("The head of this request is longer than is read.")
