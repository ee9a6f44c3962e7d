"""Sessions, one-time links, access entries and log lines of a running service."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ledger.charges import at_once
from support.service import SECRET, TOWNS, RunningService, quiet_settings, run_service

from tidegate.ledger import explain_entries
from tidegate.ledger.schema import signins
from tidegate.ledger.tokens import Tokens, stamp
from tidegate.service.access.activity import LONGEST, Activity
from tidegate.service.access.csrf import HEADER
from tidegate.service.access.permissions import ANALYST, OWNER, RESPONDENT
from tidegate.service.logs import to_stream


def sentences(service: RunningService) -> list[str]:
    return [says for entry, says in explain_entries(service.datasets.ledger.entries()) if entry.kind == "access"]


def sign_in(service: RunningService, role: str = OWNER) -> dict[str, str]:
    """Sign in; return the header that changes need."""
    response = service.client.post("/v1/sign-in", json={"token": service.tokens[role]})
    assert response.status_code == 200, response.text
    return {HEADER: response.json()["csrf"]}


def set_back(service: RunningService, *, minutes: float) -> None:
    """Set the last requests of all sessions back."""
    service.app.state.guard.callers.activity.write()
    past = stamp(datetime.now(UTC) - timedelta(minutes=minutes))
    with service.datasets.ledger.store.engine.begin() as connection:
        connection.execute(signins.update().values(seen=past))
    service.app.state.guard.callers.forget()


# Idle timeout


def test_session_ends_after_the_idle_time(fresh_service: RunningService) -> None:
    sign_in(fresh_service)
    set_back(fresh_service, minutes=29.9)
    assert fresh_service.client.get("/v1/me").status_code == 200, "and this request counts"
    set_back(fresh_service, minutes=30.1)
    assert fresh_service.client.get("/v1/me").status_code == 401


def test_request_of_another_process_prolongs_a_session(fresh_service: RunningService) -> None:
    sign_in(fresh_service)
    set_back(fresh_service, minutes=29)
    callers = fresh_service.app.state.guard.callers
    fresh_service.client.get("/v1/me")
    callers.activity.write()
    assert callers.activity.last_seen(next(iter(callers.sessions.all()))[0].id) is None
    session, _ = callers.sessions.all()[0]
    assert datetime.now(UTC) - datetime.fromisoformat(session.seen) < timedelta(seconds=30), "all processes read this"


def test_unattended_request_does_not_prolong_a_session(fresh_service: RunningService) -> None:
    sign_in(fresh_service)
    set_back(fresh_service, minutes=29)
    assert fresh_service.client.get("/v1/me", headers={"X-Unattended": "yes"}).status_code == 200
    fresh_service.app.state.guard.callers.activity.write()
    session, _ = fresh_service.app.state.guard.callers.sessions.all()[0]
    assert datetime.now(UTC) - datetime.fromisoformat(session.seen) > timedelta(minutes=28)


def test_idle_time_is_a_setting_and_tokens_have_none(tmp_path: Path) -> None:
    with run_service(str(tmp_path / "a.ledger"), settings=quiet_settings(idle_minutes=5)) as service:
        sign_in(service)
        set_back(service, minutes=6)
        assert service.client.get("/v1/me").status_code == 401
        service.client.cookies.clear()
        assert service.get("/v1/me", OWNER).status_code == 200


# Sessions


def test_owner_lists_and_ends_sessions(fresh_service: RunningService) -> None:
    sign_in(fresh_service, ANALYST)
    cookie = fresh_service.client.cookies["tidegate"]
    fresh_service.client.cookies.clear()
    headers = sign_in(fresh_service, OWNER)
    listed = fresh_service.client.get("/v1/sessions").json()["sessions"]
    assert sorted((row["name"], row["own"], row["method"]) for row in listed) == [
        ("ana", False, "token"),
        ("olga", True, "token"),
    ]
    assert cookie not in json.dumps(listed)
    [ana] = [row["id"] for row in listed if row["name"] == "ana"]
    assert fresh_service.client.delete(f"/v1/sessions/{ana}", headers=headers).status_code == 200
    assert fresh_service.client.delete(f"/v1/sessions/{ana}", headers=headers).status_code == 404
    fresh_service.client.cookies.clear()
    assert fresh_service.client.get("/v1/me", headers={"Cookie": f"tidegate={cookie}"}).status_code == 401
    assert sentences(fresh_service)[-1] == "olga ended a session of ana."


def test_owner_of_one_data_set_sees_only_its_sessions_and_tokens(fresh_service: RunningService) -> None:
    sign_in(fresh_service, ANALYST)
    others = fresh_service.post("/v1/tokens", {"role": "owner", "name": "otto", "dataset": "others"}).json()
    bearer = {"Authorization": f"Bearer {others['token']}"}
    fresh_service.client.cookies.clear()
    [listed] = [row["id"] for row in fresh_service.get("/v1/sessions").json()["sessions"]]
    assert fresh_service.client.get("/v1/sessions", headers=bearer).json()["sessions"] == []
    assert fresh_service.client.delete(f"/v1/sessions/{listed}", headers=bearer).status_code == 404
    ana = fresh_service.tokens[ANALYST][3:19]
    assert fresh_service.client.post("/v1/links", json={"token": ana}, headers=bearer).status_code == 404


# One-time links


def secret_of(service: RunningService, **body: Any) -> str:
    response = service.post("/v1/links", body)
    assert response.status_code == 201, response.text
    return str(response.json()["link"].partition("#")[2])


def test_link_signs_in_once_without_a_token(fresh_service: RunningService) -> None:
    link = fresh_service.post(
        "/v1/links", {"user": {"role": "analyst", "name": "nina", "dataset": "people", "days": 7}}
    )
    content = link.json()
    assert (content["method"], content["maker"], "token" in content) == ("link", "olga", False)
    secret = content["link"].partition("#")[2]
    assert content["link"].startswith("http://127.0.0.1/console/sign-in#tgl_")
    first = fresh_service.client.post("/v1/sign-in", json={"token": secret})
    assert (first.status_code, first.json()["name"]) == (200, "nina")
    assert fresh_service.client.get("/v1/me").json()["dataset"] == "people"
    second = fresh_service.client.post("/v1/sign-in", json={"token": secret})
    assert second.status_code == 401
    assert secret not in second.text
    for wrong in (secret, f"tg_{content['id']}_{'a' * 43}"):
        headers = {"Authorization": f"Bearer {wrong}"}
        assert fresh_service.client.get("/v1/me", headers=headers).status_code == 401, "a link is no token"


def test_link_expires_after_15_minutes(fresh_service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    content = fresh_service.post("/v1/links", {"token": fresh_service.tokens[ANALYST][3:19]}).json()
    left = datetime.fromisoformat(content["link_expires"]) - datetime.now(UTC)
    assert timedelta(minutes=14) < left <= timedelta(minutes=15)
    monkeypatch.setattr("tidegate.service.access.links.MINUTES", -1)
    late = secret_of(fresh_service, token=fresh_service.tokens[ANALYST][3:19])
    assert fresh_service.client.post("/v1/sign-in", json={"token": late}).status_code == 401


def test_two_uses_of_a_link_at_the_same_time_give_one_session(fresh_service: RunningService) -> None:
    for _ in range(5):
        secret, statuses = secret_of(fresh_service, token=fresh_service.tokens[ANALYST][3:19]), []

        def use(worker: int, secret: str = secret, statuses: list[int] = statuses) -> None:
            statuses.append(fresh_service.client.post("/v1/sign-in", json={"token": secret}).status_code)

        at_once(use, threads=4)
        assert sorted(statuses) == [200, 401, 401, 401]


def test_link_of_a_revoked_user_and_unclear_links_are_refused(fresh_service: RunningService) -> None:
    name = fresh_service.tokens[ANALYST][3:19]
    secret = secret_of(fresh_service, token=name)
    fresh_service.call("DELETE", f"/v1/tokens/{name}", OWNER)
    assert fresh_service.client.post("/v1/sign-in", json={"token": secret}).status_code == 401
    for body in ({}, {"token": name}, {"token": name, "user": {"role": "analyst", "name": "x"}}):
        assert fresh_service.post("/v1/links", body).status_code == 422
    assert fresh_service.post("/v1/links", {"token": "0" * 16}).status_code == 404
    assert fresh_service.post("/v1/links", {"user": {"role": "owner", "name": "x"}}, RESPONDENT).status_code == 403


def test_secret_of_a_link_is_stored_as_a_hash(tmp_path: Path) -> None:
    path = tmp_path / "all.ledger"
    with run_service(str(path)) as service:
        secret = secret_of(service, token=service.tokens[ANALYST][3:19])
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes()


# Entries


def test_access_is_recorded_with_the_name_of_the_maker(fresh_service: RunningService) -> None:
    headers = sign_in(fresh_service)
    client = fresh_service.client
    name = client.post("/v1/tokens", json={"role": "analyst", "name": "nina", "share": "0.5"}, headers=headers).json()[
        "id"
    ]
    client.delete(f"/v1/tokens/{name}", headers=headers)
    assert sentences(fresh_service)[-3:] == [
        "olga signed in with a token.",
        f"olga created the access {name} of nina (analyst of all data sets), with the budget share 0.5.",
        f"olga revoked the access {name} of nina (analyst of all data sets), with the budget share 0.5.",
    ]
    listed = client.get("/v1/ledger/entries?kind=access&who=olga&newest=true").json()["entries"]
    assert [entry["body"]["action"] for entry in listed] == ["revoked", "created", "sign-in"]
    assert client.get("/v1/ledger/verification").json()["holds"]
    assert name in client.get("/v1/ledger/export").text


def test_refusals_are_counted_and_bounded(fresh_service: RunningService) -> None:
    """An attacker who sends 10,000 wrong tokens in a minute, and goes on for a day, adds 30 entries at most."""
    now = [0.0]
    callers = fresh_service.app.state.guard.callers
    activity = Activity(callers.tokens, callers.sessions, clock=lambda: now[0])
    before = len(sentences(fresh_service))
    for minute in range(24 * 60):
        now[0] = 60.0 * minute
        for number in range(5):
            activity.refuse("token", address=f"2001:db8:{minute:x}:{number:x}::1")
        activity.write()
    added = sentences(fresh_service)[before:]
    assert 24 <= len(added) <= 30
    activity.write(closing=True)
    counts = [entry.content()["counts"]["token"] for entry in _refusals(fresh_service)]
    assert sum(counts) == 24 * 60 * 5, "none is lost"
    now[0] += 2 * LONGEST
    activity.write()
    activity.refuse("token", address="10.0.0.1")
    now[0] += 61
    activity.write()
    assert len(_refusals(fresh_service)) == len(counts) + 1, (
        "after an hour of silence the first is written after a minute"
    )


def _refusals(service: RunningService) -> list[Any]:
    entries = service.datasets.ledger.entries()
    return [entry for entry in entries if entry.kind == "access" and entry.content()["action"] == "refused"]


def test_refused_requests_are_counted_by_reason_without_addresses(fresh_service: RunningService) -> None:
    wrong = {"Authorization": "Bearer tg_" + "0" * 16 + "_" + "a" * 43}
    for _ in range(3):
        fresh_service.client.get("/v1/me", headers=wrong)
    fresh_service.get("/v1/ledger", ANALYST)
    fresh_service.get("/v1/data/others", ANALYST)
    fresh_service.client.post("/v1/sign-in", json={"token": "tgl_" + "a" * 43})
    fresh_service.app.state.guard.callers.activity.write(closing=True)
    [entry] = _refusals(fresh_service)
    assert entry.content()["counts"] == {"token": 3, "permission": 2, "link": 1}
    assert (entry.content()["names"], entry.content()["networks"]) == (["ana"], 1)
    assert "testclient" not in entry.body


def test_sign_ins_of_one_user_are_limited(tmp_path: Path) -> None:
    settings = quiet_settings(sign_in_rate=0.001, sign_in_burst=3)
    with run_service(str(tmp_path / "a.ledger"), settings=settings) as service:
        body = {"token": service.tokens[ANALYST]}
        statuses = [service.client.post("/v1/sign-in", json=body).status_code for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]


def test_last_use_is_a_day_and_written_once(fresh_service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[Any] = []
    true = Tokens.note_uses
    monkeypatch.setattr(Tokens, "note_uses", lambda self, names, day: writes.append(day) or true(self, names, day=day))
    activity = fresh_service.app.state.guard.callers.activity
    for _ in range(3):
        fresh_service.get("/v1/me", ANALYST)
        activity.write()
    assert len(writes) == 1
    uses = {token["name"]: token["used"] for token in fresh_service.get("/v1/tokens").json()["tokens"]}
    assert uses == {"olga": None, "ana": datetime.now(UTC).date().isoformat(), "rosa": None}


# Log lines


def test_log_of_a_journey_has_token_ids_and_request_ids_and_no_value(tmp_path: Path) -> None:
    import logging

    root = (logging.root.handlers, logging.root.level)
    log = io.StringIO()
    try:
        to_stream(log)
        with run_service(str(tmp_path / "all.ledger")) as service:
            values = _journey(service)
    finally:
        logging.root.handlers = root[0]
        logging.root.setLevel(root[1])
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    requests = [line for line in lines if line["event"] == "request"]
    assert len(requests) > 10
    assert all(len(line["request"]) == 16 for line in requests)
    known = {service.tokens[role][3:19] for role in (OWNER, ANALYST, RESPONDENT)}
    assert known <= {line["token"] for line in requests}
    assert {line["token"] for line in requests if line["role"] == "public"} == {""}
    for value in (*values, *service.tokens.values(), SECRET, *TOWNS, "olga", '"ana"', "rosa", "nina", "wrong-name"):
        assert value not in log.getvalue(), value


def _journey(service: RunningService) -> list[str]:
    """Do a bit of everything, also what is refused; return secrets that appeared on the way."""
    headers = sign_in(service)
    client = service.client
    created = client.post(
        "/v1/tokens", json={"role": "analyst", "name": "nina", "dataset": "people"}, headers=headers
    ).json()
    link = client.post("/v1/links", json={"token": created["id"]}, headers=headers).json()["link"].partition("#")[2]
    cookies = [client.cookies["tidegate"]]
    client.post("/v1/sign-in", json={"token": link})
    cookies.append(client.cookies["tidegate"])
    client.cookies.clear()
    query = {"sql": "SELECT COUNT(*) FROM people WHERE town = 'Aby'", "epsilon": 0.1, "anyway": True}
    assert service.post("/v1/data/people/answers", query, ANALYST).status_code == 200
    service.post(
        "/v1/data/people/answers", {**query, "sql": "SELECT COUNT(*) FROM people WHERE town = 'wrong-name'"}, ANALYST
    )
    service.post("/v1/data/people/desks/hq/requests", {"keys": [f"{SECRET}0007"]}, RESPONDENT)
    service.post("/v1/data/people/desks/hq/requests", {"keys": [f"{SECRET}0008"]}, RESPONDENT)
    service.get(f"/v1/data/{SECRET}", ANALYST)
    client.get("/v1/me", headers={"Authorization": "Bearer tg_wrong-name"})
    client.post("/v1/sign-in", json={"token": "tgl_" + "b" * 43})
    client.get("/console/sign-in/oidc/callback?code=wrong-name&state=wrong-name")
    service.get("/v1/ledger/verification")
    return [created["token"], link, *cookies, "b" * 43]
