"""Sampled claims about whole answers: the noise that leaves keeps its epsilon, and intervals hold as often as they say.

True code fails a claim at most once in 1 / ALPHA runs, each; there are 12 such tests. Each planted fault is refuted.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from claims.chances import at_least, bits, epsilon_lower_bound
from naive.tables import NaiveTable

from tidegate.accounting import DiscreteLaplace, Moments
from tidegate.answer import Query, count, histogram, mean, std, sum, variance
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.mechanisms.mechanism import Mechanism
from tidegate.answer.run import plan
from tidegate.policy import Category, Dataset, EachRow, Integer, Loss, Policy
from tidegate.policy.predicates import col

pytestmark = pytest.mark.claim

ALPHA, FEW, DRAWS = 1e-6, 1_500, 4_000
POLICY = Policy(
    Dataset("d", unit=EachRow(), rows=6),
    {"x": Integer(0, 3, missing="lowest"), "g": Category(("a", "b"))},
    None,
    Loss(100),
)
HERE = [{"x": x, "g": g} for x, g in ((0, "a"), (0, "a"), (1, "b"), (0, "b"), (2, "a"), (0, "a"))]
THERE = [*HERE[:-1], {"x": 3, "g": "b"}]  # one row replaced, as far away as it can be


class Remembered(NaiveTable):
    """A table that counts once: thousands of noisy answers need the exact numbers only once."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        super().__init__(POLICY, rows)
        self.known: dict[str, Any] = {}

    def count(self, *args: Any, **named: Any) -> Any:
        return self.known.setdefault(f"count {args} {named}", super().count(*args, **named))

    def moments(self, *args: Any, **named: Any) -> Any:
        return self.known.setdefault(f"moments {args} {named}", super().moments(*args, **named))


Run = Callable[[Mechanism, Query, Any, Any, Any], Any]


def honest(mechanism: Mechanism, query: Query, table: Any, event: Any, source: Any) -> Any:
    return mechanism.run(query, table, event, bits=source)


def quarter_less_noise(mechanism: Mechanism, query: Query, table: Any, event: Any, source: Any) -> Any:
    return mechanism.run(query, table, _scaled(event, Fraction(3, 4)), bits=source)


def moved_once(mechanism: Mechanism, query: Query, table: Any, event: Any, source: Any) -> Any:
    """A group mean charged as if its row could not change groups."""
    return mechanism.run(query, table, _scaled(event, Fraction(1, 2)), bits=source)


def _scaled(event: Any, factor: Fraction) -> Any:
    if isinstance(event, DiscreteLaplace):
        return DiscreteLaplace(event.sensitivity, event.scale * factor)
    scales = tuple(scale * factor if scale is not None else None for scale in event.scales)
    return Moments(event.lowest, event.highest, event.rows, scales, event.grouped, event.always)


def numbers(stored: Any) -> np.ndarray:
    parts = stored["cells"] if "cells" in stored else [part for part in stored["moments"] if part is not None]
    return np.hstack([np.asarray(part, float).reshape(-1) for part in (parts if isinstance(parts, list) else [parts])])


def shown_loss(query: Query, run: Run, epsilon: Fraction, questions: int = 1, tries: int = DRAWS) -> float:
    """The loss that so many answers of two neighbouring tables prove, on the event that tells them best apart."""
    mechanism, event = mechanism_for(query), plan((query,), POLICY, epsilon=epsilon)[0]
    source, samples = bits(f"{query.says()} {run.__name__}"), []
    for rows in (HERE, THERE):
        table = Remembered(rows)
        drawn = [
            np.sum([numbers(run(mechanism, query, table, event, source)) for _ in range(questions)], axis=0)
            for _ in range(tries)
        ]
        samples.append(np.array(drawn))
    exact = [numbers(_exact(mechanism, query, rows, event)) * questions for rows in (HERE, THERE)]
    toward = np.sign(exact[0] - exact[1])
    moved = toward != 0
    events = [((sample - exact[0]) * toward >= 0)[:, moved].all(axis=1) for sample in samples]
    return epsilon_lower_bound(events[0], events[1], alpha=ALPHA)


def _exact(mechanism: Mechanism, query: Query, rows: list[dict[str, Any]], event: Any) -> Any:
    tiny = _scaled(event, Fraction(1, 10**9))
    return mechanism.run(query, NaiveTable(POLICY, rows), tiny, bits=bits("exact"))


CLAIMED = [count().where(col("x") >= 1), count().by("g"), histogram("x"), sum("x"), mean("x").by("g"), variance("x")]


@pytest.mark.parametrize("query", CLAIMED, ids=lambda query: query.says())
def test_an_answer_keeps_its_epsilon(query: Query) -> None:
    assert shown_loss(query, honest, Fraction(1), tries=FEW) <= 1


FAULTS = [
    (count().by("g"), quarter_less_noise, Fraction(2), 1),
    (sum("x"), quarter_less_noise, Fraction(2), 1),
    (mean("x").by("g"), moved_once, Fraction(2), 1),
]


@pytest.mark.parametrize(("query", "fault", "epsilon", "questions"), FAULTS, ids=["counts", "sum", "group mean"])
def test_an_answer_with_a_planted_fault_is_refuted(query: Query, fault: Run, epsilon: Fraction, questions: int) -> None:
    assert shown_loss(query, fault, epsilon, questions) > epsilon


def test_forgotten_composition_is_refuted() -> None:
    """Two answers, each for the whole budget, seen by one adversary."""
    assert shown_loss(sum("x"), honest, Fraction(1), questions=2) > 1


def test_float_noise_would_tell_the_worlds_apart_and_ours_does_not() -> None:
    """Responses that one world can give and the other cannot: many with float noise, none with whole numbers."""
    zero = np.random.default_rng(7).laplace(scale=0.4, size=20_000)  # what a float count of 0 answers
    near = [zero - 1, np.nextafter(zero - 1, -9), np.nextafter(zero - 1, 9)]
    impossible = ~np.any([1 + noise == zero for noise in near], axis=0)  # no double noise makes that of a count of 1
    assert np.mean(impossible) > 0.1
    event = plan((sum("x"),), POLICY, epsilon=Fraction(1))[0]
    for rows in (HERE, THERE):
        table = Remembered(rows)
        drawn = [numbers(honest(mechanism_for(sum("x")), sum("x"), table, event, bits("whole"))) for _ in range(200)]
        assert np.all(np.array(drawn) == np.round(drawn))


@pytest.mark.parametrize(
    "query",
    [
        count().by("g"),
        sum("x"),
        mean("x"),
        std("x"),
        *(pytest.param(one.by("g"), marks=pytest.mark.long) for one in (mean("x"), variance("x"))),
    ],
    ids=lambda query: query.says(),
)
def test_intervals_hold_at_least_as_often_as_they_say(query: Query) -> None:
    big = [{"x": (7 * n) % 4, "g": "ab"[n % 2]} for n in range(400)]
    policy = Policy(Dataset("d", rows=400), POLICY.attributes, None, Loss(100))
    mechanism, event, tries = mechanism_for(query), plan((query,), policy, epsilon=Fraction(1))[0], 500
    table: Any = Remembered(big)
    table.policy = policy
    truth = mechanism.read(
        query,
        policy,
        event,
        mechanism.run(query, table, _scaled(event, Fraction(1, 10**9)), bits=bits("truth")),
        confidence=0.9,
    ).values
    held, source = np.zeros(truth.size, int), bits(f"interval {query.says()}")
    for _ in range(tries):
        read = mechanism.read(query, policy, event, mechanism.run(query, table, event, bits=source), confidence=0.9)
        held += ((read.low - 1e-9 <= truth) & (truth <= read.high + 1e-9)).reshape(-1)
    for count_held in held:  # refuted only where so few would be rarer than ALPHA at a true coverage of 0.9
        assert count_held == tries or at_least(int(tries - count_held), tries, 0.1) > ALPHA / truth.size
