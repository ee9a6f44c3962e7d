"""The state of concealment promises: released counts, waiting requests, and the next decision. Nothing here is durable."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Ints
from tidegate.release import _kernels as kernels
from tidegate.release.mechanisms import REGISTERED, Reading, Test
from tidegate.release.plan import Plan

TABULATED = 1 << 16  # growth[k] up to here from a table, above by logarithms
REFRESH = 1 << 20  # decisions after which every sum is rebuilt from the counts
ROOM = 1024
BLOCK_ABOVE = 2048  # cells; with more, waiting requests are stored in blocks by age
BLOCKS = 2048
Cells = tuple[int, ...]  # the cell of a record in each gate


@dataclass(frozen=True)
class Decisions:
    """The releases of a batch of requests: request numbers in the order of release.

    `ends[i]` is the number of releases after the i-th request of the batch.
    """

    released: Ints
    ends: Ints

    def after(self, index: int) -> Ints:
        """Return the releases that one request of the batch caused: itself, and waiting requests."""
        return self.released[self.ends[index - 1] if index else 0 : self.ends[index]]


class Gate:
    """Decides requests for one promise. A cell is (value of X, target), numbered target by target.

    Guarantee:
        The decisions are those of a literal first-in-first-out rescan of all waiting requests after every grant, from the
        oldest on, in exact arithmetic: where floating point could err, exact arithmetic decides.
    """

    def __init__(self, plan: Plan, *, room: int = ROOM, block_above: int = BLOCK_ABOVE) -> None:
        self.plan, self._block_above = plan, block_above
        self.tests: list[Test] = [REGISTERED[name](plan) for name in plan.promise.tests]
        self._by_index = {test.index: test for test in self.tests}
        self._machine = _machine(plan, self.tests, room, block_above)
        kernels.rebuild(self._machine)
        kernels.tidy(self._machine)

    @property
    def counts(self) -> Ints:
        """The number of released records, (values, targets)."""
        return np.asarray(self._machine.cells[kernels.COUNT].reshape(self.plan.targets, self.plan.values).T)

    @property
    def released(self) -> int:
        return int(self._machine.whole[kernels.RELEASED])

    @property
    def waiting(self) -> int:
        return int(self._machine.whole[kernels.WAITING])

    def cell(self, value: int, target: int) -> int:
        """Return the number of a cell."""
        return target * self.plan.values + value

    def load(self, counts: Ints, queue: Iterable[tuple[int, int]] = ()) -> None:
        """Start from released counts by cell, and from (request number, cell) of all waiting requests, oldest first."""
        waiting = list(queue)
        machine = _machine(self.plan, self.tests, len(waiting) + ROOM, self._block_above)
        machine.cells[kernels.COUNT] = counts
        for number, cell in waiting:
            kernels.push(machine, cell, number)
        kernels.rebuild(machine)
        kernels.tidy(machine)
        self._machine = machine

    def decide(self, cells: Ints, numbers: Ints) -> Decisions:
        """Decide requests in order: each is released, with those that it frees, or waits. Numbers rise from call to call."""
        self._refresh(len(cells))
        out, ends = np.empty(len(cells) + self.waiting, np.int64), np.empty(len(cells), np.int64)
        at, filled, test = 0, 0, 0
        while test != kernels.DONE:
            at, filled, cell, test = kernels.advance(self._machine, cells, numbers, at, out, filled, ends)
            if test == kernels.UNTIDY:
                kernels.tidy(self._machine)
            elif test != kernels.DONE:
                self._settle(cell, test)
        return Decisions(out[:filled], ends)

    def admits(self, cell: int) -> bool:
        """Return whether one more record of a cell could be released now."""
        verdict = kernels.verdict(self._machine, cell)
        while verdict < 0:
            self._settle(cell, -1 - verdict)
            verdict = kernels.verdict(self._machine, cell)
        return bool(verdict)

    def admissible(self) -> NDArray[np.bool_]:
        """Return `admits` for every cell."""
        verdicts = np.empty(self._machine.cells.shape[1], np.int64)
        kernels.admissible(self._machine, verdicts)
        for cell in np.flatnonzero(verdicts < 0):
            verdicts[cell] = self.admits(int(cell))
        return np.asarray(verdicts == 1)

    def grant(self, cell: int) -> None:
        """Count a released record."""
        self._refresh(0)
        kernels.grant(self._machine, cell)

    def enqueue(self, number: int, cell: int) -> None:
        """Add a waiting request that another process decided."""
        self._refresh(1)
        kernels.push(self._machine, cell, number)

    def withdraw(self, number: int, cell: int) -> bool:
        """Remove a waiting request; return whether there was one."""
        return bool(kernels.withdraw(self._machine, cell, number))

    def readings(self) -> dict[str, list[Reading]]:
        """Return the measure of every test with its critical value."""
        return {test.name: test.readings(self.counts) for test in self.tests}

    def _settle(self, cell: int, test: int) -> None:
        """Decide exactly what floating point cannot, and store the decision until the counts change."""
        target, value = divmod(cell, self.plan.values)
        after = self.counts.copy()
        after[value, target] += 1
        passes = self._by_index[test].holds(after, target)
        stored = int(self._machine.whole[kernels.SETTLED])
        if stored + 1 == len(self._machine.answers):
            wider = np.zeros((2 * len(self._machine.answers), 3), np.int64)
            wider[:stored] = self._machine.answers[:stored]
            self._machine = self._machine._replace(answers=wider)
        self._machine.answers[stored] = cell, test, passes
        self._machine.whole[kernels.SETTLED] += 1

    def _refresh(self, coming: int) -> None:
        """Make room for coming requests, and rebuild the sums from time to time."""
        needed = int(self._machine.whole[kernels.LENGTH]) + coming
        if needed > self._machine.slots.shape[1]:
            longer = np.zeros((2, 2 * needed), np.int64)
            longer[:, : self._machine.slots.shape[1]] = self._machine.slots
            self._machine = self._machine._replace(slots=longer)
        if self._machine.whole[kernels.STEPS] > REFRESH:
            kernels.rebuild(self._machine)
            kernels.tidy(self._machine)


class Controller:
    """Decides requests for all promises of a data set together: a record is released when all of them hold.

    With one promise the compiled loop of its gate decides. With several, records that fall into the same cells of all
    gates are one kind; each kind has its queue, and the oldest waiting request whose kind every gate admits is released next.
    """

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
        """Start from the released counts of every gate and from all waiting requests, oldest first."""
        waiting = list(queue)
        for index, gate in enumerate(self.gates):
            gate.load(counts[index], ((number, cells[0]) for number, cells in waiting) if self._alone else ())
        self._queues = {}
        for number, cells in () if self._alone else waiting:
            self._queues.setdefault(cells, deque()).append(number)

    def decide(self, cells: NDArray[np.int64], numbers: NDArray[np.int64]) -> Decisions:
        """Decide requests in order; `cells` has a row for each request and a column for each gate."""
        if self._alone:
            return self.gates[0].decide(np.ascontiguousarray(cells[:, 0]), numbers)
        released: list[int] = []
        ends = np.empty(len(numbers), np.int64)
        for index, (kind, number) in enumerate(zip(map(tuple, cells.tolist()), numbers.tolist(), strict=True)):
            if self._admits(kind):
                self._grant(kind)
                released += [number, *self._drain()]
            else:
                self._queues.setdefault(kind, deque()).append(number)
            ends[index] = len(released)
        return Decisions(np.array(released, np.int64), ends)

    def withdraw(self, number: int, cells: Cells) -> bool:
        """Remove a waiting request; return whether there was one."""
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
        """Apply what another process decided about a request: it waits, was released, or (neither) was withdrawn."""
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
        """Release from the queue, always the oldest admissible request, until none is left."""
        released = []
        while self._queues:
            masks = [gate.admissible() for gate in self.gates]
            admissible = [
                (queue[0], kind)
                for kind, queue in self._queues.items()
                if all(mask[cell] for mask, cell in zip(masks, kind, strict=True))
            ]
            if not admissible:
                break
            number, kind = min(admissible)
            self._queues[kind].popleft()
            if not self._queues[kind]:
                del self._queues[kind]
            self._grant(kind)
            released.append(number)
        return released


def _machine(plan: Plan, tests: list[Test], room: int, block_above: int) -> kernels.Machine:
    """Return empty counts, an empty queue, and the critical values of every test."""
    size, critical = plan.values * plan.targets, _critical(tests)
    whole = np.zeros(kernels.WHOLE, np.int64)
    whole[kernels.FREE], whole[kernels.CHANGED_TARGET] = -1, kernels.NO_TARGET
    whole[kernels.MERGING], whole[kernels.FIT_AT] = critical["merging"], len(critical["target_values"])
    whole[kernels.OUTLIER_AT] = len(critical["target_values"]) + len(critical["fit_values"])
    whole[[kernels.USES + test.index for test in tests]] = True
    needs_all_cells = whole[kernels.USES + kernels.MUTUAL] or whole[kernels.USES + kernels.OUTLIER]
    blocks = BLOCKS if needs_all_cells and size > block_above else 0
    cells = np.zeros((10, size), np.int64)
    cells[[kernels.HEAD, kernels.TAIL, kernels.DENIED]] = -1
    return kernels.Machine(
        whole=whole,
        numbers=np.array([0.0, critical["total_beyond"], critical["target_beyond"], critical["odds"], 0.0]),
        cells=cells,
        weights=np.zeros((2, size)),
        targets=np.zeros((3, plan.targets), np.int64),
        sums=np.zeros((6, plan.targets)),
        values=np.vstack([plan.floats, np.log(plan.floats), np.zeros(plan.values), *critical["log_ratios"]]),
        scratch=np.zeros(plan.values, np.int64),
        slots=np.zeros((2, room), np.int64),
        total=np.vstack([critical["total_sizes"].astype(np.float64), critical["total_values"]]),
        critical=np.concatenate([critical["target_values"], critical["fit_values"], critical["outlier_values"]]),
        growth=_growth(),
        evidence=np.zeros((plan.targets, len(critical["prior_odds"]))),
        prior_odds=critical["prior_odds"],
        answers=np.zeros((16, 3), np.int64),
        blocks=np.zeros((3, blocks), np.int64),
        bounds=np.zeros(blocks),
    )


@cache
def _growth() -> NDArray[np.float64]:
    """Return T(k+1) - T(k) for small k; the same for every gate."""
    k = np.arange(1, TABULATED)
    return np.concatenate([[0.0], np.log(k + 1.0) + k * np.log1p(1.0 / k)])


def _critical(tests: list[Test]) -> dict[str, Any]:
    arrays: dict[str, Any] = {
        "total_sizes": np.zeros(0, np.int64),
        "total_values": np.zeros(0),
        "total_beyond": 0.0,
        "target_values": np.zeros(0),
        "target_beyond": 0.0,
        "fit_values": np.zeros(1),
        "merging": 0,
        "outlier_values": np.zeros(3),
        "log_ratios": (),
        "prior_odds": np.zeros(0),
        "odds": 0.0,
    }
    for test in tests:
        arrays |= test.arrays()
    return arrays
