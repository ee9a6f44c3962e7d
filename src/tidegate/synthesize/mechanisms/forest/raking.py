"""Rounds that add pairs: the pool is weighted so that it agrees with everything that was counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tidegate.arrays import Floats, Ints, Ints32
from tidegate.extras import extra
from tidegate.synthesize.mechanisms.forest._kernels import rake_weights, weighted_counts
from tidegate.synthesize.mechanisms.forest.pairs import Pair
from tidegate.synthesize.mechanisms.forest.rounds import Rounds
from tidegate.synthesize.mechanisms.forest.selection import Candidate, Candidates

with extra("synthesize", "Making synthetic tables"):
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

SWEEPS, LAST_SWEEPS = 3, 10
LEAST_FACTOR, MOST_FACTOR = 0.02, 50.0
WORTH_SHARING = 40_000_000  # additions above which several threads are faster


class Raking:
    """A weighted pool, and the tables that it must agree with."""

    def __init__(self, cells: Ints32, rows: int) -> None:
        self.cells, self.rows = cells, rows
        self.weights = np.full(cells.shape[1], rows / cells.shape[1])
        self._targets: list[tuple[Ints32, Floats]] = []

    def model(self, candidate: Candidate) -> Floats:
        """Return the counts of the weighted pool on a candidate's groups."""
        flat = np.bincount(self.places(candidate), self.weights, candidate.cells).astype(np.float64)
        return flat.reshape(candidate.shape)

    def agree_with(self, pair: Pair) -> None:
        """Add a measured pair to the tables that the pool must agree with, where it contradicts the pool beyond its noise."""
        target = pair.against(self.model(pair.candidate))
        scaled = target * (self.rows / max(float(target.sum()), 1e-300))
        self._targets.append((self.places(pair.candidate), scaled.ravel()))

    def rake(self, shares: Sequence[Floats], sweeps: int) -> None:
        """Weight the pool so that it agrees with all pairs and, last in every sweep, with all margins."""
        margins = [(cells, self.rows * share) for cells, share in zip(self.cells, shares, strict=True)]
        for _ in range(sweeps):
            for places, target in (*self._targets, *margins):
                self.weights = rake_weights(places, target, self.weights, LEAST_FACTOR, MOST_FACTOR)

    @property
    def tables(self) -> list[Ints32]:
        """The cell of each row of the pool in each added pair."""
        return [places for places, _ in self._targets]

    @property
    def targets(self) -> list[Floats]:
        """The counts of each added pair."""
        return [target for _, target in self._targets]

    def places(self, candidate: Candidate) -> Ints32:
        """Return the cell of each row of the pool in a candidate's table."""
        left = candidate.rows.cells[self.cells[candidate.left]]
        right = candidate.columns.cells[self.cells[candidate.right]]
        return np.asarray(left * candidate.columns.size + right, np.int32)


def add_pairs(rounds: Rounds, raking: Raking, count: int, *, patience: int | None = None) -> list[Pair]:
    """Count pairs on which the weighted pool is wrong, and rake the pool to them; return them with their targets set."""
    believed = PoolCounts(rounds.candidates, raking)
    everything = list(range(len(rounds.candidates.all)))
    pairs, idle = [], 0
    for _ in range(count):
        pair = rounds.choose_pair(everything, lambda: believed.counts([margin.listed for margin in rounds.margins]))
        idle = 0 if pair is not None else idle + 1
        if pair is not None:
            pairs.append(pair)
            raking.agree_with(pair)
            raking.rake([margin.shares() for margin in rounds.margins], SWEEPS)
        if idle == patience:
            break
    raking.rake([margin.shares() for margin in rounds.margins], LAST_SWEEPS)
    return pairs


class PoolCounts:
    """Whole counts of every candidate in the weighted pool."""

    def __init__(self, candidates: Candidates, raking: Raking) -> None:
        self._candidates, self._raking = candidates, raking
        self._pieces = [
            groups.pieces[cells].astype(np.int32) for groups, cells in zip(candidates.groups, raking.cells, strict=True)
        ]
        self._sizes = [int(groups.pieces[-1]) + 1 for groups in candidates.groups]

    def counts(self, listed: Sequence[float]) -> Ints:
        flat = np.zeros(self._candidates.offsets[-1])
        pairs = list(self._candidates.by_pair)
        work = len(pairs) * self._raking.weights.size
        _run_each(lambda pair: self._fill(flat, pair, listed), pairs, shared=work >= WORTH_SHARING)
        return np.rint(flat).astype(np.int64)

    def _fill(self, flat: Floats, pair: tuple[int, int], listed: Sequence[float]) -> None:
        i, j = pair
        table = weighted_counts(self._pieces[i], self._pieces[j], self._raking.weights, self._sizes[i], self._sizes[j])
        self._candidates.coarsen(flat, pair, table * (listed[i] * listed[j]))


def _run_each(work: Callable[[tuple[int, int]], None], pairs: Sequence[tuple[int, int]], *, shared: bool) -> None:
    """Do the work of each pair. Pairs write to different cells, so their order does not matter."""
    if shared:
        Parallel(n_jobs=-1, require="sharedmem", batch_size=16)(delayed(work)(pair) for pair in pairs)
        return
    for pair in pairs:
        work(pair)
