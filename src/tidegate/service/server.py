"""Run a service until it is told to stop. Every way to start one goes through here."""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from tidegate.service.header_limits import BoundedHeads

GRACE = 10  # seconds for requests under way
PATIENCE = 120  # seconds until a worker answers its supervisor: on a busy machine one that imports takes long
FAILED = 3  # the exit code of a service that did not start


def run(
    app: str | Callable[[], Any],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    workers: int = 1,
    proxy: str = "",
    listening: socket.socket | None = None,
    ready: Callable[[], None] | None = None,
) -> None:
    """Serve what `app` makes (a function, or its name where there are several workers), until a signal ends it.

    One that is asked to stop finishes its requests and returns. `listening` is a socket to serve from instead of a host
    and port; `ready` is called, in a single process, when requests are taken.
    """
    about: dict[str, Any] = {"host": host, "port": port, "workers": workers, "timeout_graceful_shutdown": GRACE}
    quiet: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False}
    behind: dict[str, Any] = {"proxy_headers": bool(proxy), "forwarded_allow_ips": proxy or None}
    whole = {"factory": True, "http": BoundedHeads, **about, **quiet, **behind}
    with _gently():
        if workers > 1:
            _Supervisor.serve(uvicorn.Config(app, timeout_worker_healthcheck=PATIENCE, **whole))
            return
        config = uvicorn.Config(app, **whole)
        config.load()  # here: what is wrong with a policy is told before anything is started
        server = _Server(config, ready)
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listening] if listening else None)
    if not server.started:
        sys.exit(FAILED)


class _Supervisor(Multiprocess):
    """A supervisor that waits for workers that import, and notices at once one that has ended.

    It waits for a worker's answer on a pipe. Its own copy of the worker's end is closed here, so that the end of a worker
    ends the wait.
    """

    @classmethod
    def serve(cls, config: uvicorn.Config) -> None:
        """Serve until a signal ends it, or a worker cannot start."""
        supervisor = cls(config, sockets=[config.bind_socket()])
        with contextlib.suppress(KeyboardInterrupt):
            supervisor.run()
        if any(process.exitcode == FAILED for process in supervisor.processes):
            sys.exit(FAILED)

    def init_processes(self) -> None:
        super().init_processes()
        self._close_other_ends()

    def keep_subprocess_alive(self) -> None:
        super().keep_subprocess_alive()
        self._close_other_ends()

    def _close_other_ends(self) -> None:
        for process in self.processes:
            process.child_conn.close()


class _Server(uvicorn.Server):
    """A server that says when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started and self._ready:
            self._ready()


@contextlib.contextmanager
def _gently() -> Iterator[None]:
    """uvicorn raises the signal that ended it once more; a service that was asked to stop and did has not failed."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
