"""The demo: a real process on a free port, with sample data, a sign-in for each role and one ledger."""

from __future__ import annotations

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from cli.conftest import Run

from tidegate import demo
from tidegate.demo import history, soldiers
from tidegate.ledger import Entry, Ledger, verify

PATIENCE = 300.0  # where nothing is compiled yet
MAIN = "from tidegate.cli import main; main()"
ROLES = {"owner": "olga", "analyst": "ana", "respondent": "sven"}


@contextmanager
def run_demo(folder: Path, *words: str) -> Iterator[tuple[dict[str, Any], subprocess.Popen[bytes]]]:
    """Yield a demo that is ready: its printed values and its process."""
    command = [sys.executable, "-c", MAIN, "demo", "--folder", str(folder), "--json", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"})
    late = threading.Timer(PATIENCE, process.kill)  # nothing waits forever
    late.start()
    try:
        assert process.stdout is not None
        text = b""
        for line in process.stdout:
            text += line
            if line == b"}\n":
                break
        yield json.loads(text), process
    finally:
        late.cancel()
        process.kill()
        process.wait(20)


def entries(folder: Path) -> list[Entry]:
    ledger = Ledger(str(folder / demo.LEDGER), read_only=True)
    try:
        verdict = verify(*ledger.snapshot())
        assert verdict.holds, verdict.problems
        return list(ledger.entries())
    finally:
        ledger.close()


def wait_for_history(folder: Path) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        ledger = Ledger(str(folder / demo.LEDGER), read_only=True)
        missing = history.missing(ledger)
        ledger.close()
        if not missing:
            return
        time.sleep(0.3)
    raise AssertionError(f"no history of {missing}")


def sign_in(started: dict[str, Any], role: str) -> httpx.Response:
    door = started["sign_in"][role]
    assert door["link"] == f"{started['address']}/console/sign-in#{door['token']}"
    return httpx.post(f"{started['address']}/v1/sign-in", json={"token": door["token"]}, timeout=30)


def test_demo_serves_on_a_free_port_and_every_token_signs_in(tmp_path: Path) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    with taken, run_demo(tmp_path, "--port", str(taken.getsockname()[1])) as (started, process):
        assert started["address"] != f"http://127.0.0.1:{taken.getsockname()[1]}", "the port is somebody else's"
        assert httpx.get(f"{started['address']}/ready", timeout=30).json() == {"status": "ready", "datasets": 6}
        for role, name in ROLES.items():
            result = sign_in(started, role)
            assert (result.status_code, result.json()["role"], result.json()["name"]) == (200, role, name)
        assert sign_in(started, "analyst").json()["share"] == "0.5"
        assert f'"{soldiers.WAITS}"' in started["sign_in"]["respondent"]["says"], "which record to ask for"
        assert httpx.get(started["form"], timeout=30).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


@pytest.mark.long
def test_second_run_keeps_data_and_ledger_and_revokes_old_tokens(tmp_path: Path) -> None:
    demo.write(tmp_path)
    assert len(list(history.write(tmp_path))) == 6
    assert list(history.write(tmp_path)) == [], "each query runs once"
    before, files = entries(tmp_path), {path: path.read_bytes() for path in tmp_path.glob("*.[ct][so][vm]*")}
    assert len(files) == 10
    with run_demo(tmp_path, "--port", "0") as (first, process):
        assert first["history_to_come"] == []
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    with run_demo(tmp_path, "--port", "0") as (second, process):
        for role in ROLES:
            old = {"token": first["sign_in"][role]["token"]}
            refused = httpx.post(f"{second['address']}/v1/sign-in", json=old, timeout=30)
            assert (refused.status_code, sign_in(second, role).status_code) == (401, 200)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    after = entries(tmp_path)
    assert after[: len(before)] == before
    added = [entry for entry in after[len(before) :] if entry.account]  # without tokens and sign-ins
    assert all(entry.account == "people" for entry in added)
    assert len(added) <= 2, "a synthetic table: its charge and its result"
    assert {path: path.read_bytes() for path in files} == files
    assert "tg_" not in (tmp_path / "service.log").read_text(), "no token is in the log"


@pytest.mark.long  # the tour of `demo --no-serve`, which other tests use, writes the same history
def test_history_is_written_in_its_own_process_and_one_record_waits(tmp_path: Path) -> None:
    with run_demo(tmp_path, "--port", "0") as (started, process):
        assert started["history_to_come"] == ["people", "clinic", "office", "shop", "barracks", "soldiers"]
        wait_for_history(tmp_path)
        owner, ana, sven = ({"Authorization": f"Bearer {started['sign_in'][role]['token']}"} for role in ROLES)
        with httpx.Client(base_url=started["address"], timeout=PATIENCE) as client:
            content = client.get("/v1/data/people/history", headers=ana).json()
            assert [question["asked"] for question in content["questions"]] == [
                "the number of rows by town",
                "the mean of age",
            ]
            state = client.get("/v1/data/shop/collections/shoppers/state", headers=owner).json()
            assert state["reports"] == demo.shop.SHOPPERS
            results = client.get("/v1/data/office/collections/commute/results", headers=ana).json()
            assert results["reports"] == demo.office.PEOPLE["commute"]
            questions = client.get("/v1/data/clinic/history", headers=ana).json()["questions"]
            assert "admitted" in questions[0]["asked"], "by month"
            assert [question["unit"] for question in questions] == ["z", "z"]
            tables = client.get("/v1/data/people/syntheses", headers=ana).json()["syntheses"]
            assert [table["asked"] for table in tables] == ["1 table, epsilon 0.3"]
            key = {"key": demo.soldiers.WAITS}
            stands = client.post("/v1/data/soldiers/desks/headquarters/status", json=key, headers=sven).json()
            assert stands["outcome"] == "deferred"
            desk = client.get("/v1/data/barracks/desks/headquarters", headers=owner).json()
            released = sum(desk["out_in_all"].values())
            assert (desk["open"], released + desk["withheld"]) == (True, history.REQUESTS)
            assert 0.3 < desk["selections"][0]["share"] < 0.5, "38.8% on average; the samples differ between runs"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    entries(tmp_path)


def test_samples_are_written_once_and_replace_nothing(tmp_path: Path) -> None:
    (tmp_path / "people.toml").write_text("mine")
    written = demo.write(tmp_path)
    assert sorted(written) == [
        "barracks.csv",
        "barracks.toml",
        "clinic.csv",
        "clinic.toml",
        "office.toml",
        "people.csv",
        "shop.toml",
        "soldiers.csv",
        "soldiers.toml",
    ]
    assert (tmp_path / "people.toml").read_text() == "mine"
    first = (tmp_path / "people.csv").read_bytes()
    assert demo.write(tmp_path) == []
    assert demo.people.as_csv().encode() == first, "the same in every run"


def test_sample_tables_match_their_policies(tmp_path: Path) -> None:
    import tidegate as tg
    from tidegate.demo.soldiers import COUNTS, LOCATIONS, policy
    from tidegate.policy import Boolean, Category, Date, Integer

    demo.write(tmp_path)
    for name, size in {"people": 10_000, "clinic": 6_000, "barracks": 10_000, "soldiers": 10_000}.items():
        session = tg.open(tmp_path / f"{name}.toml")
        with (tmp_path / f"{name}.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == session.policy.dataset.rows == size
        for column, attribute in session.policy.attributes.items():
            values = {row[column] for row in rows}
            if isinstance(attribute, Boolean):
                assert values == {"yes", "no"}
            elif isinstance(attribute, Category):
                assert values == set(attribute.values)
            elif isinstance(attribute, Date):
                assert len({value[:7] for value in values}) == attribute.size == 12, "each month"
            elif isinstance(attribute, Integer):
                assert attribute.lowest <= min(map(int, values)) <= max(map(int, values)) <= attribute.highest
            else:
                assert len(values) == len(rows), "a key names one row"
    at = [sum(row["location"] == location for row in rows) for location in LOCATIONS]
    assert at == [sum(column) for column in zip(*COUNTS, strict=True)]
    cells = [
        sorted(
            (row["age"], row["location"]) for row in csv.DictReader((tmp_path / f"{name}.csv").read_text().splitlines())
        )
        for name in ("soldiers", "barracks")
    ]
    assert cells[0] == cells[1], "the same soldiers under other names"
    served = session.policy.concealments["headquarters"]
    assert (served.baseline, served.shares) == (
        policy().concealments["headquarters"].baseline,
        policy().concealments["headquarters"].shares,
    )


def test_synthesis_fits_after_the_history_and_baskets_match_their_plan(
    tmp_path: Path,
) -> None:
    import tidegate as tg
    from tidegate.demo.shop import SHOPPERS, shoppers

    demo.write(tmp_path)
    history.ask_people(tmp_path)
    with tg.open(tmp_path / "people.toml") as session:
        assert session.account.left.value >= 1
    said = list(shoppers())
    most = max(sum(item in answers["basket"] for answers in said) for item in demo.shop.ITEMS)
    assert most / SHOPPERS <= 0.25, "the breach level of the plan rests on it"
    assert all(1 <= len(answers["basket"]) <= 3 for answers in said)


def test_tour_needs_no_service(run: Run, tmp_path: Path) -> None:
    code, out, err = run("demo", "--no-serve", "--folder", tmp_path)
    assert (code, err) == (0, f"Created a new ledger: {tmp_path / 'demo.ledger'}\n")
    assert "7. Show the ledger." in out
    assert "entries are valid" in out


def test_unwritable_folder_is_reported_in_one_sentence(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = run("demo", "--folder", tmp_path / "file" / "demo")
    assert (code, "Cannot write to" in err) == (2, True)


@pytest.mark.parametrize("name", demo.NAMES)
def test_every_sample_policy_is_feasible(run: Run, tmp_path: Path, name: str) -> None:
    demo.write(tmp_path)
    assert run("check", tmp_path / f"{name}.toml")[0] == 0
