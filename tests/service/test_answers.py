"""Previews, answers, history: the same values and messages as a local session, charged to the caller."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.service import QUIET, TOWNS, RunningService, policy, run_service

import tidegate as tg
from tidegate.answer.query_json import query_from_dict, query_to_dict
from tidegate.answer.run import plan_request
from tidegate.answer.spending import RequestedLoss
from tidegate.errors import Unsupported
from tidegate.ledger.retention import rotate_secret
from tidegate.policy import Policy
from tidegate.service.access import callers
from tidegate.service.quotes import Quote, quote_secret

COUNT = {"sql": "SELECT town, COUNT(*) FROM people GROUP BY town", "epsilon": "0.2"}


def test_preview_states_the_cost_and_charges_nothing(fresh_service: RunningService) -> None:
    before = fresh_service.post("/v1/data/people/previews", COUNT, "analyst").json()
    assert (before["cost"], before["left"], before["fits"]) == ("0.2", "1000", True)
    assert fresh_service.get("/v1/data/people", "analyst").json()["account"]["spent"] == "0"
    content = fresh_service.post("/v1/data/people/answers", COUNT, "analyst").json()
    assert (content["cost"], content["left"]) == (before["cost"], before["left_after"])
    assert [row["town"] for row in content["rows"]] == list(TOWNS)


def test_repeated_query_is_free_and_equal_for_every_user(fresh_service: RunningService) -> None:
    first = fresh_service.post("/v1/data/people/answers", COUNT, "analyst").json()
    again = fresh_service.post("/v1/data/people/answers", COUNT, "owner").json()
    assert again["rows"] == first["rows"]
    assert (again["cost"], again["entry"]) == ("0", first["entry"])


def test_json_and_sql_define_the_same_query(fresh_service: RunningService) -> None:
    body = {"questions": [{"ask": "count", "by": ["town"]}], "epsilon": 0.2}
    first = fresh_service.post("/v1/data/people/answers", COUNT).json()
    assert fresh_service.post("/v1/data/people/answers", body).json()["entry"] == first["entry"]


def test_several_queries_are_one_charge(fresh_service: RunningService) -> None:
    body = {"questions": [{"ask": "count"}, {"ask": "mean", "column": "age"}], "epsilon": "0.4"}
    content = fresh_service.post("/v1/data/people/answers", body).json()
    assert (len(content["answers"]), content["cost"]) == (2, "0.4")


def test_idempotency_key_is_charged_once_and_belongs_to_one_query(fresh_service: RunningService) -> None:
    key = {"Idempotency-Key": "k-1"}
    first = fresh_service.post("/v1/data/people/answers", COUNT, headers=key).json()
    assert fresh_service.post("/v1/data/people/answers", COUNT, headers=key).json()["rows"] == first["rows"]
    other = fresh_service.post("/v1/data/people/answers", {**COUNT, "epsilon": "0.3"}, headers=key)
    assert (other.status_code, other.json()["code"]) == (409, "key-reused")
    of_another = fresh_service.post("/v1/data/people/answers", {**COUNT, "epsilon": "0.3"}, "analyst", headers=key)
    assert of_another.status_code == 200, "keys of one caller are not another's"


def test_analyst_cannot_spend_more_than_their_share(tmp_path: Path) -> None:
    with run_service(str(tmp_path / "all.ledger"), share="0.25") as service:
        assert service.post("/v1/data/people/answers", COUNT, "analyst").status_code == 200
        more = {**COUNT, "epsilon": "0.06"}
        refused = service.post("/v1/data/people/answers", more, "analyst")
        assert refused.status_code == 409
        assert refused.json()["facts"] == {"asked": "0.06", "spent": "0.2", "left": "0.05", "share": "0.25"}
        own = service.get("/v1/data/people", "analyst").json()["account"]["own"]
        assert own == {"share": "0.25", "spent": "0.2", "left": "0.05"}
        for route in ("previews", "quotes"):
            offers = {
                user: service.post(f"/v1/data/people/{route}", more, user).json() for user in ("analyst", "owner")
            }
            assert (offers["analyst"]["left"], offers["analyst"]["fits"]) == ("0.05", False)
            assert (offers["owner"]["left"], offers["owner"]["fits"]) == ("999.8", True)
        assert offers["analyst"]["quote"] is None
        assert service.post("/v1/data/people/answers", more, "owner").status_code == 200


def test_exceeded_budget_is_refused_with_the_message_of_the_command_line(tmp_path: Path) -> None:
    with run_service(str(tmp_path / "all.ledger"), policies=(policy(epsilon="0.1"),)) as service:
        content = service.post("/v1/data/people/answers", COUNT).json()
        assert content["code"] == "budget-exceeded"
        assert "0.1 remaining of 0.1" in content["detail"]
        assert service.get("/v1/data/people").json()["account"]["spent"] == "0"


def test_analyst_sees_own_history_and_owner_sees_all(fresh_service: RunningService) -> None:
    for number, role in enumerate(("owner", "analyst", "analyst", "owner"), start=1):
        fresh_service.post("/v1/data/people/answers", {**COUNT, "epsilon": number}, role)
    mine = fresh_service.get("/v1/data/people/history", "analyst").json()
    assert [(question["who"], question["cost"]) for question in mine["questions"]] == [("ana", "2"), ("ana", "3")]
    first = fresh_service.get("/v1/data/people/history?limit=3").json()
    rest = fresh_service.get(f"/v1/data/people/history?limit=3&cursor={first['next']}").json()
    assert [question["cost"] for question in first["questions"] + rest["questions"]] == ["1", "2", "3", "4"]
    assert rest["next"] is None


def test_description_of_a_data_set_contains_no_locations(fresh_service: RunningService) -> None:
    response = fresh_service.get("/v1/data/people", "analyst")
    assert "place.csv" not in response.text
    assert response.json()["policy"]["dataset"] == {"name": "people", "unit": "row", "rows": 400}
    listed = fresh_service.get("/v1/data", "analyst").json()["datasets"]
    assert [item["name"] for item in listed] == ["people"], "an analyst of one data set sees that one"


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE people",
        "SELECT * FROM people",
        "SELECT person FROM people",
        "SELECT COUNT(*) FROM people; DELETE FROM people",
        "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
        "SELECT COUNT(*) FROM people, others",
        "SELECT COUNT(*) FROM people WHERE age > 1e9999999",
        "SELECT COUNT(*) FROM people WHERE age > " + "9" * 500,
        "SELECT COUNT(*) FROM people WHERE " + "(" * 1500 + "age > 1" + ")" * 1500,
        "SELECT COUNT(*) FROM people WHERE " + " OR ".join(["age > 1"] * 320),
        "\x00",
    ],
)
def test_unsupported_sql_is_refused(shared_service: RunningService, sql: str) -> None:
    response = shared_service.post("/v1/data/people/answers", {"sql": sql, "epsilon": 0.1})
    assert response.status_code in (200, 422)
    assert (response.status_code == 200) == (" OR " in sql), "many conditions are long, not strange"


QUERIES = [
    tg.count(),
    tg.count().by("town").where((tg.col("age") >= 30) & ~(tg.col("town") == "Aby") | tg.col("age").missing()),
    tg.mean("age").where(tg.col("age").between("20.5", 40)),
    tg.quantile("age", "1/3").by("town"),
    tg.regression("age ~ pay + hours", method="functional"),
    tg.histogram("town"),
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.says())
def test_query_survives_json(query: tg.Query) -> None:
    assert query_from_dict(query_to_dict(query)) == query


NOT = {"ask": "count", "where": {"compare": ["age", "=", 1]}}
for _ in range(25):
    NOT = {"ask": "count", "where": {"not": NOT["where"]}}


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"ask": "count", "column": "age"},
        {"ask": "mean"},
        {"ask": "erase", "column": "age"},
        {"ask": "mean", "column": "age", "by": "town"},
        {"ask": "quantile", "column": "age"},
        {"ask": "quantile", "column": "age", "share": "1e99999999"},
        {"ask": "regression", "column": "age", "on": ["age"]},
        {"ask": "count", "where": {"compare": ["age", "LIKE", "x"]}},
        {"ask": "count", "where": {"compare": ["age", "=", None]}},
        {"ask": "count", "where": {"and": [], "or": []}},
        NOT,
    ],
)
def test_invalid_query_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(Unsupported):
        query_from_dict(content)


def test_settings_survive_json() -> None:
    assert QUIET.from_json(QUIET.to_json()) == QUIET


# Quotes


def request_quote(service: RunningService, body: dict[str, Any] = COUNT, role: str = "analyst") -> dict[str, Any]:
    response = service.post("/v1/data/people/quotes", body, role)
    assert response.status_code == 200, response.text
    content: dict[str, Any] = response.json()
    return content


def spent(service: RunningService) -> str:
    return str(service.get("/v1/data/people").json()["account"]["spent"])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("wish", [{"epsilon": "0.2"}, {"error": "20"}, {"epsilon": "1/3"}], ids=str)
def test_bought_quote_costs_exactly_what_was_quoted(fresh_service: RunningService, wish: dict[str, str]) -> None:
    body = {"sql": "SELECT COUNT(*) FROM people WHERE age >= 30", **wish}
    result = request_quote(fresh_service, body)
    assert spent(fresh_service) == "0", "a quote is free"
    content = fresh_service.post("/v1/data/people/answers", {"quote": result["quote"], "key": "k-1"}, "analyst").json()
    assert (
        (content["cost"], content["left"])
        == (result["cost"], result["left_after"])
        == (result["price"], content["left"])
    )
    again = fresh_service.post("/v1/data/people/answers", {"quote": result["quote"], "key": "k-1"}, "analyst").json()
    assert (again["cost"], again["rows"]) == ("0", content["rows"]), "the same key is charged once"
    same = fresh_service.post("/v1/data/people/answers", body).json()
    assert same["entry"] == content["entry"], "it was the question that was quoted"


def test_answered_query_is_quoted_free_with_its_date(fresh_service: RunningService) -> None:
    first = fresh_service.post("/v1/data/people/answers", COUNT).json()
    result = request_quote(fresh_service)
    assert (result["cost"], result["price"], result["left_after"]) == ("0", "0.2", result["left"])
    assert result["answered_before"]["entry"] == first["entry"]
    assert result["answered_before"]["at"].startswith("20")
    content = fresh_service.post("/v1/data/people/answers", {"quote": result["quote"], "key": "k-2"}, "analyst").json()
    assert (content["cost"], content["rows"]) == ("0", first["rows"])
    other = request_quote(fresh_service, {**COUNT, "epsilon": "0.3"})
    assert (other["cost"], other["answered_before"]) == ("0.3", None)


def test_quote_of_several_queries_is_one_charge(fresh_service: RunningService) -> None:
    body = {"questions": [{"ask": "count"}, {"ask": "mean", "column": "age", "by": ["town"]}], "epsilon": "0.4"}
    refused = fresh_service.post("/v1/data/people/answers", body, "analyst")
    assert (refused.status_code, "would be useless" in refused.text) == (422, True)
    result = request_quote(fresh_service, {**body, "anyway": True})
    assert "useless" in result["expected"][1]["caution"]
    content = fresh_service.post("/v1/data/people/answers", {"quote": result["quote"]}, "analyst").json()
    assert (len(content["answers"]), content["cost"]) == (2, "0.4")


def test_only_the_owner_is_answered_after_three_failures(
    fresh_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("HIV-positive")

    with monkeypatch.context() as patched:
        patched.setattr("tidegate.answer.run.PlannedRequest.run", fail)
        failures = [fresh_service.post("/v1/data/people/answers", COUNT, "analyst") for _ in range(3)]
    hidden = "The data of this data set is not available."
    assert {failure.json()["detail"] for failure in failures} == {hidden}
    assert all("HIV" not in failure.text for failure in failures)
    refused = fresh_service.post("/v1/data/people/answers", COUNT, "analyst")
    assert "answers only its owner" in refused.json()["detail"]
    assert fresh_service.post("/v1/data/people/answers", COUNT, "owner").status_code == 200


def quote_of(queries: tuple[tg.Query, ...], of: Policy, **options: Any) -> Quote:
    """Return a quote of queries for epsilon 1."""
    loss = RequestedLoss(Fraction(1))
    return Quote.of(plan_request(queries, of, loss=loss), loss=loss, **options)


def test_changed_or_foreign_quote_is_refused(fresh_service: RunningService) -> None:
    text = request_quote(fresh_service)["quote"]
    body, _, signature = text.partition(".")
    content = json.loads(base64.urlsafe_b64decode(body + "=="))
    cheaper = base64.urlsafe_b64encode(json.dumps({**content, "price": "0"}).encode()).decode().rstrip("=")
    foreign = quote_of((tg.count(),), policy()).sign(b"another secret")
    for wrong in ("", ".", "a.b", body, f"{body}.", f"{cheaper}.{signature}", text[:-2], foreign, "é.é"):
        response = fresh_service.post("/v1/data/people/answers", {"quote": wrong}, "analyst")
        assert response.status_code == 422, wrong
    assert spent(fresh_service) == "0"


def test_stale_quote_is_refused_before_a_charge(fresh_service: RunningService) -> None:
    secret = quote_secret(fresh_service.app.state.guard.callers.secret())
    queries, current = (tg.count(),), fresh_service.datasets["people"].policy
    fresh = quote_of(queries, current)
    old = quote_of(queries, current, now=time.time() - 16 * 60)
    stale = {
        "expired": old,
        "another data set": quote_of(queries, policy("others")),
        "another policy": replace(fresh, policy="0" * 64),
        "another price": replace(fresh, price="0.5"),
        "another event": replace(fresh, event="0" * 64),
    }
    for why, outdated in stale.items():
        response = fresh_service.post("/v1/data/people/answers", {"quote": outdated.sign(secret)}, "analyst")
        assert (response.status_code, response.json()["code"]) == (409, "stale-quote"), why
        assert "nothing was charged" in response.json()["detail"]
    assert spent(fresh_service) == "0"
    assert fresh_service.post("/v1/data/people/answers", {"quote": fresh.sign(secret)}, "analyst").status_code == 200


def test_running_service_uses_a_replaced_secret(fresh_service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "FRESH", 0.0)  # seconds until the secret is read again
    quote = request_quote(fresh_service)["quote"]
    rotate_secret(fresh_service.datasets.ledger)
    refused = fresh_service.post("/v1/data/people/answers", {"quote": quote}, "analyst")
    assert refused.status_code == 422, "whoever knew the old secret cannot sign quotes any more"
    quote = request_quote(fresh_service)["quote"]
    assert fresh_service.post("/v1/data/people/answers", {"quote": quote}, "analyst").status_code == 200


WRONG = [None, 0, -1, 0.0, -0.1, "", "0", "-1", " ", "abc", "0.0", "1e-3", True, [], {}, "NaN", "0/1"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("wish", ["epsilon", "rho", "error"])
@pytest.mark.parametrize("address", ["previews", "quotes", "answers"])
def test_price_must_be_a_positive_number(fresh_service: RunningService, address: str, wish: str) -> None:
    for wrong in WRONG:
        response = fresh_service.post(f"/v1/data/people/{address}", {"sql": COUNT["sql"], wish: wrong})
        assert response.status_code == 422, wrong
        assert response.json()["detail"], wrong
    assert fresh_service.post(f"/v1/data/people/{address}", {"sql": COUNT["sql"]}).status_code == 422, (
        "there is no default"
    )
    assert spent(fresh_service) == "0"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("wish", ["epsilon", "rho"])
@pytest.mark.parametrize("address", ["syntheses/previews", "syntheses"])
def test_synthesis_price_must_be_positive(fresh_service: RunningService, address: str, wish: str) -> None:
    for wrong in [*WRONG, "left out"]:
        body = {} if wrong == "left out" else {wish: wrong}
        response = fresh_service.post(f"/v1/data/people/{address}", body)
        assert response.status_code == 422, wrong
        assert response.json()["detail"], wrong
    assert fresh_service.get("/v1/data/people/syntheses").json()["syntheses"] == []


def test_quote_and_query_together_are_refused(fresh_service: RunningService) -> None:
    text = request_quote(fresh_service)["quote"]
    for more in ({"epsilon": 1}, {"sql": COUNT["sql"]}, {"questions": [{"ask": "count"}]}):
        response = fresh_service.post("/v1/data/people/answers", {"quote": text, **more}, "analyst")
        assert response.status_code == 422, more
    differing = {"quote": text, "key": "a"}
    response = fresh_service.post("/v1/data/people/answers", differing, "analyst", headers={"Idempotency-Key": "b"})
    assert response.status_code == 422
    assert spent(fresh_service) == "0"


def test_query_above_the_budget_gets_no_quote(fresh_service: RunningService) -> None:
    result = request_quote(fresh_service, {**COUNT, "epsilon": "2000"})
    assert (result["quote"], result["fits"]) == (None, False)


def test_quote_too_long_for_a_request_is_refused(fresh_service: RunningService) -> None:
    where = {"or": [{"compare": ["age", "=", 30]}] * 90}
    body = {"questions": [{"ask": "count", "where": where}] * 14, "epsilon": 1}
    assert len(json.dumps(body)) < QUIET.largest_body
    response = fresh_service.post("/v1/data/people/quotes", body)
    assert response.status_code == 422
    assert "too long" in response.json()["detail"]
