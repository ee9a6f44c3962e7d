"""A process that has loaded and compiled everything and forks children that start at once and can be killed."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
from ledger.children import Child

from tidegate.demo import soldiers
from tidegate.release.gate import Controller
from tidegate.release.plan import make_plan

COMPILING = 600  # seconds, where nothing is compiled yet


class WarmForkserver:
    """A context manager: children that were not killed end with it."""

    def __init__(self) -> None:
        self._process = Child(serve_forks)
        self._alive: set[int] = set()
        assert self._process.hear(patience=COMPILING) == "warm"

    def fork(self, work: Callable[..., None], *args: Any) -> int:
        """Fork a child that runs ``work(*args)`` and return its process id."""
        self._process.tell((work, args))
        child = int(self._process.hear())
        self._alive.add(child)
        return child

    def kill(self, child: int) -> None:
        """Send SIGKILL: the child cannot clean up."""
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(self._wait(child)) == -signal.SIGKILL, "it had ended by itself"

    def join(self, child: int) -> None:
        """Wait until the child ends without an error."""
        assert self._wait(child) == 0, "it failed; its traceback is on the error stream"

    def _wait(self, child: int) -> int:
        self._process.tell(child)
        status = int(self._process.hear())
        self._alive.discard(child)
        return status

    def __enter__(self) -> WarmForkserver:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._alive:
            os.kill(child, signal.SIGKILL)
        self._process.kill()


def serve_forks(pipe: Any) -> None:
    """Fork a child for each received task; wait for the child whose process id is received."""
    warm()
    pipe.send("warm")
    while True:
        message = pipe.recv()
        if isinstance(message, int):
            pipe.send(os.waitpid(message, 0)[1])
        elif child := os.fork():
            pipe.send(child)
        else:
            run(*message)


def run(work: Callable[..., None], args: tuple[Any, ...]) -> None:
    try:
        work(*args)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def warm() -> None:
    """Load every compiled function once. No table is opened: an engine's threads do not survive a fork."""
    promise = soldiers.concealment()
    plan = make_plan(promise, promise.baseline, promise.shares)
    for plans in ([plan], [plan, plan]):
        controller = Controller(plans)
        cells = np.repeat(np.random.default_rng(1).integers(0, 50, 200)[:, None], len(plans), axis=1)
        controller.decide(cells, np.arange(200))
        controller.load([gate.counts.T.ravel() for gate in controller.gates], [(1, (7,) * len(plans))])
        controller.withdraw(1, (7,) * len(plans))
