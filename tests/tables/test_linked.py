"""Joined tables: a person's rows depend on that person alone, and at most k of them count, on every engine."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.clinic import DEPARTMENTS, clinic_policy, clinic_tables
from tables.conftest import load_postgres

from tidegate.errors import SourceMissing, SourceUnreadable, Unsupported
from tidegate.policy import Policy, RowSource
from tidegate.policy.predicates import col
from tidegate.session import Session
from tidegate.tables import Table, links, open_linked
from tidegate.tables import table as table_module
from tidegate.tables.boundary import Boundary
from tidegate.tables.source import source_address, source_state

K = 2
SOURCES = [
    RowSource("visits"),
    RowSource("patients"),
    RowSource("visits", "patients"),
    RowSource("visits", "patients", outer=True),
    RowSource("patients", "visits", outer=True),
]
JOINS = SOURCES[2:]
KEYS = [
    "a",
    "A",
    "a ",
    "b",
    "B",
    "é",
    "e\u0301",
    "",
    None,
]  # keys that a collation could confuse, and rows without a key
Rows = dict[Any, tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]]  # patients and visits of each person
by_name = pytest.mark.parametrize("rows", SOURCES, ids=str)


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return clinic_policy(tmp_path_factory.mktemp("clinic"))


def draw_person(draw: random.Random, key: str | None) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return the rows of a person: none, one or more in the table of patients, up to six visits."""
    patients = [
        (key, draw.choice(["f", "m", "F", None]), draw.choice([None, -1, *range(10)]))
        for _ in range(draw.choice([0, 1, 1, 2, 3]))
    ]
    visits = [
        (key, draw.choice([None, 7, *range(5)]), draw.choice(["ER", "ICU", "er", None]))
        for _ in range(draw.choice([0, 0, 1, 2, 3, 6]))
    ]
    return patients, visits


def draw_rows(draw: random.Random) -> Rows:
    return {key: draw_person(draw, key) for key in KEYS}


def tables_of(persons: Rows) -> dict[str, pa.Table]:
    return clinic_tables(*([row for parts in persons.values() for row in parts[side]] for side in (0, 1)))


def axes(rows: RowSource) -> list[str]:
    """Return columns in which every row has a cell: missing and unlisted values are counted too."""
    names = {"patients": "patients.sex", "visits": "visits.department"}
    return [names[table] for table in rows.tables]


def expected_size(persons: Rows, rows: RowSource) -> int:
    """Count by definition: the joined rows of each person, at most k of them."""
    total = 0
    for key, (patients, visits) in persons.items():
        if key is None:
            continue
        sizes = {
            "visits": min(len(visits), K),
            "patients": min(len(patients), 1),
            "visits join patients": min(len(visits), K) if patients else 0,
            "visits left join patients": min(len(visits), K),
            "patients left join visits": min(max(len(visits), 1), K) if patients else 0,
        }
        total += sizes[str(rows)]
    return total


def distance(clinic: Policy, rows: RowSource, here: Mapping[str, Any], there: Mapping[str, Any]) -> int:
    """Return the L1 distance of the counts over all cells."""
    counts = [open_linked(clinic, rows, tables).count(axes(rows)) for tables in (here, there)]
    return int(np.abs(counts[0] - counts[1]).sum())


def replaced(persons: Rows, draw: random.Random) -> Rows:
    """Replace a person with another one: all rows in all tables, possibly another key."""
    leaving = draw.choice([key for key in KEYS if key is not None])
    entering = draw.choice([leaving, leaving, None, "new", "b "])
    rest = {key: rows for key, rows in persons.items() if key != leaving}
    return {**rest, entering if entering is not None else "nobody": draw_person(draw, entering)}


@pytest.mark.one_in(3)
@by_name
@pytest.mark.parametrize("seed", range(6))
def test_rows_are_those_of_the_definition(clinic: Policy, rows: RowSource, seed: int) -> None:
    check_rows(clinic, rows, [seed])


def check_rows(clinic: Policy, rows: RowSource, seeds: Iterable[int]) -> None:
    for seed in seeds:
        persons = draw_rows(random.Random(seed))
        opened = open_linked(clinic, rows, tables_of(persons))
        assert opened.size == expected_size(persons, rows)
        assert opened.without_rows().size == 0


@pytest.mark.one_in(4)
@by_name
@pytest.mark.parametrize("seed", range(12))
def test_replacing_a_person_moves_counts_by_at_most_twice_the_bound(clinic: Policy, rows: RowSource, seed: int) -> None:
    bound = 2 * clinic.flat(rows).dataset.unit.rows_per_person
    draw = random.Random(100 + seed)
    persons = draw_rows(draw)
    assert distance(clinic, rows, tables_of(persons), tables_of(replaced(persons, draw))) <= bound


@pytest.mark.one_in(2)
@by_name
def test_bound_is_attained(clinic: Policy, rows: RowSource) -> None:
    here = clinic_tables([("p", "f", 1)], [("p", cost, "ER") for cost in range(3)])
    there = clinic_tables([("p", "m", 2)], [("p", cost, "ICU") for cost in range(3)])
    bound = 2 * clinic.flat(rows).dataset.unit.rows_per_person
    assert distance(clinic, rows, here, there) == bound


@pytest.mark.one_in(2)
@pytest.mark.parametrize("rows", [SOURCES[0], *JOINS], ids=str)
def test_all_conditions_of_a_partition_see_the_same_rows(clinic: Policy, rows: RowSource) -> None:
    """The rows of a person are chosen before the condition: over a partition of conditions they add up to k."""
    tables = clinic_tables([("p", "f", 1)], [("p", cost, "ER") for cost in range(5)])
    opened = open_linked(clinic, rows, tables)
    parts = [opened.count(where=col("visits.cost") == cost).item() for cost in range(5)]
    assert sum(parts) == opened.size == K


def test_bounding_after_the_condition_is_detected(clinic: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    def after(self: Table, by: Any, measures: Any, where: Any = None, *, shape: str) -> Any:
        narrow = open_linked(clinic, SOURCES[2], tables)
        if where is not None:
            narrow._source = table_module.keep_rows(narrow._source, narrow.policy, where, narrow.boundary)
        return aggregate(narrow, by, measures, shape=shape)

    aggregate = Table._aggregate
    tables = clinic_tables([("p", "f", 1)], [("p", cost, "ER") for cost in range(5)])
    monkeypatch.setattr(Table, "_aggregate", after)
    with pytest.raises(AssertionError):
        test_all_conditions_of_a_partition_see_the_same_rows(clinic, SOURCES[2])


def code(age: int | None) -> int:
    """Return the code of an age. Rows with equal codes are interchangeable."""
    return max(age or 0, 0)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rows", JOINS, ids=str)
def test_each_person_has_one_row_of_the_person_table(clinic: Policy, rows: RowSource, seed: int) -> None:
    persons = draw_rows(random.Random(200 + seed))
    tables = tables_of(persons)
    joined = open_linked(clinic, rows, tables).counted.to_pyarrow().to_pylist()
    alone = open_linked(clinic, RowSource("patients"), tables).counted.to_pyarrow().to_pylist()
    chosen = {row["patients.patient_id"]: (row["patients.sex"], code(row["patients.age"])) for row in alone}
    for row in joined:
        key = row["patients.patient_id"]
        assert key is None or chosen[key] == (row["patients.sex"], code(row["patients.age"]))
        assert None in (key, row["visits.patient_id"]) or key == row["visits.patient_id"]


@pytest.mark.parametrize("rows", JOINS, ids=str)
def test_joining_before_bounding_the_person_table_is_detected(
    clinic: Policy, rows: RowSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "bound_rows", lambda table, *_, **__: table)
    with pytest.raises(AssertionError):
        check_rows(clinic, rows, range(6))


@pytest.mark.one_in(2)
@by_name
def test_table_without_a_bound_is_detected(clinic: Policy, rows: RowSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "bound_rows", lambda table, *_: table)
    with pytest.raises(AssertionError):
        check_rows(clinic, rows, range(6))
    if "visits" in rows.tables:
        with pytest.raises(AssertionError):
            test_bound_is_attained(clinic, rows)


def in_duckdb(tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    """Return the tables in one DuckDB, with text columns that ignore case."""
    connection = ibis.duckdb.connect()
    connection.raw_sql(
        "CREATE TABLE patients (patient_id VARCHAR COLLATE NOCASE, sex VARCHAR COLLATE NOCASE, age BIGINT)"
    )
    connection.raw_sql(
        "CREATE TABLE visits (patient_id VARCHAR COLLATE NOCASE.NOACCENT, cost BIGINT, department VARCHAR COLLATE NOCASE)"
    )
    for name, table in tables.items():
        connection.con.register(f"rows_of_{name}", table)
        connection.raw_sql(f"INSERT INTO {name} SELECT * FROM rows_of_{name}")
    return {name: connection.table(name) for name in tables}


def in_sqlite(tables: Mapping[str, pa.Table], folder: Path) -> dict[str, Any]:
    """Return the tables in one SQLite file, with text columns that ignore case or trailing spaces."""
    path = folder / f"clinic{len(list(folder.iterdir()))}.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE patients (patient_id TEXT COLLATE NOCASE, sex TEXT COLLATE NOCASE, age INTEGER)"
        )
        connection.execute(
            "CREATE TABLE visits (patient_id TEXT COLLATE RTRIM, cost INTEGER, department TEXT COLLATE NOCASE)"
        )
        for name, table in tables.items():
            rows = [tuple(row.values()) for row in table.to_pylist()]
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
    opened = ibis.sqlite.connect(path)
    return {name: opened.table(name) for name in tables}


def in_postgres(tables: Mapping[str, pa.Table], url: str) -> dict[str, Any]:
    """Return addresses of the tables in one Postgres database."""
    for name, table in tables.items():
        load_postgres(url, table, name)
    return {name: f"{url}&table={name}" for name in tables}


@pytest.fixture(
    params=["files", "collations of DuckDB", "SQLite", "Postgres", pytest.param("Spark", marks=pytest.mark.spark)]
)
def load(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Mapping[str, pa.Table]], dict[str, Any]]:
    """Load tables into an engine."""
    if request.param == "Postgres":
        from support.databases import create_database

        server = request.getfixturevalue("postgres_server")
        names = iter(f"c{random.getrandbits(48):x}" for _ in range(10))
        return lambda tables: in_postgres(tables, create_database(server, next(names)))
    if request.param == "Spark":
        spark = request.getfixturevalue("spark")
        return lambda tables: {name: spark.read.parquet(str(path)) for name, path in in_files(tables, tmp_path).items()}
    if request.param == "SQLite":
        return lambda tables: in_sqlite(tables, tmp_path)
    if request.param == "files":
        return lambda tables: in_files(tables, tmp_path)
    return in_duckdb


def in_files(tables: Mapping[str, pa.Table], folder: Path) -> dict[str, Any]:
    number = len(list(folder.iterdir()))
    paths = {name: folder / f"{name}{number}.parquet" for name in tables}
    for name, table in tables.items():
        pq.write_table(table, paths[name])
    return dict(paths)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("rows", SOURCES, ids=str)
def test_every_engine_counts_the_same_rows(
    clinic: Policy, load: Callable[[Mapping[str, pa.Table]], dict[str, Any]], rows: RowSource
) -> None:
    persons = draw_rows(random.Random(7))
    tables = tables_of(persons)
    loaded = load(tables)
    expected, opened = open_linked(clinic, rows, tables), open_linked(clinic, rows, loaded)
    assert opened.size == expected_size(persons, rows)
    np.testing.assert_array_equal(opened.count(axes(rows)), expected.count(axes(rows)))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("rows", JOINS, ids=str)
def test_every_engine_adds_up_the_same_values(
    clinic: Policy, load: Callable[[Mapping[str, pa.Table]], dict[str, Any]], rows: RowSource
) -> None:
    tables = tables_of(draw_rows(random.Random(9)))
    loaded = load(tables)
    condition = (col("visits.department") == "ER") | (col("patients.age") > 2)
    expected, opened = open_linked(clinic, rows, tables), open_linked(clinic, rows, loaded)
    for table in (opened, expected):
        assert table.histogram("visits.cost").sum() > 0
    columns = ["visits.cost", "patients.age"]
    np.testing.assert_array_equal(
        opened.products(columns, centers=(0, 0), where=condition),
        expected.products(columns, centers=(0, 0), where=condition),
    )
    for left, right in zip(
        opened.moments("visits.cost", by=["patients.sex"], where=condition),
        expected.moments("visits.cost", by=["patients.sex"], where=condition),
        strict=True,
    ):
        np.testing.assert_array_equal(left, right)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("rows", JOINS, ids=str)
def test_replacing_a_person_moves_counts_by_at_most_twice_the_bound_on_every_engine(
    clinic: Policy, load: Callable[[Mapping[str, pa.Table]], dict[str, Any]], rows: RowSource
) -> None:
    draw = random.Random(8)
    persons = draw_rows(draw)
    here, there = (load(tables_of(rows)) for rows in (persons, replaced(persons, draw)))
    assert distance(clinic, rows, here, there) <= 2 * K


def test_comparison_by_collation_is_detected(clinic: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = Boundary.encoded
    monkeypatch.setattr(Boundary, "encoded", lambda self, text: encoded(self, text.lower()))
    tables = clinic_tables([("a", "f", 1), ("A", "m", 2)], [("a", 1, "ER"), ("A", 1, "ER")])
    persons: Rows = {"a": ([("a", "f", 1)], [("a", 1, "ER")]), "A": ([("A", "m", 2)], [("A", 1, "ER")])}
    assert open_linked(clinic, RowSource("patients"), in_duckdb(tables)).size < expected_size(
        persons, RowSource("patients")
    )


def test_keys_of_whole_numbers_are_joined_whatever_their_width(clinic: Policy) -> None:
    tables = clinic_tables([("1", "f", 1), ("2", "m", 2)], [("1", 1, "ER"), ("3", 1, "ER")])
    for name, kind in (("patients", pa.int64()), ("visits", pa.int16())):
        tables[name] = tables[name].set_column(0, "patient_id", tables[name]["patient_id"].cast(kind))
    assert [open_linked(clinic, rows, tables).size for rows in SOURCES] == [2, 2, 1, 2, 2]


def test_keys_of_different_types_are_refused_before_a_row_is_read(clinic: Policy) -> None:
    tables = clinic_tables([("1", "f", 1)], [("1", 1, "ER")])
    tables["visits"] = tables["visits"].set_column(0, "patient_id", pa.array([1], pa.int64()))
    with pytest.raises(SourceUnreadable, match="have different types"):
        open_linked(clinic, RowSource("visits", "patients"), tables)


def test_tables_in_different_databases_are_refused(clinic: Policy, tmp_path: Path) -> None:
    tables = clinic_tables([("1", "f", 1)], [("1", 1, "ER")])
    mixed = {"patients": tables["patients"], "visits": in_sqlite(tables, tmp_path)["visits"]}
    apart = {"patients": in_duckdb(tables)["patients"], "visits": in_duckdb(tables)["visits"]}
    files = {"patients": in_sqlite(tables, tmp_path)["patients"], "visits": in_sqlite(tables, tmp_path)["visits"]}
    for sources in (mixed, apart, files):
        assert open_linked(clinic, RowSource("visits"), sources).size == 1
        with pytest.raises(SourceUnreadable, match="different databases"):
            open_linked(clinic, RowSource("visits", "patients"), sources)


def test_sources_are_named_by_table(clinic: Policy) -> None:
    tables = clinic_tables([("1", "f", 1)], [("1", 1, "ER")])
    with pytest.raises(SourceMissing, match="one source is not enough"):
        open_linked(clinic, RowSource("visits"), tables["visits"])  # type: ignore[arg-type]
    for name in ("visit", "departments"):
        with pytest.raises(SourceMissing, match=f'no private table "{name}"'):
            open_linked(clinic, RowSource("visits"), {name: tables["visits"]})
    with pytest.raises(SourceMissing, match=r"no file .*admissions.parquet"):
        open_linked(clinic, RowSource("admissions"), tables)


def test_frames_of_several_libraries_share_a_connection(clinic: Policy) -> None:
    tables = clinic_tables([("1", "f", 1), ("2", "f", 1)], [("1", 1, "ER")])
    frames = {"patients": tables["patients"].to_pandas(), "visits": tables["visits"]}
    with Session(clinic, table=frames) as session:
        assert session.open_rows(RowSource("patients", "visits", outer=True)).count(["patients.sex"]).tolist() == [
            2,
            0,
            0,
        ]
        assert session.open_rows(RowSource("visits")) is session.open_rows(RowSource("visits"))


def test_joined_csv_files_are_read_again_after_a_change(clinic: Policy, tmp_path: Path) -> None:
    files = {"patients": tmp_path / "patients.csv", "visits": tmp_path / "visits.csv"}
    files["patients"].write_text("patient_id,sex,age\n" + "".join(f"p{n},f,1\n" for n in range(3_000)))
    files["visits"].write_text('patient_id,cost,department\np1,1,"ER"\np2,2,ER\nnobody,3,ER\n')
    with Session(clinic, table=files, folder=tmp_path) as session:
        assert session.open_rows(JOINS[0]).size == 2
        assert session.open_rows(JOINS[2]).size == 3_000
        assert session.open_rows(JOINS[0]) is session.open_rows(JOINS[0])
        files["patients"].write_text("patient_id,sex,age\np1,m,1\n")
        assert session.open_rows(JOINS[0]).count(["patients.sex"]).tolist() == [0, 1, 0]
        files["visits"].write_text("patient_id,cost,department\n")
        assert session.open_rows(JOINS[0]).size == 0
        assert session.open_rows(JOINS[2]).size == 1


def test_other_verbs_refuse_linked_tables(clinic: Policy, tmp_path: Path) -> None:
    tables = clinic_tables([("1", "f", 1)], [("1", 1, "ER")])
    with Session(clinic, table=tables, folder=tmp_path) as session:
        with pytest.raises(Unsupported, match="several tables"):
            session.synthesize(epsilon=1)
        with pytest.raises(Unsupported, match="several tables"):
            _ = session.table


def test_account_belongs_to_the_whole_policy(clinic: Policy, tmp_path: Path) -> None:
    tables = clinic_tables([("1", "f", 1)], [("1", 1, "ER")])
    with Session(clinic, table=tables, folder=tmp_path) as session:
        ceiling = session.account.ceiling
    other = clinic_policy(tmp_path, departments="department,floor,wing\nER,3,east\n")
    with Session(other, table=tables, folder=tmp_path) as session:
        assert session.account.ceiling == ceiling
        changes = [entry for entry in session.ledger.entries() if "departments" in str(entry)]
        assert changes


def test_session_reads_the_reference_tables_of_a_policy_from_python(clinic: Policy, tmp_path: Path) -> None:
    (tmp_path / "departments.csv").write_text(DEPARTMENTS, "utf-8")
    bare = {name: replace(table, content=None, digest="") for name, table in clinic.tables.items()}
    with Session(replace(clinic, tables=bare), folder=tmp_path) as session:
        assert session.policy == clinic
    with pytest.raises(Unsupported, match="not loaded"):
        replace(clinic, tables=bare).reference_codes("floor")


def test_state_of_the_source_covers_every_private_table(clinic: Policy, tmp_path: Path) -> None:
    tables = clinic_tables([("1", "f", 1)], [("1", 1, "ER")])
    tables["admissions"] = pa.table({"patient_id": ["1"], "days": [3]})
    paths = in_files(tables, tmp_path)
    assert len(source_address(clinic, paths).splitlines()) == 3
    assert source_address(clinic, tables) == ""
    for sources in (paths, tables):
        before = source_state(clinic, sources, lambda: None)  # type: ignore[arg-type, return-value]
        assert before is not None
        digests = {before.digest()}
        for name in tables:
            changed = {**tables, name: tables[name].slice(0, 0)}
            after = source_state(clinic, in_files(changed, tmp_path) if sources is paths else changed, lambda: None)  # type: ignore[arg-type, return-value]
            assert after is not None
            digests.add(after.digest())
        assert len(digests) == 4
