"""Sampled claims about whole answers: their noise keeps its epsilon, and intervals have the stated coverage.

Correct code fails with probability at most ALPHA in each of 15 tests. Each planted fault is refuted.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from claims.probabilities import at_least, bits, epsilon_lower_bound
from reference.tables import ReferenceTable

from tidegate.accounting import DiscreteLaplace, Moments
from tidegate.answer import Query, count, histogram, mean, std, sum, variance
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.run import plan
from tidegate.answer.spending import RequestedLoss
from tidegate.policy import Category, Dataset, EachRow, Integer, Loss, Policy
from tidegate.policy.predicates import col

pytestmark = pytest.mark.claim

ALPHA, DRAWS = 1e-6, 20_000
POLICY = Policy(
    Dataset("d", unit=EachRow(), rows=6),
    {"x": Integer(0, 3, missing="lowest"), "g": Category(("a", "b"))},
    None,
    Loss(100),
)
HERE = [{"x": x, "g": g} for x, g in ((0, "a"), (0, "a"), (1, "b"), (0, "b"), (2, "a"), (0, "a"))]
THERE = [*HERE[:-1], {"x": 3, "g": "b"}]  # one row replaced, as far away as it can be


Charged = Callable[[Any], Any]  # from the event that is charged to the event whose noise is drawn


def honest(event: Any) -> Any:
    return event


def quarter_less_noise(event: Any) -> Any:
    return _scaled(event, Fraction(3, 4))


def moved_once(event: Any) -> Any:
    """A group mean charged as if its row could not change groups."""
    return _scaled(event, Fraction(1, 2))


def _scaled(event: Any, factor: Fraction) -> Any:
    if isinstance(event, DiscreteLaplace):
        return DiscreteLaplace(event.sensitivity, event.scale * factor)
    scales = tuple(scale * factor if scale is not None else None for scale in event.scales)
    return Moments(event.lowest, event.highest, event.rows, scales, event.grouped, event.always)


def numbers(stored: Any, draws: int) -> np.ndarray:
    """Return the stored integers, one row for each draw."""
    parts = [stored["cells"]] if "cells" in stored else [part for part in stored["moments"] if part is not None]
    return np.hstack([np.asarray(part, float).reshape(draws, -1) for part in parts])


def proven_loss(query: Query, drawn: Charged, epsilon: Fraction, questions: int = 1) -> float:
    """Return the loss that DRAWS answers of two neighboring tables prove, on the event that distinguishes them best."""
    mechanism, event = mechanism_for(query), plan((query,), POLICY, loss=RequestedLoss(epsilon))[0]
    source, samples, truths = bits(f"{query.says()} {drawn.__name__}"), [], []
    for rows in (HERE, THERE):
        exact = mechanism.exact(query, ReferenceTable(POLICY, rows))
        stored = mechanism.perturb(exact, drawn(event), bits=source, size=questions * DRAWS)
        samples.append(numbers(stored, questions * DRAWS).reshape(questions, DRAWS, -1).sum(axis=0))
        truths.append(questions * np.hstack([np.asarray(part, float).reshape(-1) for part in exact.numbers]))
    toward = np.sign(truths[0] - truths[1])
    moved = toward != 0
    events = [((sample - truths[0]) * toward >= 0)[:, moved].all(axis=1) for sample in samples]
    return epsilon_lower_bound(events[0], events[1], alpha=ALPHA)


CLAIMED = [count().where(col("x") >= 1), count().by("g"), histogram("x"), sum("x"), mean("x").by("g"), variance("x")]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("query", CLAIMED, ids=lambda query: query.says())
def test_answer_keeps_its_epsilon(query: Query) -> None:
    assert proven_loss(query, honest, Fraction(1)) <= 1


FAULTS = [
    (count().by("g"), quarter_less_noise, Fraction(2), 1),
    (sum("x"), quarter_less_noise, Fraction(2), 1),
    (mean("x").by("g"), moved_once, Fraction(2), 1),
]


@pytest.mark.parametrize(("query", "fault", "epsilon", "questions"), FAULTS, ids=["counts", "sum", "group mean"])
def test_answer_with_a_planted_fault_is_refuted(
    query: Query, fault: Charged, epsilon: Fraction, questions: int
) -> None:
    assert proven_loss(query, fault, epsilon, questions) > epsilon


def test_forgotten_composition_is_refuted() -> None:
    """Two answers, each for the whole budget, received by one adversary."""
    assert proven_loss(sum("x"), honest, Fraction(1), questions=2) > 1


def test_float_noise_distinguishes_tables_and_integer_noise_does_not() -> None:
    """Responses that only one of two tables can give: many with float noise, none with integers."""
    zero = np.random.default_rng(7).laplace(scale=0.4, size=20_000)  # what a float count of 0 answers
    near = [zero - 1, np.nextafter(zero - 1, -9), np.nextafter(zero - 1, 9)]
    impossible = ~np.any([1 + noise == zero for noise in near], axis=0)  # no double noise makes that of a count of 1
    assert np.mean(impossible) > 0.1
    mechanism, event = mechanism_for(sum("x")), plan((sum("x"),), POLICY, loss=RequestedLoss(Fraction(1)))[0]
    for rows in (HERE, THERE):
        exact = mechanism.exact(sum("x"), ReferenceTable(POLICY, rows))
        drawn = numbers(mechanism.perturb(exact, event, bits=bits("whole"), size=DRAWS), DRAWS)
        assert np.all(drawn == np.round(drawn))


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "query",
    [count().by("g"), sum("x"), mean("x"), std("x"), mean("x").by("g"), variance("x").by("g")],
    ids=lambda query: query.says(),
)
def test_intervals_have_at_least_the_stated_coverage(query: Query) -> None:
    big = [{"x": (7 * n) % 4, "g": "ab"[n % 2]} for n in range(400)]
    policy = Policy(Dataset("d", rows=400), POLICY.attributes, None, Loss(100))
    mechanism, event = mechanism_for(query), plan((query,), policy, loss=RequestedLoss(Fraction(1)))[0]
    exact = mechanism.exact(query, ReferenceTable(policy, big))
    hardly = mechanism.perturb(exact, _scaled(event, Fraction(1, 10**9)), bits=bits("truth"))
    truth = mechanism.read(query, policy, event, hardly, confidence=0.9).values
    stored = mechanism.perturb(exact, event, bits=bits(f"interval {query.says()}"), size=DRAWS)
    read = mechanism.read(query, policy, event, stored, confidence=0.9)
    assert read.low is not None
    assert read.high is not None
    missed = ((read.low - 1e-9 > truth) | (truth > read.high + 1e-9)).reshape(DRAWS, -1).sum(axis=0)
    for count_missed in missed:  # refuted only where so many would be rarer than ALPHA at a true coverage of 0.9
        assert at_least(int(count_missed), DRAWS, 0.1) > ALPHA / truth.size
