"""Child processes, forked from a server that has imported everything: they start in milliseconds."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from typing import Any

from ledger.charges import PATIENCE

IMPORTED = [
    "pytest",
    "alembic.command",
    "ibis.backends.duckdb",
    "ledger.requesters",
    "ledger.spenders",
    "tidegate.answer",
    "tidegate.session",
]


class Child:
    """A process that runs ``work(pipe, *args)``. It inherits no connection, thread or lock."""

    def __init__(self, work: Callable[..., None], *args: Any) -> None:
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # the server's only way to find our modules
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(IMPORTED)
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, *args), daemon=True)
        self.process.start()
        theirs.close()

    def tell(self, value: Any) -> None:
        self.pipe.send(value)

    def hear(self, *, patience: float = PATIENCE) -> Any:
        """Return the next message; fail if there is none in time or the process has ended."""
        assert self.pipe.poll(patience), "deadlock"
        return self.pipe.recv()

    def kill(self) -> None:
        """Kill the process with SIGKILL: it cannot clean up."""
        self.process.kill()
        self.process.join(PATIENCE)
        assert self.process.exitcode is not None
        self.pipe.close()


def signal_all(children: list[Child]) -> list[Child]:
    """Let every child continue, and return them."""
    for child in children:
        child.tell("go on")
    return children
