"""`check` on a policy with linked tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.conftest import Run
from support.clinic import DEPARTMENTS, POLICY

WARNING = "NOT FOR PUBLICATION: exact figures from private data"


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    """A folder with a policy and its tables as CSV files."""
    (tmp_path / "clinic.toml").write_text(POLICY.replace(".parquet", ".csv").replace("rows = 40", "rows = 3"))
    (tmp_path / "departments.csv").write_text(DEPARTMENTS)
    (tmp_path / "patients.csv").write_text("patient_id,sex,age\na,f,1\nb,m,2\nc,f,3\n")
    (tmp_path / "visits.csv").write_text("patient_id,cost,department\na,1,ER\na,2,ICU\na,2,Garden\nz,3,ER\n")
    (tmp_path / "admissions.csv").write_text("patient_id,days\na,1\n")
    return tmp_path / "clinic.toml"


def test_check_describes_the_tables_and_opens_them(run: Run, clinic: Path) -> None:
    code, out, _ = run("check", clinic)
    assert code == 0, out
    assert "One row per person. If a person has more, one of them counts." in out
    assert "Several rows per person; at most 2 rows of a person count." in out
    assert "Joined on the person key (visits.patient_id = patients.patient_id)" in out
    assert "11 declared columns found, read by duckdb" in out
    assert '"SELECT sex, COUNT(*) FROM patients GROUP BY sex"' in out


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("visits.csv", "patient_id,cost\na,1\n", 'no column "department"'),
        ("departments.csv", DEPARTMENTS + "ER,1,east,x\n", "is not unique"),
        ("admissions.csv", None, "There is no file"),
    ],
)
def test_check_finds_faults_in_every_table(
    run: Run, clinic: Path, file: str, content: str | None, message: str
) -> None:
    path = clinic.parent / file
    path.unlink() if content is None else path.write_text(content)
    code, out, error = run("check", clinic)
    assert code == 2
    assert message in out + error


def test_check_with_data_reports_on_every_private_table(run: Run, clinic: Path) -> None:
    code, out, _ = run("check", clinic, "--data")
    assert code == 0, out
    lines = out.strip().splitlines()
    assert lines[0] == lines[-1] == WARNING
    assert "Table patients: 3 rows" in lines
    assert '3 persons by "patient_id"; the policy declares 3; 0 rows without a key are ignored' in out
    assert "1 person with more than 2 rows: 1 row not counted" in out
    assert "1 row without a match: visits.patient_id = patients.patient_id" in lines
    assert "1 row without a match: visits.department = departments.department" in lines
    code, out, _ = run("check", clinic, "--data", "--json")
    assert list(json.loads(out)["tables"]) == ["patients", "visits", "admissions"]
    assert set(json.loads(out)["unmatched"].values()) == {1}


def test_check_with_data_counts_no_row_if_every_label_has_a_row_of_reference(run: Run, clinic: Path) -> None:
    (clinic.parent / "departments.csv").write_text(DEPARTMENTS + "Garden,1,east,x\n")
    code, out, _ = run("check", clinic, "--data", "--json")
    assert code == 0, out
    assert json.loads(out)["unmatched"]["visits.department = departments.department"] == 0
