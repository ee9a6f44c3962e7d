"""A real server on loopback, started by the command line: it serves and stops gracefully, and a killed one loses nothing."""

from __future__ import annotations

import signal
import socket
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
from service.processes import PATIENCE, command, free_port, lines, run_server, write_policies
from typer.testing import CliRunner

import tidegate as tg
from tidegate.cli.app import app as commands
from tidegate.errors import TidegateError, Unreachable
from tidegate.ledger import Ledger, verify


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_policies(tmp_path)


def test_command_line_creates_lists_and_revokes_tokens(folder: Path) -> None:
    policy = str(folder / "people.toml")
    token = command("token", "make", policy, "--role", "analyst", "--name", "ana", "--share", "0.5")
    assert token["token"].startswith(f"tg_{token['id']}_")
    (listed,) = command("token", "list", policy)
    assert (listed["id"], listed["share"], "token" in listed) == (token["id"], "0.5", False)
    shown = CliRunner().invoke(commands, ["token", "list", policy], env={"COLUMNS": "60"}).stdout
    assert token["id"] in shown, "an id that is broken over two lines cannot be copied"
    assert token["expires"][:10] in shown
    assert command("token", "revoke", policy, token["id"]) == {"revoked": token["id"]}
    assert command("token", "list", policy)[0]["revoked"]
    respondent = command("token", "make", policy, "--role", "respondent", "--name", "r", "--record", "p1")
    assert respondent["dataset"] == "people"


@pytest.mark.parametrize(
    ("roles", "said", "unsaid"),
    [
        ([], "There is no valid token yet.", "for an owner"),
        (["analyst"], "There is no valid token for an owner.", "token yet"),
        (["analyst", "owner"], "Serving people", "token make"),
    ],
)
def test_serve_reports_missing_tokens(
    folder: Path, monkeypatch: pytest.MonkeyPatch, roles: list[str], said: str, unsaid: str
) -> None:
    policy = str(folder / "people.toml")
    for role in roles:
        command("token", "make", policy, "--role", role, "--name", role)
    monkeypatch.setattr("tidegate.service.server.run", lambda *arguments, **how: None)
    monkeypatch.setenv("TIDEGATE_SERVICE", "")  # put back afterwards: serve sets it for its workers
    arguments = CliRunner().invoke(commands, ["serve", policy, "--port", str(free_port())], catch_exceptions=False)
    assert arguments.exit_code == 0, arguments.output
    assert said in arguments.output
    assert unsaid not in arguments.output


@pytest.mark.long  # starts a process; test_access.py tests cookies
def test_public_url_limits_the_cookie_to_https(folder: Path) -> None:
    policy = str(folder / "people.toml")
    token = command("token", "make", policy, "--role", "owner", "--name", "olga")
    with run_server(folder, policy, "--public-url", "https://gate.example.org") as (url, _):
        host = {"Host": "gate.example.org"}
        signed = httpx.post(f"{url}/v1/sign-in", json={"token": token["token"]}, headers=host)
        assert signed.headers["set-cookie"].startswith("__Host-tidegate=")
        assert "Secure" in signed.headers["set-cookie"]
        assert httpx.get(f"{url}/health", headers={"Host": "evil.example"}).status_code == 421


def test_policies_of_different_ledgers_are_not_served_together(folder: Path) -> None:
    from tidegate.service.datasets import ServedDatasets

    names = [str(folder / f"{name}.toml") for name in ("people", "others")]
    with pytest.raises(TidegateError, match="different ledgers"):
        ServedDatasets.from_files(names)
    datasets = ServedDatasets.from_files(names, ledger="all.ledger")
    assert (list(datasets), (folder / "all.ledger").exists()) == (["people", "others"], True)
    datasets.close()
    with pytest.raises(TidegateError, match="no data set to serve"):
        ServedDatasets.from_files([])
    with pytest.raises(TidegateError, match="Two policies"):
        ServedDatasets.from_files([names[0], names[0]], ledger="all.ledger")


def test_server_serves_several_data_sets_and_stops_gracefully(folder: Path) -> None:
    owner = command(
        "token", "make", str(folder / "people.toml"), "--ledger", "all.ledger", "--role", "owner", "--name", "olga"
    )
    with run_server(folder, "people.toml", "others.toml", "--ledger", "all.ledger") as (url, process):
        with tg.connect(url, owner["token"], dataset="people") as remote:
            assert remote.answer(tg.count(), epsilon=1, anyway=True).cost.value == 1
            with pytest.raises(TidegateError, match="no column"):
                remote.answer(tg.mean("SECRETCOLUMN"), epsilon=1)
        response = httpx.get(f"{url}/v1/data?SECRETQUERY", headers={"Authorization": f"Bearer {owner['token']}"})
        assert [dataset["name"] for dataset in response.json()["datasets"]] == ["people", "others"]
        assert "server" not in response.headers
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=10) as strange:
            strange.sendall(b"GARBAGE SECRETBYTES\r\n\r\n")
            assert b"400" in strange.recv(1000)
        said = (folder / "log").read_text()
        assert f"Serving people, others on {url}" in said, "nothing waits in a buffer while the service runs"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) in (0, -signal.SIGTERM)
    said = (folder / "log").read_text()
    events = [line["event"] for line in lines(folder)]
    assert all(line.startswith(("{", "Serving ")) or not line for line in said.splitlines()), said
    assert events.count("request") >= 4
    assert "stopped" in events
    for word in ("SECRET", owner["token"], "Traceback"):
        assert word not in said


@pytest.mark.long
def test_server_killed_under_load_loses_nothing(folder: Path) -> None:
    """Clients send queries with keys while the server dies; repeated to the next server, each is charged once."""
    policy = str(folder / "people.toml")
    owner = command("token", "make", policy, "--role", "owner", "--name", "olga")
    output: dict[int, str] = {}

    def ask(url: str, worker: int) -> None:
        with tg.connect(url, owner["token"], dataset="people") as remote:
            for number in range(worker * 40, worker * 40 + 40):
                try:
                    result = remote.answer(
                        tg.count(), epsilon=Fraction(1, 1000 + number), key=f"k{number}", anyway=True
                    )
                except Unreachable:
                    return
                assert output.setdefault(number, result.entry) == result.entry

    def load(url: str, kill: Any = None) -> None:
        threads = [threading.Thread(target=ask, args=(url, worker), daemon=True) for worker in range(3)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + PATIENCE
        while kill and len(output) < 20 and time.monotonic() < until:
            time.sleep(0.01)
        if kill:
            kill()
        for thread in threads:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in threads)

    with run_server(folder, policy) as (url, process):
        load(url, process.kill)
    before = dict(output)
    assert 20 <= len(before) < 120, "it was killed in the middle"
    with run_server(folder, policy) as (url, _):
        load(url)
    assert len(output) == 120
    ledger = Ledger(str(folder / "people.ledger"))
    charged = {entry.hash: Fraction(entry.amount) for entry in ledger.entries("people") if entry.kind == "charge"}
    assert set(output.values()) == set(charged), "every charge is known to a client"
    verdict = verify(*ledger.snapshot())
    assert (verdict.problems, verdict.spent["people"].value) == ([], sum(charged.values()))
    ledger.close()
