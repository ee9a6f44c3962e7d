"""Answers in many possible worlds, and the informed adversary's inference from them.

The likelihood of an answer in every possible world is computed independently, from the published distribution of the noise.

Reference:
    Lee & Clifton 2012, Sections 3.5 and 4: the posterior of a world is its prior times the likelihood of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.accounting import Choices, DiscreteGaussian, DiscreteLaplace, Event, Exponential, GaussianMoments, Moments
from tidegate.answer import Query
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.run import plan
from tidegate.answer.spending import RequestedLoss
from tidegate.arrays import Floats, Ints
from tidegate.audit.answers.ask import CachedTable, Run, draw_answers_of, run_mechanism
from tidegate.audit.answers.situations import Situation
from tidegate.audit.bounds import best_event, lower_bound
from tidegate.audit.fake_data import whole_budget
from tidegate.audit.finding import Clock
from tidegate.extras import extra
from tidegate.noise import Bits

with extra("audit", "The audit"):
    from scipy.special import logsumexp  # type: ignore[import-untyped]

Likelihood = Callable[[Floats], Any]


def likelihood_of(situation: Situation, query: Query, event: Any) -> Likelihood:
    """Return a function from answers to ln of their likelihood in each world, up to a constant: (answers, worlds)."""
    if isinstance(event, Exponential | Choices):
        table = choice_likelihoods(situation, query, event)
        return lambda numbers: table[numbers[:, 0].astype(np.int64)]
    if isinstance(event, Moments):
        scales = [float(scale) for scale in event.scales if scale is not None]
        exact = world_moments(situation, event)
        return lambda numbers: -sum(abs(numbers[:, k, None] - exact[k]) / scale for k, scale in enumerate(scales))
    if isinstance(event, GaussianMoments):
        sigmas = [float(sigma) for sigma in event.sigmas if sigma is not None]
        exact = world_moments(situation, event)
        return lambda numbers: -sum(((numbers[:, k, None] - exact[k]) / s) ** 2 / 2 for k, s in enumerate(sigmas))
    if isinstance(event, DiscreteLaplace | DiscreteGaussian) and query.statistic == "histogram":
        return lambda numbers: histogram_likelihoods(situation, event, numbers)
    if isinstance(event, DiscreteLaplace | DiscreteGaussian):
        special, other = (int(situation.world(index).count((), where=query.condition)) for index in _few(situation))
        shown = np.where(np.arange(situation.codes.size) == situation.special, float(special), float(other))
        return lambda numbers: log_weights(event, numbers[:, :1] - shown)
    raise TypeError("An adversary that does not know the distribution of this noise")


def log_weights(event: DiscreteLaplace | DiscreteGaussian, noise: Floats) -> Floats:
    """Return ln of the probability of noise, up to a constant."""
    if isinstance(event, DiscreteLaplace):
        return np.asarray(-np.abs(noise) / float(event.scale))
    return np.asarray(-((noise / float(event.sigma)) ** 2) / 2)


def _few(situation: Situation) -> tuple[int, int]:
    """Return the special world and one other: a count of the special value is the same in all others."""
    return situation.special, 0 if situation.special else 1


def world_moments(situation: Situation, event: Moments | GaussianMoments) -> list[Floats]:
    """Return count, sum and sum of squares in each world, as far as they have noise.

    A row adds 1, d and d**2, with d on the event's bounds.
    """
    last, rows = situation.attribute.size - 1, situation.policy.dataset.unit.rows_per_person
    step = (event.highest - event.lowest) // last
    known = [event.lowest + step * unit[situation.column] for unit in situation.known]
    missing = event.lowest + step * situation.codes.astype(np.float64)
    totals = [rows * (missing**power + sum(float(d) ** power for d in known)) for power in range(3)]
    noises = event.scales if isinstance(event, Moments) else event.sigmas
    return [total for total, noise in zip(totals, noises, strict=True) if noise is not None]


def histogram_likelihoods(situation: Situation, event: DiscreteLaplace | DiscreteGaussian, numbers: Floats) -> Floats:
    """Return the likelihoods of a histogram: a world differs from the known units in one cell."""
    world = situation.world(0)
    axis, rows = world.axis(situation.column, binned=True), world.rows
    firsts = np.array(axis.firsts or range(axis.length))
    cells = np.searchsorted(firsts, situation.codes, side="right") - 1
    known = world.count([axis]).astype(np.float64)
    known[cells[0]] -= rows
    gains = log_weights(event, numbers - known - rows) - log_weights(event, numbers - known)
    return np.asarray(gains[:, cells])


def choice_likelihoods(situation: Situation, query: Query, event: Exponential | Choices) -> Floats:
    """Return the likelihoods of a choice from the public list: (chosen value, worlds)."""
    ranks: Any = mechanism_for(query)
    scores = []
    for index in range(situation.codes.size):
        world = situation.world(index)
        counts = world.count([world.axis(situation.column)])[: situation.attribute.size]
        scores.append(float(event.rate) * ranks.scores(query, situation.policy, event, counts))
    weights = np.array(scores, np.float64)
    return np.asarray((weights - logsumexp(weights, axis=1, keepdims=True)).T)


def posterior_odds(situation: Situation, likelihoods: Floats) -> Floats:
    """Return ln of how much likelier an answer is in the special world than in the others together."""
    with np.errstate(divide="ignore"):
        others = logsumexp(likelihoods + np.log(situation.others), axis=1)
    return np.asarray(likelihoods[:, situation.special] - others)


def guesses(situation: Situation, likelihoods: Floats) -> NDArray[np.int64]:
    """Return the likeliest world after each answer, or the middle of the likeliest window.

    Of several equally likely worlds the first is named: if worlds are drawn from the prior, it is right as often as any.
    """
    logs = likelihoods + np.log(np.maximum(situation.prior, 1e-300))
    if not situation.window:
        return np.asarray(np.argmax(logs, axis=1))
    upto = np.zeros((len(logs), logs.shape[1] + 1))
    np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1, out=upto[:, 1:])
    middles = np.arange(logs.shape[1])
    first, beyond = np.maximum(middles - situation.window, 0), np.minimum(middles + situation.window + 1, middles.size)
    return np.asarray(np.argmax(upto[:, beyond] - upto[:, first], axis=1))


PricedQuery = tuple[Query, Any, Likelihood]
Pricing = Callable[..., Sequence[Event]]
FIRST, MOST = 100, 200_000  # draws of each kind: in the first step, and in total
AT_ONCE = 4_000_000  # likelihoods in memory at a time


@dataclass(frozen=True)
class Resources:
    """What an attack can use: its alpha, its time, randomness for worlds and for noise, the attacked code, the number of draws."""

    alpha: float
    clock: Clock
    random: np.random.Generator
    bits: Bits
    run: Run = run_mechanism
    most: int = MOST


@dataclass(frozen=True)
class Outcome:
    """The adversary's result: the number of right guesses, and the odds of the special world when true and when false."""

    times: int
    right: int
    true: Floats
    false: Floats

    def guess_bound(self, alpha: float) -> float:
        """Return the lower bound of the probability that a guess is right."""
        return lower_bound(self.right, self.times, alpha=alpha)

    def loss_bound(self, alpha: float) -> float:
        """Return the lower bound of the loss that claims of the special world prove."""
        return best_event(self.true, self.false, alpha=alpha, both=False)[0]


class WorldSampler:
    """Queries in sampled worlds, each for its part of a loss; by default of the whole budget.

    `price` returns the events of several queries for a loss: the product's own planning, unless a fault is planted.
    """

    def __init__(
        self,
        situation: Situation,
        queries: Sequence[Query],
        resources: Resources,
        *,
        loss: RequestedLoss | None = None,
        price: Pricing = plan,
    ) -> None:
        self.situation, self._resources = situation, resources
        self.events = price(queries, situation.policy, loss=loss or whole_budget(situation.policy))
        pairs = zip(queries, self.events, strict=True)
        self._queries = [(query, event, likelihood_of(situation, query, event)) for query, event in pairs]
        self._worlds: dict[int, CachedTable] = {}

    def sample(self, clock: Clock, *, most: int = MOST) -> Outcome:
        """Draw as often as time allows, twice as many at each step; the number depends on nothing else."""
        here, choose = self.situation, self._resources.random.choice
        true, false, right, times, step = list[Floats](), list[Floats](), 0, 0, FIRST
        while times < most:
            pace, some = Clock(0), min(step, most - times)
            true.append(self._odds(np.full(some, here.special)))
            false.append(self._odds(choice_of(choose, here.others, some)))
            right += self._right(choice_of(choose, here.prior, some))
            times, step = times + some, 2 * step
            if 2 * pace.spent > clock.remaining:
                break
        return Outcome(times, right, np.concatenate(true), np.concatenate(false))

    def count_right(self, times: int) -> int:
        """Draw that many worlds from the prior, and count the right guesses."""
        return self._right(choice_of(self._resources.random.choice, self.situation.prior, times))

    def _odds(self, indexes: Ints) -> Floats:
        return np.concatenate(
            [posterior_odds(self.situation, self._likelihoods(some)) for some in self._parts(indexes)]
        )

    def _right(self, secret: Ints) -> int:
        """Count the right guesses."""
        right, here = 0, self.situation
        for some in self._parts(secret):
            hits = here.is_right(guesses(here, self._likelihoods(some)), some)
            right += int((hits & (self._resources.random.random(some.size) * here.alike < 1)).sum())
        return right

    def _parts(self, indexes: Ints) -> list[Ints]:
        at_once = max(1, AT_ONCE // self.situation.codes.size)
        return [indexes[start : start + at_once] for start in range(0, indexes.size, at_once)]

    def _likelihoods(self, indexes: Ints) -> Floats:
        """Return the likelihoods after one set of answers in each of some worlds: (sampled worlds, worlds)."""
        total = np.zeros((indexes.size, self.situation.codes.size))
        for query, event, law in self._queries:
            total += law(self._answers(query, event, indexes))
        return total

    def _answers(self, query: Query, event: Any, indexes: Ints) -> Floats:
        some, order = np.unique(indexes, return_inverse=True)
        for index in some:
            self._worlds.setdefault(int(index), CachedTable(self.situation.world(int(index))))
        tables = [self._worlds[int(index)] for index in some]
        return draw_answers_of(query, tables, event, order=order, bits=self._resources.bits, run=self._resources.run)


def choice_of(choose: Any, chances: Floats, count: int) -> Ints:
    """Draw indexes by their probabilities."""
    return np.asarray(choose(chances.size, count, p=chances))
