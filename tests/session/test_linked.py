"""Linked tables and SQL with tables: the same results from a local session and through the service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answer.corpus import corpus_policies, corpus_tables
from session.conftest import serve
from support.service import QUIET

import tidegate as tg
from tidegate.ledger.tokens import Tokens
from tidegate.service.access.permissions import OWNER
from tidegate.service.access.tokens import make_token
from tidegate.service.app import create_app
from tidegate.service.datasets import ServedDatasets

QUESTIONS: list[Any] = [
    tg.mean("cost").where(tg.col("department") == "oncology").by("patients.sex"),
    tg.count().of("visits").by("departments.kind"),
    tg.persons().of("visits").where("YEAR(visit_date) = 2023"),
    "SELECT d.kind, p.sex, AVG(v.cost) AS cost FROM visits v JOIN patients p USING (patient_id) JOIN departments d USING (department) GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT DATE_TRUNC('month', visit_date) AS month, COUNT(*) * 2 AS twice FROM visits GROUP BY 1 ORDER BY 1",
    "SELECT department, COUNT(*) FROM visits GROUP BY department",
]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    folder: Path = tmp_path_factory.mktemp("linked")
    policy, tables = corpus_policies(folder)["clinic"], corpus_tables(5)["clinic"]
    local = tg.open(policy, table=tables, ledger=str(folder / "clinic.ledger"))
    datasets = ServedDatasets([tg.open(policy, table=tables, ledger=str(folder / "clinic.ledger"))])
    token, _ = make_token(Tokens(datasets.ledger.store), role=OWNER, name="olga")
    with serve(create_app(QUIET, datasets)) as url, tg.connect(url, token, dataset="clinic") as remote:
        yield local, remote
    local.close()


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "question", QUESTIONS, ids=lambda question: question if isinstance(question, str) else question.says()
)
def test_both_sessions_return_the_same(both: tuple[Any, Any], question: Any) -> None:
    local, remote = both
    local.answer(question, epsilon=30)  # charged here; the others are stored answers
    here, there = local.answer(question, epsilon=30), remote.answer(question, epsilon=30)
    assert type(here) is type(there)
    assert here.to_dict() == there.to_dict()
    assert here.to_arrow().equals(there.to_arrow())
    assert here.rows() == there.rows()
    assert str(here.cost) == str(there.cost) == "0"


def test_preview_of_sql_lists_every_measurement(both: tuple[Any, Any]) -> None:
    local, remote = both
    text = "SELECT AVG(cost) FILTER (WHERE urgent) / AVG(cost) AS ratio FROM visits HAVING COUNT(*) > 10"
    here, there = local.preview(text, epsilon=1), remote.preview(text, epsilon=1)
    assert [part.query.statistic for part in here.expected] == ["mean", "mean", "count"]
    assert here.to_dict()["expected"] == there.to_dict()["expected"]
