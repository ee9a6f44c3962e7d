"""Rounds that join columns: each counts a pair that connects two trees of the forest."""

from __future__ import annotations

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.synthesize.mechanisms.forest.margins import Margin
from tidegate.synthesize.mechanisms.forest.pairs import Pair
from tidegate.synthesize.mechanisms.forest.rounds import Rounds
from tidegate.synthesize.mechanisms.forest.selection import Candidate, Candidates


def grow(rounds: Rounds) -> list[Pair]:
    """The pairs of the forest, in the order in which they were chosen."""
    component, pairs = np.arange(len(rounds.margins)), []
    model = Independent(rounds.candidates, rounds.facts.rows)
    for _ in range(rounds.plan.tree_rounds):
        among = rounds.candidates.joining(component)
        pair = rounds.one(among, lambda: model.counts(rounds.margins))
        if pair is not None:
            pairs.append(pair)
            component[component == component[pair.candidate.left]] = component[pair.candidate.right]
    return pairs


class Independent:
    """Whole counts of every candidate if its columns were independent; only what changed is made anew."""

    def __init__(self, candidates: Candidates, rows: int) -> None:
        self._candidates, self._rows = candidates, rows
        self._counts = np.zeros(candidates.offsets[-1], np.int64)
        self._known: list[Margin | None] = [None] * len(candidates.groups)
        self._shares: list[Floats] = [np.zeros(0)] * len(candidates.groups)

    def counts(self, margins: list[Margin]) -> Ints:
        changed = [n for n, margin in enumerate(margins) if margin is not self._known[n]]
        for n in changed:
            self._known[n], self._shares[n] = margins[n], margins[n].shares() * margins[n].listed
        stale = np.isin(self._candidates.left, changed) | np.isin(self._candidates.right, changed)
        for place in np.flatnonzero(stale).tolist():
            table = self._table(self._candidates.all[place])
            self._candidates.table(self._counts, place)[:] = np.rint(table).astype(np.int64)
        return self._counts

    def _table(self, candidate: Candidate) -> Floats:
        return independent(candidate, self._shares[candidate.left], self._shares[candidate.right], self._rows)


def independent(candidate: Candidate, left: Floats, right: Floats, rows: int) -> Floats:
    """Counts on a candidate's groups if its columns, with given shares of their cells, were independent."""
    out: Floats = rows * np.outer(candidate.rows.sums(left), candidate.columns.sums(right))
    return out
