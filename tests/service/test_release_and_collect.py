"""Release and collection over HTTP: the same outcomes as a local desk, ETags, estimates."""

from __future__ import annotations

import csv
import io
import json
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.service import SECRET, TOWNS, RunningService, policy, run_service, table
from typer.testing import CliRunner

from tidegate.cli.app import app as commands
from tidegate.release.mechanisms import ChiSquare
from tidegate.service.background import Schedule
from tidegate.service.routes import releases

BASE, SURVEY = "/v1/data/people/desks/hq", "/v1/data/people/collections/shoppers"


def keys(*numbers: int) -> dict[str, list[str]]:
    return {"keys": [f"{SECRET}{number:04d}" for number in numbers]}


def test_records_are_released_or_wait_and_only_released_ones_are_listed(fresh_service: RunningService) -> None:
    numbers = list(range(200))
    outcomes = fresh_service.post(f"{BASE}/requests", keys(*numbers)).json()["outcomes"]
    kinds = [item["outcome"] for item in outcomes]
    assert set(kinds) == {"released", "deferred"}, "some must wait, or this shows nothing"
    records, cursor = [], ""
    while cursor is not None:
        page = fresh_service.get(f"{BASE}/released?limit=50&cursor={cursor}", "analyst").json()
        records, cursor = records + page["records"], page["next"]
    assert len(records) == kinds.count("released")
    assert {item["person"] for item in records} == {
        key for key, kind in zip(keys(*numbers)["keys"], kinds, strict=True) if kind == "released"
    }
    state = fresh_service.get(BASE).json()
    assert (sum(state["out_in_all"].values()), state["waiting"]) == (len(records), kinds.count("deferred"))
    assert sum(state["asked_for"].values()) == len(numbers)
    for item in (reading for test in state["tests"].values() for reading in test):
        assert item["critical"] is None or item["value"] <= item["critical"]


def test_repeated_request_is_decided_once_and_can_be_withdrawn(fresh_service: RunningService) -> None:
    outcomes = fresh_service.post(f"{BASE}/requests", keys(*range(200))).json()["outcomes"]
    assert fresh_service.post(f"{BASE}/requests", keys(*range(200))).json()["outcomes"] == outcomes
    waits = next(n for n, outcome in enumerate(outcomes) if outcome["outcome"] == "deferred")
    key = {"key": f"{SECRET}{waits:04d}"}
    assert fresh_service.post(f"{BASE}/status", key).json()["ahead"] == 0
    assert fresh_service.post(f"{BASE}/withdrawals", key).json() == {"outcome": "withdrawn"}
    again = fresh_service.post(f"{BASE}/withdrawals", key)
    assert (again.status_code, again.json()["code"]) == (409, "not-waiting")
    assert fresh_service.post(f"{BASE}/status", key).json()["outcome"] == "refused"


def test_queue_lists_all_waiting_requests_with_the_tests_that_hold_them(fresh_service: RunningService) -> None:
    outcomes = fresh_service.post(f"{BASE}/requests", keys(*range(200))).json()["outcomes"]
    waiting = {
        o["number"]: key
        for o, key in zip(outcomes, keys(*range(200))["keys"], strict=True)
        if o["outcome"] == "deferred"
    }
    rows, after = [], ""
    while after is not None:
        page = fresh_service.get(f"{BASE}/queue?limit=7&cursor={after}").json()
        assert page["waiting"] == len(waiting)
        rows, after = rows + page["requests"], page["next"]
    assert {row["number"]: row["key"] for row in rows} == waiting
    assert [row["number"] for row in rows] == sorted(waiting)
    newest = fresh_service.get(f"{BASE}/queue?limit=7&order=newest").json()
    later = fresh_service.get(f"{BASE}/queue?limit=7&order=newest&cursor={newest['next']}").json()
    assert [row["number"] for row in (*newest["requests"], *later["requests"])] == sorted(waiting, reverse=True)[:14]
    desk = fresh_service.datasets["people"].desk("hq")
    test, names = ChiSquare(desk.plans["hq"]), desk.layout.target_names("hq")
    for row in rows:
        (obstacle,) = row["obstacles"]
        assert (obstacle["test"], obstacle["group"]) == ("chi-square", row["group"])
        assert obstacle["value"] >= obstacle["critical"] > 0
        assert obstacle["excess"] == pytest.approx(obstacle["value"] / obstacle["critical"] - 1)
        target = names.index(row["group"])
        value = table().to_pylist()[int(row["key"].removeprefix(SECRET))]["age"]
        counts = desk.counts()
        counts[sum(value >= edge for edge in (28, 38, 48)), target] += 1
        (reading,) = [reading for reading in test.readings(counts) if reading.target == target]
        assert (obstacle["value"], obstacle["critical"]) == (reading.value, reading.critical)
        assert datetime.now(UTC) - datetime.fromisoformat(row["since"]) < timedelta(minutes=5)


def test_queue_shows_no_key_that_the_desk_does_not_release(tmp_path: Path) -> None:
    promise = replace(policy().concealments["hq"], releases=("age", "town"))
    secretive = replace(policy(), concealments={"hq": promise})
    with run_service(str(tmp_path / "secretive.ledger"), policies=(secretive,)) as service:
        service.post(f"{BASE}/requests", keys(*range(120)))
        page = service.get(f"{BASE}/queue")
        assert page.json()["requests"], "some must wait, or this shows nothing"
        assert {row["key"] for row in page.json()["requests"]} == {None}
        assert SECRET not in page.text


def test_last_simulation_is_shown_until_the_policy_changes(tmp_path: Path) -> None:
    ledger = str(tmp_path / "simulated.ledger")
    with run_service(ledger) as service:
        assert service.get(BASE).json()["simulation"] is None
        summary = service.post(f"{BASE}/audits", {"worlds": 2, "records": 100, "profile": [1, 1, 2, 9]}).json()
        controlled = [o for o in summary["observations"] if o["test"] == "chi-square" and o["auc"] is not None]
        shown = summary["simulation"]
        assert (shown["observers"], shown["successful"]) == (len(controlled), sum(o["betrayed"] for o in controlled))
        assert service.get(BASE).json()["simulation"] == shown
    with run_service(ledger) as service:
        assert service.get(BASE).json()["simulation"] == shown, "a restarted service shows it as well"
    stricter = replace(policy(), concealments={"hq": replace(policy().concealments["hq"], significance="0.3")})
    with run_service(ledger, policies=(stricter,)) as service:
        assert service.get(BASE).json()["simulation"] is None


def test_unknown_key_is_refused_as_an_outcome(fresh_service: RunningService) -> None:
    assert (
        fresh_service.post(f"{BASE}/requests", {"keys": ["nobody", "\x00"]}).json()["outcomes"]
        == [{"outcome": "refused", "reason": "no record has this key"}] * 2
    )


def test_audit_reports_the_accuracy_of_observers(fresh_service: RunningService) -> None:
    body = {"worlds": 4, "records": 60, "profile": [1, 1, 2, 6], "seed": 3}
    content = fresh_service.post(f"{BASE}/audits", body).json()["observations"]
    assert {item["test"] for item in content} == {"none", "chi-square"}
    assert fresh_service.post(f"{BASE}/audits", body).json()["observations"] == content
    assert fresh_service.post(f"{BASE}/audits", {**body, "profile": [1, 1]}).status_code == 422
    assert fresh_service.post(f"{BASE}/audits", {**body, "profile": []}).status_code == 422


def test_description_is_sent_to_a_client_once(fresh_service: RunningService) -> None:
    from tidegate.collect.client import Client

    response = fresh_service.get(SURVEY, "public")
    tag = response.headers["etag"]
    assert Client(response.json(), fingerprint=tag.strip('"')).collection.name == "shoppers"
    assert "max-age" in response.headers["cache-control"]
    for known in (tag, f'"other", W/{tag}', "*"):
        again = fresh_service.get(SURVEY, "public", headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
    assert fresh_service.get(SURVEY, "public", headers={"If-None-Match": '"other"'}).status_code == 200


def test_reports_are_counted_in_a_batch_and_estimated(fresh_service: RunningService) -> None:
    survey, chance = fresh_service.datasets["people"].survey("shoppers"), random.Random(7)
    result = [survey.client().randomize({"age": 30, "town": chance.choice(TOWNS)}) for _ in range(300)]
    body_values = fresh_service.post(
        f"{SURVEY}/reports", {"reports": result}, "public", headers={"Idempotency-Key": "b1"}
    ).json()
    assert (
        body_values["accepted"],
        body_values["refused"],
        body_values["again"],
        body_values["batch"],
        body_values["entry"],
    ) == (300, {}, False, "", "")
    again = fresh_service.post(
        f"{SURVEY}/reports", {"reports": result}, "public", headers={"Idempotency-Key": "b1"}
    ).json()
    assert (again["accepted"], again["again"]) == (0, True)
    assert {verdict["verdict"] for verdict in again["verdicts"]} == {"known"}
    state = fresh_service.get(f"{SURVEY}/state", "analyst").json()
    assert (state["reports"], state["waiting"]) == (0, 300)
    assert fresh_service.get(f"{SURVEY}/distributions/town", "analyst").status_code == 422, (
        "results come from batches only"
    )
    assert state["later_reader"] is None
    assert survey.flush() == 300
    state = fresh_service.get(f"{SURVEY}/state", "analyst").json()
    assert (state["reports"], state["later_reader"]) == (300, survey.weakest_reader().to_dict())
    content = fresh_service.get(f"{SURVEY}/distributions/town", "analyst").json()
    assert (content["reports"], content["labels"]) == (300, list(TOWNS))
    assert content["masses"] == survey.distribution("town").to_dict()["masses"]
    tree = fresh_service.get(f"{SURVEY}/tree?label=town&by=age&strategy=randomized", "analyst").json()
    assert tree["reports"] == 300
    assert fresh_service.get(f"{SURVEY}/rules?min_support=0.1").status_code == 422, "no question is about baskets"
    assert fresh_service.get(f"{SURVEY}/distributions/nothing").status_code == 422


def test_received_report_leaves_no_time_in_ledger_log_or_metrics(
    fresh_service: RunningService, caplog: pytest.LogCaptureFixture
) -> None:
    survey = fresh_service.datasets["people"].survey("shoppers")
    before, metrics = len(list(fresh_service.datasets.ledger.entries())), fresh_service.app.state.metrics
    counted = [line for line in metrics.text().splitlines() if b"reports" in line]
    caplog.set_level("INFO", logger="tidegate.service")
    report = survey.client().randomize({"age": 30, "town": "Aby"})
    for _ in range(2):
        assert fresh_service.post(f"{SURVEY}/reports", {"reports": [report]}, "public").status_code == 200
    assert len(list(fresh_service.datasets.ledger.entries())) == before
    assert [record for record in caplog.records if "reports" in str(getattr(record, "facts", ""))] == []
    assert [line for line in metrics.text().splitlines() if b"reports" in line and b"_created" not in line] == [
        line for line in counted if b"_created" not in line
    ]
    assert fresh_service.post(f"{SURVEY}/reports", {"reports": "none"}, "public").status_code == 422
    assert [record for record in caplog.records if "reports" in str(getattr(record, "facts", ""))] != []


def test_service_counts_waiting_reports_at_the_slot_and_not_when_one_more_arrives(
    fresh_service: RunningService,
) -> None:
    survey, schedule = (
        fresh_service.datasets["people"].survey("shoppers"),
        Schedule(fresh_service.datasets, fresh_service.app.state.metrics),
    )
    result = [survey.client(memory={}).randomize({"age": 30, "town": "Aby"}) for _ in range(130)]
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    fresh_service.post(f"{SURVEY}/reports", {"reports": result[:99]}, "public")
    schedule.check(tomorrow)
    fresh_service.post(f"{SURVEY}/reports", {"reports": result[99:]}, "public")
    schedule.check(tomorrow)
    assert survey.reports == 0, "the slot had begun when too few waited"
    schedule.check(tomorrow + timedelta(days=1))
    assert survey.reports == 130
    [entry] = [entry for entry in fresh_service.datasets.ledger.entries() if entry.kind == "reports"]
    assert entry.at.endswith("T00:00:00.000+00:00")
    assert b'tidegate_reports_total{outcome="taken"} 130.0' in fresh_service.app.state.metrics.text()


def test_every_report_has_a_typed_verdict_and_the_same_one_in_process(fresh_service: RunningService) -> None:
    survey = fresh_service.datasets["people"].survey("shoppers")
    result = [survey.client().randomize({"age": 30, "town": "Aby"}) for _ in range(3)]
    fresh_service.post(f"{SURVEY}/reports", {"reports": result[:1]}, "public")
    mixed = [result[0], result[1], {**result[2], "version": 7}, "no report"]
    response = fresh_service.post(f"{SURVEY}/reports", {"reports": mixed}, "public").json()
    verdicts = response["verdicts"]
    assert [(verdict["place"], verdict["verdict"]) for verdict in verdicts] == [
        (0, "known"),
        (1, "accepted"),
        (2, "refused"),
        (3, "refused"),
    ]
    assert verdicts[1]["reason"] is None
    assert "another version" in verdicts[2]["reason"]
    assert response["reasons"] == [
        [verdict["place"], verdict["reason"]] for verdict in verdicts if verdict["reason"] is not None
    ]
    assert (response["accepted"], response["again"]) == (1, False)
    assert set(survey.submit(["no report"]).to_dict()) == set(response)


def test_schema_describes_the_response_to_reports(shared_service: RunningService) -> None:
    described = shared_service.get("/openapi.json").json()
    [route] = [
        result for path, result in described["paths"].items() if path.endswith("/collections/{collection}/reports")
    ]
    name = route["post"]["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    fields = described["components"]["schemas"][name]
    assert {"batch", "accepted", "again", "verdicts"} <= set(fields["required"])
    assert described["components"]["schemas"]["Verdict"]["properties"]["verdict"]["enum"] == [
        "accepted",
        "known",
        "refused",
    ]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"reports": {}}', b'{"reports": [], "more": 1}', b'{"reports": [1, "x", null, {}]}']
)
def test_invalid_batch_is_refused_and_invalid_reports_are_refused_individually(
    shared_service: RunningService, body: bytes
) -> None:
    response = shared_service.call("POST", f"{SURVEY}/reports", "public", content=body)
    if b"null" in body:
        assert (response.status_code, response.json()["accepted"], len(response.json()["reasons"])) == (200, 0, 4)
    else:
        assert response.status_code == 422


def test_conversion_equals_the_command_line(shared_service: RunningService) -> None:
    assert shared_service.get("/v1/risk/conversion?worlds=99&rho=0.1").json()["epsilon"].startswith("2.38")
    back = shared_service.get("/v1/risk/conversion?worlds=99&epsilon=2.388").json()
    assert back["rho"].startswith("0.1")
    for wrong in (
        "worlds=99",
        "worlds=99&rho=0.1&epsilon=1",
        "worlds=1&rho=0.5",
        "worlds=9&rho=0.01",
        "worlds=1e9&rho=0.1",
    ):
        assert shared_service.get(f"/v1/risk/conversion?{wrong}").status_code == 422


def test_operators_are_measured_and_recommended(shared_service: RunningService) -> None:
    body = {"operator": "square-wave", "values": 45, "parameters": {"epsilon": 2}}
    content = shared_service.post("/v1/risk/operators", body, "analyst").json()
    assert (content["operator"], content["epsilon"]) == ("square-wave", pytest.approx(2))
    assert content["rows"][0]["measure"].startswith("epsilon")
    advice = shared_service.post(
        "/v1/risk/advice", {"values": 4, "clients": 1000, "categories": True, "epsilon": "1"}
    ).json()
    assert advice["says"]
    assert shared_service.post("/v1/risk/operators", {**body, "parameters": {}}).status_code == 422


def test_basket_measures_have_the_same_values_as_the_command_line(shared_service: RunningService) -> None:
    body = {"operator": "cut-and-paste", "size": 5, "cutoff": 3, "rho": 0.1}
    content = shared_service.post("/v1/risk/baskets", body, "analyst").json()
    said = CliRunner().invoke(
        commands, ["risk", "operator", "cut-and-paste", "--K", "3", "--rho", "0.1", "--size", "5", "--json"]
    )
    assert content == json.loads(said.stdout)
    assert (
        shared_service.post("/v1/risk/baskets", {"operator": "mask", "size": 5, "keep": 0.9}).json()["size_sent"]
        is False
    )
    for wrong in ({**body, "rho": None}, {**body, "operator": "mask"}, {**body, "items": 3}, {**body, "rho": 1.5}):
        assert shared_service.post("/v1/risk/baskets", wrong).status_code == 422


def test_released_records_can_be_downloaded_as_a_file(fresh_service: RunningService) -> None:
    fresh_service.post(f"{BASE}/requests", keys(*range(60)))
    records = fresh_service.get(f"{BASE}/released?limit=1000").json()["records"]
    assert len(records) > 20
    table = fresh_service.get(f"{BASE}/released?kind=csv", "analyst")
    assert table.headers["content-type"].startswith("text/csv")
    assert 'filename="people-hq.csv"' in table.headers["content-disposition"]
    assert list(csv.DictReader(io.StringIO(table.text))) == [
        {k: str(v) for k, v in record.items()} for record in records
    ]
    assert fresh_service.get(f"{BASE}/released?kind=json").json() == records
    assert fresh_service.get(f"{BASE}/released?kind=json&after=20").json() == records[20:]
    assert fresh_service.get(f"{BASE}/released?kind=json&after=9999").json() == []
    assert fresh_service.get(f"{BASE[:-2]}none/released?kind=csv").status_code == 404


def test_file_of_several_parts_has_every_record_once(
    fresh_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases, "AT_ONCE", 7)
    fresh_service.post(f"{BASE}/requests", keys(*range(60)))
    records = fresh_service.get(f"{BASE}/released?limit=1000").json()["records"]
    assert fresh_service.get(f"{BASE}/released?kind=json").json() == records


def test_desk_describes_its_tests_and_groups(fresh_service: RunningService) -> None:
    fresh_service.post(f"{BASE}/requests", keys(*range(40)))
    state = fresh_service.get(BASE).json()
    assert state["releases"] == ["person", "age", "town"]
    assert set(state["shares"]) == set(TOWNS)
    assert sum(state["shares"].values()) == pytest.approx(1)
    assert set(state["watched"]) == {"chi-square"}
    assert set(state["watched"]["chi-square"]) == {"measure", "sees", "blind"}
    assert fresh_service.get(BASE).json()["tracks"] == state["tracks"]
    fresh_service.post(f"{BASE}/requests", keys(*range(40, 80)))
    assert fresh_service.get(BASE).json()["tracks"] != state["tracks"], (
        "what was drawn before is not shown for more records"
    )


def test_respondent_sees_desks_but_nothing_from_the_table(fresh_service: RunningService) -> None:
    content = fresh_service.get("/v1/record", "respondent").json()
    assert (content["dataset"], content["key"]) == ("people", "person")
    assert [(desk["desk"], desk["releases"]) for desk in content["desks"]] == [("hq", ["person", "age", "town"])]
    assert SECRET not in json.dumps(content)
    for role in ("owner", "analyst"):
        assert fresh_service.get("/v1/record", role).status_code == 403
