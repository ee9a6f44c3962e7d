"""Random sequences of requests, and what each test releases from them.

The seed was chosen before any result was known. Randomness only orders requests here; it protects no one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Ints
from tidegate.demo.soldiers import COUNTS
from tidegate.release.gate import Gate
from tidegate.release.plan import Plan

SEED = 2012


def cells() -> Ints:
    """Return every soldier as a cell of the gate: target by target."""
    return np.repeat(np.arange(np.size(COUNTS)), np.array(COUNTS).T.ravel())


def sequences(number: int, *, requests: int, stream: int) -> Iterator[Ints]:
    """Yield random orders of the soldiers, cut after a number of requests. The same each time; a stream for each figure."""
    soldiers = cells()
    for index in range(number):
        yield np.random.default_rng([SEED, stream, index]).permutation(soldiers)[:requests]


@dataclass(frozen=True)
class Outcome:
    """Counts of every sequence (sequences, values, targets), and the number of the request that released the last record."""

    counts: Ints
    last: Ints
    requests: int

    @property
    def released(self) -> Ints:
        """Records by target, (sequences, targets)."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def frozen(self) -> int:
        """Sequences in which nothing was released during the second half of the requests."""
        return int((self.last < self.requests // 2).sum())

    @property
    def shut_out(self) -> int:
        """Sequences without any released record of some target."""
        return int((self.released == 0).any(axis=1).sum())


def outcome(plan: Plan, number: int, *, requests: int, stream: int) -> Outcome:
    """Run a test over a number of sequences."""
    counts, last = [], []
    for sequence in sequences(number, requests=requests, stream=stream):
        gate = Gate(plan, room=requests + 1)
        ends = gate.decide(sequence, np.arange(requests)).ends
        counts.append(gate.counts.copy())
        last.append(int(np.searchsorted(ends, ends[-1])))
    return Outcome(np.array(counts), np.array(last), requests)


def order(plan: Plan, *, stream: int, index: int = 0, requests: int = 10_000) -> Ints:
    """Return the cells in the order in which one sequence released their records."""
    sequence = list(sequences(index + 1, requests=requests, stream=stream))[index]
    return np.asarray(sequence[Gate(plan).decide(sequence, np.arange(requests)).released])
