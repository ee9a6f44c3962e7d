"""ETag and If-None-Match: on everything that is read, with 304 exactly while nothing changed."""

from __future__ import annotations

from typing import Any

import pytest
from support.service import SECRET, RunningService

COUNT = {"sql": "SELECT COUNT(*) FROM people WHERE age > 30", "epsilon": "0.1"}
SEVERAL = {"questions": [{"ask": "count", "by": ["town"]}, {"ask": "mean", "column": "age"}], "epsilon": "0.2"}
READ = (
    "/v1/data/people",
    "/v1/data/people/policy",
    "/v1/data/people/history",
    "/v1/data/people/collections/shoppers",
    "/v1/data/people/collections/shoppers/state",
    "/v1/data/people/notebook",
    "/v1/ledger",
    "/v1/ledger/entries",
    "/v1/ledger/entries/1",
    "/v1/tokens",
)


def again(service: RunningService, path: str, tag: str, role: str = "owner") -> Any:
    return service.get(path, role, headers={"If-None-Match": tag})


@pytest.mark.parametrize("path", READ)
def test_unchanged_resource_is_not_sent_again(shared_service: RunningService, path: str) -> None:
    first = shared_service.get(path)
    tag = first.headers["etag"]
    second = again(shared_service, path, tag)
    assert (second.status_code, second.content, second.headers["etag"]) == (304, b"", tag)
    assert again(shared_service, path, f'"x", W/{tag}').status_code == 304
    assert again(shared_service, path, "*").status_code == 304
    for other in ('"x"', tag.strip('"'), ""):
        assert again(shared_service, path, other).content == first.content


def test_answer_is_read_again_by_its_number_and_costs_nothing(fresh_service: RunningService) -> None:
    for body in (COUNT, SEVERAL):
        bought = fresh_service.post("/v1/data/people/answers", body, "analyst").json()
        number = fresh_service.get("/v1/data/people/history?newest=true").json()["questions"][0]["number"]
        path = f"/v1/data/people/answers/{number}"
        stored = fresh_service.get(path, "analyst")
        repeated = fresh_service.post("/v1/data/people/answers", body, "analyst").json()
        assert stored.json() == repeated
        assert stored.json()["cost"] == "0"
        assert (stored.json()["entry"], stored.json()["stored"] is not None) == (bought["entry"], True)
        assert again(fresh_service, path, stored.headers["etag"], "analyst").status_code == 304
        before = fresh_service.get("/v1/data/people").json()["account"]["spent"]
        assert before == stored.json()["spent"]


def test_stored_answer_of_another_user_or_number_is_not_there(fresh_service: RunningService) -> None:
    fresh_service.post("/v1/data/people/answers", COUNT, "owner")
    number = fresh_service.get("/v1/data/people/history").json()["questions"][0]["number"]
    assert fresh_service.get(f"/v1/data/people/answers/{number}").status_code == 200
    assert fresh_service.get(f"/v1/data/people/answers/{number}", "analyst").status_code == 404
    for other in (1, number + 1, 10**9):
        assert fresh_service.get(f"/v1/data/people/answers/{other}").status_code == 404
    assert fresh_service.get("/v1/data/people/answers/0").status_code == 422


def test_tag_changes_with_the_account(fresh_service: RunningService) -> None:
    tag = fresh_service.get("/v1/data/people").headers["etag"]
    fresh_service.post("/v1/data/people/answers", COUNT)
    changed = again(fresh_service, "/v1/data/people", tag)
    assert (changed.status_code, changed.json()["account"]["spent"]) == (200, "0.1")


def test_entry_is_read_by_its_number(fresh_service: RunningService) -> None:
    fresh_service.post("/v1/data/people/answers", COUNT)
    listed = fresh_service.get("/v1/ledger/entries").json()["entries"]
    for entry in listed:
        assert fresh_service.get(f"/v1/ledger/entries/{entry['number']}").json() == entry
    assert fresh_service.get(f"/v1/ledger/entries/{len(listed) + 1}").status_code == 404
    token = fresh_service.post("/v1/tokens", {"role": "owner", "name": "otto", "dataset": "others"}).json()["token"]
    fresh_service.tokens["otto"] = token
    assert fresh_service.get(f"/v1/ledger/entries/{listed[-1]['number']}", "otto").status_code == 404


def test_condition_does_not_hide_a_refusal(shared_service: RunningService) -> None:
    assert again(shared_service, "/v1/data/people", "*", "public").status_code == 401
    assert again(shared_service, "/v1/ledger", "*", "analyst").status_code == 403
    response = shared_service.post(
        "/v1/data/people/desks/hq/status", {"key": f"{SECRET}0001"}, headers={"If-None-Match": "*"}
    )
    assert response.status_code == 200, "only reads are conditional"
