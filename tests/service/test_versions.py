"""Addresses without a version: they redirect, respondents' devices keep working, and every error is a problem document."""

from __future__ import annotations

from typing import Any

import pytest
from support.service import PROBLEM, RunningService

from tidegate.service.access.permissions import API, RULES, UNVERSIONED

COUNT = {"sql": "SELECT COUNT(*) FROM people WHERE age > 30", "epsilon": "0.1"}
VERSIONED = [rule for rule in RULES if rule.tag not in UNVERSIONED]
OF_DEVICES = ("/collections/{collection}", "/reports", "/collections/{collection}/tokens")  # these keep working


def test_every_address_but_pages_and_health_checks_has_a_version() -> None:
    for rule in RULES:
        assert rule.path.startswith(f"{API}/") == (rule.tag not in UNVERSIONED), rule.path
    assert len(VERSIONED) > 60


@pytest.mark.parametrize(
    "rule",
    [rule for rule in VERSIONED if not rule.path.endswith(OF_DEVICES)],
    ids=lambda rule: f"{rule.method} {rule.path}",
)
def test_address_without_its_version_redirects(shared_service: RunningService, rule: Any) -> None:
    old = rule.path.removeprefix(API)
    response = shared_service.client.request(rule.method, f"{old}?limit=3&text=a%20b", follow_redirects=False)
    assert response.status_code == 308
    assert response.headers["location"] == f"{rule.path}?limit=3&text=a%20b".replace("{", "%7B").replace("}", "%7D")
    assert response.headers["link"] == f'<{response.headers["location"]}>; rel="successor-version"'
    assert response.headers["deprecation"].startswith("@17")
    assert "deprecation" not in shared_service.client.request(rule.method, rule.path).headers


def test_redirected_request_keeps_method_and_body(fresh_service: RunningService) -> None:
    answered = fresh_service.post("/data/people/answers", COUNT)
    assert (answered.status_code, [old.status_code for old in answered.history]) == (200, [308])
    assert fresh_service.get("/v1/data/people").json()["account"]["spent"] == "0.1"


@pytest.mark.parametrize(
    "path", ["//evil.example/data", "/datasets", "/v1/nowhere", "/console/data/people", "/database"]
)
def test_other_addresses_do_not_redirect_to_the_api(shared_service: RunningService, path: str) -> None:
    response = shared_service.client.get(f"http://127.0.0.1{path}", follow_redirects=False)
    assert response.status_code in (401, 404)


def test_redirect_cannot_leave_the_service(shared_service: RunningService) -> None:
    response = shared_service.client.get('http://127.0.0.1/data//evil.example/">;x', follow_redirects=False)
    assert response.headers["location"].startswith("/v1/data//evil.example/%22%3E")
    assert response.headers["link"].count(">") == 1


def test_device_of_an_earlier_version_still_delivers(fresh_service: RunningService) -> None:
    """Its page refuses redirects, and reads `error`."""
    base = "/data/people/collections/shoppers"
    described = fresh_service.client.get(base, follow_redirects=False)
    assert (described.status_code, described.headers["deprecation"][0]) == (200, "@")
    survey = fresh_service.datasets["people"].survey("shoppers")
    report = survey.client().randomize({"age": 30, "town": "Aby"})
    sent = fresh_service.client.post(f"{base}/reports", json={"reports": [report]}, follow_redirects=False)
    assert [verdict["verdict"] for verdict in sent.json()["verdicts"]] == ["accepted"]
    refused = fresh_service.client.post(f"{base}/reports", json={"reports": 3}, follow_redirects=False)
    problem = refused.json()
    assert (refused.status_code, set(problem)) == (422, {*PROBLEM, "error"})
    assert problem["error"] == {
        "code": problem["code"],
        "what": problem["detail"],
        "do": problem["do"],
        "facts": problem["facts"],
    }
    assert "error" not in fresh_service.client.post(f"{API}{base}/reports", json={"reports": 3}).json()


def test_error_is_a_problem_document_with_the_id_of_its_request(shared_service: RunningService) -> None:
    refused = {
        401: shared_service.get("/v1/me", "public"),
        403: shared_service.get("/v1/tokens", "analyst"),
        404: shared_service.get("/v1/nowhere"),
        405: shared_service.call("DELETE", "/v1/me", "owner"),
        409: shared_service.post("/v1/data/people/answers", {**COUNT, "epsilon": "5000"}),
        413: shared_service.post("/v1/data/people/answers", {**COUNT, "sql": "x" * 100_000}),
        422: shared_service.post("/v1/data/people/answers", {"sql": 3}),
    }
    for status, response in refused.items():
        problem = response.json()
        assert (response.status_code, problem["status"], set(problem)) == (status, status, PROBLEM)
        assert response.headers["content-type"] == "application/problem+json"
        assert problem["instance"] == f"urn:tidegate:request:{response.headers['x-request-id']}"
        assert problem["type"] == f"urn:tidegate:problem:{problem['code']}"
        assert problem["title"].lower() == problem["code"].replace("-", " ")
