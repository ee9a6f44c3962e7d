"""Everything that is built in keeps the published contracts."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.answer.mechanisms import MECHANISMS, mechanism_for
from tidegate.answer.request import Query
from tidegate.operators import (
    GaussianNoise,
    LaplaceNoise,
    Operator,
    RandomizedResponse,
    SquareWave,
    SubsetSelection,
    Unary,
    UniformNoise,
)
from tidegate.policy import Concealment
from tidegate.policy.concealment import Profile
from tidegate.release.mechanisms import REGISTERED
from tidegate.release.plan import Plan, make_plan
from tidegate.synthesize.diary import Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms import model_for
from tidegate.tables import open_table
from tidegate.testing import (
    check_engine,
    check_mechanism,
    check_model,
    check_operator,
    check_release_test,
    check_store,
)

F = Fraction
OPERATORS: tuple[Operator, ...] = (
    UniformNoise(12, half_width=5),
    GaussianNoise(12, sigma=F(3)),
    LaplaceNoise(12, epsilon=F(2)),
    SquareWave(12, epsilon=F(2)),
    RandomizedResponse(12, epsilon=F(2)),
    Unary(5, epsilon=F(1)),
    SubsetSelection(5, epsilon=F(1, 2)),
)
ROWS = 12
KNOWN = {"age": tg.Integer(0, 9, missing="lowest"), "town": tg.Category(("Aby", "Berg"))}
POLICY = tg.Policy(tg.Dataset("people", rows=ROWS), KNOWN, loss=tg.Loss(10))
QUESTIONS: dict[str, Query] = {
    "count": tg.count().by("town"),
    "histogram": tg.histogram("age"),
    "sum": tg.sum("age"),
    "mean": tg.mean("age"),
    "variance": tg.variance("age"),
    "std": tg.std("age"),
    "distinct": tg.distinct("age"),
    "quantile": tg.quantile("age", 0.5),
    "min": tg.min("age"),
    "max": tg.max("age"),
}


def people(last: tuple[int, str]) -> Any:
    ages, towns = [0] * (ROWS - 1) + [last[0]], ["Aby"] * (ROWS - 1) + [last[1]]
    return open_table(POLICY, pa.table({"age": ages, "town": towns}))


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_operators_keep_their_contract(operator: Operator) -> None:
    check_operator(operator).refuse()


@pytest.mark.parametrize("statistic", [name for name in MECHANISMS if name not in ("regression", "persons")])
def test_mechanisms_keep_their_contract(statistic: str) -> None:
    query = QUESTIONS[statistic]
    neighbors = people((0, "Aby")), people((9, "Berg"))
    check_mechanism(mechanism_for(query), query, POLICY, neighbors, draws=400).refuse()


def plan_of(test: str) -> Plan:
    more: dict[str, Any] = {}
    if test == "posterior":
        more = {"profiles": {"young": Profile(prior="0.1", values=[4, 3, 2, 1])}, "rho": "0.5"}
    promise = Concealment(reveals="age", about="town", tests=test, significance="0.1", **more)
    return make_plan(promise, [F(1), F(2), F(2), F(1)], [F(1)] * 3)


@pytest.mark.parametrize("name", REGISTERED)
def test_tests_of_released_records_keep_their_contract(name: str) -> None:
    check_release_test(REGISTERED[name], plan_of(name), requests=60).refuse()


AGE = Column("age", 12, (0, 3, 6, 9))
TOWN = Column("town", 3, (0, 1, 2), ordered=False, missing=True)


def some_rows(columns: tuple[Column, ...]) -> Any:
    random = np.random.default_rng(3)
    return np.column_stack([random.integers(0, column.size, 400) for column in columns])


@pytest.mark.parametrize("limit", [Loss.of_pure(F(2)), Loss(None, F(1), F(12, 5))], ids=["pure", "z"])
def test_model_keeps_its_contract(limit: Loss) -> None:
    columns = (AGE, TOWN)
    check_model(model_for("forest/2"), Facts(columns, 400), some_rows(columns), limit=limit).refuse()


def test_duckdb_keeps_the_contract_of_engines() -> None:
    check_engine(open_table, name="duckdb").refuse()


def test_postgres_keeps_the_contract_of_engines(postgres_url: str) -> None:
    check_engine(in_postgres(postgres_url), name="postgres").refuse()


def in_postgres(url: str) -> Callable[[tg.Policy, pa.Table], Any]:
    from tables.conftest import load_postgres

    names: list[str] = []

    def open_rows(policy: tg.Policy, rows: pa.Table) -> Any:
        names.append(f"contract{len(names)}")
        load_postgres(url, rows, names[-1])
        return open_table(policy, f"{url}&table={names[-1]}")

    return open_rows


def test_stores_keep_their_contract(ledger_url: str) -> None:
    check_store(ledger_url).refuse()


def test_contract_lists_every_clause(tmp_path: Path) -> None:
    text = str(check_store(str(tmp_path / "a.ledger")))
    assert text.count("\n  holds ") == 6
    assert "spend no more than the budget" in text
