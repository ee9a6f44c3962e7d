"""Random sequences of requests, and what each test lets out of them.

The seed was chosen before anything was looked at. Chance only orders requests here; it protects nobody.
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
    """Every soldier as a cell of the gate: target by target."""
    return np.repeat(np.arange(np.size(COUNTS)), np.array(COUNTS).T.ravel())


def sequences(number: int, *, requests: int, stream: int) -> Iterator[Ints]:
    """So many random orders of the soldiers, cut after so many requests. The same each time; a stream for each figure."""
    everybody = cells()
    for place in range(number):
        yield np.random.default_rng([SEED, stream, place]).permutation(everybody)[:requests]


@dataclass(frozen=True)
class Outcome:
    """What one test let out: counts of every sequence (sequences, values, targets), and the number of the request that
    let out the last record."""

    counts: Ints
    last: Ints
    requests: int

    @property
    def released(self) -> Ints:
        """Records by target, (sequences, targets)."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def frozen(self) -> int:
        """Sequences in which nothing left during the second half of the requests."""
        return int((self.last < self.requests // 2).sum())

    @property
    def shut_out(self) -> int:
        """Sequences in which not one record of some target left."""
        return int((self.released == 0).any(axis=1).sum())


def outcome(plan: Plan, number: int, *, requests: int, stream: int) -> Outcome:
    """Run a test over so many sequences."""
    counts, last = [], []
    for sequence in sequences(number, requests=requests, stream=stream):
        gate = Gate(plan, room=requests + 1)
        ends = gate.decide(sequence, np.arange(requests)).ends
        counts.append(gate.counts.copy())
        last.append(int(np.searchsorted(ends, ends[-1])))
    return Outcome(np.array(counts), np.array(last), requests)


def order(plan: Plan, *, stream: int, place: int = 0, requests: int = 10_000) -> Ints:
    """The cells in the order in which one sequence let their records out."""
    sequence = list(sequences(place + 1, requests=requests, stream=stream))[place]
    return np.asarray(sequence[Gate(plan).decide(sequence, np.arange(requests)).released])
