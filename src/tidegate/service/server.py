"""The uvicorn server. Every way to start a service goes through `run`."""

from __future__ import annotations

import contextlib
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from tidegate.service.connection_limits import ConnectionLimits

GRACE = 10  # seconds for open requests at shutdown
KEEP_ALIVE = 5  # seconds between two requests of a connection
OPEN_FILES = 4_096  # connections that arrive together are open for a moment, before the surplus is closed
PATIENCE = 120  # seconds until a worker must answer its supervisor: imports are slow on a busy machine
FAILED = 3  # the exit code of a service that could not start


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
    """Serve the application that `app` creates until a signal stops the process.

    Open requests are finished before the function returns.

    Args:
        app: A factory function; with several workers, its import name.
        listening: A socket to serve from, instead of a host and port.
        ready: Called once the service accepts requests (single process only).
    """
    about: dict[str, Any] = {"host": host, "port": port, "workers": workers}
    about |= {"timeout_graceful_shutdown": GRACE, "timeout_keep_alive": KEEP_ALIVE}
    quiet: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False}
    behind: dict[str, Any] = {"proxy_headers": bool(proxy), "forwarded_allow_ips": proxy or None}
    whole = {"factory": True, "http": ConnectionLimits, "ws": "none", **about, **quiet, **behind}
    _allow_open_files()
    with _gently():
        if workers > 1:
            _Supervisor.serve(uvicorn.Config(app, timeout_worker_healthcheck=PATIENCE, **whole))
            return
        config = uvicorn.Config(app, **whole)
        config.load()  # now, so that errors in a policy are reported before anything starts
        server = _Server(config, ready)
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listening] if listening else None)
    if not server.started:
        sys.exit(FAILED)


class _Supervisor(Multiprocess):
    """A supervisor that waits for slow imports and notices immediately when a worker has ended.

    The supervisor waits for a worker's answer on a pipe. It closes its own copy of the worker's end, so that the wait ends
    when the worker does.
    """

    @classmethod
    def serve(cls, config: uvicorn.Config) -> None:
        """Serve until a signal arrives or a worker cannot start."""
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
    """A server that calls `ready` once it accepts requests."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started and self._ready:
            self._ready()


def _allow_open_files() -> None:
    """Raise the limit of open files for this process and its workers, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    raised = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < raised:
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))


@contextlib.contextmanager
def _gently() -> Iterator[None]:
    """Ignore the signal that uvicorn raises again after shutdown: a service that stopped on request has not failed."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
