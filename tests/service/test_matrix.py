"""Every address and every role: allowed or refused by the table of permissions, which the documentation shows."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.declared import mismatch
from support.service import PROBLEM, SECRET, RunningService, policy, run_service

from tidegate.policy import Hiding
from tidegate.service.access.guard import GuardedRoute
from tidegate.service.access.permissions import ANALYST, OWNER, PUBLIC, RESPONDENT, ROLES, RULES, TABLE, Rule, as_text
from tidegate.service.openapi_examples import EXAMPLES

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "http.md"
PLACES = {"name": "people", "promise": "hq", "collection": "shoppers", "question": "age", "number": "1"}
PLACES |= {"job": "0" * 20, "token": "0" * 16, "session": "0" * 16, "draft": "0" * 20, "step": "people", "entry": "1"}
PLACES |= {"answer": "0" * 64, "item": "0" * 20}
BODIES: dict[str, Any] = {
    "previews": {"sql": "SELECT COUNT(*) FROM people", "epsilon": 0.1},
    "quotes": {"sql": "SELECT town, COUNT(*) FROM people GROUP BY town", "epsilon": 0.1, "anyway": True},
    "answers": {"sql": "SELECT COUNT(*) FROM people WHERE age > 20", "epsilon": 0.1, "anyway": True},
    "derivations": {"sql": "SELECT COUNT(*) FROM people"},
    "selections": {"later": False},
    "requests": {"keys": [f"{SECRET}0007"]},
    "status": {"key": f"{SECRET}0007"},
    "withdrawals": {"key": f"{SECRET}0007"},
    "audits": {"worlds": 2, "records": 10, "profile": [1, 2, 3, 4]},
    "reports": {"reports": []},
    "drafts": {"collection": "new", "questions": {"town": {"attribute": "town", "operator": "subset", "epsilon": 1}}},
    "closing": {"version": 1},
    "syntheses": {"epsilon": 1},
    "operators": {"operator": "unary", "values": 4, "parameters": {"epsilon": 1}},
    "baskets": {"operator": "cut-and-paste", "size": 5, "cutoff": 3, "rho": 0.1},
    "advice": {"values": 4, "clients": 100, "epsilon": 1},
    "code": {"conversion": {"worlds": 99, "rho": 0.1}},
    "questions": {"name": "Women", "request": {"sql": "SELECT AVG(age) FROM people", "epsilon": 0.1}},
    "dashboards": {"name": "All", "questions": []},
    "tokens": {"role": "analyst", "name": "new"},
    "people": {"fields": {"name": ["people"], "unit": ["row"]}},
    "links": {"token": "0000000000000000"},
    "sign-in": {"token": "tg_0000000000000000_" + "a" * 43},
}
POLL: dict[str, Any] = {
    "poll": "canteen",
    "holder": "Works council",
    "title": "Canteen",
    "purpose": "Plan the menu",
    "closes": "2099-12-01T18:00:00+01:00",
    "clients": 500,
    "questions": {"weekly": {"text": "Do you eat here every week?", "options": ["Yes", "No"], "random": "1/3"}},
}
FREE = ("rows", "records", "outcomes")  # their fields depend on the policy and on what came of it
QUERIES = {
    "tree": "?label=town&by=age&strategy=randomized",
    "rules": "?min_support=0.1",
    "conversion": "?worlds=9&rho=0.2",
    "meaning": "?worlds=99&rho=0.015",
    "curve": "?worlds=99",
}


FILES = {"/static/{file}": "ink.css", "/client/{file}": "form.js", "/client/operators/{file}": "unary.js"}


def address(rule: Rule, **other: str) -> str:
    places = {**PLACES, "file": FILES.get(rule.path, ""), **other}
    path = re.sub(r"{(\w+)}", lambda match: places[match[1]], rule.path)
    return path + QUERIES.get(path.rpartition("/")[2], "")


def body(rule: Rule) -> Any:
    if rule.path.endswith("syntheses/previews"):
        return BODIES["syntheses"]
    if rule.path.endswith("polls/drafts"):
        return POLL
    if rule.path.endswith("/data/{name}/audits"):
        return {"seconds": 1}
    return BODIES.get(rule.path.rpartition("/")[2], {}) if rule.method == "POST" else None


def call(service: RunningService, rule: Rule, role: str, **other: str) -> Any:
    return service.call(rule.method, address(rule, **other), role, json=body(rule), follow_redirects=False)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.method} {rule.path}")
def test_address_is_open_only_to_the_roles_in_the_table(shared_service: RunningService, rule: Rule, role: str) -> None:
    result = call(shared_service, rule, role)
    if role in rule.roles:
        wrong_sign_in = rule.path == "/v1/sign-in"  # it is open to all, and the token in its body is fake
        assert (result.status_code == 401) == wrong_sign_in, result.text
        assert result.status_code not in (403, 405), result.text
        assert result.status_code < 500
    else:
        assert result.status_code == (401 if role == PUBLIC else 403), result.text
        assert set(result.json()) == PROBLEM


@pytest.mark.parametrize("role", [ANALYST, RESPONDENT])
@pytest.mark.parametrize("rule", [r for r in RULES if "{name}" in r.path], ids=lambda r: f"{r.method} {r.path}")
def test_token_of_one_data_set_cannot_access_another(shared_service: RunningService, rule: Rule, role: str) -> None:
    for name in ("others", "nowhere"):
        status = call(shared_service, rule, role, name=name).status_code
        if PUBLIC in rule.roles:
            assert status == call(shared_service, rule, PUBLIC, name=name).status_code, "as without a token"
            assert status not in (401, 403)
        else:
            assert status == 403, "whether it exists or not"


def test_invalid_token_is_refused_even_on_public_routes(shared_service: RunningService) -> None:
    for rule in RULES:
        result = shared_service.client.request(
            rule.method,
            address(rule),
            json=body(rule),
            headers={"Authorization": "Bearer tg_1_2"},
            follow_redirects=False,
        )
        assert result.status_code == 401


def test_every_route_is_in_the_table_and_every_rule_has_a_route(shared_service: RunningService) -> None:
    addresses = {(method, route.path) for route in guarded_routes(shared_service.app) for method in route.methods}
    assert addresses == set(TABLE)
    described = shared_service.client.get("/openapi.json").json()["paths"]
    result = {(method.upper(), path) for path, of in described.items() for method in of}
    assert result == {key for key, rule in TABLE.items() if rule.tag != "pages"}


def test_no_route_bypasses_the_guard(shared_service: RunningService) -> None:
    """A plain route, a mount or a page that the description does not list would have no rule."""
    routes = all_routes(shared_service.app)
    unguarded = {getattr(route, "path", repr(route)) for route in routes if not isinstance(route, GuardedRoute)}
    assert unguarded == {"/openapi.json"}


def test_route_outside_the_table_cannot_be_created() -> None:
    with pytest.raises(KeyError):
        GuardedRoute("/secret-door", lambda: None, methods=["GET"])


def test_documentation_shows_the_table_of_permissions() -> None:
    assert as_text() in DOCS.read_text("utf-8")


SELECTIONS = "/v1/data/{name}/selections"  # of data sets with a hiding promise, which the shared service does not have
OF_POLLS = tuple(
    f"/v1/data/{{name}}/collections/{{collection}}/{word}" for word in ("invitations", "tokens")
)  # test_invitation_routes.py


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "key", [key for key in EXAMPLES if key[1] not in (SELECTIONS, *OF_POLLS)], ids=lambda key: " ".join(key)
)
def test_example_has_the_fields_of_a_real_response(shared_service: RunningService, key: tuple[str, str]) -> None:
    body_values = {"job": shared_service.post("/v1/data/people/syntheses", {"epsilon": 1}).json()["id"]}
    shared_service.post("/v1/data/people/answers", BODIES["answers"])
    shared_service.post("/v1/data/people/desks/hq/requests", BODIES["requests"])  # whichever tests ran here before
    content = call(shared_service, TABLE[key], OWNER, **body_values).json()
    assert set(EXAMPLES[key]) == set(content)
    for name, part in EXAMPLES[key].items():
        if isinstance(part, list) and part and isinstance(part[0], dict) and content[name] and name not in FREE:
            assert set(part[0]) == set(content[name][0])
    described = shared_service.client.get("/openapi.json").json()["paths"][key[1]][key[0].lower()]
    assert any(
        "example" in response.get("content", {}).get("application/json", {})
        for response in described["responses"].values()
    )


def test_every_response_has_a_model_and_every_example_has_its_form(shared_service: RunningService) -> None:
    routes = {route.rule.key: route for route in guarded_routes(shared_service.app) if route.rule.tag != "pages"}
    described = shared_service.client.get("/openapi.json").json()["paths"]
    for (method, path), route in routes.items():
        sent = next(kinds for status, kinds in described[path][method.lower()]["responses"].items() if status[0] == "2")
        for kind, content in sent["content"].items():
            if kind == "application/json":
                assert {"$ref", "anyOf"} & set(content["schema"]) or path.endswith("/risk/code"), (method, path)
        if (method, path) in EXAMPLES:
            assert mismatch(route, json.dumps(EXAMPLES[method, path]).encode()) == ""


def test_response_of_another_form_is_noticed(shared_service: RunningService) -> None:
    route = next(route for route in guarded_routes(shared_service.app) if route.rule.path == "/v1/me")
    me = shared_service.get("/v1/me").json()
    assert mismatch(route, json.dumps(me).encode()) == ""
    for wrong in ({**me, "more": 1}, {**me, "name": 3}, {name: value for name, value in me.items() if name != "role"}):
        assert "/v1/me" in mismatch(route, json.dumps(wrong).encode())


def test_examples_of_selections_have_the_fields_of_real_responses(tmp_path: Path) -> None:
    people = policy(epsilon="1000")
    hiding = Hiding(reveals="age", about="town", mix="table")
    with run_service(
        str(tmp_path / "l"), policies=(replace(people, concealments={}, hidings={"hq": hiding}),)
    ) as service:
        opened = call(service, TABLE["POST", SELECTIONS], OWNER).json()
        listed = call(service, TABLE["GET", SELECTIONS], ANALYST).json()
    assert set(EXAMPLES["POST", SELECTIONS]) == set(opened)
    assert listed == {"selections": [opened]}


def test_respondent_can_access_only_their_own_record(fresh_service: RunningService) -> None:
    base = "/v1/data/people/desks/hq"
    for path, body in (("requests", {"keys": [f"{SECRET}0008"]}), ("status", {"key": f"{SECRET}0008"})):
        assert fresh_service.post(f"{base}/{path}", body, RESPONDENT).status_code == 403
    two = {"keys": [f"{SECRET}0007", f"{SECRET}0008"]}
    assert fresh_service.post(f"{base}/requests", two, RESPONDENT).status_code == 403
    content = fresh_service.post(f"{base}/requests", {"keys": [f"{SECRET}0007"]}, RESPONDENT).json()
    assert content["outcomes"][0]["outcome"] in ("released", "deferred")


def test_owner_of_one_data_set_has_no_access_to_others(fresh_service: RunningService) -> None:
    token = fresh_service.post("/v1/tokens", {"role": OWNER, "name": "otto", "dataset": "others"}).json()["token"]
    fresh_service.tokens["otto"] = token
    fresh_service.post("/v1/data/people/answers", BODIES["answers"])
    assert [dataset["name"] for dataset in fresh_service.get("/v1/data", "otto").json()["datasets"]] == ["others"]
    assert fresh_service.get("/v1/data/people", "otto").status_code == 403
    assert {dataset["account"] for dataset in fresh_service.get("/v1/ledger/entries", "otto").json()["entries"]} == {
        "others"
    }
    assert fresh_service.get("/v1/ledger/entries?dataset=people", "otto").status_code == 403
    exported = fresh_service.get("/v1/ledger/export", "otto")
    assert exported.status_code == 200
    lines = [json.loads(line) for line in exported.text.splitlines()]
    assert lines[0] == {"tidegate-ledger": 1, "dataset": "others"}
    assert {line["account"] for line in lines[1:] if "account" in line} == {"others"}
    assert "people" not in exported.text
    assert [dataset["name"] for dataset in fresh_service.get("/v1/tokens", "otto").json()["tokens"]] == ["otto"]
    assert fresh_service.post("/v1/tokens", {"role": OWNER, "name": "more"}, "otto").status_code == 403
    assert fresh_service.call("DELETE", f"/v1/tokens/{fresh_service.tokens[OWNER][3:19]}", "otto").status_code == 404


def guarded_routes(app: Any) -> list[GuardedRoute]:
    return [route for route in all_routes(app) if isinstance(route, GuardedRoute)]


def all_routes(app: Any) -> list[Any]:
    """Return all routes, also those of included routers."""
    routes: list[Any] = []
    todo = list(app.routes)
    while todo:
        route = todo.pop()
        inside = list(getattr(getattr(route, "original_router", None), "routes", []))
        todo += inside
        routes += [] if inside else [route]
    return routes
