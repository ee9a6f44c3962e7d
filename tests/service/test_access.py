"""Tokens, sign-ins, CSRF and limits: which tokens are valid, when they stop working, and how guesses fail."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from support.service import FULL_COST, QUIET, RunningService, quiet_settings, run_service

from tidegate.errors import Unsupported
from tidegate.ledger.tokens import Tokens
from tidegate.service.access import tokens as slow
from tidegate.service.access.callers import Callers
from tidegate.service.access.csrf import HEADER, csrf_of
from tidegate.service.access.permissions import ANALYST, OWNER, RESPONDENT
from tidegate.service.settings import public_url

ASKED = {"sql": "SELECT COUNT(*) FROM people", "epsilon": 0.1}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


# Tokens


def test_token_is_shown_once_and_only_its_hash_is_stored(tmp_path: Path) -> None:
    with run_service(str(tmp_path / "all.ledger")) as service:
        response = service.post("/v1/tokens", {"role": "analyst", "name": "bob", "share": "0.5"})
        assert response.status_code == 201
        secret = response.json()["token"].split("_", 2)[2]
        assert secret not in service.get("/v1/tokens").text
    rows = list(sqlite3.connect(tmp_path / "all.ledger").execute("SELECT * FROM tidegate_tokens"))
    assert len(rows) == 4
    assert secret not in json.dumps(rows)


def test_slow_hash_is_scrypt_and_each_token_stores_its_cost(fresh_service: RunningService) -> None:
    full = {"n": 2**14, "r": 8, "p": 1}
    digest = hashlib.scrypt(b"secret", salt=bytes(16), **full, dklen=32).hex()
    assert slow.hash_secret("secret", "00" * 16, cost=full) == f"scrypt:16384:8:1:{digest}"
    assert full == FULL_COST
    tokens = Tokens(fresh_service.datasets.ledger.store)
    assert slow.verify_token(tokens, fresh_service.tokens[OWNER])
    slow.COST.update(n=2**5)  # the cost rises; who has a token still comes in
    assert slow.verify_token(tokens, fresh_service.tokens[OWNER])
    slow.COST.update(n=2**4)


def test_invalid_token_takes_the_same_work_as_a_valid_one(
    fresh_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    true_hash, true_find = slow.hash_secret, Tokens.find
    monkeypatch.setattr(
        slow, "hash_secret", lambda *arguments, **cost: done.append("hash") or true_hash(*arguments, **cost)
    )  # type: ignore[func-returns-value]
    monkeypatch.setattr(Tokens, "find", lambda self, name: done.append("find") or true_find(self, name))  # type: ignore[func-returns-value]
    tokens = Tokens(fresh_service.datasets.ledger.store)
    right = fresh_service.tokens[OWNER]
    work = {}
    for name, arguments in {
        "right": right,
        "wrong secret": right[:-1] + ("a" if right[-1] != "a" else "b"),
        "unknown id": "tg_" + "0" * 16 + right[19:],
        "no form": "letmein",
        "empty": "",
        "endless": "tg_" + "a" * 10_000,
    }.items():
        done.clear()
        result = slow.verify_token(tokens, arguments)
        assert (result is not None) == (name == "right")
        work[name] = list(done)
    assert set(map(tuple, work.values())) == {("find", "hash")}


def test_revoked_token_is_not_valid(fresh_service: RunningService) -> None:
    assert fresh_service.get("/v1/me", ANALYST).status_code == 200
    revoked = fresh_service.call("DELETE", f"/v1/tokens/{fresh_service.tokens[ANALYST][3:19]}", OWNER)
    assert revoked.json()["revoked"]
    assert fresh_service.get("/v1/me", ANALYST).status_code == 401


def test_token_revoked_by_another_process_fails_after_a_second(
    fresh_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fresh_service.get("/v1/me", ANALYST).status_code == 200
    Tokens(fresh_service.datasets.ledger.store).revoke(fresh_service.tokens[ANALYST][3:19])
    monkeypatch.setattr("tidegate.service.access.callers.FRESH", -1.0)  # as if the second were over
    assert fresh_service.get("/v1/me", ANALYST).status_code == 401


def test_token_expires(fresh_service: RunningService) -> None:
    content = fresh_service.post("/v1/tokens", {"role": "analyst", "name": "brief", "days": 1e-9}).json()
    assert fresh_service.client.get("/v1/me", headers=bearer(content["token"])).status_code == 401


def test_remembered_token_is_not_hashed_again_or_confused_with_another(fresh_service: RunningService) -> None:
    callers: Callers = fresh_service.app.state.guard.callers
    fresh_service.get("/v1/me", OWNER)
    assert callers.find_remembered(fresh_service.tokens[OWNER], cookie=False)
    assert callers.find_remembered(fresh_service.tokens[OWNER] + "x", cookie=False) is None
    assert callers.find_remembered(fresh_service.tokens[OWNER], cookie=True) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"role": "public", "name": "x"},
        {"role": "owner", "name": ""},
        {"role": "owner", "name": "a\nb"},
        {"role": "respondent", "name": "x"},
        {"role": "respondent", "name": "x", "record": "7"},
        {"role": "analyst", "name": "x", "record": "7"},
        {"role": "owner", "name": "x", "share": "1"},
        {"role": "analyst", "name": "x", "share": "-1"},
        {"role": "analyst", "name": "x", "days": 0},
    ],
)
def test_invalid_token_settings_are_refused(shared_service: RunningService, settings: dict[str, Any]) -> None:
    assert shared_service.post("/v1/tokens", settings).status_code == 422
    with pytest.raises(Unsupported):
        slow.make_token(Tokens(shared_service.datasets.ledger.store), **settings)


# Sign-in


def test_sign_in_cookie_is_unavailable_to_scripts_and_other_sites(fresh_service: RunningService) -> None:
    response = fresh_service.client.post("/v1/sign-in", json={"token": fresh_service.tokens[OWNER]})
    assert response.json()["role"] == OWNER
    words = response.headers["set-cookie"].lower()
    assert "httponly" in words
    assert "samesite=strict" in words
    assert "secure" not in words, "on loopback"
    assert fresh_service.client.get("/v1/me").json()["csrf"] == response.json()["csrf"]


def test_secure_cookie_is_limited_to_https_and_this_host(tmp_path: Path) -> None:
    with run_service(str(tmp_path / "all.ledger"), settings=quiet_settings(public_url=GATE)) as service:
        response = service.client.post("/v1/sign-in", json={"token": service.tokens[OWNER]})
        assert response.headers["set-cookie"].startswith("__Host-tidegate=")
        assert "Secure" in response.headers["set-cookie"]
        assert "max-age" in response.headers["strict-transport-security"]


GATE = "https://gate.example.org"


def test_public_url_decides_cookie_hosts_and_links(tmp_path: Path) -> None:
    """A proxy with a certificate runs on the same machine and sends requests over http on loopback."""
    settings = quiet_settings(public_url=GATE)
    with run_service(str(tmp_path / "all.ledger"), settings=settings) as service:
        proxied = {"Host": "gate.example.org"}
        signed = service.client.post("/v1/sign-in", json={"token": service.tokens[OWNER]}, headers=proxied)
        assert signed.headers["set-cookie"].startswith("__Host-tidegate=")
        assert "Secure" in signed.headers["set-cookie"]
        assert "max-age" in signed.headers["strict-transport-security"]
        response = service.post("/v1/data/people/previews", ASKED, headers=proxied)
        assert GATE in response.json()["code"]["Python"]
        for host in ("evil.example.org", "gate.example.org.evil.example", ""):
            reply = service.get("/health", headers={"Host": host})
            assert (reply.status_code, reply.json()["code"]) == (421, "not-there"), host
        for host in ("gate.example.org:443", "GATE.example.org", "127.0.0.1:8480", "localhost", "[::1]:8480"):
            assert service.get("/health", headers={"Host": host}).status_code == 200, host


def test_service_without_public_url_is_for_loopback_only(fresh_service: RunningService) -> None:
    body = {"token": fresh_service.tokens[OWNER]}
    for host in ("gate.example.org", "10.1.2.3:8480", "127.0.0.1.evil.example", ""):
        response = fresh_service.client.post("/v1/sign-in", json=body, headers={"Host": host})
        assert response.status_code == 421, host
        assert "--public-url" in response.json()["do"]
        assert "set-cookie" not in response.headers
    for host in ("127.0.0.1:8480", "localhost:8480", "[::1]:8480"):
        assert fresh_service.client.post("/v1/sign-in", json=body, headers={"Host": host}).status_code == 200, host


@pytest.mark.parametrize(
    "text",
    [
        "gate.example.org",
        "http://gate.example.org",
        "https://",
        "https://gate.example.org/pri vacy",
        "https://gate.example.org//privacy",
        "https://gate.example.org/a/../b",
        'https://gate.example.org/"onload=',
        "https://gate.example.org/console",
        "https://gate.example.org/v1/privacy",
        "https://gate.example.org/data",
        "https://a:b@gate.example.org",
        "https://gate.example.org?x=1",
        "https://gate.example.org:port",
        "ftp://gate.example.org",
    ],
)
def test_public_url_that_is_not_a_safe_origin_is_refused(text: str) -> None:
    with pytest.raises(Unsupported, match="--public-url"):
        public_url(text)


def test_public_url_is_reduced_to_an_origin_and_a_path() -> None:
    assert public_url("https://Gate.Example.org/Privacy/") == f"{GATE}/Privacy"
    assert public_url("https://gate.example.org/a/b.c") == f"{GATE}/a/b.c"
    assert public_url("https://Gate.Example.org/") == GATE
    assert public_url("https://gate.example.org:8443") == "https://gate.example.org:8443"
    assert public_url("http://localhost:9000") == "http://localhost:9000"


def form_of(service: RunningService) -> dict[str, str]:
    """Return the hidden fields of the sign-in form, as a browser without scripts reads them."""
    page = service.client.get("/console/sign-in?next=/console/ledger", headers={"Accept": "text/html"})
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.text))


def test_sign_in_form_works_without_scripts(fresh_service: RunningService) -> None:
    fields = form_of(fresh_service)
    sent = fresh_service.client.post(
        "/console/sign-in", data={**fields, "token": f" {fresh_service.tokens[OWNER]} "}, follow_redirects=False
    )
    assert (sent.status_code, sent.headers["location"]) == (303, "/console/ledger")
    assert fresh_service.client.get("/v1/me").json()["name"] == "olga"


def test_sign_in_form_redirects_respondent_to_their_record(fresh_service: RunningService) -> None:
    fields = form_of(fresh_service)
    sent = fresh_service.client.post(
        "/console/sign-in", data={**fields, "token": fresh_service.tokens[RESPONDENT]}, follow_redirects=False
    )
    assert sent.headers["location"] == "/console/record"


def test_sign_in_form_of_another_site_is_refused(fresh_service: RunningService) -> None:
    fields = form_of(fresh_service)
    token = {"token": fresh_service.tokens[OWNER]}
    for wrong in ({}, {"csrf": ""}, {"csrf": "0" * 64}, {"csrf": csrf_of("another")}):
        sent = fresh_service.client.post("/console/sign-in", data={**fields, "csrf": "", **wrong, **token})
        assert sent.status_code == 422
        assert "tidegate=" not in sent.headers.get("set-cookie", "")
    fresh_service.client.cookies.clear()  # SameSite=Strict: a form of another site comes without the cookie
    assert fresh_service.client.post("/console/sign-in", data={**fields, **token}).status_code == 422


def test_sign_in_form_shows_the_error_without_quoting_input(fresh_service: RunningService) -> None:
    fields = form_of(fresh_service)
    wrong = "tg_" + "0" * 16 + "_" + "a" * 43
    sent = fresh_service.client.post("/console/sign-in", data={**fields, "token": wrong})
    assert sent.status_code == 401
    assert 'role="alert"' in sent.text
    assert wrong not in sent.text
    assert form_of(fresh_service)["csrf"] == fields["csrf"], "the form of another tab stays valid"


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "target", ["https://evil.example", "//evil.example", "/console//evil", "/v1/data", "/console\n"]
)
def test_sign_in_form_redirects_only_to_console_pages(fresh_service: RunningService, target: str) -> None:
    fields = {**form_of(fresh_service), "token": fresh_service.tokens[OWNER], "next": target}
    sent = fresh_service.client.post("/console/sign-in", data=fields, follow_redirects=False)
    assert sent.headers["location"] == "/console"


def test_change_by_cookie_needs_the_csrf_header(fresh_service: RunningService) -> None:
    signed = fresh_service.client.post("/v1/sign-in", json={"token": fresh_service.tokens[OWNER]})
    cookie = signed.cookies["tidegate"]
    for wrong in ({}, {HEADER: ""}, {HEADER: "0" * 64}, {HEADER: csrf_of("another")}):
        assert fresh_service.client.post("/v1/data/people/answers", json=ASKED, headers=wrong).status_code == 403
    right = {HEADER: signed.json()["csrf"]}
    assert csrf_of(cookie) == right[HEADER]
    assert fresh_service.client.post("/v1/data/people/answers", json=ASKED, headers=right).status_code == 200
    assert fresh_service.client.get("/v1/data").status_code == 200, "reading needs no header"


def test_sign_out_invalidates_the_cookie_everywhere(fresh_service: RunningService) -> None:
    signed = fresh_service.client.post("/v1/sign-in", json={"token": fresh_service.tokens[OWNER]})
    stolen = {"Cookie": f"tidegate={signed.cookies['tidegate']}"}
    fresh_service.client.post("/v1/sign-out", headers={HEADER: signed.json()["csrf"]})
    fresh_service.client.cookies.clear()
    assert fresh_service.client.get("/v1/me", headers=stolen).status_code == 401


def test_sign_in_ends_when_its_token_is_revoked(fresh_service: RunningService) -> None:
    fresh_service.client.post("/v1/sign-in", json={"token": fresh_service.tokens[ANALYST]})
    assert fresh_service.client.get("/v1/me").json()["name"] == "ana"
    fresh_service.call("DELETE", f"/v1/tokens/{fresh_service.tokens[ANALYST][3:19]}", OWNER)
    assert fresh_service.client.get("/v1/me").status_code == 401


def test_respondent_can_sign_in_and_request_their_record(fresh_service: RunningService) -> None:
    from support.service import SECRET

    signed = fresh_service.client.post("/v1/sign-in", json={"token": fresh_service.tokens[RESPONDENT]})
    headers = {HEADER: signed.json()["csrf"]}
    body = {"keys": [f"{SECRET}0007"]}
    response = fresh_service.client.post("/v1/data/people/desks/hq/requests", json=body, headers=headers)
    assert response.json()["outcomes"][0]["outcome"] in ("released", "deferred")


# Other sites and sizes


def test_other_site_cannot_sign_a_visitor_in(fresh_service: RunningService) -> None:
    """A form can send some content types to other sites without permission, but not JSON."""
    body = json.dumps({"token": fresh_service.tokens[ANALYST]})
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        response = fresh_service.client.post("/v1/sign-in", content=body, headers={"Content-Type": kind})
        assert response.status_code == 422
        assert "set-cookie" not in response.headers


def test_too_large_sign_in_is_refused(shared_service: RunningService) -> None:
    assert QUIET.largest_body == 64 * 1024
    assert shared_service.client.post("/v1/sign-in", content=b"x" * (64 * 1024 + 1)).status_code == 413
