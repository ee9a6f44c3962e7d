"""`tidegate serve --workers 2`: two processes that share tokens and budget, stop gracefully, and lose nothing when killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
from service.processes import MAIN, PATIENCE, command, free_port, lines, run_server, write_policies

import tidegate as tg
from tidegate.errors import BudgetExceeded
from tidegate.ledger import Ledger, verify

CLIENTS, EACH = 3, 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_policies(tmp_path)


def workers_of(process: Any) -> list[int]:
    """Return the serving processes: the spawned children without the resource tracker."""
    result = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(process.pid)], capture_output=True, text=True
    )
    return [int(line.split()[0]) for line in result.stdout.splitlines() if "spawn_main" in line]


def wait_until(true: Any, what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def both_ready(folder: Path, process: Any) -> None:
    wait_until(lambda: [line["event"] for line in lines(folder)].count("started") == 2, "not all workers started")
    assert len(workers_of(process)) == 2


@pytest.mark.long  # test_together.py shares a budget, test_server.py stops gracefully
def test_two_workers_share_tokens_and_budget_and_stop_gracefully(folder: Path) -> None:
    policy = str(folder / "people.toml")
    owner = command("token", "make", policy, "--role", "owner", "--name", "olga")
    ana = command("token", "make", policy, "--role", "analyst", "--name", "ana", "--share", "1")
    with run_server(folder, policy, "--workers", "2") as (url, process):
        both_ready(folder, process)
        output: list[tuple[str, Any]] = []

        def ask(number: int) -> None:
            with tg.connect(url, ana["token"]) as remote:  # one connection each: the workers take what comes
                for part in range(5):
                    try:
                        result = remote.answer(tg.count(), epsilon=Fraction(1, 5 + number + 4 * part), anyway=True)
                        output.append((result.entry, result.cost.value))
                    except BudgetExceeded:
                        output.append(("", Fraction(0)))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert len(output) == 20
        spent = sum((cost for _, cost in output), Fraction(0))
        assert any(not entry for entry, _ in output), "the share was reached"
        with tg.connect(url, owner["token"], dataset="people") as remote:
            assert Fraction(remote.describe()["account"]["spent"]) == spent <= 1
        headers = {"Authorization": f"Bearer {owner['token']}"}
        httpx.delete(f"{url}/v1/tokens/{ana['id']}", headers=headers).raise_for_status()
        time.sleep(1.1)
        refused = [
            httpx.get(f"{url}/v1/me", headers={"Authorization": f"Bearer {ana['token']}"}) for _ in range(8)
        ]  # fewer than are counted as guesses
        assert {item.status_code for item in refused} == {401}, "a second later it opens nothing, in either process"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) in (0, -signal.SIGTERM)
    events = [line["event"] for line in lines(folder)]
    assert (events.count("started"), events.count("stopped")) == (2, 2)
    assert "Traceback" not in (folder / "log").read_text()


def workers_begin_with(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every spawned worker run some code before it imports anything."""
    (folder / "before").mkdir()
    text = f"import os, sys, time\nif 'spawn_main' in ' '.join(sys.orig_argv):\n    {code}\n"
    (folder / "before" / "sitecustomize.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", f"{folder / 'before'}:{os.environ.get('PYTHONPATH', '')}")


@pytest.mark.long  # waits for 8 s
def test_supervisor_waits_for_slow_workers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervisor checks whether each worker is alive; on a busy machine a worker that is still importing cannot answer."""
    workers_begin_with("time.sleep(8)", folder, monkeypatch)
    with run_server(folder, str(folder / "people.toml"), "--workers", "2") as (_, process):
        both_ready(folder, process)
        assert "died" not in (folder / "log").read_text()


def test_service_ends_if_workers_cannot_start(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Well before the time limit for slow workers."""
    workers_begin_with("os._exit(3)", folder, monkeypatch)
    start = [
        sys.executable,
        "-c",
        MAIN,
        "serve",
        str(folder / "people.toml"),
        "--workers",
        "2",
        "--port",
        str(free_port()),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(start, stdout=log, stderr=log, start_new_session=True)
    try:
        assert process.wait(45) == 3
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert "failed to start" in (folder / "log").read_text()


@pytest.mark.long
def test_workers_killed_under_load_lose_nothing(folder: Path, postgres_url: str) -> None:
    """Each client sends queries with keys and repeats broken requests. Afterwards every charge is known to some client;
    charges that no client saw are those whose first response was lost; and each key has one answer."""
    policy = str(folder / "people.toml")
    token = command("token", "make", policy, "--role", "owner", "--name", "olga", "--ledger", postgres_url)
    result: dict[str, Any] = {}

    def question(key: str) -> dict[str, Any]:
        return {"epsilon": Fraction(1, 1000 + int(key[1:])), "key": key, "anyway": True}

    def ask(url: str, client: int) -> None:
        with tg.connect(url, token["token"]) as remote:
            for number in range(client * EACH, (client + 1) * EACH):
                result[f"k{number}"] = remote.answer(tg.count(), **question(f"k{number}"))

    with run_server(folder, policy, "--ledger", postgres_url, "--workers", "2") as (url, process):
        both_ready(folder, process)
        threads = [threading.Thread(target=ask, args=(url, client), daemon=True) for client in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for enough in (6, 18):  # the second one dies while the first is being replaced
            wait_until(lambda enough=enough: len(result) >= enough, "too few answers")  # type: ignore[misc]
            os.kill(workers_of(process)[0], signal.SIGKILL)
        for thread in threads:
            thread.join(PATIENCE)
        assert len(result) == CLIENTS * EACH, "every client was answered"
        with tg.connect(url, token["token"]) as remote:
            again = {key: remote.answer(tg.count(), **question(key)) for key in result}
    assert {key: (item.entry, item.rows()) for key, item in again.items()} == {
        key: (item.entry, item.rows()) for key, item in result.items()
    }
    assert {str(item.cost) for item in again.values()} == {"0"}
    ledger = Ledger(postgres_url)
    charged = {entry.hash: Fraction(entry.amount) for entry in ledger.entries("people") if entry.kind == "charge"}
    verdict = verify(*ledger.snapshot())
    ledger.close()
    assert set(charged) == {item.entry for item in result.values()}
    lost = [item.entry for item in result.values() if not item.cost.grains]
    paid = sum((item.cost.value for item in result.values()), Fraction(0))
    assert len(lost) <= 2 * CLIENTS, "at most what was under way when a worker died"
    assert sum(charged.values()) == paid + sum(charged[entry] for entry in lost)
    assert (verdict.problems, verdict.spent["people"].value) == ([], sum(charged.values()))
