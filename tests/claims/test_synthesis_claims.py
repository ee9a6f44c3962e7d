"""Sampled claims about a whole synthesis by the small model of the tests: its diary keeps the charged epsilon.

Correct code fails with probability at most ALPHA in each of 3 tests. Each planted fault is refuted.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from claims.probabilities import bits, epsilon_lower_bound
from synthesize.margins import Margins

from tidegate.policy import Category, Dataset, EachPerson, EachRow, Integer, Key, Loss, Policy, Unit
from tidegate.synthesize.columns import columns_of
from tidegate.synthesize.facts import Facts
from tidegate.synthesize.learn import Learning
from tidegate.synthesize.plan import Plan, plan_for
from tidegate.synthesize.private_rows import ArrayRows
from tidegate.synthesize.progress import silent
from tidegate.synthesize.request import resolve_request

pytestmark = pytest.mark.claim

ALPHA, DRAWS = 1e-6, 3_000
ATTRIBUTES = {"person": Key(), "x": Integer(0, 1), "g": Category(("a", "b"))}


class Careless(Margins):
    """A model that ignores that a unit can have several rows."""

    def learn(self, facts: Facts, rows: Any, diary: Any, **options: Any) -> Any:
        return super().learn(Facts(facts.columns, facts.rows, 1), rows, diary, **options)


def make_plan(unit: Unit, *, model: Any, epsilon: str = "2", **options: Any) -> Plan:
    policy = Policy(Dataset("d", unit=unit), ATTRIBUTES, None, Loss(100))
    return plan_for(resolve_request(policy, epsilon=epsilon, model=model, **options), policy)


def diaries(plan: Plan, codes: list[list[int]], name: str) -> list[np.ndarray]:
    """Return the numbers of all steps in each of many runs over the same rows."""
    rows = ArrayRows(np.array(codes), columns_of(plan.policy).learnt)
    learning = Learning(plan, rows, lambda: len(codes), len(codes), bits(name), silent)
    return [np.concatenate([step.value for step in learning.learn().steps]) for _ in range(DRAWS)]


def below(numbers: list[np.ndarray], indexes: list[int], middles: list[float]) -> np.ndarray:
    """Return an event of a diary: whether each of some numbers is on its side of a middle (minus: below it)."""
    matrix = np.array(numbers)[:, indexes]
    return np.all(np.where(np.array(middles) < 0, matrix < -np.array(middles), matrix > np.array(middles)), axis=1)


HERE, THERE = [[0, 0]] * 9 + [[0, 0]], [[0, 0]] * 9 + [[1, 1]]  # one row replaced, in both columns


def test_replacing_a_row_keeps_the_charged_epsilon() -> None:
    plan = make_plan(EachRow(), model=Margins(), epsilon="2")
    ours, theirs = diaries(plan, HERE, "here"), diaries(plan, THERE, "there")
    event = [0, 1, 2, 3], [9.5, -0.5, 9.5, -0.5]  # many in the first cell, few in the second, of both columns
    assert 0.5 < epsilon_lower_bound(below(ours, *event), below(theirs, *event), alpha=ALPHA) <= 2


@pytest.fixture
def size_share(monkeypatch: pytest.MonkeyPatch) -> Callable[[Fraction], None]:
    """Set the share of the number of rows, which is too small by default to show in a claim."""

    def set_share(share: Fraction) -> None:
        for name in ("SIZE_SHARE", "MOST_SIZE_SHARE"):
            monkeypatch.setattr(f"tidegate.synthesize.plan.{name}", share)

    return set_share


@pytest.mark.long  # test_replacing_a_row_keeps_the_charged_epsilon and test_number_of_rows_keeps_its_loss_for_k_rows are cheaper
def test_replacing_a_person_keeps_the_charged_epsilon(size_share: Callable[[Fraction], None]) -> None:
    size_share(Fraction(1, 5))
    assert proven_loss(make_plan(EachPerson("person", 3), model=Margins()), "honest") <= 2


@pytest.mark.long  # test_number_of_rows_keeps_its_loss_for_k_rows refutes one too
def test_model_that_ignores_rows_per_person_is_refuted(size_share: Callable[[Fraction], None]) -> None:
    """A model that counts a person with three rows as one row is refuted."""
    size_share(Fraction(1, 5))
    assert proven_loss(make_plan(EachPerson("person", 3), model=Careless()), "careless") > 2


def proven_loss(plan: Plan, name: str) -> float:
    original, replaced = [[0, 0]] * 9 + [[0, 0]] * 3, [[0, 0]] * 9 + [[1, 1]] * 3
    event = [1, 2, 3, 4], [10.5, -1.5, 10.5, -1.5]
    ours, theirs = diaries(plan, original, f"{name} one"), diaries(plan, replaced, f"{name} other")
    return epsilon_lower_bound(below(ours, *event), below(theirs, *event), alpha=ALPHA)


@pytest.mark.parametrize(
    ("rows", "most"),
    [
        pytest.param(12, 0.5, id="three rows more", marks=pytest.mark.long),
        pytest.param(21, 2.0, id="twelve rows more: refuted"),
    ],
)
def test_number_of_rows_keeps_its_loss_for_k_rows(
    rows: int, most: float, size_share: Callable[[Fraction], None]
) -> None:
    """A removed person removes at most k = 3 rows; a table that differs by more would be distinguished."""
    size_share(Fraction(1, 4))
    plan = make_plan(EachPerson("person", 3), model=Margins(), epsilon="2")
    assert plan.size_loss.pure == Fraction(1, 2)
    here, there = diaries(plan, [[0, 0]] * rows, f"{rows}"), diaries(plan, [[0, 0]] * 9, "9")
    middle = ([0], [(rows + 9) / 2 + 3])
    proven = epsilon_lower_bound(below(here, *middle), below(there, *middle), alpha=ALPHA)
    assert proven <= most
    assert (proven > 0.5) == (rows == 21)
