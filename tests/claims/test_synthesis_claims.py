"""Sampled claims about a whole synthesis by the small model of the tests: its diary keeps the epsilon that was charged.

True code fails a claim at most once in 1 / ALPHA runs, each; there are 3 such tests. Each planted fault is refuted.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from claims.probabilities import bits, epsilon_lower_bound
from synthesize.margins import Margins

from tidegate.policy import Category, Dataset, EachPerson, EachRow, Integer, Key, Loss, Policy, Unit
from tidegate.synthesize.columns import columns_of
from tidegate.synthesize.facts import Facts
from tidegate.synthesize.learn import Learning, silent
from tidegate.synthesize.plan import Plan, plan_for
from tidegate.synthesize.private_rows import ArrayRows
from tidegate.synthesize.request import resolve_request

pytestmark = pytest.mark.claim

ALPHA, DRAWS = 1e-6, 3_000
ATTRIBUTES = {"person": Key(), "x": Integer(0, 1), "g": Category(("a", "b"))}


class Careless(Margins):
    """Forgets that a unit may have several rows."""

    def learn(self, facts: Facts, rows: Any, diary: Any, **given: Any) -> Any:
        return super().learn(Facts(facts.columns, facts.rows, 1), rows, diary, **given)


def planned(unit: Unit, *, model: Any, epsilon: str = "2", **wanted: Any) -> Plan:
    policy = Policy(Dataset("d", unit=unit), ATTRIBUTES, None, Loss(100))
    return plan_for(resolve_request(policy, epsilon=epsilon, model=model, **wanted), policy)


def diaries(plan: Plan, codes: list[list[int]], name: str) -> list[np.ndarray]:
    """Many runs over the same rows: the numbers of every step in a row."""
    rows = ArrayRows(np.array(codes), columns_of(plan.policy).learnt)
    learning = Learning(plan, rows, lambda: len(codes), len(codes), bits(name), silent)
    return [np.concatenate([step.value for step in learning.learn().steps]) for _ in range(DRAWS)]


def below(found: list[np.ndarray], places: list[int], middles: list[float]) -> np.ndarray:
    """An event of a diary: each of some numbers on its side of a middle (minus: below it)."""
    matrix = np.array(found)[:, places]
    return np.all(np.where(np.array(middles) < 0, matrix < -np.array(middles), matrix > np.array(middles)), axis=1)


HERE, THERE = [[0, 0]] * 9 + [[0, 0]], [[0, 0]] * 9 + [[1, 1]]  # one row replaced, in both columns


def test_replacing_a_row_keeps_the_epsilon_that_was_charged() -> None:
    plan = planned(EachRow(), model=Margins(), epsilon="2")
    ours, theirs = diaries(plan, HERE, "here"), diaries(plan, THERE, "there")
    event = [0, 1, 2, 3], [9.5, -0.5, 9.5, -0.5]  # many in the first cell, few in the second, of both columns
    assert 0.5 < epsilon_lower_bound(below(ours, *event), below(theirs, *event), alpha=ALPHA) <= 2


def test_replacing_a_person_keeps_the_epsilon_that_was_charged() -> None:
    assert _proven(planned(EachPerson("person", 3), model=Margins(), split={"size": "0.2"}), "honest") <= 2


def test_the_claim_about_persons_has_teeth() -> None:
    """A model that counts a person of three rows as one row is refuted."""
    assert _proven(planned(EachPerson("person", 3), model=Careless(), split={"size": "0.2"}), "careless") > 2


def _proven(plan: Plan, name: str) -> float:
    one, other = [[0, 0]] * 9 + [[0, 0]] * 3, [[0, 0]] * 9 + [[1, 1]] * 3
    event = [1, 2, 3, 4], [10.5, -1.5, 10.5, -1.5]
    ours, theirs = diaries(plan, one, f"{name} one"), diaries(plan, other, f"{name} other")
    return epsilon_lower_bound(below(ours, *event), below(theirs, *event), alpha=ALPHA)


@pytest.mark.parametrize(("rows", "most"), [(12, 0.5), (21, 2.0)], ids=["three rows more", "twelve rows more: refuted"])
def test_the_number_of_rows_keeps_its_share_for_k_rows(rows: int, most: float) -> None:
    """A person who is gone takes at most k = 3 rows along; a table that differs by more would be told apart."""
    plan = planned(EachPerson("person", 3), model=Margins(), epsilon="2", split={"size": "0.25"})
    assert plan.size_loss == Fraction(1, 2)
    here, there = diaries(plan, [[0, 0]] * rows, f"{rows}"), diaries(plan, [[0, 0]] * 9, "9")
    middle = ([0], [(rows + 9) / 2 + 3])
    proven = epsilon_lower_bound(below(here, *middle), below(there, *middle), alpha=ALPHA)
    assert proven <= most
    assert (proven > 0.5) == (rows == 21)
