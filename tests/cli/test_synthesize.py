"""tidegate synthesize: a preview, complete files, free repeats, and sentences for bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from cli.conftest import Run
from support.clinic import DEPARTMENTS, POLICY, clinic_tables


def as_json(result: tuple[int, str, str]) -> Any:
    assert result[0] == 0, result
    return json.loads(result[1])


def test_preview_then_tables_then_the_same_tables_free(run: Run, demo: Path, tmp_path: Path) -> None:
    policy, out = demo / "people.toml", tmp_path / "synthetic"
    before = as_json(run("synthesize", policy, "--epsilon", "0.2", "--preview", "--json"))
    assert (before["cost"], before["fits"], before["model"]) == ("0.2", True, "forest/2")
    assert sum(stage["share"] for stage in before["stages"]) == pytest.approx(1)
    code, result, _ = run("synthesize", policy, "--epsilon", "0.2", "--preview")
    assert (code, result.strip().endswith("Preview only: nothing was charged.")) == (0, True)
    content = as_json(run("synthesize", policy, "--epsilon", "0.2", "--tables", "2", "--out", out, "--json"))
    assert content["cost"] == "0.4"
    assert [Path(file).name for file in content["files"]] == ["people-1.parquet", "people-2.parquet"]
    table = pq.read_table(content["files"][0])
    assert (table.num_rows, table.column_names) == (10_000, ["age", "sex", "town", "education", "hours", "income"])
    assert "loses at most epsilon 0.2 about one row" in (out / "README.md").read_text()
    about = json.loads((out / "synthetic.json").read_text())
    assert (about["entry"], about["files"]) == (content["entry"], ["people-1.parquet", "people-2.parquet"])
    assert sorted(path.name for path in out.iterdir()) == sorted(
        [*about["files"], "README.md", "public-quality.html", "synthetic.json"]
    )
    again = as_json(run("synthesize", policy, "--epsilon", "0.2", "--tables", "2", "--out", out, "--json"))
    assert (again["cost"], pq.read_table(content["files"][0])) == ("0", table)
    code, result, _ = run("ledger", "show", policy)
    assert "requested 2 synthetic tables of 6 columns by forest/2: 0.4 charged" in result
    assert as_json(run("ledger", "verify", policy, "--json"))["holds"]


def test_csv_rows_seed_columns_and_quality(run: Run, demo: Path, tmp_path: Path) -> None:
    policy, out = demo / "people.toml", tmp_path / "few"
    words = ["--epsilon", "0.1", "--rows", "50", "--column", "sex", "--column", "age", "--seed", "3", "--format", "csv"]
    words += ["--quality", tmp_path / "quality.json", "--out", out]
    code, result, _ = run("synthesize", policy, *words)
    assert code == 0
    assert "computed from true rows and not charged" in result
    assert pa_csv.read_csv(out / "people-1.csv").num_rows == 50
    assert json.loads((tmp_path / "quality.json").read_text())


BAD = {
    "epsilon 0": (["--epsilon", "0"], "epsilon must be a number above 0"),
    "neither": ([], "exactly one of `epsilon`, `rho`, `z`, or `share`"),
    "too much": (["--epsilon", "9"], "The request costs epsilon 9"),
    "an unknown model": (["--epsilon", "0.1", "--model", "tree"], 'Unknown model: "tree"'),
    "an unknown column": (["--epsilon", "0.1", "--column", "agee"], 'Did you mean "age"'),
    "two losses": (["--epsilon", "0.1", "--z", "0.1"], "exactly one of `epsilon`, `rho`, `z`, or `share`"),
    "a delta without epsilon": (["--share", "0.1", "--delta", "0.00001"], "`delta` requires `epsilon`"),
    "a z without the average guarantee": (["--z", "0.1"], "`z` requires a policy that limits the average loss alone"),
    "a delta likewise": (
        ["--epsilon", "0.1", "--delta", "0.00001"],
        "`delta` requires a policy that limits the average",
    ),
    "a removed model": (["--epsilon", "0.1", "--model", "copula"], 'Unknown model: "copula"'),
    "a strange format": (["--epsilon", "0.1", "--format", "xls"], "Use one of parquet, csv"),
    "a rho that is too small": (["--rho", "0.001"], "cannot be promised"),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", BAD)
def test_bad_options_are_reported_in_one_sentence_and_charge_nothing(
    run: Run, demo: Path, tmp_path: Path, case: str
) -> None:
    words, says = BAD[case]
    before = as_json(run("ledger", "verify", demo / "people.toml", "--json"))
    code, _, err = run("synthesize", demo / "people.toml", "--out", tmp_path / "out", *words)
    assert code == 2
    assert says in err
    assert as_json(run("ledger", "verify", demo / "people.toml", "--json")) == before
    assert not (tmp_path / "out").exists()


def test_output_folder_must_be_named_and_empty(run: Run, demo: Path, tmp_path: Path) -> None:
    policy = demo / "people.toml"
    assert "there is no folder for the tables" in run("synthesize", policy, "--epsilon", "0.1")[2]
    assert "contains other files" in run("synthesize", policy, "--epsilon", "0.1", "--out", demo)[2]
    assert "is a file" in run("synthesize", policy, "--epsilon", "0.1", "--out", policy)[2]
    assert run("synthesize", policy, "--epsilon", "0.1", "--out", tmp_path / "one")[0] == 0
    before = as_json(run("ledger", "verify", policy, "--json"))
    code, _, err = run("synthesize", policy, "--epsilon", "0.05", "--out", tmp_path / "one")
    assert (code, "contains other files" in err) == (2, True)
    assert as_json(run("ledger", "verify", policy, "--json")) == before


@pytest.mark.long  # synthesize/test_links.py writes them
def test_linked_tables_are_written_by_name(run: Run, tmp_path: Path) -> None:
    relation = '"visits.patient_id" = "patients.patient_id"\n'
    text = POLICY.replace(relation, f'{relation}"admissions.patient_id" = "patients.patient_id"\n')
    (tmp_path / "departments.csv").write_text(DEPARTMENTS, "utf-8")
    (tmp_path / "clinic.toml").write_text(text, "utf-8")
    patients = [(f"p{n}", "fm"[n % 2], n % 10) for n in range(40)]
    tables = clinic_tables(patients, [(f"p{n}", n % 5, "ER") for n in range(30)])
    tables["admissions"] = pa.table({"patient_id": ["p1", "p2"], "days": [3, 4]})
    for name, table in tables.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    policy, out = str(tmp_path / "clinic.toml"), tmp_path / "out"
    code, _, problem = run("synthesize", policy, "--epsilon", "1", "--out", out, "--tables", "2")
    assert (code, "Linked tables have no --tables" in problem) == (2, True)
    code, text, problem = run("synthesize", policy, "--epsilon", "1", "--out", out, "--format", "csv", "--seed", "3")
    assert code == 0, problem
    assert "all tables together" in text
    assert {path.name for path in out.iterdir()} == {"patients.csv", "visits.csv", "admissions.csv"}
    assert pa_csv.read_csv(out / "visits.csv").column_names == ["patient_id", "cost", "department"]
