"""CSV downloads open in a spreadsheet as text and numbers; no cell is executed."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.service import AGE, RunningService, quiet_settings, run_service

from tidegate.frames import RUN, safe_cell
from tidegate.ledger.jobs import DONE, FAILED
from tidegate.policy import Category, Concealment, Dataset, Key, Loss, Policy
from tidegate.service.spreadsheets import safe_table

TOWNS = ("=cmd|' /C calc'!A0", "@SUM(1+1)", "-5")
PEOPLE = 60
WORKING = quiet_settings(run_jobs=True, job_beat=0.05, job_patience=0.2)


def hostile(folder: Path) -> Any:
    """A service whose records contain formulas."""
    people = Policy(
        Dataset("people", rows=PEOPLE),
        {"person": Key(), "age": AGE, "town": Category(TOWNS)},
        loss=Loss("100"),
        concealments={
            "hq": Concealment(
                reveals="age",
                about="town",
                tests="chi-square",
                significance="0.2",
                baseline=(1, 1, 1, 1),
                shares=(1, 1, 1),
                releases=("person", "age", "town"),
            )
        },
    )
    rows = {
        "person": [f"+{n}+1" for n in range(PEOPLE)],
        "age": [18 + n * 7 % 40 for n in range(PEOPLE)],
        "town": [TOWNS[n % 3] for n in range(PEOPLE)],
    }
    return run_service(str(folder / "all.ledger"), settings=WORKING, policies=(people,), data=pa.table(rows))


@pytest.mark.parametrize(
    ("cell", "safe"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd|x", "'+cmd|x"),
        ("-2+3", "'-2+3"),
        ("@A1", "'@A1"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        ("-5", "-5"),
        ("-0.25", "-0.25"),
        ("+1e-3", "+1e-3"),
        ("Aby", "Aby"),
        ("", ""),
        (-5, -5),
        (-0.5, -0.5),
        (None, None),
    ],
)
def test_cell_is_never_a_formula(cell: Any, safe: Any) -> None:
    assert safe_cell(cell) == safe


def test_all_text_columns_and_their_names_are_safe() -> None:
    text = pa.array(["=1", None, "-5"])
    table = pa.table({"=name": text, "listed": text.dictionary_encode(), "number": pa.array([-1, 2, 3])})
    safe = safe_table(table)
    assert safe.column_names == ["'=name", "listed", "number"]
    assert safe["'=name"].to_pylist() == safe["listed"].to_pylist() == ["'=1", None, "-5"]
    assert safe["number"].to_pylist() == [-1, 2, 3]


def assert_safe(rows: list[dict[str, str]]) -> None:
    assert rows
    for cell in (cell for row in rows for cell in row.values()):
        assert not cell.startswith(RUN) or cell == "-5", cell


def test_released_records_are_safe_as_csv_and_unaltered_as_json(tmp_path: Path) -> None:
    with hostile(tmp_path) as service:
        service.post("/v1/data/people/desks/hq/requests", {"keys": [f"+{n}+1" for n in range(40)]})
        text = service.get("/v1/data/people/desks/hq/released?kind=csv").text
        records = service.get("/v1/data/people/desks/hq/released?kind=json").json()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert_safe(rows)
    assert {row["person"] for row in rows} == {f"'{record['person']}" for record in records}
    assert {record["town"] for record in records} <= set(TOWNS)


def wait_for_end(service: RunningService, job: str) -> str:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        state = str(service.get(f"/v1/data/people/syntheses/{job}").json()["state"])
        if state in (DONE, FAILED):
            return state
        time.sleep(0.05)
    raise AssertionError("the job does not end")


def test_synthetic_tables_are_safe_as_csv_and_unaltered_as_parquet(tmp_path: Path) -> None:
    with hostile(tmp_path) as service:
        job = service.post("/v1/data/people/syntheses", {"epsilon": 20}).json()["id"]
        assert wait_for_end(service, job) == DONE
        text = service.get(f"/v1/data/people/syntheses/{job}/tables/1?kind=csv").text
        whole = pq.read_table(io.BytesIO(service.get(f"/v1/data/people/syntheses/{job}/tables/1").content))
    assert_safe(list(csv.DictReader(io.StringIO(text, newline=""))))
    assert set(whole["town"].to_pylist()) <= set(TOWNS)
    assert any(town.startswith("=") for town in whole["town"].to_pylist())
