"""A network between a client and a Postgres server, which can be cut."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path


class Network:
    """A proxy between TCP clients and the server's socket, which can stop forwarding in each direction."""

    def __init__(self, server: Path) -> None:
        self._server, self._sockets = server, list[socket.socket]()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.has_requests, self.has_replies = threading.Event(), threading.Event()
        self.heal()
        threading.Thread(target=self._accept, daemon=True).start()

    def heal(self) -> None:
        """Forward everything from now on. Connections that lost bytes are gone, as after a real partition."""
        for end in self._sockets:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self.has_requests.set()
        self.has_replies.set()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server))
                self._sockets += [client, server]
                for ends in ((client, server, self.has_requests), (server, client, self.has_replies)):
                    threading.Thread(target=self._forward, args=ends, daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, is_open: threading.Event) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if is_open.is_set():
                    target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._listener.close()
        self.heal()
