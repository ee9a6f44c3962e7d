"""Attacks on shuffled batches and on what one device ever sends: correct code is not accused, planted faults are detected.

Enumerated and counted findings have no error rate; the simulated batches accuse correct code with probability at most ALPHA.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from claims.probabilities import SEED
from reference import shuffle as slow

from tidegate.accounting import later_reader as claims
from tidegate.audit.collections import batches
from tidegate.audit.collections.batches import attack_batches, batch_channel, exact_delta, merge
from tidegate.audit.collections.lifetime import attack_lifetime, change_loss
from tidegate.audit.collections.run import attack_reports, seeded_device
from tidegate.audit.collections.value_pairs import value_pairs
from tidegate.audit.finding import Finding
from tidegate.collect.client import Client
from tidegate.operators import HashResponse, RandomizedResponse
from tidegate.operators.exact_draws import SeededBytes
from tidegate.policy import Category, Collection, Dataset, Integer, Items, Policy, Question, Text
from tidegate.policy.collection import operator_for

ALPHA = 1e-6
TOWN = Category(("north", "south", "east", "west", "middle"))
QUESTIONS = {
    "response": Question("town", TOWN, "randomized-response", epsilon=1),
    "subset": Question("town", TOWN, "subset", epsilon=1),
    "hash": Question("town", TOWN, "hash-response", epsilon=1),
    "projective": Question("town", TOWN, "projective-geometry", epsilon=1),
    "privset": Question("goods", Items(tuple("abcde")), "privset", epsilon=1, choose=2),
    "option": Question("goods", Items(tuple("abcde")), "one-option", epsilon=1),
    "wave": Question("age", Integer(16, 40), "square-wave", epsilon=1),
}
ROUNDS = {
    "response": Question("town", TOWN, "randomized-response", epsilon=2, each=1),
    "hash": Question("town", TOWN, "hash-response", epsilon=2, each=1),
}


def pairs_of(collection: Collection) -> dict[str, Any]:
    return {name: value_pairs(question, operator_for(question))[0] for name, question in collection.questions.items()}


def broken(findings: list[Finding]) -> set[str]:
    return {finding.attack for finding in findings if finding.broken}


# Shuffled batches


@pytest.mark.claim
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_batch_is_distinguished_better_than_stated(name: str) -> None:
    collection = Collection("shop", {name: QUESTIONS[name]})
    findings = attack_batches(collection, pairs_of(collection), alpha=ALPHA, seed=1)
    assert [finding.attack for finding in findings] == ["all small batches", "simulated batches"]
    assert not broken(findings), [finding.says for finding in findings]


@pytest.mark.parametrize("ask", [None, 1])
def test_batches_of_several_questions_are_attacked_together(ask: int | None) -> None:
    questions = {name: QUESTIONS[name] for name in ("response", "privset")}
    collection = Collection("shop", questions, ask=ask)
    findings = attack_batches(collection, pairs_of(collection), alpha=ALPHA, seed=2)
    assert findings
    assert not broken(findings)


def test_enumeration_equals_the_reference() -> None:
    for operator in (RandomizedResponse(2, epsilon=Fraction(1)), RandomizedResponse(2, epsilon=Fraction(2))):
        channel = np.array(operator.exact_channel(), np.float64)
        for reports, epsilon in ((1, 0.2), (3, 0.2), (4, 0.5)):
            assert (
                exact_delta(channel, reports, epsilon)
                <= slow.true_delta(channel, reports=reports, epsilon=epsilon) + 1e-12
            )
    assert exact_delta(channel, 1, 0.5) == pytest.approx(slow.true_delta(channel, reports=1, epsilon=0.5))


def test_merged_classes_keep_the_probabilities() -> None:
    collection = Collection("shop", {"wave": QUESTIONS["wave"]})
    chances = pairs_of(collection)["wave"].chances
    assert merge(chances).sum(axis=0) == pytest.approx([1, 1])
    assert len(merge(chances)) <= 4
    assert batch_channel(Collection("shop", QUESTIONS, ask=2), pairs_of(Collection("shop", QUESTIONS))) is None


@pytest.mark.parametrize("reports", [batches.SMALL, batches.LARGE])
def test_claim_for_too_many_reports_is_detected(reports: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim of a batch that is 20 times as large."""
    collection = Collection("shop", {"response": QUESTIONS["response"]})

    def too_good(of: Collection, size: int, *, delta: float | None = None) -> Any:
        claim = claims.later_reader(of, 20 * size, delta=delta)
        return None if size != reports or claim is None else replace(claim, reports=size)

    monkeypatch.setattr(batches, "later_reader", too_good)
    [finding] = attack_batches(collection, pairs_of(collection), alpha=ALPHA, seed=3)
    assert finding.broken, finding.says


# One device over time


@pytest.mark.parametrize("repeats", ["memoised", "once"])
def test_versions_and_names_gain_nothing_beyond_the_lifetime(repeats: Any) -> None:
    collection = Collection("shop", QUESTIONS, repeats, lifetime=Fraction(21))
    findings = attack_lifetime(collection, pairs_of(collection), seeded_device(SEED))
    assert [finding.attack for finding in findings] == ["new versions", "renamed questions"]
    assert not broken(findings), [finding.says for finding in findings]
    assert findings[1].bound == 21  # three of 30 collections were answered


def test_rounds_use_two_permanent_answers_and_the_round_of_a_change_is_observed() -> None:
    collection = Collection("shop", ROUNDS, "two-layers")
    findings = attack_lifetime(collection, pairs_of(collection), seeded_device(SEED))
    by_attack = {finding.attack: finding for finding in findings}
    assert not broken(findings)
    assert by_attack["a new value in every round"].bound == 4
    assert by_attack["the round of a change"].verdict == "observed"
    assert [finding.attack for finding in findings].count("the round of a change") == 2


def test_change_is_revealed_more_than_two_permanent_answers_allow() -> None:
    cells = HashResponse(20, epsilon=Fraction(2), each=Fraction(1)).cells
    assert change_loss(cells, 2) == pytest.approx(1.22, abs=0.01)
    assert change_loss(cells, 8) == pytest.approx(5.38, abs=0.01)
    assert change_loss(cells, 52) > 30


class ByVersion(Client):
    """A client that draws its answers again for every version."""

    @property
    def _keys(self) -> dict[str, str]:  # type: ignore[override]
        return {name: f"{self.collection.version}/{name}" for name in self.collection.questions}


class ByValue(Client):
    """A client that stores a permanent answer for every value instead of every cell."""

    def _memory_code(self, name: str, code: int) -> int:
        self._memory.setdefault("values", {}).setdefault(code, len(self._memory["values"]))
        return super()._memory_code(name, code) + 1_000 * self._memory["values"][code]


class Unlimited(Client):
    """A client that does not count."""

    def _account(self) -> Any:
        return replace(super()._account(), spent=Fraction(0))


def factory(kind: type[Client]) -> Callable[[Collection, dict[str, Any]], Client]:
    source = SeededBytes(f"{SEED}/{kind.__name__}")
    return lambda collection, memory: kind(collection, memory=memory, source=source)


@pytest.mark.parametrize(
    ("kind", "attack", "questions", "repeats"),
    [
        (ByVersion, "new versions", {"response": QUESTIONS["response"]}, "memoised"),
        (ByVersion, "new versions", ROUNDS, "two-layers"),
        (ByValue, "a new value in every round", {"hash": ROUNDS["hash"]}, "two-layers"),
        (Unlimited, "renamed questions", {"response": QUESTIONS["response"]}, "memoised"),
    ],
)
def test_faulty_client_is_detected(kind: Any, attack: str, questions: Any, repeats: Any) -> None:
    collection = Collection(
        "shop", questions, repeats, lifetime=Fraction(100) if kind is not Unlimited else Fraction(2)
    )
    findings = attack_lifetime(collection, pairs_of(collection), factory(kind))
    assert attack in broken(findings), [finding.says for finding in findings]


def test_whole_audit_covers_rounds_and_texts() -> None:
    universes = {"town": TOWN, "dish": Text()}
    rounds = Collection("rounds", {"hash": ROUNDS["hash"]}, "two-layers")
    texts = Collection("texts", {"dish": Question("dish", Text(), "prefix", epsilon=2)})
    policy = Policy(Dataset("people"), universes, collections={"rounds": rounds, "texts": texts})
    for name in policy.collections:
        findings = attack_reports(policy, name, alpha=ALPHA, seconds=2, seed=5, most=500)
        assert not broken(findings), [finding.says for finding in findings if finding.broken]
        assert "new versions" in {finding.attack for finding in findings}
    assert math.isfinite(sum(finding.seconds for finding in findings))
