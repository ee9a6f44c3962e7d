"""Two machines on one Postgres ledger share a queue of jobs and continue each other's work after a kill."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from service.processes import free_port
from support.diaries import diary_lines

from tidegate.ledger import Ledger
from tidegate.ledger.tokens import Tokens
from tidegate.service.access.tokens import make_token

POLICY = """version = 1
[dataset]
name = "people"
source = "people.csv"
unit = "row"
rows = 200
[attributes]
age = { kind = "integer", from = 18, to = 57, bins = [28, 38, 48] }
town = { kind = "category", values = ["Aby", "Berg", "Ceder"] }
sex = { kind = "category", values = ["f", "m"] }
[promise.loss]
epsilon = 100
"""
JOBS, ASKED, COST = "/v1/data/people/syntheses", {"epsilon": 2, "tables": 2, "rows": 40}, "4"
PATIENCE = 120.0
TABLES = [f"table {number} of 2, {stage}" for number in (1, 2) for stage in ("margins", "pairs")]
SCRIPT = Path(__file__).with_name("machine.py")


@dataclass
class Machine:
    """A running service; `folder` is its own."""

    url: str
    process: subprocess.Popen[bytes]
    folder: Path
    headers: dict[str, str]

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        return httpx.request(method, f"{self.url}{path}", headers=self.headers, timeout=60, **more)

    def wait_for_death(self) -> None:
        assert self.process.wait(PATIENCE) == -signal.SIGKILL


@contextmanager
def run_machine(folder: Path, ledger: str, token: str, stage: str = "") -> Iterator[Machine]:
    folder.mkdir()
    (folder / "people.toml").write_text(POLICY)
    rows = (f"{18 + n * 7 % 40},{('Aby', 'Berg', 'Ceder')[n * n % 3]},{'fm'[n % 2]}" for n in range(200))
    (folder / "people.csv").write_text("age,town,sex\n" + "\n".join(rows) + "\n")
    port = free_port()
    words = [sys.executable, str(SCRIPT), str(folder), ledger, str(port), *([stage] if stage else [])]
    paths = {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, cwd=folder, stdout=log, stderr=log, env={**os.environ, **paths})
    machine = Machine(f"http://127.0.0.1:{port}", process, folder, {"Authorization": f"Bearer {token}"})
    until = time.monotonic() + PATIENCE
    try:
        while time.monotonic() < until and process.poll() is None:
            with contextlib.suppress(httpx.HTTPError):
                httpx.get(f"{machine.url}/ready", timeout=5).raise_for_status()
                break
            time.sleep(0.1)
        yield machine
    finally:
        process.kill()
        process.wait(20)


@pytest.fixture
def token(postgres_url: str) -> str:
    with closing(Ledger(postgres_url)) as ledger:
        return make_token(Tokens(ledger.store), role="owner", name="olga")[0]


def wait_for_end(machine: Machine, job: str) -> dict[str, Any]:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        content: dict[str, Any] = machine.call("GET", f"{JOBS}/{job}").json()
        if content["state"] not in ("waiting", "running"):
            return content
        time.sleep(0.1)
    raise AssertionError((machine.folder / "log").read_text())


def check_result(machine: Machine, job: str, written: list[dict[str, Any]], ledger: str) -> None:
    """Check that a job is done with one charge, and that its tables contain what was written before the last kill."""
    result = wait_for_end(machine, job)
    assert (result["state"], result["resumed"], result["problem"]) == ("done", True, None)
    account = machine.call("GET", "/v1/data/people").json()["account"]
    assert account["spent"] == COST
    assert machine.call("GET", "/v1/ledger/verification").json()["problems"] == []
    kinds = [entry["kind"] for entry in machine.call("GET", "/v1/ledger/entries").json()["entries"]]
    assert (kinds.count("charge"), kinds.count("result"), kinds.count("failure")) == (1, 1, 0)
    with closing(Ledger(ledger, read_only=True)) as stored:
        ((_, content),) = stored.answered("people")
    for table in (0, 1):
        steps = [line for line in written if line.get("table") == table]
        before = [{name: value for name, value in line.items() if name != "table"} for line in steps]
        assert content["tables"][table][: len(before)] == before
    assert diary_lines(ledger) == []


@pytest.mark.long  # test_jobs.py continues a killed job on the same machine
def test_other_machine_continues_the_job_of_a_killed_one(tmp_path: Path, postgres_url: str, token: str) -> None:
    with run_machine(tmp_path / "first", postgres_url, token, "table 1 of 2, pairs") as first:
        job = first.call("POST", JOBS, json=ASKED).json()["id"]
        first.wait_for_death()
        written = diary_lines(postgres_url)
        assert len(written) > 2, "it was killed in the middle"
        with run_machine(tmp_path / "second", postgres_url, token) as second:
            check_result(second, job, written, postgres_url)
            assert second.call("GET", f"{JOBS}/{job}/tables/1").status_code == 200
    assert sorted(path.name for path in (tmp_path / "second").iterdir()) == ["log", "people.csv", "people.toml"]


@pytest.mark.long  # the test above has one kill
def test_kill_at_each_stage_boundary_wastes_nothing(tmp_path: Path, postgres_url: str, token: str) -> None:
    """Each machine continues the work of the one before, and is killed at the next boundary. All tables are the same."""
    written: list[dict[str, Any]] = []
    for number, stage in enumerate(("beginning", *TABLES, "done")):
        with run_machine(tmp_path / f"m{number}", postgres_url, token, stage) as machine:
            if not number:
                with contextlib.suppress(httpx.HTTPError):  # it can be killed before it has responded
                    machine.call("POST", JOBS, json=ASKED)
            machine.wait_for_death()
        now = diary_lines(postgres_url)
        assert now[: len(written)] == written or stage == "done", "no number changes, and none is lost"
        written = now or written
    with (
        run_machine(tmp_path / "last", postgres_url, token) as last,
        run_machine(tmp_path / "idle", postgres_url, token) as idle,
    ):
        (state,) = last.call("GET", JOBS).json()["syntheses"]
        check_result(last, state["id"], written, postgres_url)
        files = [machine.call("GET", f"{JOBS}/{state['id']}/tables/2").content for machine in (last, idle)]
        assert files[0] == files[1], "every machine draws the same rows"
