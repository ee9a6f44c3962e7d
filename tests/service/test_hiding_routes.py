"""Hiding promises over HTTP: open a selection, request records, and what responses and logs never contain."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.service import AGE, SECRET, TOWN, TOWNS, RunningService, run_service, table

from tidegate.policy import Dataset, Hiding, Key, Loss, Policy
from tidegate.release.hiding import Selection
from tidegate.release.result import Released, Withheld, outcome_from_dict

DESK, SELECTIONS = "/v1/data/people/desks/hq", "/v1/data/people/selections"
PEOPLE = table().set_column(2, "town", [[TOWNS[number % 3] for number in range(400)]])
KEYS = PEOPLE["person"].to_pylist()


def hiding_policy(**more: Any) -> Policy:
    options = {"mix": ("0.05",) * 4, "smallest": 10, "releases": ("person", "age", "town"), **more}
    promise = Hiding(reveals="age", about="town", **options)
    return Policy(
        Dataset("people"), {"person": Key(), "age": AGE, "town": TOWN}, loss=Loss(10), hidings={"hq": promise}
    )


@pytest.fixture
def hiding_service(tmp_path: Path) -> Iterator[RunningService]:
    with run_service(str(tmp_path / "all.ledger"), policies=(hiding_policy(),), data=PEOPLE) as running:
        yield running


def test_owner_opens_the_selection_and_requests_are_released_or_withheld(hiding_service: RunningService) -> None:
    state = hiding_service.get(DESK).json()
    assert (state["kind"], state["open"], state["selections"]) == ("hiding", False, [])
    assert hiding_service.post(f"{DESK}/requests", {"keys": KEYS[:2]}).json()["code"] == "infeasible"
    opened = hiding_service.post(SELECTIONS, {}).json()
    assert opened["epoch"] == 1
    assert hiding_service.get(SELECTIONS, "analyst").json() == {"selections": [opened]}
    assert Selection.from_dict(opened).to_dict() == opened
    outcomes = hiding_service.post(f"{DESK}/requests", {"keys": KEYS}).json()["outcomes"]
    assert {type(outcome_from_dict(outcome)) for outcome in outcomes} == {Released, Withheld}
    state = hiding_service.get(DESK).json()
    assert sum(state["out_in_all"].values()) == sum(sum(row) for row in opened["quotas"])
    assert state["counts"] == opened["quotas"]
    assert state["withheld"] == len(KEYS) - sum(state["out_in_all"].values())
    records = hiding_service.get(f"{DESK}/released?limit=1000", "analyst").json()["records"]
    assert len(records) == sum(state["out_in_all"].values())
    assert hiding_service.post(f"{DESK}/withdrawals", {"key": KEYS[0]}).json()["code"] == "not-waiting"


def test_respondent_requests_their_own_record_only(hiding_service: RunningService) -> None:
    hiding_service.post(SELECTIONS, {})
    own = hiding_service.post(f"{DESK}/requests", {"keys": [f"{SECRET}0007"]}, "respondent").json()["outcomes"][0]
    assert own["outcome"] in ("released", "withheld")
    assert hiding_service.post(f"{DESK}/requests", {"keys": [f"{SECRET}0008"]}, "respondent").status_code == 403
    described = hiding_service.get("/v1/record", "respondent").json()["desks"][0]
    assert (described["desk"], described["kind"]) == ("hq", "hiding")


@pytest.mark.parametrize("role", ["analyst", "respondent"])
def test_only_an_owner_opens_a_selection(hiding_service: RunningService, role: str) -> None:
    assert hiding_service.post(SELECTIONS, {}, role).status_code == 403


def test_short_cells_and_sensitive_groups_are_in_no_response_and_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    mix = ("0.05", "0.05", "0.05", "0.8")  # more than there is
    with run_service(str(tmp_path / "a.ledger"), policies=(hiding_policy(mix=mix),), data=PEOPLE) as running:
        refused = running.post(SELECTIONS, {})
        assert refused.status_code >= 400
        body = refused.json()
        assert (body["code"], body["facts"]) == ("infeasible", {})
        assert not any(town in json.dumps(body) for town in running.get(DESK).json()["groups"])
    with run_service(str(tmp_path / "b.ledger"), policies=(hiding_policy(among=3),), data=PEOPLE) as running:
        groups = running.get(DESK).json()["groups"]
        caplog.clear()
        opened = running.post(SELECTIONS, {"sensitive": [[groups[1]]]})
        assert opened.json()["hidden"] == [0, 1, 2]
        assert groups[1] not in caplog.text
        entries = [entry.body for entry in running.datasets.ledger.entries() if entry.kind == "hiding-key"]
        assert groups[1] not in "".join(entries)


def test_answers_that_combine_the_columns_are_refused(hiding_service: RunningService) -> None:
    query = {"sql": "SELECT town, AVG(age) FROM people GROUP BY town", "epsilon": 1}
    for path in ("previews", "answers", "quotes"):
        refused = hiding_service.post(f"/v1/data/people/{path}", query)
        assert refused.json()["code"] == "unsupported"
        assert "hiding promise" in refused.json()["detail"]
