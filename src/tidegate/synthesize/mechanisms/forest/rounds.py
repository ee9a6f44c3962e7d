"""One round: choose a pair of columns at one resolution, or none, and count it. Also the rounds that join columns, in which
each pair connects two trees of the forest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.synthesize.facts import Facts
from tidegate.synthesize.mechanisms.forest.margins import Margin
from tidegate.synthesize.mechanisms.forest.pairs import Pair
from tidegate.synthesize.mechanisms.forest.selection import HALVES, Candidate, Candidates, Private, penalties
from tidegate.synthesize.model import Progress

USUAL_CELLS, LEAST_SHARE, MOST_SHARE = 40, 0.4, 2.5


class Measures(Protocol):
    """The private measurements of a round: `Meter`, or a reader of an old diary."""

    def scale(self, parts: int) -> float: ...

    def mean_noise(self, parts: Ints) -> Floats: ...

    def counts(self, name: str, parts: int, count: Callable[[], Ints]) -> Floats: ...

    def choice(self, name: str, parts: int, scores: Callable[[], Ints], *, sensitivity: int) -> int: ...


@dataclass
class Rounds:
    """The remaining parts for pairs and choices, and the steps of one round.

    power          a table of K cells gets a share proportional to K**power
    choice_share   parts of every choice; None: the remaining ones are spread over the remaining rounds
    """

    facts: Facts
    meter: Measures
    candidates: Candidates
    private: Private
    margins: list[Margin]
    progress: Progress
    rounds: int
    left: int
    choices_left: int
    power: float = 0.5
    choice_share: int | None = None
    done: int = 0
    remaining: int = -1

    def __post_init__(self) -> None:
        self.remaining = self.rounds

    def offers(self) -> Ints:
        """Return the parts for each candidate: more for more cells, at most half of what remains."""
        if self.remaining <= 1:
            return np.full(self.candidates.cells.size, self.left, np.int64)
        stretch = 2 * self.power
        share = np.clip((self.candidates.cells / USUAL_CELLS) ** self.power, LEAST_SHARE**stretch, MOST_SHARE**stretch)
        return np.minimum(self.left / self.remaining * share, self.left // 2).astype(np.int64)

    def choose_pair(self, among: list[int], believed: Callable[[], Ints]) -> Pair | None:
        """Choose a candidate, or none, by how far the rows are from the model's counts, and count it."""
        parts = self.offers()
        share = self.choices_left // max(self.remaining, 1) if self.choice_share is None else self.choice_share
        name = f"choice {self.done + 1}"
        self.progress("pairs", self.done, self.rounds)
        self.done += 1
        self.remaining -= 1
        if not among or min(parts[among]) < 1:
            return None
        weight, most = self._weights(among)
        cost = penalties(self.candidates.cells, self.meter.mean_noise(parts))

        def scores() -> Ints:
            gain = (self.private.misfits(believed()) - cost)[among] * weight
            return np.append(gain, 0)

        self.choices_left -= share
        chosen = self.meter.choice(name, share, scores, sensitivity=HALVES * most)
        return None if chosen == len(among) else self._count(among[chosen], int(parts[among[chosen]]))

    def _weights(self, among: list[int]) -> tuple[Ints, int]:
        """Return whole weights: a pair with the target counts a quarter more (double the weight starves all other pairs)."""
        if not self.facts.target:
            return np.ones(len(among), np.int64), 1
        target = self.facts.place(self.facts.target)
        with_it = (self.candidates.left[among] == target) | (self.candidates.right[among] == target)
        return np.where(with_it, 5, 4), 5

    def _count(self, index: int, parts: int) -> Pair:
        candidate = self.candidates.all[index]
        names = [self.facts.columns[n].name for n in (candidate.left, candidate.right)]
        noisy = self.meter.counts(
            f"pair of {names[0]} and {names[1]}", parts, lambda: self.private.table(index).ravel()
        )
        self.left -= parts
        listed = self.margins[candidate.left].listed * self.margins[candidate.right].listed
        pair = Pair(candidate, noisy.reshape(candidate.shape) / listed, float(self.meter.scale(parts)) / listed)
        pair.refresh(self.margins)
        return pair


def grow(rounds: Rounds, count: int, *, patience: int | None = None) -> list[Pair]:
    """Return the pairs of the forest, in the order of the choices; stop after `patience` rounds without a pair."""
    component, pairs, idle = np.arange(len(rounds.margins)), [], 0
    model = IndependentCounts(rounds.candidates, rounds.facts.rows)
    for done in range(count):
        among = rounds.candidates.joining(component)
        pair = rounds.choose_pair(among, lambda: model.counts(rounds.margins))
        idle = 0 if pair is not None else idle + 1
        if pair is not None:
            pairs.append(pair)
            component[component == component[pair.candidate.left]] = component[pair.candidate.right]
        if idle == patience or (patience is not None and not rounds.candidates.joining(component)):
            rounds.remaining -= count - done - 1
            break
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
