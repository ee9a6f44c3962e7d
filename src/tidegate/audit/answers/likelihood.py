"""How likely an answer is in every possible world: the attacker's own arithmetic, from the published law of the noise.

Reference  Lee & Clifton 2012, Sections 3.5 and 4: the posterior of a world is its prior times the likelihood of the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.accounting import DiscreteLaplace, Exponential, Moments
from tidegate.answer import Query
from tidegate.answer.mechanisms import mechanism_for
from tidegate.arrays import Floats
from tidegate.audit.answers.situations import Situation
from tidegate.extras import extra

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
    raise TypeError("an attacker who does not know the law of this noise")


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
