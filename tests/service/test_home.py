"""The steward's home over the API: who spent what, what waits, and warnings."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.service import SECRET, RunningService

from tidegate.accounting import Amount
from tidegate.ledger.spending import Charge
from tidegate.service.access.permissions import ANALYST
from tidegate.service.routes.home import people, spending_chart


def ask(service: RunningService, epsilon: str, role: str = "owner", name: str = "people") -> None:
    body = {"sql": f"SELECT COUNT(*) FROM {name} WHERE age > 30", "epsilon": epsilon, "anyway": True}
    assert service.post(f"/v1/data/{name}/answers", body, role).status_code == 200


def home_of(service: RunningService, name: str = "people", role: str = "owner") -> Any:
    content = service.get("/v1/home", role).json()
    return next(part for part in content["datasets"] if part["name"] == name)


def test_spending_is_added_up_by_user_and_grows_with_new_charges(fresh_service: RunningService) -> None:
    assert home_of(fresh_service)["users"] == []
    ask(fresh_service, "0.5")
    ask(fresh_service, "0.25", ANALYST)
    users = home_of(fresh_service)["users"]
    assert [(line["user"], line["week"], line["total"], line["week_queries"]) for line in users] == [
        ("olga", "0.5", "0.5", 1),
        ("ana", "0.25", "0.25", 1),
    ]
    ask(fresh_service, "0.75", ANALYST)
    assert [(line["user"], line["week"]) for line in home_of(fresh_service)["users"]] == [("ana", "1"), ("olga", "0.5")]
    listed = fresh_service.get(
        home_of(fresh_service)["users"][0]["url"]
        .replace("/console", "/v1/ledger/entries", 1)
        .replace("/v1/ledger/entries/ledger", "/v1/ledger/entries")
    )
    assert len(listed.json()["entries"]) == 2, "the link shows what was added up"


def test_last_week_is_the_last_seven_days() -> None:
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    charges = [
        Charge(1, now - timedelta(days=30), "ana", Amount.parse("4")),
        Charge(2, now - timedelta(days=7, seconds=1), "ana", Amount.parse("2")),
        Charge(3, now - timedelta(days=6, hours=23), "ana", Amount.parse("1")),
        Charge(4, now - timedelta(hours=1), "bo", Amount.parse("3")),
    ]
    lines = people("people", charges, {("people", "ana"): "9"}, now)
    assert [(line["user"], line["week"], line["total"], line["share"]) for line in lines] == [
        ("bo", "3", "3", None),
        ("ana", "1", "7", "9"),
    ]
    chart = spending_chart(charges, {"unit": "epsilon", "ceiling": "12"}, now)
    assert chart.title == "10 of 12 epsilon spent since 21 Oct 2026"
    tops = [mark.high[-1] for mark in chart.marks[:-1]]
    assert tops == [7, 10], "stacked"


def test_many_users_and_years_fit_into_one_chart() -> None:
    now = datetime(2026, 11, 20, tzinfo=UTC)
    charges = [Charge(n, now - timedelta(days=1000 - n), f"u{n % 40}", Amount.parse("1")) for n in range(900)]
    chart = spending_chart(charges, {"unit": "z", "ceiling": "2000"}, now)
    assert [mark.label for mark in chart.marks][3:] == ["others", "limit"]
    assert len(chart.svg()) < 60_000


def test_warnings_name_what_to_do(fresh_service: RunningService) -> None:
    assert fresh_service.get("/v1/home").json()["warnings"] == [], "there is nothing to lose yet"
    ask(fresh_service, "0.5")
    content = fresh_service.get("/v1/home").json()
    assert [warning["what"] for warning in content["warnings"]] == [
        "The ledger was never verified.",
        "The ledger was never backed up.",
    ]
    assert "Ask the operator of the service to run: tidegate ledger backup" in content["warnings"][1]["do"]
    fresh_service.get("/v1/ledger/verification")
    path = fresh_service.datasets.ledger.store.path
    assert path is not None
    record = path.with_name(f"{path.name}.upkeep")
    content = json.loads(record.read_text())
    assert content["verification"]["holds"] is True
    old = (datetime.now(UTC) - timedelta(days=9)).isoformat()
    record.write_text(json.dumps({"verification": {"at": old, "holds": True}, "backup": {"at": old}}))
    whats = [warning["what"] for warning in fresh_service.get("/v1/home").json()["warnings"]]
    assert whats == ["The ledger was last verified 9 days ago.", "The ledger was last backed up 9 days ago."]
    now = datetime.now(UTC).isoformat()
    record.write_text(json.dumps({"verification": {"at": now, "holds": False}, "backup": {"at": now}}))
    whats = [warning["what"] for warning in fresh_service.get("/v1/home").json()["warnings"]]
    assert whats == ["The last verification of the ledger failed."]
    record.write_text("not JSON")
    assert fresh_service.get("/v1/home").status_code == 200


def test_almost_spent_budget_is_a_warning(fresh_service: RunningService) -> None:
    ask(fresh_service, "790")
    assert home_of(fresh_service)["alerts"] == []
    ask(fresh_service, "20")
    assert home_of(fresh_service)["alerts"][0]["what"] == "81% of the budget is spent."


def test_waiting_records_and_reports_are_counted(fresh_service: RunningService) -> None:
    keys = [f"{SECRET}{n:04d}" for n in range(40)]
    fresh_service.post("/v1/data/people/desks/hq/requests", {"keys": keys})
    content = home_of(fresh_service)
    waiting = fresh_service.get("/v1/data/people/desks/hq").json()
    assert content["waiting"]["count"] == waiting.get("waiting", content["waiting"]["count"])
    assert content["reports"][0]["collection"] == "shoppers"
    assert content["jobs"] == []
    fresh_service.post("/v1/data/people/syntheses", {"epsilon": 1})
    assert [job["state"] for job in home_of(fresh_service)["jobs"]] == ["waiting"]


def test_home_is_for_owners_and_shows_their_data_sets_only(fresh_service: RunningService) -> None:
    assert fresh_service.get("/v1/home", ANALYST).status_code == 403
    token = fresh_service.post("/v1/tokens", {"role": "owner", "name": "otto", "dataset": "others"}).json()["token"]
    fresh_service.tokens["otto"] = token
    content = fresh_service.get("/v1/home", "otto").json()
    assert [part["name"] for part in content["datasets"]] == ["others"]
    assert content["warnings"] == [], "the ledger belongs to all"


@pytest.mark.parametrize("role", ["owner", ANALYST])
def test_overview_page_renders(fresh_service: RunningService, role: str) -> None:
    ask(fresh_service, "0.5", ANALYST)
    page = fresh_service.get("/console", role, headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert ("Who spent what" in page.text) == (role == "owner")
