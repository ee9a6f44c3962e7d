"""Several concealment promises at once: a record leaves when every one of them holds.

With one promise the compiled loop of its gate decides. With several, records that fall into the same cells of all gates
are one kind; each kind has its queue, and the oldest waiting request whose kind every gate admits leaves next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate.release.gate import Decisions, Gate
from tidegate.release.plan import Plan

Cells = tuple[int, ...]  # the cell of a record in each gate


class Controller:
    """Decides requests for all promises of a data set together."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.gates = [Gate(plan) for plan in plans]
        self._queues: dict[Cells, deque[int]] = {}

    @property
    def released(self) -> int:
        return self.gates[0].released

    @property
    def waiting(self) -> int:
        return self.gates[0].waiting if self._alone else sum(len(queue) for queue in self._queues.values())

    @property
    def _alone(self) -> bool:
        return len(self.gates) == 1

    def load(self, counts: Sequence[NDArray[np.int64]], queue: Iterable[tuple[int, Cells]]) -> None:
        """Start from the released counts of every gate and from everybody who waits, oldest first."""
        waiting = list(queue)
        for place, gate in enumerate(self.gates):
            gate.load(counts[place], ((number, cells[0]) for number, cells in waiting) if self._alone else ())
        self._queues = {}
        for number, cells in () if self._alone else waiting:
            self._queues.setdefault(cells, deque()).append(number)

    def decide(self, cells: NDArray[np.int64], numbers: NDArray[np.int64]) -> Decisions:
        """Decide requests in order; `cells` has a row for each request and a column for each gate."""
        if self._alone:
            return self.gates[0].decide(np.ascontiguousarray(cells[:, 0]), numbers)
        released: list[int] = []
        ends = np.empty(len(numbers), np.int64)
        for place, (kind, number) in enumerate(zip(map(tuple, cells.tolist()), numbers.tolist(), strict=True)):
            if self._admits(kind):
                self._grant(kind)
                released += [number, *self._drain()]
            else:
                self._queues.setdefault(kind, deque()).append(number)
            ends[place] = len(released)
        return Decisions(np.array(released, np.int64), ends)

    def withdraw(self, number: int, cells: Cells) -> bool:
        """Forget a waiting request; whether there was one."""
        if self._alone:
            return self.gates[0].withdraw(number, cells[0])
        queue = self._queues.get(cells, deque())
        if number not in queue:
            return False
        queue.remove(number)
        if not queue:
            del self._queues[cells]
        return True

    def follow(self, number: int, cells: Cells, *, waiting: bool, released: bool) -> None:
        """Note what another process decided about a request: it waits, has left, or (neither) was withdrawn."""
        if waiting:
            if self._alone:
                self.gates[0].enqueue(number, cells[0])
            else:
                self._queues.setdefault(cells, deque()).append(number)
            return
        self.withdraw(number, cells)
        if released:
            self._grant(cells)

    def _admits(self, kind: Cells) -> bool:
        return all(gate.admits(cell) for gate, cell in zip(self.gates, kind, strict=True))

    def _grant(self, kind: Cells) -> None:
        for gate, cell in zip(self.gates, kind, strict=True):
            gate.grant(cell)

    def _drain(self) -> list[int]:
        """Release from the queue, always the oldest that may leave, until nobody may."""
        released = []
        while self._queues:
            masks = [gate.admissible() for gate in self.gates]
            open_now = [
                (queue[0], kind)
                for kind, queue in self._queues.items()
                if all(mask[cell] for mask, cell in zip(masks, kind, strict=True))
            ]
            if not open_now:
                break
            number, kind = min(open_now)
            self._queues[kind].popleft()
            if not self._queues[kind]:
                del self._queues[kind]
            self._grant(kind)
            released.append(number)
        return released
