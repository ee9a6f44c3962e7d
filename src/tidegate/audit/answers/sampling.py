"""Answers in many possible worlds, and what the informed adversary makes of them.

The likelihood of an answer in every possible world is the attacker's own arithmetic, from the published law of the noise.

Reference:
    Lee & Clifton 2012, Sections 3.5 and 4: the posterior of a world is its prior times the likelihood of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.accounting import DiscreteLaplace, Exponential, Moments
from tidegate.answer import Query
from tidegate.answer.mechanisms import mechanism_for
from tidegate.arrays import Floats, Ints
from tidegate.audit.answers.ask import Remembered, Run, draws_of, event_of, honest
from tidegate.audit.answers.situations import Situation
from tidegate.audit.bounds import best_event, lowest
from tidegate.audit.fake_data import ceiling_of
from tidegate.audit.finding import Clock
from tidegate.extras import extra
from tidegate.noise import Bits

with extra("audit", "The audit"):
    from scipy.special import logsumexp  # type: ignore[import-untyped]

Law = Callable[[Floats], Any]


def law_of(situation: Situation, query: Query, event: Any) -> Law:
    """ln of how likely each answer (a row of numbers) is in each world, but for a constant: (answers, worlds)."""
    if isinstance(event, Exponential):
        table = chosen(situation, query, event)
        return lambda numbers: table[numbers[:, 0].astype(np.int64)]
    if isinstance(event, Moments):
        scales = [float(scale) for scale in event.scales if scale is not None]
        exact = moments(situation, event)
        return lambda numbers: -sum(abs(numbers[:, k, None] - exact[k]) / scale for k, scale in enumerate(scales))
    if isinstance(event, DiscreteLaplace) and query.statistic == "histogram":
        return lambda numbers: counted(situation, float(event.scale), numbers)
    if isinstance(event, DiscreteLaplace):
        special, other = (int(situation.world(place).count((), where=query.condition)) for place in _few(situation))
        shown = np.where(np.arange(situation.codes.size) == situation.special, float(special), float(other))
        return lambda numbers: -np.abs(numbers[:, :1] - shown) / float(event.scale)
    raise TypeError("An adversary that does not know the distribution of this noise")


def _few(situation: Situation) -> tuple[int, int]:
    """The special world and one of the others: a count of the special value is the same in all of them."""
    return situation.special, 0 if situation.special else 1


def moments(situation: Situation, event: Moments) -> list[Floats]:
    """Number, sum and squares in each world, those that have noise: a row adds 1, d and d**2, with d on the event's bounds."""
    last, rows = situation.attribute.size - 1, situation.policy.dataset.unit.rows_per_person
    step = (event.highest - event.lowest) // last
    known = [event.lowest + step * one[situation.column] for one in situation.known]
    missing = event.lowest + step * situation.codes.astype(np.float64)
    found = [rows * (missing**power + sum(float(d) ** power for d in known)) for power in range(3)]
    return [one for one, scale in zip(found, event.scales, strict=True) if scale is not None]


def counted(situation: Situation, scale: float, numbers: Floats) -> Floats:
    """Of a histogram: a world differs from what is known in one cell."""
    world = situation.world(0)
    axis, rows = world.axis(situation.column, binned=True), world.rows
    firsts = np.array(axis.firsts or range(axis.length))
    cells = np.searchsorted(firsts, situation.codes, side="right") - 1
    known = world.count([axis]).astype(np.float64)
    known[cells[0]] -= rows
    gains = (np.abs(numbers - known) - np.abs(numbers - known - rows)) / scale
    return np.asarray(gains[:, cells])


def chosen(situation: Situation, query: Query, event: Exponential) -> Floats:
    """Of a choice from the public list: (chosen value, worlds)."""
    ranks: Any = mechanism_for(query)
    scores = []
    for place in range(situation.codes.size):
        world = situation.world(place)
        counts = world.count([world.axis(situation.column)])[: situation.attribute.size]
        scores.append(float(event.rate) * ranks.scores(query, situation.policy, event, counts))
    weights = np.array(scores, np.float64)
    return np.asarray((weights - logsumexp(weights, axis=1, keepdims=True)).T)


def posterior_odds(situation: Situation, likelihoods: Floats) -> Floats:
    """ln of how much likelier an answer is in the special world than in the others together."""
    with np.errstate(divide="ignore"):
        others = logsumexp(likelihoods + np.log(situation.others), axis=1)
    return np.asarray(likelihoods[:, situation.special] - others)


def guesses(situation: Situation, likelihoods: Floats) -> NDArray[np.int64]:
    """The likeliest world after each answer."""
    return np.asarray(np.argmax(likelihoods + np.log(np.maximum(situation.prior, 1e-300)), axis=1))


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
