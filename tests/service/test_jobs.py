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
from support.diaries import diary_lines
from support.service import RunningService, quiet_settings, run_service

from tidegate.ledger.jobs import DONE, FAILED, RUNNING, WAITING, Job, Jobs
from tidegate.service.jobs import job_options, job_to_dict

JOBS = "/v1/data/people/syntheses"
WORKING = quiet_settings(run_jobs=True, job_beat=0.05, job_patience=0.3)
ASKED = {"epsilon": 1, "tables": 2, "rows": 50}
PATIENCE = 60.0


def wait_for_end(service: RunningService, job: str) -> dict[str, Any]:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        content: dict[str, Any] = service.get(f"{JOBS}/{job}", "analyst").json()
        if content["state"] in (DONE, FAILED):
            return content
        time.sleep(0.05)
    raise AssertionError("the job does not end")


OLD = {"epsilon": "1", "rho": None, "share": None, "tables": 1, "rows": None, "target": "", "seed": None, "columns": []}


def old_job(**options: Any) -> Job:
    """Return a finished job as an earlier version stored it."""
    content = json.dumps({**OLD, "model": "auto", "split": {}, **options})
    return Job("0" * 20, "people", "ana", "k", content, "2026-01-01T00:00:00+00:00", DONE)


@pytest.mark.parametrize("model", ["auto", "forest"])
def test_job_of_an_earlier_version_asks_for_its_old_model(model: str) -> None:
    job = old_job(model=model)
    assert job_options(job) == {**OLD, "model": "forest/1"}
    assert job_to_dict(job)["asked"] == "1 table, epsilon 1, model forest/1"


@pytest.mark.parametrize("options", [{"model": "copula"}, {"split": {"margins": "1/2"}}], ids=["model", "split"])
def test_tables_that_no_model_can_draw_are_refused_and_never_learned_again(
    fresh_service: RunningService, options: dict[str, Any]
) -> None:
    Jobs(fresh_service.datasets.ledger.store).add(old_job(**options))
    listed = fresh_service.get(JOBS).json()["syntheses"][0]
    assert "split" not in listed["wanted"]
    refused = fresh_service.get(f"{JOBS}/{listed['id']}/tables")
    assert refused.status_code == 422
    assert "Unknown model" in refused.json()["detail"]
    assert fresh_service.get("/v1/data/people").json()["account"]["spent"] == "0"


def test_job_is_charged_once_and_its_tables_can_be_downloaded(tmp_path: Path) -> None:
    with run_service(str(tmp_path / "all.ledger"), settings=WORKING) as service:
        before = service.post(f"{JOBS}/previews", ASKED, "analyst").json()
        key = {"Idempotency-Key": "k"}
        started = service.post(JOBS, ASKED, headers=key)
        assert started.status_code == 202
        job = started.json()["id"]
        assert service.post(JOBS, ASKED, headers=key).json()["id"] == job
        assert service.post(JOBS, {**ASKED, "tables": 1}, headers=key).status_code == 409
        result = wait_for_end(service, job)
        assert (result["state"], result["problem"], result["progress"]["stage"]) == (DONE, None, "done")
        assert service.get("/v1/data/people").json()["account"]["spent"] == before["cost"] == "2"
        parquet = service.get(f"{JOBS}/{job}/tables/1", "analyst")
        table = pq.read_table(io.BytesIO(parquet.content))
        assert (table.num_rows, table.column_names) == (50, before["columns"])
        csv = service.get(f"{JOBS}/{job}/tables/1?kind=csv", "analyst")
        assert csv.headers["content-type"].startswith("text/csv")
        assert pa_csv.read_csv(io.BytesIO(csv.content)).to_pydict() == table.to_pydict()
        assert service.get(f"{JOBS}/{job}/tables/2", "analyst").content != parquet.content
        assert service.get(f"{JOBS}/{job}/tables/3", "analyst").status_code == 404
        assert service.get(f"{JOBS}/{job}/quality", "analyst").status_code == 403
        assert service.get(f"{JOBS}/{job}/quality").json()
        assert service.get("/v1/data/people").json()["account"]["spent"] == "2", "looking costs nothing"
        again = wait_for_end(service, service.post(JOBS, ASKED).json()["id"])
        assert (again["entry"], again["id"] > job) == (result["entry"], True)
        listed = service.get(f"{JOBS}?limit=1").json()
        assert (listed["syntheses"][0]["id"], bool(listed["next"])) == (job, True)


def test_impossible_synthesis_is_refused_and_exceeded_budget_fails_the_job(tmp_path: Path) -> None:
    with run_service(str(tmp_path / "all.ledger"), settings=WORKING) as service:
        for wrong in ({}, {"epsilon": 1, "rho": 1}, {"epsilon": 1, "model": "wishful"}, {"epsilon": 1, "target": "x"}):
            assert service.post(JOBS, wrong).status_code == 422
        content = wait_for_end(service, service.post(JOBS, {"epsilon": 5000}).json()["id"])
        assert (content["state"], content["problem"]["code"]) == (FAILED, "budget-exceeded")
        assert service.get(f"{JOBS}/{content['id']}/tables/1").status_code == 404
        assert service.get("/v1/data/people").json()["account"]["spent"] == "0"


def test_download_never_charges(tmp_path: Path) -> None:
    """A job that is marked as done without a ledger entry, as if the data had a new edition."""
    with run_service(str(tmp_path / "all.ledger")) as service:
        job = service.post(JOBS, ASKED).json()
        jobs = Jobs(service.datasets.ledger.store)
        mine = jobs.take("w", datasets=["people"], patience=1)
        assert mine is not None
        jobs.tell(mine, state=DONE)
        for part in ("tables/1", "quality"):
            assert service.get(f"{JOBS}/{job['id']}/{part}").status_code == 404
        assert service.get("/v1/data/people").json()["account"]["spent"] == "0"


def test_running_job_waits_for_the_next_process_when_the_service_stops(tmp_path: Path) -> None:
    address = str(tmp_path / "all.ledger")
    with run_service(address, settings=WORKING) as service:
        job = service.post(JOBS, ASKED).json()["id"]
    with run_service(address) as idle:
        state = idle.get(f"{JOBS}/{job}").json()["state"]
        assert state in (WAITING, DONE), "not running: no process works on it"
    with run_service(address, settings=WORKING) as later:
        assert wait_for_end(later, job)["state"] == DONE


@pytest.mark.one_in(2)
@pytest.mark.parametrize("after", [1, 3])
def test_job_of_a_killed_process_continues_in_the_next(tmp_path: Path, after: int) -> None:
    """The process is killed once the diary has some lines; the next one finishes the job at the same cost."""
    address = str(tmp_path / "all.ledger")
    with run_service(address) as service:  # which does no jobs itself
        job = service.post(JOBS, ASKED).json()["id"]
        child = Child(serve_slowly, address)
        assert child.hear() == "ready"
        until = time.monotonic() + PATIENCE
        while len(diary_lines(address)) < 1 + after and time.monotonic() < until:
            time.sleep(0.01)
        child.kill()
        written = diary_lines(address)
        assert len(written) >= 1 + after, "it was killed in the middle"
        assert service.get(f"{JOBS}/{job}").json()["state"] == RUNNING
        with run_service(address, settings=WORKING) as later:
            result = wait_for_end(later, job)
            assert result["state"] == DONE
            assert later.get("/v1/data/people").json()["account"]["spent"] == "2"
            (stored,) = [json.loads(text) for text in later.datasets.ledger.payloads().values()]
            first = stored["tables"][0]
            begun = [{k: v for k, v in line.items() if k != "table"} for line in written if line.get("table") == 0]
            assert first[: len(begun)] == begun, "what was learned before the kill is what was used"
            assert later.get("/v1/ledger/verification").json()["holds"]
            assert pq.read_table(io.BytesIO(later.get(f"{JOBS}/{job}/tables/1").content)).num_rows == 50
            described = later.get(f"{JOBS}/{job}/tables").json()
            assert (described["charged"], described["cost"]) == ("2", "0"), "the job paid, and reading it is free"
