"""The promise, by enumeration: for every data set, world and worst response, identification is at most rho."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from answer.worlds import Outputs, Row, databases, worst_identification

from tidegate.accounting import budget_of
from tidegate.answer import Query, count, histogram, max, mean, median, min, quantile, std, sum, variance
from tidegate.policy import Attribute, Category, Dataset, Identification, Integer, Policy
from tidegate.policy.predicates import col

ROWS = 3
VALUES = {"dropped": Integer(0, 3), "lowest": Integer(0, 3, missing="lowest"), "far": Integer(-3, 0)}
SINGLE: dict[str, Query] = {
    "count": count().where(col("x") >= 1),
    "sum": sum("x"),
    "mean": mean("x"),
    "mean of some": mean("x").where(col("x") >= 0),
    "median": median("x"),
    "a quantile": quantile("x", "0.75"),
    "min": min("x"),
    "max": max("x"),
    "sd": std("x"),
    "variance": variance("x"),
    "histogram": histogram("x"),
}
TOGETHER = {
    "two means": (mean("x"), mean("x").where(col("x") > 0)),
    "count and histogram": (count().where(col("x") == 0), histogram("x")),
    "median and sum": (median("x"), sum("x")),
    "three": (std("x"), count().where(col("x") < 2), max("x")),
}


def risk(
    queries: tuple[Query, ...], attribute: Attribute, rho: Fraction, prior: Any = None, *, spend: Fraction | None = None
) -> float:
    """Return the worst identification over all data sets if the queries spend the whole budget of rho."""
    promise = Identification(rho, protect=("x",), prior={"x": tuple(prior)} if prior else None)
    policy = Policy(Dataset("d", rows=ROWS), {"x": attribute}, promise)
    budget = budget_of(policy)
    budget.refuse_infeasible()
    universe: list[Row] = [(int(attribute.value(code)),) for code in range(attribute.size)]  # type: ignore[attr-defined]
    outputs = Outputs(queries, policy, ["x"], spend or budget.ceiling.value)
    weights = np.array([float(p) for p in prior]) if prior else np.full(len(universe), 1 / len(universe))
    return float(
        np.max([worst_identification(outputs, universe, known, weights, 0) for known in databases(universe, ROWS)])
    )


@pytest.mark.parametrize(
    ("kind", "rho"), [("dropped", Fraction(1, 3)), ("lowest", Fraction(3, 5)), ("far", Fraction(2, 5))]
)
@pytest.mark.parametrize("name", SINGLE)
def test_single_answer_keeps_rho_in_every_world(name: str, kind: str, rho: Fraction) -> None:
    assert risk((SINGLE[name],), VALUES[kind], rho) <= rho + Fraction(1, 10**9)


@pytest.mark.parametrize("name", SINGLE)
def test_single_answer_keeps_rho_against_an_adversary_with_a_prior(name: str) -> None:
    prior = [Fraction(2, 5), Fraction(3, 10), Fraction(1, 5), Fraction(1, 10)]
    assert risk((SINGLE[name],), VALUES["dropped"], Fraction(1, 2), prior) <= 0.5 + 1e-9


@pytest.mark.parametrize("name", TOGETHER)
def test_several_answers_under_one_charge_keep_rho(name: str) -> None:
    assert risk(TOGETHER[name], VALUES["dropped"], Fraction(1, 2)) <= 0.5 + 1e-9


@pytest.mark.parametrize("name", ["count", "sum", "mean", "histogram"])
def test_bound_is_nearly_reached(name: str) -> None:
    """The worst identification is within 10% of rho, so the bound is not too pessimistic."""
    rho = Fraction(3, 5)
    two = Integer(0, 1, missing="lowest")  # two values: equation (15) is met with equality
    worst = risk((SINGLE[name],), two, rho)
    assert 0.9 * rho <= worst <= rho + Fraction(1, 10**9)


PAIR_ATTRIBUTES = {"x": Integer(0, 2), "g": Category(("a", "b"))}
GROUPED: dict[str, Query] = {
    "count": count().by("g"),
    "histogram": histogram("x").by("g"),
    "mean": mean("x").by("g"),
    "sum": sum("x").by("g"),
    "sd": std("x").by("g"),
    "median": median("x").by("g"),
    "filtered mean": mean("x").where(col("g") == "a"),
}


def grouped_risk(query: Query, *, factor: int = 1, target: int = 0) -> float:
    policy = Policy(Dataset("d", rows=2), PAIR_ATTRIBUTES, Identification("0.5", protect=("x",)))
    universe: list[Row] = [(x, g) for x in range(3) for g in ("a", "b")]
    outputs = Outputs((query,), policy, ["x", "g"], factor * budget_of(policy).ceiling.value)
    prior = np.full(len(universe), 1 / len(universe))
    return float(
        np.max([worst_identification(outputs, universe, known, prior, target) for known in databases(universe, 2)])
    )


@pytest.mark.parametrize("name", GROUPED)
def test_grouped_answers_keep_rho_if_a_row_changes_groups(name: str) -> None:
    assert grouped_risk(GROUPED[name]) <= 0.5 + 1e-9


def test_halved_histogram_sensitivity_is_detected() -> None:
    """Planted fault: half the sensitivity, so twice the loss, in the same enumeration."""
    assert grouped_risk(GROUPED["histogram"], factor=2) > 0.5


def test_two_full_answers_without_composition_are_detected() -> None:
    """Planted fault: each of two queries spends the whole budget."""
    queries = (histogram("x"), replace(histogram("x")))
    policy_budget = Fraction(1, 2)
    whole = risk(queries, Integer(0, 1, missing="lowest"), policy_budget + Fraction(1, 10))
    assert whole <= 0.6 + 1e-9
    promise = Identification("0.6", protect=("x",))
    ceiling = budget_of(Policy(Dataset("d", rows=ROWS), {"x": Integer(0, 1)}, promise)).ceiling.value
    assert risk(queries, Integer(0, 1, missing="lowest"), Fraction(3, 5), spend=2 * ceiling) > 0.6
