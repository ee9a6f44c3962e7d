"""Answers in many possible worlds, and what the informed adversary makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tidegate.answer import Query
from tidegate.arrays import Floats, Ints
from tidegate.audit.answers.ask import Remembered, Run, draws_of, event_of, honest
from tidegate.audit.answers.likelihood import Law, guesses, law_of, posterior_odds
from tidegate.audit.answers.situations import Situation
from tidegate.audit.bounds import best_event, lowest
from tidegate.audit.clock import Clock
from tidegate.audit.fake_data import ceiling_of
from tidegate.noise import Bits

Asked = tuple[Query, Any, Law]
FIRST, MOST = 100, 200_000  # draws of each kind: at first, and in all
AT_ONCE = 4_000_000  # likelihoods that are held at a time


@dataclass(frozen=True)
class Means:
    """What an attack is given: the chance with which it may accuse true code, its time, chance for worlds and for noise, the
    code that is attacked, and how often it may draw."""

    alpha: float
    clock: Clock
    random: np.random.Generator
    bits: Bits
    run: Run = honest
    most: int = MOST


@dataclass(frozen=True)
class Seen:
    """What he got: how often his guess was right, and his odds of the special world where it is true and where it is not."""

    times: int
    right: int
    true: Floats
    false: Floats

    def guessed(self, alpha: float) -> float:
        """How often his guess is right, from below."""
        return lowest(self.right, self.times, alpha=alpha)

    def loss(self, alpha: float) -> float:
        """How much likelier his claim of the special world is when it is true, from below, as a loss."""
        return best_event(self.true, self.false, alpha=alpha, both=False)[0]


class Sampled:
    """Some questions in worlds that are drawn, each for its part of a loss: of all that may be spent, if none is said."""

    def __init__(
        self, situation: Situation, queries: Sequence[Query], means: Means, *, epsilon: Fraction | None = None
    ) -> None:
        self.situation, self._means = situation, means
        each = (epsilon or ceiling_of(situation.policy).value) / len(queries)
        self._asked = [_known(situation, query, each) for query in queries]
        self._worlds: dict[int, Remembered] = {}

    def collected(self, clock: Clock, *, most: int = MOST) -> Seen:
        """As many draws as there is time for, twice as many at each step; how many depends on nothing else."""
        here, choose = self.situation, self._means.random.choice
        true, false, right, times, step = list[Floats](), list[Floats](), 0, 0, FIRST
        while times < most:
            pace, some = Clock(0), min(step, most - times)
            true.append(self._odds(np.full(some, here.special)))
            false.append(self._odds(choice_of(choose, here.others, some)))
            right += self._right(choice_of(choose, here.prior, some))
            times, step = times + some, 2 * step
            if 2 * pace.spent > clock.left:
                break
        return Seen(times, right, np.concatenate(true), np.concatenate(false))

    def _odds(self, places: Ints) -> Floats:
        return np.concatenate([posterior_odds(self.situation, self._weighed(some)) for some in self._parts(places)])

    def _right(self, secret: Ints) -> int:
        """How often his guess is right."""
        return sum(int((guesses(self.situation, self._weighed(some)) == some).sum()) for some in self._parts(secret))

    def _parts(self, places: Ints) -> list[Ints]:
        at_once = max(1, AT_ONCE // self.situation.codes.size)
        return [places[start : start + at_once] for start in range(0, places.size, at_once)]

    def _weighed(self, places: Ints) -> Floats:
        """The likelihoods after one set of answers in each of some worlds: (worlds drawn, worlds)."""
        total = np.zeros((places.size, self.situation.codes.size))
        for query, event, law in self._asked:
            total += law(self._answers(query, event, places))
        return total

    def _answers(self, query: Query, event: Any, places: Ints) -> Floats:
        some, order = np.unique(places, return_inverse=True)
        for place in some:
            self._worlds.setdefault(int(place), Remembered(self.situation.world(int(place))))
        tables = [self._worlds[int(place)] for place in some]
        return draws_of(query, tables, event, places=order, bits=self._means.bits, run=self._means.run)


def choice_of(choose: Any, chances: Floats, many: int) -> Ints:
    """Ints drawn by their chances."""
    return np.asarray(choose(chances.size, many, p=chances))


def _known(situation: Situation, query: Query, epsilon: Fraction) -> Asked:
    """A question with the event of its loss, and the law of its answers."""
    event = event_of(query, situation.policy, epsilon=epsilon)
    return query, event, law_of(situation, query, event)
