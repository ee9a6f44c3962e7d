"""Charts over HTTP: on request they are added to the same JSON, and they contain nothing that the console's policy refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.service import SECRET, RunningService

DESK, SURVEY = "/v1/data/people/desks/hq", "/v1/data/people/collections/shoppers"
QUESTION = {"questions": [{"ask": "count", "by": ["town"]}], "epsilon": 0.1}


def checked_charts(content: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the charts of a response after checking their names."""
    assert set(content["charts"]) == set(names)
    for chart in content["charts"].values():
        assert set(chart) == {"title", "svg", "table"}
        assert chart["title"]
        assert chart["svg"].count("<svg") == 2
        assert not re.search(r"<style|style=|<script|\son\w+=|href|url\(", chart["svg"])
    return dict(content["charts"])


def without_charts(content: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name != "charts"}


def test_answers_quotes_and_derivations_have_charts_only_on_request(fresh_service: RunningService) -> None:
    answered = fresh_service.post("/v1/data/people/answers", QUESTION).json()
    drawn = fresh_service.post("/v1/data/people/answers", {**QUESTION, "charts": True}).json()
    assert "charts" not in answered
    assert drawn["rows"] == answered["rows"]
    chart = checked_charts(drawn, "answer")["answer"]
    assert chart["title"] == answered["comparison"]["says"]
    assert [row[1] for row in chart["table"]["rows"]] == [row["count"] for row in answered["rows"]]
    single = {"questions": [{"ask": "count", "where": {"compare": ["age", ">=", 30]}}], "epsilon": 0.1}
    assert (
        "of the true value with 95% confidence"
        in checked_charts(fresh_service.post("/v1/data/people/quotes", {**single, "charts": True}).json(), "error")[
            "error"
        ]["title"]
    )
    assert fresh_service.post("/v1/data/people/answers", {**single, "charts": True}).json()["charts"] == {}
    derived = fresh_service.post(
        "/v1/data/people/derivations", {"questions": QUESTION["questions"], "charts": True}
    ).json()
    checked_charts(derived, "answer")


def test_desk_returns_exposure_charts_for_all_tests_or_one(fresh_service: RunningService) -> None:
    empty = checked_charts(fresh_service.get(f"{DESK}?charts=true").json(), "exposure", "shares")
    assert empty["exposure"]["title"] == "No records released yet, so there is no exposure"
    fresh_service.post(f"{DESK}/requests", {"keys": [f"{SECRET}{number:04d}" for number in range(200)]})
    state = fresh_service.get(DESK).json()
    drawn = fresh_service.get(f"{DESK}?charts=true").json()
    assert without_charts(drawn) == state
    assert "stays below its critical value" in checked_charts(drawn, "exposure", "shares")["exposure"]["title"]
    track = state["tracks"][0]
    name = track["test"] if track["group"] == "all" else f"{track['test']}, {track['group']}"
    single = fresh_service.get(f"{DESK}?charts=true&track={name}").json()["charts"]["exposure"]
    assert single["svg"] != drawn["charts"]["exposure"]["svg"]


def test_collection_returns_charts_of_batches_and_distributions(fresh_service: RunningService) -> None:
    survey = fresh_service.datasets["people"].survey("shoppers")
    assert checked_charts(fresh_service.get(f"{SURVEY}/state?charts=true").json(), "counted")["counted"]["title"] == (
        "No report has been counted yet"
    )
    survey.submit([survey.client(memory={}).randomize({"age": 30, "town": "Aby"}) for _ in range(120)])
    state = fresh_service.get(f"{SURVEY}/state?charts=true", "analyst").json()
    assert checked_charts(state, "counted")["counted"]["title"].startswith(
        "120 reports were counted in 1 batch, the last on "
    )
    for question in ("town", "age"):
        content = fresh_service.get(f"{SURVEY}/distributions/{question}", "analyst").json()
        drawn = fresh_service.get(f"{SURVEY}/distributions/{question}?charts=true", "analyst").json()
        assert without_charts(drawn) == content
        assert checked_charts(drawn, "distribution")["distribution"]["title"].startswith(content["finding"])


def test_risk_routes_return_charts(shared_service: RunningService) -> None:
    content = shared_service.get("/v1/risk/conversion?worlds=99&rho=0.1").json()
    drawn = shared_service.get("/v1/risk/conversion?worlds=99&rho=0.1&charts=true").json()
    assert without_charts(drawn) == content
    assert checked_charts(drawn, "curve", "errors")["curve"]["title"].startswith(
        "Among 99 possible values, a loss of 2.3"
    )
    operators = [
        {"operator": name, "values": 20, "parameters": {"epsilon": epsilon}}
        for name, epsilon in (("square-wave", 2), ("unary", 1))
    ]
    compared = shared_service.post("/v1/risk/comparisons", {"operators": operators}, "analyst").json()
    assert compared["operators"] == [
        shared_service.post("/v1/risk/operators", operator, "analyst").json() for operator in operators
    ]
    least = min(compared["operators"], key=lambda operator: operator["entropy"]["loss"])["operator"]
    assert checked_charts(compared, "operators")["operators"]["title"].startswith(f"{least} reveals least on average")
    basket = {"operator": "cut-and-paste", "size": 5, "cutoff": 3, "rho": 0.1}
    breaches = shared_service.post("/v1/risk/baskets", {**basket, "charts": True}).json()
    assert without_charts(breaches) == shared_service.post("/v1/risk/baskets", basket).json()
    checked_charts(breaches, "breaches")


@pytest.mark.parametrize("operators", [[], "x", [{"operator": "none"}]])
def test_comparison_needs_operators(shared_service: RunningService, operators: Any) -> None:
    assert shared_service.post("/v1/risk/comparisons", {"operators": operators}).status_code == 422
