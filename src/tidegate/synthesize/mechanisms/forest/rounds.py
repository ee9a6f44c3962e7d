"""A round: one pair of columns is chosen at one resolution, or none, and counted.

Rounds that join columns: each counts a pair that connects two trees of the forest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.synthesize.facts import Facts
from tidegate.synthesize.learn import PARTS
from tidegate.synthesize.mechanisms.forest.margins import Margin
from tidegate.synthesize.mechanisms.forest.noise import Measuring
from tidegate.synthesize.mechanisms.forest.pairs import Pair
from tidegate.synthesize.mechanisms.forest.plan import Plan
from tidegate.synthesize.mechanisms.forest.selection import HALVES, Candidate, Candidates, Private, penalties
from tidegate.synthesize.model import Progress

USUAL_CELLS, LEAST_SHARE, MOST_SHARE = 40, 0.4, 2.5


@dataclass
class Rounds:
    """What is left to spend on pairs and on choices, and the way one round goes."""

    facts: Facts
    plan: Plan
    measuring: Measuring
    candidates: Candidates
    private: Private
    margins: list[Margin]
    progress: Progress
    left: int
    done: int = 0

    def offers(self) -> Ints:
        """Parts of epsilon that each candidate would get: more for more cells, never more than half of what is left."""
        rounds = self.plan.rounds - self.done
        if rounds <= 1:
            return np.full(self.candidates.cells.size, self.left, np.int64)
        share = np.clip(np.sqrt(self.candidates.cells / USUAL_CELLS), LEAST_SHARE, MOST_SHARE)
        return np.minimum(self.left / rounds * share, self.left // 2).astype(np.int64)

    def one(self, among: list[int], believed: Callable[[], Ints]) -> Pair | None:
        """Choose one candidate, or none, by how far the rows are from what is believed, and count it."""
        parts = self.offers()
        name = f"choice {self.done + 1}"
        self.progress("pairs", self.done, self.plan.rounds)
        self.done += 1
        if not among or min(parts[among]) < 1:
            return None
        weight, most = self._weights(among)
        cost = penalties(self.candidates.cells, parts * float(self.plan.epsilon) / PARTS, reach=self.facts.reach)

        def scores() -> Ints:
            gain = (self.private.misfits(believed()) - cost)[among] * weight
            return np.append(gain, 0)

        share = self.plan.parts["choices"] // self.plan.rounds
        chosen = self.measuring.choice(name, share, scores, sensitivity=HALVES * most)
        return None if chosen == len(among) else self._count(among[chosen], int(parts[among[chosen]]))

    def _weights(self, among: list[int]) -> tuple[Ints, int]:
        """Where a target is named, pairs without it count half: all in whole numbers, so those with it count double."""
        if not self.facts.target:
            return np.ones(len(among), np.int64), 1
        target = self.facts.place(self.facts.target)
        with_it = (self.candidates.left[among] == target) | (self.candidates.right[among] == target)
        return np.where(with_it, 2, 1), 2

    def _count(self, place: int, parts: int) -> Pair:
        candidate = self.candidates.all[place]
        names = [self.facts.columns[n].name for n in (candidate.left, candidate.right)]
        noisy = self.measuring.counts(
            f"pair of {names[0]} and {names[1]}", parts, lambda: self.private.table(place).ravel()
        )
        self.left -= parts
        listed = self.margins[candidate.left].listed * self.margins[candidate.right].listed
        pair = Pair(candidate, noisy.reshape(candidate.shape) / listed, float(self.measuring.scale(parts)) / listed)
        pair.refresh(self.margins)
        return pair


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
