"""Sign-in with OpenID Connect, against a real provider process: what is accepted, what is refused, and when sessions end."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import pytest
from sqlalchemy import text
from support.console_service import on_loopback
from support.identity_provider import CLIENT, SECRET, IdentityProvider, free_port, run_provider
from support.service import QUIET, policy, table

from tidegate.errors import MissingExtra, Unsupported
from tidegate.ledger import explain_entries
from tidegate.ledger.tokens import Tokens, stamp
from tidegate.service.access.groups import Grant, check_oidc, client_secret, grant_of, groups_in, read_groups
from tidegate.service.access.tokens import make_token
from tidegate.service.app import create_app
from tidegate.service.datasets import ServedDatasets
from tidegate.service.settings import Settings
from tidegate.session import Session

GROUPS = ("stewards=owner", "research=analyst:others,people@0.5", "guests=analyst:people@0.1")
HTML = {"Accept": "text/html"}


@dataclass
class Gate:
    """A service whose users sign in at a provider."""

    address: str
    provider: IdentityProvider
    app: Any
    datasets: ServedDatasets

    def visitor(self) -> httpx.Client:
        return httpx.Client(base_url=self.address, headers=HTML)

    def sentences(self) -> list[str]:
        entries = explain_entries(self.datasets.ledger.entries())
        return [says for entry, says in entries if entry.kind == "access"]


@contextmanager
def gate_in(folder: Path, **settings: Any) -> Iterator[Gate]:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    ledger = str(folder / "all.ledger")
    sessions = [Session(served, table=table(), ledger=ledger, folder=folder) for served in (policy(), policy("others"))]
    datasets = ServedDatasets(sessions)
    with run_provider(address) as provider:
        oidc = {"oidc_issuer": provider.issuer, "oidc_client": CLIENT, "oidc_name": "Example University"}
        wishes = {"oidc_scope": "openid profile groups", "oidc_groups": GROUPS}
        app = create_app(replace(QUIET, **oidc, **wishes, **settings), datasets)
        with on_loopback(app, port=port) as url:
            assert url == address
            yield Gate(address, provider, app, datasets)


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDEGATE_OIDC_SECRET", SECRET)
        with gate_in(tmp_path_factory.mktemp("gate")) as running:
            yield running


def callback_of(visitor: httpx.Client, user: str, *, next_page: str = "/console") -> str:
    """Sign in at the provider with its real forms; return the URL to which it sends the browser back."""
    begin = visitor.get(f"/console/sign-in/oidc?next={next_page}")
    assert begin.status_code == 303, begin.text
    url = begin.headers["location"]
    with httpx.Client() as browser:
        response = browser.get(url)
        for _ in range(10):
            while response.is_redirect:
                url = urljoin(str(response.url), response.headers["location"])
                if "/oidc/callback" in url:
                    return url
                response = browser.get(url)
            action = re.search(r'action="([^"]+)"', response.text)
            assert action, response.text[:500]
            prompt = "login" if 'name="login"' in response.text else "consent"
            fields = {"prompt": prompt, **({"login": user, "password": "any"} if prompt == "login" else {})}
            response = browser.post(urljoin(str(response.url), action[1]), data=fields)
    raise AssertionError("the provider did not send the browser back")


def sign_in(gate: Gate, user: str, **options: Any) -> tuple[httpx.Client, httpx.Response]:
    visitor = gate.visitor()
    return visitor, visitor.get(callback_of(visitor, user, **options))


def refusal_of(page: httpx.Response) -> str:
    """Return the sentence of the sign-in page that refuses; no session was started."""
    assert page.status_code == 401, page.text
    assert "tidegate=" not in page.headers.get("set-cookie", "").replace("tidegate-", "")
    sentence = re.search(r'<p class="what">([^<]*)</p>', page.text)
    assert sentence, page.text
    return sentence[1]


def test_user_signs_in_with_the_role_of_their_groups(gate: Gate) -> None:
    gate.provider.set(groups={"u1": ["research", "other"]}, names={"u1": "Nina  Nordahl\u0007"})
    visitor, page = sign_in(gate, "u1", next_page="/console/risk")
    assert page.status_code == 200
    assert 'content="0; url=/console/risk"' in page.text, "a page of our own leads on: the cookie is SameSite=Strict"
    assert "samesite=strict" in page.headers["set-cookie"].lower()
    me = visitor.get("/v1/me", headers={"Accept": "application/json"}).json()
    assert (me["role"], me["name"], me["dataset"], me["share"]) == ("analyst", "Nina Nordahl", "others,people", "0.5")
    names = [dataset["name"] for dataset in visitor.get("/v1/data").json()["datasets"]]
    assert names == ["people", "others"]
    assert visitor.get("/v1/data/nowhere").status_code == 403
    [user] = [token for token in Tokens(gate.datasets.ledger.store).all() if token.name == "Nina Nordahl"]
    assert user.identity == f"{gate.provider.issuer} u1"
    assert gate.sentences()[-2:] == [
        f"groups of Nina Nordahl created the access {user.id} of Nina Nordahl (analyst of others,people), with the budget share 0.5.",
        "Nina Nordahl signed in with their organization's account.",
    ]
    assert gate.datasets.ledger.verify().problems == []


def test_charge_of_a_user_carries_their_name_and_share(gate: Gate) -> None:
    gate.provider.set(groups={"u2": ["guests"]}, names={"u2": "Gustav"})
    visitor, _ = sign_in(gate, "u2")
    headers = {"X-CSRF-Token": visitor.get("/v1/me", headers={"Accept": "application/json"}).json()["csrf"]}
    body = {"sql": "SELECT COUNT(*) FROM people WHERE age > 30", "epsilon": 0.08, "anyway": True}
    assert visitor.post("/v1/data/people/answers", json=body, headers=headers).status_code == 200
    body = {"sql": "SELECT COUNT(*) FROM people WHERE age > 40", "epsilon": 0.08, "anyway": True}
    assert visitor.post("/v1/data/people/answers", json=body, headers=headers).status_code == 409, (
        "the share of the group"
    )
    assert str(gate.datasets.ledger.spent_by("people", "Gustav")) == "0.08"


def test_new_user_never_gets_the_name_of_another(gate: Gate) -> None:
    make_token(Tokens(gate.datasets.ledger.store), role="analyst", name="Ana Berg", dataset="people", share="0.2")
    gate.provider.set(groups={"u3": ["research"], "u4": ["research"]}, names={"u3": "Ana Berg", "u4": "Ana Berg"})
    names = []
    for user in ("u3", "u4", "u3"):
        visitor, _ = sign_in(gate, user)
        names.append(visitor.get("/v1/me", headers={"Accept": "application/json"}).json()["name"])
    assert names == ["Ana Berg 2", "Ana Berg 3", "Ana Berg 2"]
    gate.provider.set(names={"u3": "Renamed"})
    visitor, _ = sign_in(gate, "u3")
    assert visitor.get("/v1/me", headers={"Accept": "application/json"}).json()["name"] == "Ana Berg 2", (
        "so is spending"
    )


def test_user_without_a_known_group_is_refused(gate: Gate) -> None:
    gate.provider.set(groups={"u5": ["strangers"]})
    _, page = sign_in(gate, "u5")
    assert refusal_of(page) == "Your account is in no group that has access to this service."


def test_changed_groups_change_the_role_with_an_entry(gate: Gate) -> None:
    gate.provider.set(groups={"u6": ["guests"]}, names={"u6": "Greta"})
    sign_in(gate, "u6")
    gate.provider.set(groups={"u6": ["stewards", "guests"]})
    visitor, _ = sign_in(gate, "u6")
    assert visitor.get("/v1/ledger").status_code == 200, "an owner"
    assert any("changed the access" in says and "Greta (owner of all data sets)" in says for says in gate.sentences())


def test_wrong_state_and_foreign_browser_are_refused(gate: Gate) -> None:
    gate.provider.set(groups={"u7": ["research"]})
    visitor = gate.visitor()
    url = callback_of(visitor, "u7")
    reason = "This sign-in was refused: it was not started in this browser."
    assert refusal_of(gate.visitor().get(url)) == reason, "a link that somebody sent to the victim"
    state = parse_qs(urlsplit(url).query)["state"][0]
    assert refusal_of(visitor.get(url.replace(state, "x" * 43))) == reason
    assert refusal_of(visitor.get(url)) == reason, "the cookie of the sign-in is used once"


def test_replayed_code_is_refused(gate: Gate) -> None:
    gate.provider.set(groups={"u8": ["research"]})
    visitor = gate.visitor()
    url = callback_of(visitor, "u8")
    cookies = dict(visitor.cookies)
    assert visitor.get(url).status_code == 200
    again = httpx.Client(base_url=gate.address, cookies=cookies, headers=HTML)
    assert refusal_of(again.get(url)).startswith("This sign-in was refused: the provider refused it")


def test_wrong_secret_of_the_client_is_named_and_logged(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gate.provider.set(groups={"u8": ["research"]})
    monkeypatch.setenv("TIDEGATE_OIDC_SECRET", "another")
    with caplog.at_level(logging.WARNING, "tidegate.service"):
        visitor, page = sign_in(gate, "u8")
    visitor.close()
    assert refusal_of(page).endswith("does not accept the client id or the client secret of this service.")
    (line,) = [record for record in caplog.records if record.message == "provider-refused"]
    assert line.__dict__["facts"] == {"problem": "invalid_client"}


def test_response_of_another_issuer_is_refused(gate: Gate) -> None:
    gate.provider.set(groups={"u8": ["research"]})
    visitor = gate.visitor()
    url = callback_of(visitor, "u8").replace("iss=http%3A%2F%2Flocalhost", "iss=http%3A%2F%2Fevil.example")
    assert "evil" in url
    assert refusal_of(visitor.get(url)) == "This sign-in was refused: it came from another provider."


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("issuer", "InvalidClaimError"),
        ("audience", "InvalidClaimError"),
        ("expired", "ExpiredTokenError"),
        ("nonce", "InvalidClaimError"),
        ("none", "UnsupportedAlgorithmError"),
        ("key", "BadSignatureError"),
    ],
)
def test_false_identity_token_is_refused(gate: Gate, fault: str, error: str) -> None:
    gate.provider.set(groups={"u9": ["research"]}, fault=fault)
    try:
        _, page = sign_in(gate, "u9")
    finally:
        gate.provider.set(fault="")
    assert refusal_of(page) == f"This sign-in was refused: the provider&#39;s identity token is not valid ({error})."
    _, page = sign_in(gate, "u9")
    assert page.status_code == 200, "without the fault"


def test_clock_of_the_provider_can_be_a_minute_off(gate: Gate) -> None:
    gate.provider.set(groups={"u9": ["research"]}, fault="skewed")
    try:
        _, page = sign_in(gate, "u9")
    finally:
        gate.provider.set(fault="")
    assert page.status_code == 200


def test_rotated_keys_are_read_again(gate: Gate) -> None:
    gate.provider.set(groups={"u10": ["research"]})
    sign_in(gate, "u10")
    gate.provider.set(rotation=1)
    _, page = sign_in(gate, "u10")
    assert page.status_code == 200


def make_due(gate: Gate, *, lapsed: bool = False) -> None:
    """Set the times of all sessions as if the interval were over."""
    past = stamp(datetime.now(UTC) - timedelta(seconds=1))
    with gate.datasets.ledger.store.engine.begin() as connection:
        names = ", lapse = :past" if lapsed else ""
        connection.execute(text(f"UPDATE tidegate_signins SET renew = :past{names} WHERE renew <> ''"), {"past": past})
    gate.app.state.guard.callers.forget()


def test_session_ends_at_renewal_if_the_groups_no_longer_match(gate: Gate) -> None:
    gate.provider.set(groups={"u11": ["research"], "u12": ["research"]}, names={"u11": "Rut", "u12": "Siv"})
    (leaver, _), (stayer, _) = sign_in(gate, "u11"), sign_in(gate, "u12")
    gate.provider.set(groups={"u11": [], "u12": ["guests"]})
    assert leaver.get("/v1/data").status_code == 200, "until the renewal"
    make_due(gate)
    assert leaver.get("/v1/data").status_code == 401
    assert leaver.get("/v1/data").status_code == 401
    me = stayer.get("/v1/me", headers={"Accept": "application/json"}).json()
    assert (me["dataset"], me["share"]) == ("people", "0.1"), "the session goes on with what the groups allow now"
    for _ in range(3):  # refresh tokens rotate, and the stored one is the latest
        make_due(gate)
        assert stayer.get("/v1/data").status_code == 200


def test_tokens_of_the_provider_are_encrypted_with_the_cookie(gate: Gate) -> None:
    from tidegate.service.access.provider import derive_key, unseal

    gate.provider.set(groups={"u13": ["research"]})
    visitor, _ = sign_in(gate, "u13")
    with gate.datasets.ledger.store.reading() as connection:
        rows = [row.sealed for row in connection.execute(text("SELECT sealed FROM tidegate_signins"))]
    key = derive_key(visitor.cookies["tidegate"].encode(), b"tidegate provider tokens")
    opened = [content for content in (unseal(key, row) for row in rows) if content]
    assert len(opened) == 1
    assert set(opened[0]) == {"refresh_token", "id_token"}
    service_secret = derive_key(Tokens(gate.datasets.ledger.store).secret(), b"tidegate provider tokens")
    assert not any(unseal(service_secret, row) for row in rows), "the ledger's own secrets open none"


def test_sign_out_ends_the_session_at_the_provider_too(gate: Gate) -> None:
    gate.provider.set(groups={"u14": ["research"]})
    visitor, _ = sign_in(gate, "u14")
    headers = {"X-CSRF-Token": visitor.get("/v1/me", headers={"Accept": "application/json"}).json()["csrf"]}
    content = visitor.post("/v1/sign-out", json={}, headers=headers).json()
    assert content["next"].startswith(f"{gate.provider.issuer}/session/end?")
    assert httpx.get(content["next"]).status_code == 200, "the provider accepts the client, the hint and the way back"
    assert visitor.get("/v1/data").status_code == 401


def test_revoked_user_cannot_sign_in_again(gate: Gate) -> None:
    gate.provider.set(groups={"u15": ["research"]}, names={"u15": "Vera"})
    visitor, _ = sign_in(gate, "u15")
    tokens = Tokens(gate.datasets.ledger.store)
    [vera] = [token for token in tokens.all() if token.name == "Vera"]
    tokens.revoke(vera.id, user="olga")
    gate.app.state.guard.callers.forget()
    assert visitor.get("/v1/data").status_code == 401
    _, page = sign_in(gate, "u15")
    assert refusal_of(page) == "An owner revoked your access to this service."


def test_without_refresh_tokens_a_session_lasts_one_interval(gate: Gate) -> None:
    gate.provider.set(groups={"u16": ["research"]}, noRefresh=True)
    try:
        visitor, _ = sign_in(gate, "u16")
    finally:
        gate.provider.set(noRefresh=False)
    assert visitor.get("/v1/data").status_code == 200
    later = datetime.now(UTC) + timedelta(minutes=16)
    session = next(listed for listed, token in gate.app.state.guard.callers.sessions.all() if token.name == "u16")
    assert session.renew == ""
    assert session.over(later)


def test_provider_that_is_down_is_named_and_tokens_still_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_OIDC_SECRET", SECRET)
    with gate_in(tmp_path) as gate:
        gate.provider.set(groups={"u1": ["research"]}, names={"u1": "Nina"})
        visitor, _ = sign_in(gate, "u1")
        other = gate.visitor()
        url = callback_of(other, "u1")
        gate.provider.stop()
        assert "The sign-in provider does not respond." in other.get(url).text
        make_due(gate)
        assert visitor.get("/v1/data").status_code == 200, "the session goes on for one more interval"
        make_due(gate, lapsed=True)
        assert visitor.get("/v1/data").status_code == 401
        gate.app.state.oidc.provider._metadata = {}
        page = gate.visitor().get("/console/sign-in/oidc")
        assert page.status_code == 502
        assert "The sign-in provider does not respond." in page.text
        assert "sign in with a token or a link: they still work." in page.text
        token, _ = make_token(Tokens(gate.datasets.ledger.store), role="owner", name="olga")
        assert httpx.get(f"{gate.address}/v1/me", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_provider_of_another_issuer_is_refused(gate: Gate, tmp_path: Path) -> None:
    """The settings name the issuer with a slash at the end: it is another issuer, however similar."""
    from tidegate.service.access.provider import Provider

    settings = replace(gate.app.state.settings, oidc_issuer=f"{gate.provider.issuer}/")
    with pytest.raises(Exception, match="another issuer than the one in the settings"):
        Provider(settings, b"key").begin("http://127.0.0.1/x", "/console")


# Settings


def test_groups_stand_for_roles_data_sets_and_shares() -> None:
    mapping = read_groups([*GROUPS, "all=analyst", "CN=Stats,OU=x=owner:people", "free=analyst:shop"])
    assert grant_of(["research"], mapping) == Grant("analyst", "others,people", "0.5")
    assert grant_of(["research", "guests"], mapping) == Grant("analyst", "others,people", "0.5")
    assert grant_of(["guests", "free"], mapping) == Grant("analyst", "people,shop", "")
    assert grant_of(["guests", "all"], mapping) == Grant("analyst", "", "")
    assert grant_of(["CN=Stats,OU=x"], mapping) == Grant("owner", "people")
    assert grant_of(["CN=Stats,OU=x", "stewards"], mapping) == Grant("owner", "")
    assert grant_of(["Stewards", ""], mapping) is None


@pytest.mark.parametrize(
    "line",
    [
        "stewards",
        "=owner",
        "x=public",
        "x=respondent:people",
        "x=owner:a,b",
        "x=owner@1",
        "x=analyst@",
        "x=analyst:a b",
    ],
)
def test_group_that_cannot_be_read_is_refused(line: str) -> None:
    with pytest.raises(Unsupported):
        read_groups([line])


def test_groups_are_read_from_nested_claims() -> None:
    assert groups_in({"groups": ["a"]}, "groups") == ["a"]
    assert groups_in({"realm_access": {"roles": ["a", "b"]}}, "realm_access.roles") == ["a", "b"]
    assert groups_in({"https://x.example/groups": "a"}, "https://x.example/groups") == ["a"]
    assert groups_in({}, "groups") is None
    assert groups_in({"realm_access": "x"}, "realm_access.roles") is None


def test_settings_that_cannot_work_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    right = {"oidc_issuer": "https://id.example", "oidc_client": "x", "oidc_groups": GROUPS}
    check_oidc(Settings(**right))
    for wrong in ({"oidc_issuer": "http://id.example"}, {"oidc_client": ""}, {"oidc_groups": ()}):
        with pytest.raises(Unsupported):
            check_oidc(Settings(**{**right, **wrong}))
    (tmp_path / "secret").write_text("s3\n")
    monkeypatch.setenv("TIDEGATE_OIDC_SECRET_FILE", str(tmp_path / "secret"))
    assert client_secret() == "s3"
    monkeypatch.setenv("TIDEGATE_OIDC_SECRET_FILE", str(tmp_path / "none"))
    with pytest.raises(Unsupported, match="cannot be read"):
        check_oidc(Settings(**right))
    monkeypatch.setattr("tidegate.extras.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"Sign-in with OpenID Connect needs authlib"):
        check_oidc(Settings(**right))


def test_secret_is_in_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_OIDC_SECRET", SECRET)
    assert SECRET not in Settings(oidc_issuer="https://id.example").to_json()
    assert Settings.from_json(Settings(oidc_groups=GROUPS).to_json()).oidc_groups == GROUPS
