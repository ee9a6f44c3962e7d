"""Synthesis jobs: progress by stage, run once, and continued after their process was killed."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from ledger.children import Child
from service.paused_server import serve_slowly
from support.service import House, faster, house

from tidegate.ledger.jobs import DONE, FAILED, RUNNING, WAITING, Jobs

JOBS = "/data/people/syntheses"
WORKING = faster(run_jobs=True, job_beat=0.05, job_patience=0.3)
ASKED = {"epsilon": 1, "tables": 2, "rows": 50}
PATIENCE = 60.0


def wait_for_end(house: House, job: str) -> dict[str, Any]:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        content: dict[str, Any] = house.get(f"{JOBS}/{job}", "analyst").json()
        if content["state"] in (DONE, FAILED):
            return content
        time.sleep(0.05)
    raise AssertionError("the job does not end")


def test_job_is_charged_once_and_its_tables_can_be_downloaded(tmp_path: Path) -> None:
    with house(str(tmp_path / "all.ledger"), settings=WORKING) as served:
        before = served.post(f"{JOBS}/previews", ASKED, "analyst").json()
        key = {"Idempotency-Key": "k"}
        started = served.post(JOBS, ASKED, headers=key)
        assert started.status_code == 202
        job = started.json()["id"]
        assert served.post(JOBS, ASKED, headers=key).json()["id"] == job
        assert served.post(JOBS, {**ASKED, "tables": 1}, headers=key).status_code == 409
        result = wait_for_end(served, job)
        assert (result["state"], result["problem"], result["progress"]["stage"]) == (DONE, None, "done")
        assert served.get("/data/people").json()["account"]["spent"] == before["cost"] == "2"
        parquet = served.get(f"{JOBS}/{job}/tables/1", "analyst")
        table = pq.read_table(io.BytesIO(parquet.content))
        assert (table.num_rows, table.column_names) == (50, before["columns"])
        csv = served.get(f"{JOBS}/{job}/tables/1?kind=csv", "analyst")
        assert csv.headers["content-type"].startswith("text/csv")
        assert pa_csv.read_csv(io.BytesIO(csv.content)).to_pydict() == table.to_pydict()
        assert served.get(f"{JOBS}/{job}/tables/2", "analyst").content != parquet.content
        assert served.get(f"{JOBS}/{job}/tables/3", "analyst").status_code == 404
        assert served.get(f"{JOBS}/{job}/quality", "analyst").status_code == 403
        assert served.get(f"{JOBS}/{job}/quality").json()
        assert served.get("/data/people").json()["account"]["spent"] == "2", "looking costs nothing"
        again = wait_for_end(served, served.post(JOBS, ASKED).json()["id"])
        assert (again["entry"], again["id"] > job) == (result["entry"], True)
        listed = served.get(f"{JOBS}?limit=1").json()
        assert (listed["syntheses"][0]["id"], listed["next"]) == (job, job)


def test_impossible_synthesis_is_refused_and_exceeded_budget_fails_the_job(tmp_path: Path) -> None:
    with house(str(tmp_path / "all.ledger"), settings=WORKING) as served:
        for wrong in ({}, {"epsilon": 1, "rho": 1}, {"epsilon": 1, "model": "wishful"}, {"epsilon": 1, "target": "x"}):
            assert served.post(JOBS, wrong).status_code == 422
        content = wait_for_end(served, served.post(JOBS, {"epsilon": 5000}).json()["id"])
        assert (content["state"], content["problem"]["code"]) == (FAILED, "budget-exceeded")
        assert served.get(f"{JOBS}/{content['id']}/tables/1").status_code == 404
        assert served.get("/data/people").json()["account"]["spent"] == "0"


def test_download_never_charges(tmp_path: Path) -> None:
    """A job that is marked as done without a ledger entry, as if the data had a new edition."""
    with house(str(tmp_path / "all.ledger")) as served:
        job = served.post(JOBS, ASKED).json()
        jobs = Jobs(served.datasets.ledger.store)
        mine = jobs.take("w", datasets=["people"], patience=1)
        assert mine is not None
        jobs.tell(mine, state=DONE)
        for part in ("tables/1", "quality"):
            assert served.get(f"{JOBS}/{job['id']}/{part}").status_code == 404
        assert served.get("/data/people").json()["account"]["spent"] == "0"


def test_running_job_waits_for_the_next_process_when_the_service_stops(tmp_path: Path) -> None:
    address = str(tmp_path / "all.ledger")
    with house(address, settings=WORKING) as served:
        job = served.post(JOBS, ASKED).json()["id"]
    with house(address) as idle:
        state = idle.get(f"{JOBS}/{job}").json()["state"]
        assert state in (WAITING, DONE), "not running: no process works on it"
    with house(address, settings=WORKING) as later:
        assert wait_for_end(later, job)["state"] == DONE


@pytest.mark.parametrize("after", [1, 3])
def test_job_of_a_killed_process_continues_in_the_next(tmp_path: Path, after: int) -> None:
    """The process is killed once the diary has some lines; the next one finishes the job at the same cost."""
    address = str(tmp_path / "all.ledger")
    with house(address) as served:  # which does no jobs itself
        job = served.post(JOBS, ASKED).json()["id"]
        child = Child(serve_slowly, address)
        assert child.hear() == "ready"
        until = time.monotonic() + PATIENCE
        while lines(tmp_path) < 1 + after and time.monotonic() < until:
            time.sleep(0.01)
        child.kill()
        written = kept(tmp_path)
        assert len(written) >= 1 + after, "it was killed in the middle"
        assert served.get(f"{JOBS}/{job}").json()["state"] == RUNNING
        with house(address, settings=WORKING) as later:
            result = wait_for_end(later, job)
            assert result["state"] == DONE
            assert later.get("/data/people").json()["account"]["spent"] == "2"
            (stored,) = [json.loads(text) for text in later.datasets.ledger.payloads().values()]
            first = stored["tables"][0]
            begun = [{k: v for k, v in line.items() if k != "table"} for line in written if line.get("table") == 0]
            assert first[: len(begun)] == begun, "what was learnt before the kill is what was used"
            assert later.get("/ledger/verification").json()["holds"]
            assert pq.read_table(io.BytesIO(later.get(f"{JOBS}/{job}/tables/1").content)).num_rows == 50
            described = later.get(f"{JOBS}/{job}/tables").json()
            assert (described["charged"], described["cost"]) == ("2", "0"), "the job paid, and reading it is free"


def kept(folder: Path) -> list[dict[str, Any]]:
    files = list(folder.glob("*.diaries/*.jsonl"))
    whole = files[0].read_bytes().rpartition(b"\n")[0] if files else b""
    return [json.loads(line) for line in whole.splitlines()]


def lines(folder: Path) -> int:
    return sum(file.read_bytes().count(b"\n") for file in folder.glob("*.diaries/*.jsonl"))
