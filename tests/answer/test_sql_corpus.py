"""The corpus of analysts' queries: without noise, answers equal DuckDB's own result on the raw tables.

Cells without rows are the difference: they are part of a private answer, and absent from a GROUP BY.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow.csv as csv
import pytest
from answer.corpus import CorpusQuery, corpus_policies, corpus_queries, corpus_tables

import tidegate as tg
from tidegate.answer.mechanisms import ranks, regression
from tidegate.errors import TidegateError
from tidegate.noise import Gaussian, Laplace

CORPUS = corpus_queries()
ANSWERED = [query for query in CORPUS if query.tag != "refuse"]
REFUSED = [query for query in CORPUS if query.tag == "refuse"]
OTHER_FUNCTIONS = {"people-031", "shop-023"}  # functions that DuckDB does not have
EMPTY_CELLS = {"people-099", "shop-034"}  # ordered by or averaged over cells, of which some are empty
RANKED = ("MEDIAN", "QUANTILE", "PERCENTILE")
INTERNAL = ("core0", "universe", "tidegate_", "sqlglot", "duckdb", "Error", "Exception", "exp.", "ibis")


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("corpus")
    policies, tables = corpus_policies(folder), corpus_tables(11)
    opened = {
        name: tg.open(
            policy, table=tables[name] if policy.tables else tables[name][name], ledger=str(folder / f"{name}.ledger")
        )
        for name, policy in policies.items()
    }
    yield opened
    for session in opened.values():
        session.close()


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Any:
    connection = duckdb.connect()
    folder = tmp_path_factory.mktemp("raw")
    corpus_policies(folder)
    for tables in corpus_tables(11).values():
        for name, table in tables.items():
            connection.register(name, table)
    for name in ("departments", "products"):
        connection.register(name, csv.read_csv(folder / f"{name}.csv"))
    return connection


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    for noise in (Laplace, Gaussian):
        monkeypatch.setattr(noise, "draw", lambda self, size, **_: np.zeros(size, np.int64))
    monkeypatch.setattr(ranks, "exponential_choice", lambda scores, *_, **__: int(np.argmax(scores)))
    monkeypatch.setattr(regression, "box_noise", lambda bounds, *_, **__: [0] * len(bounds))


@pytest.mark.one_in(7)  # 42 of 210, from every layer; all refusals are in every run
@pytest.mark.parametrize("query", ANSWERED, ids=lambda query: query.name)
def test_answers_without_noise_equal_the_result_on_rows(
    query: CorpusQuery, sessions: dict[str, Any], raw: Any, no_noise: None
) -> None:
    answers = sessions[query.policy].answer(query.sql, epsilon=1000)
    rows = _own_rows(answers)
    assert rows
    if query.name in OTHER_FUNCTIONS | EMPTY_CELLS:
        return
    expected = [list(row) for row in raw.execute(query.sql).fetchall()]
    spread = 0.1 if any(word in query.sql.upper() for word in RANKED) else 0.0  # DuckDB interpolates between two values
    missing = [row for row in expected if not any(_same(row, other, spread) for other in rows)]
    assert not missing, f"{missing[:3]} not in {rows[:6]}"
    if "GROUP BY" not in query.sql.upper():
        assert len(rows) == len(expected)


def _own_rows(answers: Any) -> list[list[Any]]:
    """Return the rows in the columns of the SELECT list; without their order for plain answers."""
    if getattr(answers, "tables", ()):
        table = answers.tables[0].table
        return [list(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]
    parts = list(answers) if hasattr(answers, "answers") else [answers]
    rows = [list(row.values())[: len(parts[0].labels)] for row in parts[0].rows()]
    for part in parts:
        for row, shown in zip(rows, part.rows(), strict=True):
            row.append(shown[part.query.statistic])
    return rows


def _same(left: list[Any], right: list[Any], spread: float) -> bool:
    """Return whether two rows have the same values, in any order."""
    rest = list(right)
    for value in left:
        match = next((index for index, other in enumerate(rest) if _equal(value, other, spread)), None)
        if match is None:
            return False
        del rest[match]
    return not rest


def _equal(left: Any, right: Any, spread: float) -> bool:
    left, right = _plain(left), _plain(right)
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=max(1e-6, spread), abs_tol=1e-6 + spread * 500)
    return bool(left == right)


def _plain(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float | Decimal):
        return float(value)
    if isinstance(value, dt.timedelta):
        return float(value.days)
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat()
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day).isoformat()
    if isinstance(value, str) and len(value) == 10 and value[4] == "-":
        return f"{value}T00:00:00"
    return value


@pytest.mark.parametrize("query", REFUSED, ids=lambda query: query.name)
def test_refused_queries_charge_nothing_and_name_a_form(query: CorpusQuery, sessions: dict[str, Any]) -> None:
    session = sessions[query.policy]
    before = session.account.totals
    with pytest.raises(TidegateError) as refusal:
        session.answer(query.sql, epsilon=1)
    assert session.account.totals == before
    assert refusal.value.do
    assert not any(word in str(refusal.value) for word in INTERNAL)
