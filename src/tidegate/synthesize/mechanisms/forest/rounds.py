"""One round: choose a pair of columns at one resolution, or none, and count it. Also the rounds that join columns, in which
each pair connects two trees of the forest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.synthesize.facts import Facts
from tidegate.synthesize.learn import PARTS
from tidegate.synthesize.mechanisms.forest.margins import Margin
from tidegate.synthesize.mechanisms.forest.noise import Measurements
from tidegate.synthesize.mechanisms.forest.pairs import Pair
from tidegate.synthesize.mechanisms.forest.plan import Plan
from tidegate.synthesize.mechanisms.forest.selection import HALVES, Candidate, Candidates, Private, penalties
from tidegate.synthesize.model import Progress

USUAL_CELLS, LEAST_SHARE, MOST_SHARE = 40, 0.4, 2.5


@dataclass
class Rounds:
    """The remaining loss for pairs and choices, and the steps of one round."""

    facts: Facts
    plan: Plan
    measurements: Measurements
    candidates: Candidates
    private: Private
    margins: list[Margin]
    progress: Progress
    left: int
    done: int = 0

    def offers(self) -> Ints:
        """Return the parts of epsilon for each candidate: more for more cells, at most half of what remains."""
        rounds = self.plan.rounds - self.done
        if rounds <= 1:
            return np.full(self.candidates.cells.size, self.left, np.int64)
        share = np.clip(np.sqrt(self.candidates.cells / USUAL_CELLS), LEAST_SHARE, MOST_SHARE)
        return np.minimum(self.left / rounds * share, self.left // 2).astype(np.int64)

    def choose_pair(self, among: list[int], believed: Callable[[], Ints]) -> Pair | None:
        """Choose a candidate, or none, by how far the rows are from the model's counts, and count it."""
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
        chosen = self.measurements.choice(name, share, scores, sensitivity=HALVES * most)
        return None if chosen == len(among) else self._count(among[chosen], int(parts[among[chosen]]))

    def _weights(self, among: list[int]) -> tuple[Ints, int]:
        """Return weights by target: a pair with the target counts double. All weights are integers."""
        if not self.facts.target:
            return np.ones(len(among), np.int64), 1
        target = self.facts.place(self.facts.target)
        with_it = (self.candidates.left[among] == target) | (self.candidates.right[among] == target)
        return np.where(with_it, 2, 1), 2

    def _count(self, index: int, parts: int) -> Pair:
        candidate = self.candidates.all[index]
        names = [self.facts.columns[n].name for n in (candidate.left, candidate.right)]
        noisy = self.measurements.counts(
            f"pair of {names[0]} and {names[1]}", parts, lambda: self.private.table(index).ravel()
        )
        self.left -= parts
        listed = self.margins[candidate.left].listed * self.margins[candidate.right].listed
        pair = Pair(candidate, noisy.reshape(candidate.shape) / listed, float(self.measurements.scale(parts)) / listed)
        pair.refresh(self.margins)
        return pair


def grow(rounds: Rounds) -> list[Pair]:
    """Return the pairs of the forest, in the order of the choices."""
    component, pairs = np.arange(len(rounds.margins)), []
    model = IndependentCounts(rounds.candidates, rounds.facts.rows)
    for _ in range(rounds.plan.tree_rounds):
        among = rounds.candidates.joining(component)
        pair = rounds.choose_pair(among, lambda: model.counts(rounds.margins))
        if pair is not None:
            pairs.append(pair)
            component[component == component[pair.candidate.left]] = component[pair.candidate.right]
    return pairs


class IndependentCounts:
    """Whole counts of every candidate if its columns were independent; only changed ones are computed again."""

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
        for index in np.flatnonzero(stale).tolist():
            table = self._table(self._candidates.all[index])
            self._candidates.table(self._counts, index)[:] = np.rint(table).astype(np.int64)
        return self._counts

    def _table(self, candidate: Candidate) -> Floats:
        return independent_counts(candidate, self._shares[candidate.left], self._shares[candidate.right], self._rows)


def independent_counts(candidate: Candidate, left: Floats, right: Floats, rows: int) -> Floats:
    """Return counts on a candidate's groups if its columns, with these shares of their cells, were independent."""
    out: Floats = rows * np.outer(candidate.rows.sums(left), candidate.columns.sums(right))
    return out
