"""A query is prepared once for each shape: the result is that of a table which is opened anew, whatever was asked before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tidegate import col
from tidegate.errors import TableError
from tidegate.tables import Table, open_table
from tidegate.tables import table as table_module

POLICY = tg.Policy(
    tg.Dataset("people", unit=tg.EachPerson("person", at_most=2)),
    {
        "person": tg.Key(),
        "age": tg.Integer(0, 9, bins=(3, 6)),
        "weight": tg.Integer(0, 9),
        "sex": tg.Category(("f", "m")),
        "smokes": tg.Boolean(),
    },
    loss=tg.Loss(1),
)
PEOPLE = pa.table(
    {
        "person": [f"p{n // 3}" for n in range(60)],
        "age": [n * 7 % 11 for n in range(60)],
        "weight": [n * 5 % 13 if n % 4 else None for n in range(60)],
        "sex": ["fmx"[n * n % 3] for n in range(60)],
        "smokes": [n % 2 == 0 for n in range(60)],
    }
)
Ask = Callable[[Table], Any]
# pairs that differ in one part of their shape
QUERIES: dict[str, Ask] = {
    "all rows": lambda table: table.count(),
    "by sex": lambda table: table.count(["sex"]),
    "by age": lambda table: table.count(["age"]),
    "by bins of age": lambda table: table.histogram("age"),
    "by an expression": lambda table: table.count(["age // 2"]),
    "by sex, smokers": lambda table: table.count(["sex"], where=col("smokes") == True),  # noqa: E712
    "by sex, others": lambda table: table.count(["sex"], where=col("smokes") == False),  # noqa: E712
    "by sex, aged 1": lambda table: table.count(["sex"], where=col("age") == 1),
    "by sex, weight 1": lambda table: table.count(["sex"], where=col("weight") == 1),
    "by sex, by an expression": lambda table: table.count(["sex"], where=tg.count().where("age % 2 = 1").condition),
    "sum of age": lambda table: table.sums("age"),
    "sum of weight": lambda table: table.sums("weight"),
    "sum of age by sex": lambda table: table.sums("age", ["sex"]),
    "sum of an expression": lambda table: table.moments("age * weight", powers=(1,)),
    "moments of age": lambda table: table.moments("age"),
    "moments of age around 4": lambda table: table.moments("age", center=4),
    "products": lambda table: table.products(["age", "weight"], centers=(1, 2)),
    "products in the other order": lambda table: table.products(["weight", "age"], centers=(1, 2)),
    "distinct ages": lambda table: table.distinct("age"),
    "distinct persons": lambda table: table.distinct("person"),
    "persons": lambda table: table.persons(),
    "persons by sex": lambda table: table.persons(by=["sex"]),
}


def plain(result: Any) -> Any:
    parts = result if isinstance(result, tuple) else (result,)
    return [np.asarray(part).tolist() for part in parts]


def differing() -> list[str]:
    """Return the queries whose result depends on what the table was asked before."""
    shared, alone = open_table(POLICY, PEOPLE), {}
    for name, ask in QUERIES.items():
        alone[name] = plain(ask(open_table(POLICY, PEOPLE)))
    first = {name: plain(ask(shared)) for name, ask in QUERIES.items()}
    again = {name: plain(ask(shared)) for name, ask in reversed(QUERIES.items())}
    return [name for name in QUERIES if not alone[name] == first[name] == again[name]]


def test_results_do_not_depend_on_earlier_queries() -> None:
    assert differing() == []


@pytest.mark.one_in(3)
@pytest.mark.parametrize("part", range(3), ids=["shape", "grouping", "condition"])
def test_key_without_one_of_its_parts_is_detected(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Confused(table_module.LatestResults):
        def get(self, key: Any, make: Any) -> Any:
            return super().get(tuple("" if index == part else item for index, item in enumerate(key)), make)

    monkeypatch.setattr(table_module, "LatestResults", Confused)
    with pytest.raises((AssertionError, TableError, ValueError, KeyError)):
        assert differing() == []


def test_second_query_of_a_shape_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    table = open_table(POLICY, PEOPLE)
    expected = plain(table.count(["sex"]))
    monkeypatch.setattr(table_module, "prepare", None)
    assert plain(table.count(["sex"])) == expected


def test_prepared_query_sees_rows_that_were_added_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(PEOPLE.slice(0, 6), path)
    table = open_table(POLICY, path)
    before = table.count().item()
    pq.write_table(PEOPLE, path)
    assert (before, table.count().item()) == (4, 40)


def test_table_without_rows_has_queries_of_its_own() -> None:
    table = open_table(POLICY, PEOPLE)
    assert table.without_rows().count().item() == 0
    assert table.count().item() == 40
    assert table.without_rows().count().item() == 0


def test_number_of_prepared_queries_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "MOST_PREPARED", 2)
    table = open_table(POLICY, PEOPLE)
    counts = [table.count(where=col("age") == age).item() for age in range(10)]
    assert len(table._reads._content) == 2
    assert counts == [open_table(POLICY, PEOPLE).count(where=col("age") == age).item() for age in range(10)]


def test_query_without_rows_is_run_again_only_after_its_file_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(PEOPLE, path)
    table = open_table(POLICY, path).without_rows()

    def runs(change: Callable[[], object]) -> int:
        change()
        before, runs = table._rehearsed, []
        table._rehearsed = CountingResults(before, runs)
        table.count(["sex"])
        table._rehearsed = before
        return len(runs)

    assert [runs(lambda: None), runs(lambda: None)] == [1, 0]
    assert runs(lambda: pq.write_table(PEOPLE.slice(0, 9), path)) == 1
    assert runs(lambda: path.chmod(0o400)) == 1
    assert runs(lambda: table.count(["age"])) == 0


class CountingResults:
    """Results that note what must be made."""

    def __init__(self, results: Any, runs: list[Any]) -> None:
        self._results, self._runs = results, runs

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        return self._results.get(key, lambda: (self._runs.append(key), make())[1])


def test_table_that_was_opened_elsewhere_is_always_asked() -> None:
    table = Table(ibis.duckdb.connect().create_table("people", PEOPLE), POLICY, "duckdb").without_rows()
    table.count(["sex"])
    assert not table._rehearsed._content


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_source_that_is_gone_is_refused_before_the_charge_of_a_known_query(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"people.{kind}"
    pq.write_table(PEOPLE, path) if kind == "parquet" else pa_csv.write_csv(PEOPLE, path)
    session = tg.open(POLICY, table=str(path), ledger=str(tmp_path / "people.ledger"))
    session.answer(tg.count().by("sex"), epsilon=0.1, anyway=True)
    path.unlink()
    with pytest.raises(TableError):
        session.answer(tg.count().by("sex"), epsilon=0.2, anyway=True)
    assert float(session.account.spent.value) == 0.1
