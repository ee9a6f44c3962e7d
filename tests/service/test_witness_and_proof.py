"""The service warns about a witness, and gives users the proof of their own entries."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.service import RunningService, quiet_settings, run_service
from typer.testing import CliRunner

from tidegate.cli.app import app as commands
from tidegate.ledger import witness
from tidegate.ledger.checkpoint import parse
from tidegate.ledger.witness import configure
from tidegate.service.background import Schedule

QUERY = {"questions": [{"ask": "count"}], "epsilon": "0.1", "anyway": True}


def warnings(service: RunningService) -> list[str]:
    return [warning["what"] for warning in service.get("/v1/home").json()["warnings"] if "witness" in warning["what"]]


def gauge(service: RunningService) -> str:
    return next(
        line for line in service.get("/metrics").text.splitlines() if line.startswith("tidegate_witness_problems")
    )


def test_witness_that_cannot_be_reached_or_is_late_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with run_service(str(tmp_path / "all.ledger"), settings=quiet_settings()) as service:
        ledger = service.datasets.ledger
        schedule = Schedule(service.datasets, service.app.state.metrics)
        assert service.get("/ready").json()["witnesses"] == []
        assert ledger.witnesses is not None
        ledger.witnesses.add([str(disk / "people.checkpoint")])
        schedule.check(datetime.now(UTC))
        (state,) = service.get("/ready").json()["witnesses"]
        assert (state["problem"], state["entries"] > 1) == ("", True)
        assert "witnesses" not in service.get("/ready", "analyst").json()
        assert "witnesses" not in service.get("/ready", "public").json()
        assert (warnings(service), gauge(service)) == ([], "tidegate_witness_problems 0.0")
        disk.rename(tmp_path / "unplugged")
        schedule.check(datetime.now(UTC))
        (state,) = service.get("/ready").json()["witnesses"]
        assert "cannot be reached" in state["problem"]
        assert gauge(service) == "tidegate_witness_problems 1.0"
        (warning,) = warnings(service)
        assert "people.checkpoint is behind: it cannot be reached" in warning
        assert warning in service.get("/console", headers={"Accept": "text/html"}).text.replace("&#39;", "'")
        (tmp_path / "unplugged").rename(disk)
        schedule.check(datetime.now(UTC))
        assert warnings(service) == []
        monkeypatch.setattr(ledger.witnesses, "notify", lambda: None)
        ledger.store.after_commit = None
        service.post("/v1/data/people/answers", QUERY)
        monkeypatch.setattr(witness, "LATE", -1.0)
        (warning,) = warnings(service)
        assert "has not seen the newest" in warning
        (disk / "people.checkpoint").write_text("another ledger\n1\nAAAA\n")
        schedule.check(datetime.now(UTC))
        assert service.get("/ready").json()["witnesses"][0]["problem"]


def test_running_service_uses_a_witness_that_a_command_adds(tmp_path: Path) -> None:
    address, note = str(tmp_path / "all.ledger"), tmp_path / "people.checkpoint"
    with run_service(address, settings=quiet_settings()) as service:
        schedule = Schedule(service.datasets, service.app.state.metrics)
        schedule.check(datetime.now(UTC))
        assert CliRunner().invoke(commands, ["ledger", "witness", address, "--add", str(note)]).exit_code == 0
        added = parse(note.read_text()).size
        schedule.check(datetime.now(UTC))
        (state,) = service.get("/ready").json()["witnesses"]
        assert (state["entries"], state["problem"]) == (added, "")
        service.post("/v1/data/people/answers", QUERY)
        assert service.datasets.ledger.witnesses is not None
        service.datasets.ledger.witnesses.send()
        assert parse(note.read_text()).size > added
        assert CliRunner().invoke(commands, ["ledger", "witness", address, "--remove", str(note)]).exit_code == 0
        removed = note.read_text()
        schedule.check(datetime.now(UTC))
        service.post("/v1/data/people/answers", {**QUERY, "epsilon": "0.2"})
        schedule.check(datetime.now(UTC))
        assert service.get("/ready").json()["witnesses"] == []
        assert note.read_text() == removed, "a witness that was removed receives nothing more"


def test_user_gets_the_proof_of_their_own_answer(tmp_path: Path) -> None:
    with run_service(str(tmp_path / "all.ledger")) as service:
        entry = service.post("/v1/data/people/answers", QUERY, "analyst").json()["entry"]
        others = service.post("/v1/data/people/answers", {**QUERY, "epsilon": "0.2"}).json()["entry"]
        path = f"/v1/ledger/entries/{entry}/proof"
        refused = service.get(path, "analyst")
        assert (refused.status_code, "no signing key" in refused.json()["detail"]) == (404, True)
        configure(service.datasets.ledger.store, new_key=True)
        response = service.get(path, "analyst")
        assert (
            response.headers["content-disposition"]
            == f'attachment; filename="entry-{response.json()["index"]}.proof.json"'
        )
        for name in (entry[:8], str(response.json()["index"]), str(response.json()["index"] + 1)):
            assert service.get(f"/v1/ledger/entries/{name}/proof", "analyst").status_code == 200
        for name in (others, "0", "9999999", "ffffffffffff"):
            refused = service.get(f"/v1/ledger/entries/{name}/proof", "analyst")
            assert refused.status_code == 404
            assert refused.json()["detail"] == "You have no entry with this number or hash."
        assert service.get(f"/v1/ledger/entries/{others}/proof").status_code == 200
        assert service.get(path, "respondent").status_code == 403
        file = tmp_path / "entry.proof.json"
        file.write_bytes(response.content)
        with service.datasets.ledger.store.reading() as connection:
            key = str(witness.public_keys(connection)[0])
    description = CliRunner().invoke(commands, ["ledger", "check-proof", str(file), "--key", key, "--json"])
    assert json.loads(description.stdout)["holds"]
    content = json.loads(file.read_text())
    content["entry"]["amount"] = "0.05"
    file.write_text(json.dumps(content))
    assert CliRunner().invoke(commands, ["ledger", "check-proof", str(file), "--key", key]).exit_code != 0
