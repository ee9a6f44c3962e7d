"""The policy of a served data set: previewed changes, versions with differences, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from service.processes import write_policies
from starlette.testclient import TestClient
from support.service import RunningService, quiet_settings

from tidegate.ledger.tokens import Tokens
from tidegate.service.access.permissions import ANALYST, OWNER
from tidegate.service.access.tokens import make_token
from tidegate.service.app import create_app

PAGE = {"Accept": "text/html"}


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_hashes: None) -> Iterator[RunningService]:
    monkeypatch.setenv("TIDEGATE_REGISTRY", "")
    folder = tmp_path / "gate"
    folder.mkdir()
    write_policies(folder)
    app = create_app(quiet_settings(folder=str(folder)))
    store = Tokens(app.state.datasets.ledger.store)
    tokens = {role: make_token(store, role=role, name=role)[0] for role in (OWNER, ANALYST)}
    tokens["part"] = make_token(store, role=OWNER, name="part", dataset="people")[0]
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield RunningService(client, app, app.state.datasets, tokens)


def text_of(service: RunningService) -> str:
    return str(service.get("/v1/data/people/policy").json()["toml"])


def ask(service: RunningService) -> None:
    body = {"sql": "SELECT COUNT(*) FROM people WHERE age > 30", "epsilon": "1", "anyway": True}
    assert service.post("/v1/data/people/answers", body).status_code == 200


def test_stricter_promise_is_previewed_then_saved_as_a_version(service: RunningService) -> None:
    ask(service)
    stricter = text_of(service).replace("epsilon = 1000", "epsilon = 10")
    preview = service.post("/v1/data/people/policy/previews", {"toml": stricter}).json()
    assert preview["refused"] is None
    assert preview["changes"] == ["loss: epsilon 1,000 -> epsilon 10"]
    assert (preview["account"]["now"]["left"], preview["account"]["after"]["left"]) == ("999", "9")
    assert {"kind": "added", "text": "epsilon = 10"} in preview["diff"]
    assert service.get("/v1/data/people").json()["account"]["left"] == "999", "nothing was saved"
    saved = service.call("PUT", "/v1/data/people/policy", OWNER, json={"toml": stricter}).json()
    assert [version["number"] for version in saved["versions"]] == [2, 1]
    assert {"kind": "removed", "text": "epsilon = 1000"} in saved["versions"][0]["diff"]
    assert service.get("/v1/data/people").json()["account"]["left"] == "9"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("epsilon = 1000", "epsilon = 2000", "epsilon would rise from 1,000 to 2,000"),
        (
            "[promise.loss]\nepsilon = 1000",
            '[promise.identification]\nrho = 0.9\nworlds = "values"\nprotect = ["age"]',
            "removed",
        ),
        ('unit = "row"', 'unit = { person = "person", at_most = 2 }', "protected unit would change"),
    ],
)
def test_looser_promise_is_refused_with_the_reason(service: RunningService, old: str, new: str, reason: str) -> None:
    ask(service)
    before = text_of(service)
    looser = {"toml": before.replace(old, new)}
    preview = service.post("/v1/data/people/policy/previews", looser).json()
    assert reason in preview["refused"]["what"]
    assert service.call("PUT", "/v1/data/people/policy", OWNER, json=looser).status_code == 409
    assert text_of(service) == before


def test_broken_or_renamed_policy_is_refused(service: RunningService) -> None:
    before = text_of(service)
    for text in ("version = ", before.replace('name = "people"', 'name = "other"'), before.replace("age =", "aged =")):
        result = service.call("PUT", "/v1/data/people/policy", OWNER, json={"toml": text})
        assert result.status_code in (200, 422), result.text
    assert (
        service.call("PUT", "/v1/data/people/policy", OWNER, json={"toml": before, "fingerprint": "0"}).status_code
        == 409
    )
    ask_again = service.get("/v1/data/people/policy").status_code
    assert ask_again == 200


def test_owner_of_one_data_set_reads_and_analysts_do_not(service: RunningService) -> None:
    body = {"toml": text_of(service)}
    assert service.get("/v1/data/people/policy", "part").status_code == 200
    assert service.call("PUT", "/v1/data/people/policy", "part", json=body).status_code == 403
    assert service.get("/v1/data/people/policy", ANALYST).status_code == 403
    assert service.post("/v1/data/people/policy/check", {}, ANALYST).status_code == 403


def test_check_compares_the_data_for_the_owner(service: RunningService) -> None:
    report = service.post("/v1/data/people/policy/check", {}).json()
    assert (report["rows"], report["warning"].startswith("NOT FOR PUBLICATION")) == (60, True)


def test_location_of_a_source_is_not_shown_and_survives_a_change(service: RunningService) -> None:
    from tidegate.policy.toml import read_policy
    from tidegate.service.routes.policies import read_change, shown_text

    path = service.datasets["people"].file.path  # type: ignore[union-attr]
    address = "postgresql://olga:s3cret@host/db?table=people"
    path.write_text(path.read_text().replace('"people.csv"', f'"{address}"  # the table\n# a comment'))
    served = service.datasets["people"]
    text = shown_text(served)
    assert "# a comment" in text
    assert not {"s3cret", "olga", "host"} & set(text.replace("@", " ").replace("/", " ").replace(":", " ").split())
    policy, own = read_change(served, text.replace("epsilon = 1000", "epsilon = 5"))
    assert policy.dataset.source == address
    path.write_text(own)
    assert read_policy(path).dataset.source == address
    assert "# a comment" in own


@pytest.mark.parametrize(
    "line",
    [
        'source = "/etc/passwd"',
        'ledger = "elsewhere.ledger"',
        'reports = "/tmp"',
    ],
)
def test_policy_cannot_be_pointed_to_another_file(service: RunningService, line: str) -> None:
    text = text_of(service).replace("rows = 60", f"rows = 60\n{line}")
    for method, path in (("POST", "/v1/data/people/policy/previews"), ("PUT", "/v1/data/people/policy")):
        result = service.call(method, path, OWNER, json={"toml": text})
        assert (result.status_code, "cannot be changed here" in result.text) == (422, True)
    listed = text_of(service).replace(
        "[promise.loss]", 'town = { kind = "category", values_from = "/etc/passwd", column = "root" }\n[promise.loss]'
    )
    refused = service.post("/v1/data/people/policy/previews", {"toml": listed})
    assert "another file" in refused.json()["detail"]


def test_page_shows_a_preview_and_saves_without_scripts(service: RunningService) -> None:
    ask(service)
    typed = {"edit": "form", "one_in": "", "epsilon": "10", "rows": "60", "edition": ""}
    headers = {**service.as_role(OWNER), **PAGE}
    page = service.client.post("/console/data/people/policy", data={**typed, "action": "preview"}, headers=headers)
    assert "What this change means" in page.text
    assert "never rises again" in page.text
    wrong = service.client.post("/console/data/people/policy", data={**typed, "epsilon": "no"}, headers=headers)
    assert "Write a number above 0." in wrong.text
    looser = service.client.post("/console/data/people/policy", data={**typed, "epsilon": "5000"}, headers=headers)
    assert "can only become stricter" in looser.text
    assert "Save this policy" not in looser.text
    text = text_of(service).replace("epsilon = 1000", "epsilon = 10")
    saved: Any = service.client.post(
        "/console/data/people/policy", data={"action": "save", "toml": text}, headers=headers, follow_redirects=True
    )
    assert "The policy was saved" in saved.text
    assert "Version 2" in saved.text
