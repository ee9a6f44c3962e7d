"""Linked tables in one policy: what is read, what is refused, and the rows of a query."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.clinic import DEPARTMENTS, POLICY, clinic_policy

from tidegate.accounting import budget_of
from tidegate.accounting.explain import explain
from tidegate.errors import PolicyLoosened, PolicyUnreadable, TidegateError, UnknownColumn, Unsupported
from tidegate.policy import Integer, LinkedTable, Policy, RowSource, parse_policy, row_source, rows_for, write_policy
from tidegate.policy.changes import changes, refuse_loosening
from tidegate.policy.row_source import reference_matches
from tidegate.policy.toml import policy_from_dict


@pytest.fixture
def clinic(tmp_path: Path) -> Policy:
    return clinic_policy(tmp_path)


def test_policy_is_written_and_read_without_loss(clinic: Policy, tmp_path: Path) -> None:
    assert parse_policy(write_policy(clinic), folder=tmp_path) == clinic
    stored = policy_from_dict(json.loads(json.dumps(clinic.public_dict())))
    assert stored.fingerprint == clinic.fingerprint
    assert "parquet" not in json.dumps(clinic.public_dict())


def test_columns_have_dotted_names_and_short_ones_if_unique(clinic: Policy) -> None:
    assert list(clinic.attributes)[:4] == ["patients.patient_id", "patients.sex", "patients.age", "visits.patient_id"]
    assert clinic.attribute("cost") == clinic.attribute("visits.cost") == Integer(0, 4, (), "lowest")
    assert clinic.attribute("department") == clinic.attribute("visits.department")  # the foreign key of departments
    with pytest.raises(UnknownColumn, match="Several tables") as raised:
        clinic.attribute("patient_id")
    assert raised.value.do.startswith("Write one of: patients.patient_id, visits.patient_id")
    with pytest.raises(UnknownColumn, match='Did you mean "cost"'):
        clinic.attribute("costs")


def test_promises_name_columns_by_their_full_names(clinic: Policy) -> None:
    assert clinic.identification is not None
    assert clinic.identification.protect == ("patients.age", "visits.cost")
    assert [target.name for target in budget_of(clinic).targets] == ["patients.age", "visits.cost"]


def test_reference_columns_are_functions_of_the_foreign_key(clinic: Policy) -> None:
    assert clinic.reference_codes("floor") == ("visits.department", (0, 4, None))  # 9 is clamped, Garden has no row
    assert clinic.reference_codes("departments.wing") == ("visits.department", (1, None, None))
    assert reference_matches(clinic, "departments") == ("visits.department", (True, True, False))
    for name in ("departments.department", "visits.cost"):
        with pytest.raises(Unsupported):
            clinic.reference_codes(name)


def test_reference_content_is_in_the_fingerprint_and_its_bytes_are_not(clinic: Policy, tmp_path: Path) -> None:
    lines = DEPARTMENTS.splitlines()
    reordered = "\n".join([lines[0], *reversed(lines[1:])]).replace(",x", ",another head")
    assert clinic_policy(tmp_path, departments=reordered.replace(",", ";")).fingerprint == clinic.fingerprint
    moved = clinic_policy(tmp_path, departments=DEPARTMENTS.replace("ER,1", "ER,3"))
    assert moved.fingerprint != clinic.fingerprint
    refuse_loosening(clinic, moved)
    stored = policy_from_dict(clinic.public_dict())
    assert changes(stored, clinic) == []
    assert [line.split(":")[0] for line in changes(stored, moved)] == ["table departments"]


def test_private_table_cannot_become_public_after_a_charge(clinic: Policy, tmp_path: Path) -> None:
    (tmp_path / "admissions.csv").write_text("patient_id,ward,days\na,ER,3\n", "utf-8")
    text = POLICY.replace('{ source = "admissions.parquet" }', '{ source = "admissions.csv", reference = true }')
    text = text.replace('patient_id = { kind = "key" }\ndays', 'ward = { kind = "key" }\ndays')
    text = text.replace('"visits.department" = "departments.department"', '"visits.department" = "admissions.ward"')
    text = text.replace('departments = { source = "departments.csv", reference = true }\n', "")
    text = text.replace(text[text.index("[attributes.departments]") : text.index("[promise.identification]")], "")
    with pytest.raises(PolicyLoosened, match="admissions would become a public reference table"):
        refuse_loosening(clinic, clinic_policy(tmp_path, text))


def test_reference_table_in_parquet_has_the_same_content(clinic: Policy, tmp_path: Path) -> None:
    table = pa.table({"department": ["Lab", "ICU", "ER"], "floor": [2.0, 9.0, 1.0], "wing": ["east", None, "west"]})
    pq.write_table(table, tmp_path / "departments.parquet")
    read = clinic_policy(tmp_path, POLICY.replace("departments.csv", "departments.parquet"))
    assert read.fingerprint == clinic.fingerprint


def test_whole_numbers_are_foreign_keys_too(tmp_path: Path) -> None:
    text = POLICY.replace(
        '{ kind = "category", values = ["ER", "ICU", "Garden"], missing = "value" }',
        '{ kind = "integer", from = 7, to = 9 }',
    )
    policy = clinic_policy(tmp_path, text, departments="department,floor,wing\n+9,2,east\n007,3,west\n")
    assert policy.reference_codes("floor") == ("visits.department", (2, None, 1))


def dimension_policy(tmp_path: Path, foreign: str, column: str, rows: str) -> Policy:
    """Return the policy with another foreign key and another reference column."""
    text = POLICY.replace('{ kind = "category", values = ["ER", "ICU", "Garden"], missing = "value" }', foreign)
    text = text.replace('{ kind = "integer", from = 1, to = 5 }', column)
    return clinic_policy(tmp_path, text, departments=f"department,floor,wing\n{rows}")


@pytest.mark.parametrize(
    ("column", "values", "codes"),
    [
        ('{ kind = "date", from = 2024-01-01, to = 2024-01-09 }', ("2024-01-02", "2024-02-01"), (1, None)),
        ('{ kind = "date", from = 2024-01-01, to = 2024-01-09, outside = "clamp" }', ("2023-01-02", "soon"), (0, None)),
        (
            '{ kind = "date", from = 2024-01-01, to = 2024-12-31, grid = "month" }',
            ("2024-12-31", "2025-01-01"),
            (11, None),
        ),
        ('{ kind = "time", from = 08:00:00, to = 20:00:00, grid = "hour" }', ("08:59", "20:59"), (0, 12)),
        ('{ kind = "decimal", from = "0.00", to = "5.00", step = "0.01" }', ("0.125", "9"), (13, 500)),
        ('{ kind = "integer", from = 1, to = 5, outside = "missing" }', ("5.0", "5.4"), (4, None)),
        ('{ kind = "integer", from = 1, to = 5, missing = "lowest" }', ("", "nan"), (0, 0)),
        ('{ kind = "category", values = ["x"], outside = "other" }', ("y", ""), (1, None)),
        ('{ kind = "category", values = [3, 7], outside = "other" }', ("07", "8"), (1, 2)),
        ('{ kind = "boolean" }', ("True", "yes"), (1, None)),
        ('{ kind = "text", buckets = 1 }', ("anything", ""), (0, None)),
    ],
)
def test_reference_column_has_the_codes_of_its_kind(
    column: str, values: tuple[str, str], codes: tuple[int | None, ...], tmp_path: Path
) -> None:
    rows = f"ER,{values[0]},east\nICU,{values[1]},west\n"
    policy = dimension_policy(tmp_path, '{ kind = "category", values = ["ER", "ICU"] }', column, rows)
    assert policy.reference_codes("floor")[1] == codes


def test_dates_are_foreign_keys_of_a_calendar(tmp_path: Path) -> None:
    foreign = '{ kind = "date", from = 2024-01-01, to = 2024-01-03 }'
    rows = "2024-01-03,3,east\n2024-01-01,2,west\n2030-01-01,4,east\n"
    policy = dimension_policy(tmp_path, foreign, '{ kind = "integer", from = 1, to = 5 }', rows)
    assert policy.reference_codes("floor") == ("visits.department", (1, None, 2))
    days = [dt.datetime(2024, 1, 3), dt.datetime(2024, 1, 1), dt.datetime(2030, 1, 1)]
    table = {"department": days, "floor": [3, 2, 4], "wing": ["east", "west", "east"]}
    pq.write_table(pa.table(table), tmp_path / "departments.parquet")
    stored = parse_policy(write_policy(policy).replace("departments.csv", "departments.parquet"), folder=tmp_path)
    assert stored.fingerprint == policy.fingerprint
    with pytest.raises(PolicyUnreadable, match="missing or has another type"):
        dimension_policy(tmp_path, foreign, '{ kind = "integer", from = 1, to = 5 }', "2024-01-03 11:00,3,east\n")


def test_values_that_the_foreign_key_does_not_list_have_no_match(tmp_path: Path) -> None:
    foreign = '{ kind = "category", values = ["ER", "ICU"], outside = "other" }'
    rows = "ER,1,east\n(other),2,west\n"
    policy = dimension_policy(tmp_path, foreign, '{ kind = "integer", from = 1, to = 5 }', rows)
    assert policy.reference_codes("floor") == ("visits.department", (0, None, None))
    assert reference_matches(policy, "departments")[1] == (True, False, False)


FAULTS = {
    "unknown table in a relation": (
        '"visits.patient_id" = "patients',
        '"visits.patient_id" = "patient',
        "unknown table",
    ),
    "unknown column in a relation": ('"visits.department" =', '"visits.departmint" =', "unknown column"),
    "relation to a column that is not the key": (
        '"visits.patient_id" = "patients.patient_id"',
        '"visits.patient_id" = "patients.age"',
        "not on the person key",
    ),
    "relation on other columns": (
        '"visits.patient_id" = "patients.patient_id"',
        '"visits.cost" = "patients.age"',
        "not on the person key",
    ),
    "relation between event tables": (
        '"visits.patient_id" = "patients.patient_id"',
        '"visits.patient_id" = "admissions.patient_id"',
        "one row per person",
    ),
    "relation of a table to itself": (
        '"visits.patient_id" = "patients.patient_id"',
        '"patients.patient_id" = "patients.patient_id"',
        "one row per person",
    ),
    "reference without a unique key": ('"departments.department"', '"departments.wing"', "missing or has another type"),
    "foreign key that is a key": (
        '"visits.department" =',
        '"admissions.patient_id" =',
        "not a listed value, a whole number or a date",
    ),
    "reference table without a relation": ('"visits.department" = "departments.department"\n', "", "0 relations"),
    "private table without the person key": (
        'patient_id = { kind = "key" }\ndays',
        "days",
        'private table "admissions" has no person key "patient_id"',
    ),
    "person key of another kind": (
        'patient_id = { kind = "key" }\ndays',
        'patient_id = { kind = "integer", from = 0, to = 9 }\ndays',
        "has no person key",
    ),
    "unit is a row": ('{ person = "patient_id", at_most = 2 }', '"row"', "require a person as the unit"),
    "two rows per person": ("rows_per_person = 1", "rows_per_person = 2", "must be 1, or absent"),
    "reference table with rows per person": ("reference = true", "reference = true, rows_per_person = 1", "must be 1"),
    "source of the data set": ('name = "clinic"', 'name = "clinic"\nsource = "x.csv"', "no source in"),
    "records of the data set": ('name = "clinic"', 'name = "clinic"\nrecords = 90', "no `records` in"),
    "records of a reference table": ("reference = true", "reference = true, records = 9", "only for tables in which"),
    "records of persons": ("rows_per_person = 1", "rows_per_person = 1, records = 9", "only for tables in which"),
    "no records": ('"visits.parquet"', '"visits.parquet", records = 0', "must be at least 1, not 0"),
    "attributes of no table": (
        "[attributes.admissions]",
        "[attributes.admission]",
        r"\[attributes.admissions\] is missing",
    ),
    "attributes beyond the tables": (
        "[promise.loss]",
        '[attributes.staff]\nage = { kind = "key" }\n[promise.loss]',
        "Unknown key: attributes.staff",
    ),
    "protected reference column": ('["age", "visits.cost"]', '["age", "floor"]', "public"),
    "view": ("[promise.loss]", '[view.care]\nsql = "SELECT 1"\n[promise.loss]', "Views .* are not supported"),
    "reference file that does not exist": ("departments.csv", "nowhere.csv", "there is no such file"),
    "reference file of an unknown type": ("departments.csv", "departments.xlsx", "cannot be read from"),
    "reference column that does not exist": ("wing = ", "wings = ", 'no column "wings". Did you mean "wing"'),
    "misspelled setting": ("reference = true", "refrence = true", "Unknown key: tables.departments.refrence"),
    "other content than declared": ("reference = true", 'reference = true, content = "0000"', "declared content"),
    "open decision": ("at_most = 2", 'at_most = "?"', "still open"),
    "concealment": (
        "[promise.loss]",
        '[promise.concealment.x]\nreveals = ["sex"]\nabout = ["age"]\n[promise.loss]',
        "several tables cannot have",
    ),
}


@pytest.mark.parametrize(("old", "new", "message"), FAULTS.values(), ids=list(FAULTS))
def test_fault_in_a_policy_is_refused_while_it_is_read(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in POLICY
    with pytest.raises(TidegateError, match=message):
        clinic_policy(tmp_path, POLICY.replace(old, new))


@pytest.mark.parametrize(
    ("departments", "message"),
    [
        (DEPARTMENTS + "ER,2,east,x\n", '"ER" occurs twice'),
        (DEPARTMENTS + ",2,east,x\n", "missing"),
        (DEPARTMENTS + "Lobby,2\n", "line 5 has 2 fields instead of 4"),
        ("", "no column"),
        ("department,department,floor,wing\n", "names a column twice"),
    ],
)
def test_fault_in_a_reference_table_is_refused(departments: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyUnreadable, match=message):
        clinic_policy(tmp_path, departments=departments)


def test_keys_that_differ_in_case_or_spaces_are_different_reference_keys(tmp_path: Path) -> None:
    policy = clinic_policy(tmp_path, departments="department,floor,wing\ner,1,east\nER ,2,east\nER,3,east\n")
    assert policy.reference_codes("floor") == ("visits.department", (2, None, None))


def test_tables_cannot_be_passed_with_other_attributes(clinic: Policy) -> None:
    with pytest.raises(PolicyUnreadable, match="attributes of a policy with tables"):
        replace(clinic, attributes={"age": Integer(0, 9)})
    with pytest.raises(PolicyUnreadable, match="reference tables only"):
        Policy(clinic.dataset, {}, tables={"departments": clinic.tables["departments"]})
    with pytest.raises(PolicyUnreadable, match='is listed as "people"'):
        Policy(clinic.dataset, {}, tables={"people": clinic.tables["patients"]})
    with pytest.raises(PolicyUnreadable, match="not a name of a table"):
        LinkedTable("ad.missions", "", {"days": Integer(0, 9)})
    with pytest.raises(PolicyUnreadable, match="has no columns"):
        LinkedTable("patients", "", {})


ROWS = {
    "visits": RowSource("visits"),
    "patients": RowSource("patients"),
    "visits join patients": RowSource("visits", "patients"),
    "visits left join patients": RowSource("visits", "patients", outer=True),
    "patients left join visits": RowSource("patients", "visits", outer=True),
}


def test_rows_have_one_canonical_form(clinic: Policy) -> None:
    assert {str(rows): rows for rows in ROWS.values()} == ROWS
    assert row_source(clinic, "visits") == ROWS["visits"]
    assert row_source(clinic, "visits", "patients") == row_source(clinic, "patients", "visits")
    assert row_source(clinic, "patients", "visits") == ROWS["visits join patients"]
    assert row_source(clinic, "visits", "patients", outer=True) == ROWS["visits left join patients"]
    assert row_source(clinic, "patients", "visits", outer=True) == ROWS["patients left join visits"]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (("visits", "visits"), "cannot be joined to itself"),
        (("visits", "admissions"), "No relation links"),
        (("admissions", "patients"), "No relation links"),
        (("visits", "departments"), "public reference table"),
        (("departments",), "public reference table"),
        (("visit",), 'Did you mean "visits"'),
        (("visits", "patient"), 'Did you mean "patients"'),
    ],
)
def test_other_joins_are_refused(clinic: Policy, tables: tuple[str, ...], message: str) -> None:
    with pytest.raises(TidegateError, match=message):
        row_source(clinic, *tables)


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (["cost"], "visits"),
        (["cost", "departments.floor"], "visits"),
        (["floor", "wing"], "visits"),
        (["age", "patients.sex"], "patients"),
        (["age", "cost"], "visits join patients"),
        (["floor", "age"], "visits join patients"),
    ],
)
def test_columns_decide_the_rows_of_a_query(clinic: Policy, columns: list[str], rows: str) -> None:
    assert rows_for(clinic, columns) == rows_for(clinic, columns[::-1]) == ROWS[rows]


def test_query_without_columns_must_name_its_table(clinic: Policy) -> None:
    with pytest.raises(Unsupported, match="names no column") as raised:
        rows_for(clinic, [])
    assert 'count().of("admissions")' in raised.value.do
    with pytest.raises(Unsupported, match="No relation"):
        rows_for(clinic, ["cost", "days"])
    with pytest.raises(Unsupported, match="3 private tables"):
        rows_for(clinic, ["cost", "days", "age"])


def test_query_without_columns_is_about_the_only_private_table(clinic: Policy) -> None:
    patients = {"patients": clinic.tables["patients"]}
    assert rows_for(Policy(clinic.dataset, {}, tables=patients), []) == RowSource("patients")


def test_flat_policy_describes_the_rows_as_one_table(clinic: Policy) -> None:
    units = {
        str(rows): (clinic.flat(rows).dataset.unit.key, clinic.flat(rows).dataset.unit.at_most)
        for rows in ROWS.values()
    }  # type: ignore[union-attr]
    assert units == {
        "visits": ("visits.patient_id", 2),
        "patients": ("patients.patient_id", 1),
        "visits join patients": ("visits.patient_id", 2),
        "visits left join patients": ("visits.patient_id", 2),
        "patients left join visits": ("patients.patient_id", 2),
    }
    flat = clinic.flat(ROWS["visits join patients"])
    assert not flat.tables
    assert not flat.relations
    assert flat.dataset.rows == 40
    assert set(flat.attributes) == {*clinic.tables["patients"].columns, *clinic.tables["visits"].columns}
    assert flat.identification == clinic.identification
    alone = clinic.flat(ROWS["patients"]).identification
    assert alone is not None
    assert alone.protect == ("patients.age",)
    assert clinic.flat(RowSource("admissions")).identification is None
    assert clinic.flat(RowSource("admissions")).loss == clinic.loss


def test_rows_of_events_have_the_records_of_their_table(tmp_path: Path) -> None:
    clinic = clinic_policy(tmp_path, POLICY.replace('"visits.parquet"', '"visits.parquet", records = 70'))
    assert {name: clinic.flat(rows).dataset.records for name, rows in ROWS.items()} == {
        name: None if rows == RowSource("patients") else 70 for name, rows in ROWS.items()
    }
    assert parse_policy(write_policy(clinic), folder=tmp_path) == clinic
    before = clinic_policy(tmp_path)
    assert changes(before, clinic) == [
        "table visits: several rows per person -> several rows per person, about 70 rows"
    ]


def test_absent_row_has_no_value_instead_of_the_lowest(clinic: Policy) -> None:
    for rows, column in (
        (ROWS["patients left join visits"], "visits.cost"),
        (ROWS["visits left join patients"], "patients.age"),
    ):
        assert clinic.flat(rows).attribute(column).missing == "dropped"  # type: ignore[attr-defined]
    assert clinic.flat(ROWS["visits join patients"]).attribute("visits.cost").missing == "lowest"  # type: ignore[attr-defined]


def test_check_describes_tables_relations_and_the_row_bound(clinic: Policy) -> None:
    sentences = {finding.about: finding.says for finding in explain(clinic)}
    assert sentences["patients"] == "One row per person. If a person has more, one of them counts."
    assert sentences["visits"] == "Several rows per person; at most 2 rows of a person count."
    assert "at most 2 rows of a person count" in sentences["visits join patients"]
    assert "3 rows, found by visits.department; 1 of the 3 values" in sentences["departments"]
    assert "departments" not in sentences["not protected"]


def test_policy_of_one_table_is_unchanged() -> None:
    policy = parse_policy(
        '[dataset]\nname = "p"\nunit = "row"\n[attributes]\nage = { kind = "integer", from = 0, to = 9 }\n'
    )
    assert set(policy.public_dict()) == {"version", "dataset", "attributes"}
    assert policy.tables == policy.relations == {}
