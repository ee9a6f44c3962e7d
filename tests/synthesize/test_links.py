"""Linked tables for synthesis: numbers of events and copies are counted by definition, and one person changes k rows."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from support.clinic import POLICY, clinic_policy, clinic_tables
from support.databases import create_database
from support.towns import policy as people_policy
from tables.conftest import load_postgres

import tidegate as tg
from tidegate.errors import PolicyError, Unsupported
from tidegate.policy import Linked, Policy, Shapes, parse_policy, write_policy
from tidegate.policy.toml import policy_from_dict
from tidegate.synthesize.links import linked_columns
from tidegate.synthesize.private_rows import EngineRows

K = 2
ADMISSIONS = '"visits.patient_id" = "patients.patient_id"\n'
LINKED = (
    POLICY.replace(ADMISSIONS, f'{ADMISSIONS}"admissions.patient_id" = "patients.patient_id"\n')
    + '\n[synthesis]\nlinked.visits = { copies = ["sex"] }\ncolumns."visits.cost" = { cells = 2 }\n'
)


@pytest.fixture
def clinic(tmp_path: Path) -> Policy:
    return clinic_policy(tmp_path, LINKED)


def persons(seed: int) -> dict[Any, tuple[list[Any], list[Any], list[Any]]]:
    """Return patients, visits and admissions by person; some have none, several, or no key."""
    draw = random.Random(seed)
    rows = {}
    for key in ("a", "A", "b ", "b", "", "é", None, *(f"p{n}" for n in range(12))):
        patients = [(key, draw.choice(["f", "m", "F", None]), draw.choice([None, 3, 99])) for _ in range(draw.choice([0, 1, 1, 3]))]  # fmt: skip
        visits = [(key, draw.choice([None, 0, 4, 9]), draw.choice(["ER", None, "ICU"])) for _ in range(draw.choice([0, 1, 2, 5]))]  # fmt: skip
        rows[key] = patients, visits, [(key, draw.randrange(40)) for _ in range(draw.choice([0, 0, 1, 4]))]
    return rows


def tables_of(rows: dict[Any, Any]) -> dict[str, pa.Table]:
    parts = [[row for person in rows.values() for row in person[side]] for side in range(3)]
    admissions = {
        "patient_id": pa.array([row[0] for row in parts[2]], pa.string()),
        "days": pa.array([row[1] for row in parts[2]], pa.int64()),
    }
    return {**clinic_tables(parts[0], parts[1]), "admissions": pa.table(admissions)}


def test_linked_section_survives_toml_and_ledger(clinic: Policy, tmp_path: Path) -> None:
    assert parse_policy(write_policy(clinic), folder=tmp_path) == clinic
    again = policy_from_dict(clinic.public_dict())
    assert (again.synthesis, again.fingerprint) == (clinic.synthesis, clinic.fingerprint)
    assert clinic.fingerprint != replace(clinic, synthesis=replace(clinic.synthesis, linked={})).fingerprint


def test_each_table_has_its_columns_numbers_and_copies(clinic: Policy) -> None:
    patients, visits, admissions = linked_columns(clinic)
    names = [[column.name for column in part.columns.learnt] for part in (patients, visits, admissions)]
    numbers = ["number of visits rows", "number of admissions rows"]
    assert names[0] == ["patients.sex", "patients.age", *numbers]
    assert names[1] == ["visits.cost", "visits.department", "patients.sex"]
    assert names[2] == ["admissions.days"]
    assert [part.reach for part in (patients, visits, admissions)] == [1, K, K]
    assert (visits.copies, dict(patients.numbers)) == (
        ("patients.sex",),
        dict(zip(numbers, ["visits", "admissions"], strict=True)),
    )
    assert [column.size for column in patients.columns.learnt[2:]] == [K + 1, K + 1]
    assert visits.columns.learnt[0].starts == (0, 2)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(4))
def test_numbers_of_events_are_counted_by_definition(clinic: Policy, seed: int) -> None:
    rows = persons(seed)
    part = linked_columns(clinic)[0]
    table = part.open(clinic, tables_of(rows))
    known = [person for key, person in rows.items() if key is not None and person[0]]
    assert table.size == len(known)
    counted = EngineRows(table, part.columns.learnt)
    by_engine = EngineRows(table)
    for side, column in ((1, part.columns.learnt[2]), (2, part.columns.learnt[3])):
        expected = Counter(min(len(person[side]), K) for person in known)
        assert (
            counted.margin(column).tolist() == by_engine.margin(column).tolist() == [expected[n] for n in range(K + 1)]
        )


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(4))
def test_events_are_counted_with_their_persons_columns(clinic: Policy, seed: int) -> None:
    rows = persons(seed)
    part = linked_columns(clinic)[1]
    table = part.open(clinic, tables_of(rows))
    sex, expected = part.columns.learnt[2], Counter[Any]()
    for key, (patients, visits, _) in rows.items():
        if key is not None and len(patients) == 1:  # one of several rows is chosen by a hash
            expected[patients[0][1] if patients[0][1] in ("f", "m") else None] += min(len(visits), K)
    several = sum(min(len(v), K) for key, (p, v, _) in rows.items() if key is not None and len(p) > 1)
    margin = EngineRows(table, part.columns.learnt).margin(sex)
    assert all(margin[n] >= expected[value] for n, value in enumerate(("f", "m", None)))
    assert margin.sum() == sum(expected.values()) + several == table.size


@pytest.mark.parametrize("seeds", [4, pytest.param(8, marks=pytest.mark.long)])
def test_one_person_changes_at_most_the_stated_number_of_rows(clinic: Policy, seeds: int) -> None:
    largest = Counter[str]()
    for seed in range(seeds):
        here = persons(seed)
        there = {**here, "a": persons(seed + 100)["b"]}
        there["a"] = tuple([("a", *row[1:]) for row in side] for side in there["a"])  # type: ignore[assignment]
        for part in linked_columns(clinic):
            learned = part.columns.learnt
            before, after = (EngineRows(part.open(clinic, tables_of(rows)), learned) for rows in (here, there))
            for column in learned:
                moved = int(np.abs(before.margin(column) - after.margin(column)).sum())
                assert moved <= 2 * part.reach
                largest[part.table] = max(largest[part.table], moved)
    assert largest["patients"] > 0
    assert largest["visits"] > 2  # more than one row: the bound of events is k


WRONG = {
    "an unknown table": ("linked.visits", "linked.visit", "not related to a table with one row per person"),
    "an unknown column": ('["sex"]', '["sexx"]', 'Did you mean "sex"?'),
    "a key": ('["sex"]', '["patient_id"]', "is not learned"),
    "a column twice": ('["sex"]', '["sex", "sex"]', "at most 8 different columns"),
    "a rule across tables": (
        'columns."visits.cost" = { cells = 2 }',
        'orders."admissions.days" = { after = "visits.cost" }',
        "columns of another table",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_impossible_links_are_refused(case: str, tmp_path: Path) -> None:
    old, new, says = WRONG[case]
    assert old in LINKED
    with pytest.raises(PolicyError) as raised:
        clinic_policy(tmp_path, LINKED.replace(old, new, 1))
    assert says in str(raised.value)


def test_unrelated_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="one person table: admissions"):
        linked_columns(clinic_policy(tmp_path))
    with pytest.raises(PolicyError, match="for policies with several tables"):
        replace(people_policy(), synthesis=Shapes(linked={"visits": Linked(("sex",))}))


@pytest.mark.long  # tables/test_linked.py compares the engines
def test_postgres_and_sqlite_count_events_like_duckdb(clinic: Policy, postgres_server: Any) -> None:
    url, rows = create_database(postgres_server, f"t{uuid.uuid4().hex[:12]}"), tables_of(persons(1))
    sqlite = ibis.sqlite.connect()
    for name, table in rows.items():
        load_postgres(url, table, name)
        sqlite.create_table(name, table)
    opened: dict[str, Any] = {
        "postgres": {name: f"{url}&table={name}" for name in rows},
        "sqlite": {name: sqlite.table(name) for name in rows},
    }
    for part in linked_columns(clinic):
        expected = EngineRows(part.open(clinic, rows), part.columns.learnt)
        for engine, sources in opened.items():
            table = part.open(clinic, sources)
            assert table.engine == engine
            for counted in (EngineRows(table), EngineRows(table, part.columns.learnt)):
                for column in part.columns.learnt:
                    assert counted.margin(column).tolist() == expected.margin(column).tolist(), (engine, column.name)


PERSONS = 4_000
RUN = LINKED.replace("rows = 40", f"rows = {PERSONS}").replace('copies = ["sex"]', 'copies = ["sex", "age"]')


def related_tables(seed: int = 1) -> dict[str, pa.Table]:
    """Women have one or two visits, all to the ER; men none or one, to the ICU. The cost follows from the age."""
    generator = np.random.default_rng(seed)
    sex, age = generator.choice(["f", "m"], PERSONS), generator.integers(0, 10, PERSONS)
    events = generator.integers(0, 2, PERSONS) + (sex == "f")
    patients = [(f"p{n}", str(sex[n]), int(age[n])) for n in range(PERSONS)]
    visits = [
        (f"p{n}", int(age[n]) // 2, "ER" if sex[n] == "f" else "ICU") for n in range(PERSONS) for _ in range(events[n])
    ]
    keys = [f"p{n}" for n in range(0, PERSONS, 3)]
    return {**clinic_tables(patients, visits), "admissions": pa.table({"patient_id": keys, "days": [3] * len(keys)})}


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("linked")
    policy = clinic_policy(folder, RUN.replace('columns."visits.cost" = { cells = 2 }\n', ""))
    with tg.open(policy, table=related_tables(), ledger=str(folder / "clinic.ledger")) as session:
        yield session, session.synthesize_linked(epsilon=3, seed=5)


def test_linked_tables_keep_keys_numbers_and_relations(linked: Any) -> None:
    """Bounds lie between what was measured in ten runs (.5 for the cost, above .9, three times) and independence."""
    _, tables = linked
    frames = tables.to_pandas()
    patients, visits = frames["patients"], frames["visits"]
    assert list(patients) == ["patient_id", "sex", "age"]
    assert list(visits) == ["patient_id", "cost", "department"]
    assert patients["patient_id"].is_unique
    assert set(visits["patient_id"]) <= set(patients["patient_id"])
    assert visits["patient_id"].value_counts().max() <= K
    joined = visits.merge(patients, on="patient_id")
    women, men = (joined[joined["sex"] == sex] for sex in ("f", "m"))
    assert (women["department"] == "ER").mean() > 0.8
    assert (men["department"] == "ICU").mean() > 0.8
    assert abs(joined["cost"] - joined["age"] // 2).mean() < 1.1  # 1.6 if independent
    assert len(women) > 1.5 * len(men)


def test_linked_tables_cost_once_and_diaries_stay_within_the_limit(linked: Any) -> None:
    session, tables = linked
    again = session.synthesize_linked(epsilon=3, seed=5)
    assert again["visits"].to_arrow().equals(tables["visits"].to_arrow())
    assert str(session.account.spent) == "3"
    spent = [summary.spent.pure for summary in tables.summary.values()]
    assert sum(spent) <= 3
    assert min(spent) > Fraction(3, 4)
    events = tables.summary["visits"].deviations["visits.department"]
    assert events > tables.summary["patients"].deviations["patients.sex"]  # a person has one row there and two here


def test_linked_tables_draw_other_persons_and_write_files(linked: Any, tmp_path: Path) -> None:
    _, tables = linked
    other = tables.draw(100, seed=9)
    assert len(other["patients"]) == 100
    assert [path.name for path in other.write(tmp_path / "out", kind="csv")] == [
        "patients.csv",
        "visits.csv",
        "admissions.csv",
    ]
    with pytest.raises(Unsupported, match="not an empty folder"):
        other.write(tmp_path / "out")


def test_one_table_and_several_have_their_own_call(linked: Any, tmp_path: Path) -> None:
    session, _ = linked
    with pytest.raises(Unsupported, match="synthesize_linked"):
        session.synthesize(epsilon=1)
    with (
        tg.open(people_policy(), table=pa.table({}), ledger=str(tmp_path / "one.ledger")) as single,
        pytest.raises(Unsupported, match="only one table"),
    ):
        single.synthesize_linked(epsilon=1)
