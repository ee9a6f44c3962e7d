"""Jobs under control: cancelled, given up after three attempts, stopped at a limit. A charge stays, and nothing is learned twice."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from service.test_jobs import ASKED, JOBS, PATIENCE, WORKING, wait_for_end
from service.test_remote import connect_to
from support.diaries import diary_lines
from support.service import RunningService, quiet_settings, run_service
from typer.testing import CliRunner

from tidegate.cli.app import app as commands
from tidegate.errors import JobStopped, LedgerUnavailable
from tidegate.ledger.jobs import CANCELLED, DONE, FAILED, RUNNING, Jobs
from tidegate.service import runner
from tidegate.session import Session
from tidegate.synthesize.diary import Diary


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Every synthesis stops before its third number until the gate is opened."""
    opened, quick = threading.Event(), Diary.step

    def step(self: Diary, *arguments: Any) -> Any:
        if len(self.steps) >= 2:
            opened.wait(PATIENCE)
        return quick(self, *arguments)

    monkeypatch.setattr(Diary, "step", step)
    yield opened
    opened.set()


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until, "it does not happen"
        time.sleep(0.02)


def continue_free(service: RunningService, written: list[dict[str, Any]]) -> None:
    """Request the tables of a stopped job again: they contain what was written before, and nothing more is charged."""
    spent = service.get("/v1/data/people").json()["account"]["spent"]
    assert wait_for_end(service, service.post(JOBS, ASKED).json()["id"])["state"] == DONE
    assert service.get("/v1/data/people").json()["account"]["spent"] == spent
    (stored,) = [json.loads(text) for text in service.datasets.ledger.payloads().values()]
    first = [{name: value for name, value in line.items() if name != "table"} for line in written[1:]]
    assert len(first) >= 2
    assert stored["tables"][0][: len(first)] == first
    assert service.get("/v1/ledger/verification").json()["holds"]


def test_waiting_job_is_cancelled_at_once_and_never_run(tmp_path: Path) -> None:
    address = str(tmp_path / "all.ledger")
    with run_service(address) as idle:
        job = idle.post(JOBS, ASKED).json()["id"]
        assert idle.post(f"{JOBS}/{job}/cancellation", role="analyst").status_code == 403
        assert idle.post(f"{JOBS}/{'0' * 20}/cancellation").status_code == 404
        cancelled = idle.post(f"{JOBS}/{job}/cancellation").json()
        assert (cancelled["state"], cancelled["problem"]["code"]) == (CANCELLED, "job-stopped")
        assert cancelled["problem"]["what"] == "The synthesis was cancelled by olga. Nothing was charged."
        again = idle.post(f"{JOBS}/{job}/cancellation")
        assert (again.status_code, again.json()["code"]) == (409, "not-waiting")
    with run_service(address, settings=WORKING) as working:
        assert wait_for_end(working, working.post(JOBS, {"epsilon": 1}).json()["id"])["state"] == DONE
        assert working.get(f"{JOBS}/{job}").json()["state"] == CANCELLED


def test_running_job_stops_before_its_next_stage_and_continues_later(tmp_path: Path, gate: threading.Event) -> None:
    address = str(tmp_path / "all.ledger")
    with run_service(address, settings=WORKING) as service:
        job = service.post(JOBS, ASKED).json()["id"]
        wait_until(lambda: len(diary_lines(address)) == 3)
        assert "Its process stops at the next stage." in cancel(service, job)["problem"]["what"]
        time.sleep(0.3)  # the heartbeat notices it
        gate.set()
        wait_until(lambda: "stops" not in service.get(f"{JOBS}/{job}").json()["problem"]["what"])
        problem = service.get(f"{JOBS}/{job}").json()["problem"]
        assert problem["what"].startswith("The synthesis was cancelled by olga. Epsilon 2 was charged before (entry ")
        assert "is not given back; what was learned is stored" in problem["what"]
        written = diary_lines(address)
        assert len(written) < 8, "it was stopped in the middle"
        continue_free(service, written)
        assert service.get(f"{JOBS}/{job}").json()["state"] == CANCELLED


def cancel(service: RunningService, job: str) -> dict[str, Any]:
    content: dict[str, Any] = service.post(f"{JOBS}/{job}/cancellation").json()
    assert content["state"] == CANCELLED
    return content


def test_session_cancels_a_job_and_its_wait_ends_with_the_reason(fresh_service: RunningService) -> None:
    job_id = fresh_service.post(JOBS, ASKED).json()["id"]
    with connect_to(fresh_service, "owner", "people") as remote:
        job = remote.synthesis(job_id)
        assert job.cancel().state == CANCELLED
        with pytest.raises(JobStopped, match="cancelled by olga"):
            remote.synthesis(job_id).tables()


def take(service: RunningService, times: int) -> None:
    """Take the next job several times, as processes do that die at once."""
    jobs = Jobs(service.datasets.ledger.store)
    for _ in range(times):
        assert jobs.take("gone", datasets=["people"], patience=-1)


@pytest.mark.parametrize("charged", [False, True], ids=["before the charge", "after the charge"])
def test_job_is_given_up_after_three_attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, charged: bool) -> None:
    address = str(tmp_path / "all.ledger")
    with run_service(address) as idle:
        job = idle.post(JOBS, ASKED).json()["id"]
        if charged:
            interrupt(idle, monkeypatch)
        take(idle, 3)
    with run_service(address, settings=replace(WORKING, job_patience=0.01)) as working:
        result = wait_for_end(working, job)
        assert (result["state"], result["problem"]["code"]) == (FAILED, "job-stopped")
        given_up = "The synthesis was given up after 3 attempts, because the process ended each time."
        assert result["problem"]["what"].startswith(given_up)
        assert ("Nothing was charged" in result["problem"]["what"]) != charged
        assert ("Epsilon 2 was charged" in result["problem"]["what"]) == charged
        if charged:
            continue_free(working, diary_lines(address))


def interrupt(service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the synthesis of a waiting job until it has learned some numbers."""

    def stop(stage: str, done: int, of: int) -> None:
        if stage.endswith("pairs"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        service.datasets["people"].session.synthesize(epsilon="1", tables=2, rows=50, progress=stop)


def test_third_attempt_can_succeed(tmp_path: Path) -> None:
    address = str(tmp_path / "all.ledger")
    with run_service(address) as idle:
        job = idle.post(JOBS, ASKED).json()["id"]
        take(idle, 2)
    with run_service(address, settings=replace(WORKING, job_patience=0.01)) as working:
        result = wait_for_end(working, job)
        assert (result["state"], result["attempts"]) == (DONE, 3)


def test_job_waits_for_a_ledger_that_does_not_respond(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, synthesize = [0], Session.synthesize

    def fail(self: Session, *arguments: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] <= fails:
            raise LedgerUnavailable("The ledger does not respond.")
        return synthesize(self, *arguments, **options)

    monkeypatch.setattr(Session, "synthesize", fail)
    with run_service(str(tmp_path / "all.ledger"), settings=WORKING) as service:
        fails = 2
        result = wait_for_end(service, service.post(JOBS, ASKED).json()["id"])
        assert (result["state"], calls[0]) == (DONE, 3)
        fails = 6
        result = wait_for_end(service, service.post(JOBS, {"epsilon": 3}).json()["id"])
        assert (result["state"], calls[0]) == (FAILED, 6)
        assert "because the ledger did not respond. Nothing was charged." in result["problem"]["what"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"job_tables": 1}, "2 tables, but a job of this service can have 1"),
        ({"job_rows": 49}, "50 rows per table, but a job of this service can have 49"),
        ({"job_memory": 1000}, "need about 2.4e-06 GB of memory"),
    ],
)
def test_job_above_a_public_limit_is_refused_before_the_charge(
    tmp_path: Path, settings: dict[str, Any], said: str
) -> None:
    with run_service(str(tmp_path / "all.ledger"), settings=quiet_settings(**settings)) as service:
        for path in (JOBS, f"{JOBS}/previews"):
            refused = service.post(path, ASKED)
            assert refused.status_code == 422
            assert said in refused.json()["detail"]
        assert service.get(JOBS).json()["syntheses"] == []


@pytest.mark.parametrize("limit", ["time", "memory"])
def test_job_above_a_limit_stops_between_stages_and_continues_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: threading.Event, limit: str
) -> None:
    address = str(tmp_path / "all.ledger")
    with run_service(address, settings=WORKING) as service:
        job = service.post(JOBS, ASKED).json()["id"]
        wait_until(lambda: len(diary_lines(address)) == 3)
        if limit == "memory":
            monkeypatch.setattr(runner, "memory_in_use", lambda: 10**12)
        else:
            later = SimpleNamespace(monotonic=lambda: time.monotonic() + WORKING.job_seconds)
            monkeypatch.setattr(runner, "time", later)
        time.sleep(0.5)
        gate.set()
        result = wait_for_end(service, job)
        assert result["state"] == FAILED
        assert f"the {limit} limit of a job" in result["problem"]["what"]
        assert "Epsilon 2 was charged before" in result["problem"]["what"]
    monkeypatch.undo()
    written = diary_lines(address)
    with run_service(address, settings=WORKING) as next_service:
        continue_free(next_service, written)


def test_memory_of_this_process_is_measured() -> None:
    before = runner.memory_in_use()
    assert before > 10**7
    block = bytearray(200 * 2**20)
    assert runner.memory_in_use() - before > 150 * 2**20
    del block


def test_command_lists_and_cancels_jobs(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age\n" + "\n".join(str(20 + n % 60) for n in range(60)))
    policy = tmp_path / "people.toml"
    policy.write_text(
        'version = 1\n[dataset]\nname = "people"\nsource = "people.csv"\nunit = "row"\nrows = 60\n'
        '[attributes]\nage = { kind = "integer", from = 18, to = 90 }\n[promise.loss]\nepsilon = 10\n'
    )
    from tidegate.service.datasets import ServedDatasets
    from tidegate.service.jobs import new_job

    datasets = ServedDatasets.from_files([str(policy)])
    options = {"epsilon": "1", "tables": 1, "rows": None, "columns": []}
    job = Jobs(datasets.ledger.store).add(new_job("people", options, user="ann", request=""))
    datasets.close()
    listed = CliRunner().invoke(commands, ["job", "list", str(policy), "--json"])
    assert [(item["id"], item["state"]) for item in json.loads(listed.stdout)] == [(job.id, "waiting")]
    description = CliRunner().invoke(commands, ["job", "cancel", str(policy), job.id, "--user", "olga"])
    assert description.stdout.strip() == "The synthesis was cancelled by olga. Nothing was charged."
    assert CliRunner().invoke(commands, ["job", "cancel", str(policy), "0" * 20]).exit_code != 0


def test_stop_of_the_service_is_no_attempt(tmp_path: Path, gate: threading.Event) -> None:
    address = str(tmp_path / "all.ledger")
    with run_service(address, settings=WORKING) as service:
        job = service.post(JOBS, ASKED).json()["id"]
        wait_until(lambda: service.get(f"{JOBS}/{job}").json()["state"] == RUNNING)
        wait_until(lambda: len(diary_lines(address)) == 3)
    with run_service(address) as idle:
        content = idle.get(f"{JOBS}/{job}").json()
        assert (content["state"], content["attempts"]) == ("waiting", 0)
    gate.set()


BUSY = """
import threading, time, duckdb
from tidegate.service import runner
class Busy(runner.Work):
    def __init__(self):
        threading.Thread.__init__(self, daemon=True)
    def run(self):
        while True:
            duckdb.sql("SELECT sum(range) FROM range(100000000)").fetchall()
Busy().start()
time.sleep(0.3)
"""


@pytest.mark.parametrize(("end", "code"), [("", 0), ("raise ValueError", 1)])
def test_process_with_a_job_inside_an_engine_ends_without_an_abort(end: str, code: int) -> None:
    """Such a thread aborted the process (SIGABRT) when Python ended."""
    ended = subprocess.run([sys.executable, "-c", BUSY + end], capture_output=True, timeout=PATIENCE, check=False)
    assert (ended.returncode, b"terminate" in ended.stderr) == (code, False)
