"""Audits as jobs: started by an owner, followed, cancelled, and reported."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from service.test_job_control import wait_until
from service.test_jobs import WORKING
from support.service import RunningService, run_service

from tidegate.audit import run as audit_run
from tidegate.audit.run import Attack

AUDITS, PAGE = "/v1/data/people/audits", "/console/data/people/audits"
ASKED = {"seconds": 1, "verbs": ["ledger"], "seed": 7}


def test_audit_runs_as_a_job_and_its_report_is_stored(tmp_path: Path) -> None:
    with run_service(str(tmp_path / "all.ledger"), settings=WORKING) as service:
        for role in ("analyst", "respondent"):
            assert service.post(AUDITS, ASKED, role).status_code == 403
        key = {"Idempotency-Key": "k"}
        started = service.post(AUDITS, ASKED, headers=key)
        assert (started.status_code, started.json()["kind"]) == (202, "audit")
        job = started.json()["id"]
        assert service.post(AUDITS, ASKED, headers=key).json()["id"] == job
        events = service.get(f"{AUDITS}/{job}/events").text
        assert "event: end" in events
        assert (
            "event: progress" in events or "audit of ledger" in events
        )  # a quick audit ends before the first progress
        state = service.get(f"{AUDITS}/{job}").json()
        assert (state["state"], state["problem"], state["broken"]) == ("done", None, 0)
        assert state["asked"] == "audit of ledger, about 1 s"
        report = service.get(f"{AUDITS}/{job}/report").json()
        assert (report["dataset"], report["seed"], report["verdict"]) == ("people", 7, state["verdict"])
        assert {finding["verb"] for finding in report["findings"]} == {"ledger"}
        page = service.get(f"{AUDITS}/{job}/report?format=html")
        assert page.headers["content-type"].startswith("text/html")
        assert report["verdict"] in page.text
        assert [item["id"] for item in service.get(AUDITS).json()["audits"]] == [job]
        assert service.get("/v1/data/people/syntheses").json()["syntheses"] == [], "an audit is no synthesis"
        assert service.get(f"/v1/data/people/syntheses/{job}").status_code == 404
        assert service.get("/v1/data/people").json()["account"]["spent"] == "0", "an audit spends nothing"
        for path in (PAGE, f"{PAGE}/{job}"):
            shown = service.get(path, headers={"Accept": "text/html"})
            assert shown.status_code == 200
            assert report["verdict"] in shown.text
        assert service.get(PAGE, "analyst").status_code == 403


def test_unfinished_and_impossible_audits_are_refused(fresh_service: RunningService) -> None:
    for wrong in ({"seconds": 0}, {"seconds": 1e9}, {"verbs": ["guess"]}, {"other": 1}):
        assert fresh_service.post(AUDITS, wrong).status_code == 422
    job = fresh_service.post(AUDITS, ASKED).json()["id"]
    refused = fresh_service.get(f"{AUDITS}/{job}/report")
    assert (refused.status_code, refused.json()["detail"]) == (
        404,
        "This audit is waiting, so it has no report.",
    )
    assert fresh_service.get("/v1/home").json()["datasets"][0]["jobs"][0]["kind"] == "audit"
    cancelled = fresh_service.post(f"{AUDITS}/{job}/cancellation").json()
    assert cancelled["problem"]["what"] == "The audit was cancelled by olga. Nothing was charged."


def test_running_audit_stops_before_its_next_attack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    with run_service(str(tmp_path / "all.ledger"), settings=WORKING) as service:

        def attack(name: str) -> Attack:
            def run(policy: object, **options: object) -> list[object]:
                ran.append(name)
                service.post(f"{AUDITS}/{job}/cancellation")
                wait_until(lambda: service.get(f"{AUDITS}/{job}").json()["state"] == "cancelled")
                time.sleep(0.5)  # the heartbeat notices it
                return []

            return Attack("ledger", name, 1, run)  # type: ignore[arg-type]

        monkeypatch.setattr(audit_run, "plan", lambda policy, ledger="": [attack("first"), attack("second")])
        job = service.post(AUDITS, ASKED).json()["id"]
        wait_until(lambda: service.get(f"{AUDITS}/{job}").json()["state"] == "cancelled")
        wait_until(lambda: "stops" not in service.get(f"{AUDITS}/{job}").json()["problem"]["what"])
        assert ran == ["first"]
