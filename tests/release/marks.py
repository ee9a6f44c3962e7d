"""Code of a process that is killed: it keeps requesting, logs to a file, and marks the phase of each request."""

from __future__ import annotations

import json
import mmap
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from release.requests import SHUFFLED, as_sent, open_session
from sqlalchemy import event

from tidegate.errors import NotWaiting
from tidegate.ledger import chain
from tidegate.ledger.store import Store
from tidegate.release.desk import Desk
from tidegate.release.result import Deferred

PHASES = ("between requests", "looking up", "deciding", "writing", "committing", "on its way out", "warming up")
BETWEEN, LOOKING_UP, DECIDING, WRITING, COMMITTING, ON_ITS_WAY, WARMING_UP = range(7)
STRIDE = 5  # new names a request goes on by; batches are longer, so that names come again


class Marks:
    """One byte that survives the process: the phase of the current request."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes([WARMING_UP]))
        self._file = os.open(path, os.O_RDWR)
        self._bytes = mmap.mmap(self._file, 1)

    @property
    def phase(self) -> int:
        return self._bytes[0]

    @phase.setter
    def phase(self, phase: int) -> None:
        self._bytes[0] = phase

    def follow(self, store: Store) -> None:
        """Mark the phases of every transaction that writes."""
        decide, write = store.deciding, chain.write

        @contextmanager
        def deciding(reads: Any) -> Iterator[Any]:
            with decide(reads) as transaction:
                self.phase = DECIDING
                yield transaction

        def writing(*arguments: Any) -> None:
            self.phase = WRITING
            write(*arguments)

        store.deciding, chain.write = deciding, writing  # type: ignore[method-assign]

        @event.listens_for(store.engine, "before_cursor_execute")
        def _before(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
            if statement.startswith(("INSERT", "UPDATE")):
                self.phase = WRITING

        @event.listens_for(store.engine, "commit")
        def _commit(connection: Any) -> None:
            if self.phase in (DECIDING, WRITING):
                self.phase = COMMITTING


def read_log(out: Path) -> list[dict[str, Any]]:
    """Return the log of the processes: each request before it is sent, and its outcome after."""
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def ask_on(url: str, out: Path, marks_at: Path, seed: int) -> None:
    """Continue where the last process was killed, starting with its pending request."""
    marks, lines = Marks(marks_at), read_log(out)
    stream = os.open(out, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    session = open_session(url)
    desk = session.release()
    desk.request("nobody is called this")  # the table is open, everything is loaded, nothing is written
    marks.follow(session.ledger.store)
    done = sum("told" in line for line in lines)
    flying = lines[-1] if lines and "told" not in lines[-1] else None
    marks.phase = BETWEEN
    for number in count(done):
        intent = flying or choose(desk, number, random.Random(f"{seed}/{number}"))
        if not flying:
            _write(stream, intent)
        flying = None
        marks.phase = LOOKING_UP
        outcome = carry_out(desk, intent)
        marks.phase = ON_ITS_WAY
        time.sleep(0.002)  # on the way to the requester: committed, not yet received
        _write(stream, {**intent, "told": outcome})
        marks.phase = BETWEEN


def choose(desk: Desk, number: int, chance: random.Random) -> dict[str, Any]:
    """Return a request, a batch, or a withdrawal."""
    at = STRIDE * number % len(SHUFFLED)
    waiting = [n for n in chance.sample(SHUFFLED[:at], min(at, 12)) if isinstance(desk.status(n), Deferred)]
    if waiting and chance.random() < 0.2:
        return {"kind": "withdrawal", "names": waiting[:1]}
    size = chance.randint(2, 3 * STRIDE) if chance.random() < 0.5 else 1
    return {"kind": "batch" if size > 1 else "request", "names": SHUFFLED[at : at + size]}


def carry_out(desk: Desk, intent: dict[str, Any]) -> dict[str, Any]:
    name = intent["names"][0]
    if intent["kind"] == "batch":
        return as_sent(desk.request_many(intent["names"]))
    if intent["kind"] == "request":
        return as_sent({name: desk.request(name)})
    try:
        desk.withdraw(name)
    except NotWaiting:
        assert not isinstance(desk.status(name), Deferred)  # it was withdrawn before the kill
    return {}


def _write(stream: int, line: dict[str, Any]) -> None:
    os.write(stream, f"{json.dumps(line)}\n".encode())
