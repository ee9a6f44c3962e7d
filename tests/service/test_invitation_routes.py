"""Invitations and polls over HTTP: codes for owners, blind signatures for everybody, limits, and the close on time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from collect.invited import CLOSES, invited_report, poll_of, signed_token, signing_key
from collect.surveys import policy_of, report
from support.service import PROBLEM, QUIET, RunningService, run_service

from tidegate.collect.invitations import new_code, obtain, to_text
from tidegate.collect.survey import Survey
from tidegate.ledger import Ledger
from tidegate.ledger.invitations import InvitationBook
from tidegate.policy import Collection
from tidegate.service.access.permissions import ANALYST, OWNER, PUBLIC
from tidegate.service.access.rate_limits import network_of
from tidegate.service.background import Schedule
from tidegate.service.openapi_examples import EXAMPLES
from tidegate.service.settings import Settings
from tidegate.session.remote_survey import RemoteSurvey

CANTEEN = "/v1/data/people/collections/canteen"


@contextmanager
def poll_service(folder: Path, collection: Collection, settings: Settings = QUIET) -> Iterator[RunningService]:
    url = str(folder / "all.ledger")
    ledger = Ledger(url)
    if collection.poll is not None and collection.poll.invited:
        InvitationBook(ledger, "people/canteen").create_key(lambda: signing_key().text)
    ledger.close()
    with run_service(url, policies=(policy_of(collection),), settings=settings) as running:
        yield running


@pytest.fixture
def invited(tmp_path: Path) -> Iterator[RunningService]:
    with poll_service(tmp_path, poll_of(invitation_key=to_text(signing_key().public))) as running:
        yield running


def survey_of(service: RunningService) -> Survey:
    return service.datasets["people"].survey("canteen")


def token_over_http(service: RunningService, code: str) -> dict[str, str]:
    def sign(code: str, blinded: str) -> str:
        response = service.post(f"{CANTEEN}/tokens", {"code": code, "blinded": blinded}, PUBLIC)
        assert response.status_code == 200, response.text
        return str(response.json()["signature"])

    return obtain(to_text(signing_key().public), code, {}, sign)


def send(service: RunningService, *reports: Any) -> Any:
    return service.post(f"{CANTEEN}/reports", {"reports": list(reports)}, PUBLIC)


def test_code_becomes_one_counted_report(invited: RunningService) -> None:
    created = invited.post(f"{CANTEEN}/invitations", {"count": 2}, OWNER)
    assert set(created.json()) == set(EXAMPLES["POST", "/v1/data/{name}/collections/{collection}/invitations"])
    assert created.headers["cache-control"] == "no-store"
    codes, survey = created.json()["codes"], survey_of(invited)
    token = token_over_http(invited, codes[0].lower())
    first = send(invited, invited_report(0, survey, token)).json()
    assert first["verdicts"][0]["verdict"] == "accepted"
    assert send(invited, invited_report(0, survey, token)).json()["verdicts"][0]["verdict"] == "known"
    second = send(invited, invited_report(1, survey, token)).json()["verdicts"][0]
    assert second == {"place": 0, "verdict": "refused", "reason": "its invitation was used for another report"}
    assert send(invited, report(1, survey.collection)).json()["verdicts"][0]["verdict"] == "refused"
    survey.close()
    assert survey.reports == 1
    assert invited.get("/v1/ledger/verification").json()["problems"] == []


def test_only_owners_create_codes(invited: RunningService) -> None:
    for role, status in ((ANALYST, 403), (PUBLIC, 401)):
        assert invited.post(f"{CANTEEN}/invitations", {"count": 2}, role).status_code == status
    for wrong in (0, 100_001, "2", True, None, 1.5):
        assert invited.post(f"{CANTEEN}/invitations", {"count": wrong}, OWNER).status_code == 422


def test_refused_codes_have_one_form(invited: RunningService) -> None:
    """A guess says only that it was wrong: unknown codes and text that is no code are the same, a used one has other words."""
    [code] = invited.post(f"{CANTEEN}/invitations", {"count": 1}, OWNER).json()["codes"]
    token_over_http(invited, code)
    blinded = to_text(bytes(255) + b"\2")
    sent = {
        name: {"code": text, "blinded": blinded} for name, text in {"used": code, "new": new_code(), "no": "x"}.items()
    }
    refused = {name: invited.post(f"{CANTEEN}/tokens", body, PUBLIC) for name, body in sent.items()}
    assert {response.status_code for response in refused.values()} == {403}
    errors = {name: response.json() for name, response in refused.items()}
    assert {frozenset(error) for error in errors.values()} == {frozenset(PROBLEM)}
    assert len({error.pop("instance") for error in errors.values()}) == len(errors)
    assert errors["new"] == errors["no"]
    assert [errors[name]["facts"] for name in ("new", "used")] == [{"reason": "unknown"}, {"reason": "used"}]
    assert code not in json.dumps(errors)


@pytest.mark.parametrize(
    "body",
    [
        {"code": "x"},
        {"code": "", "blinded": "A" * 342},
        {"code": "x" * 101, "blinded": "A" * 342},
        {"code": "x", "blinded": "A" * 341},
        {"code": "x", "blinded": "=" * 342},
        {"code": "x", "blinded": "A" * 342, "more": 1},
    ],
)
def test_malformed_request_for_a_token_is_refused(invited: RunningService, body: Any) -> None:
    assert invited.post(f"{CANTEEN}/tokens", body, PUBLIC).status_code == 422


def test_blinded_message_that_is_no_number_below_the_key_uses_no_code(invited: RunningService) -> None:
    [code] = invited.post(f"{CANTEEN}/invitations", {"count": 1}, OWNER).json()["codes"]
    for blinded in ("A" * 342, "_" * 341 + "w", "A" * 341 + "B"):
        assert invited.post(f"{CANTEEN}/tokens", {"code": code, "blinded": blinded}, PUBLIC).status_code == 422
    assert token_over_http(invited, code)


def test_collection_without_invitations_refuses_codes(fresh_service: RunningService) -> None:
    base = "/v1/data/people/collections/shoppers"
    assert fresh_service.post(f"{base}/invitations", {"count": 1}, OWNER).status_code == 422
    body = {"code": new_code(), "blinded": "A" * 342}
    assert fresh_service.post(f"{base}/tokens", body, PUBLIC).status_code == 422


def test_use_of_a_code_is_not_logged(invited: RunningService, capfd: pytest.CaptureFixture[str]) -> None:
    [code] = invited.post(f"{CANTEEN}/invitations", {"count": 1}, OWNER).json()["codes"]
    before = invited.get("/metrics").text
    capfd.readouterr()
    token = token_over_http(invited, code)
    send(invited, invited_report(0, survey_of(invited), token))
    logged = "".join(capfd.readouterr())
    assert "tokens" not in logged
    assert code not in logged
    assert token["nonce"] not in logged
    assert [line for line in invited.get("/metrics").text.splitlines() if "/tokens" in line] == [
        line for line in before.splitlines() if "/tokens" in line
    ]


def test_request_has_at_most_32_reports_of_a_poll(tmp_path: Path) -> None:
    with poll_service(tmp_path, poll_of("open")) as service:
        listed = [report(number, survey_of(service).collection) for number in range(33)]
        refused = send(service, *listed)
        assert (refused.status_code, refused.json()["code"]) == (413, "too-large")
        assert send(service, *listed[:32]).json()["accepted"] == 32


def test_networks_have_limits(tmp_path: Path) -> None:
    """Open polls by network; invited ones only for codes, since a report needs a token anyway."""
    settings = replace(QUIET, poll_rate=0.001, poll_burst=3)
    with poll_service(tmp_path, poll_of("open"), settings) as service:
        listed = [report(number, survey_of(service).collection) for number in range(5)]
        assert [send(service, sent).status_code for sent in listed] == [200] * 3 + [429] * 2
        assert service.post(f"{CANTEEN}/reports", {"reports": listed}, OWNER).status_code == 200
    folder = tmp_path / "invited"
    folder.mkdir()
    with poll_service(folder, poll_of(invitation_key=to_text(signing_key().public)), settings) as service:
        body = {"code": new_code(), "blinded": "A" * 341 + "A"}
        assert [service.post(f"{CANTEEN}/tokens", body, PUBLIC).status_code for _ in range(5)] == [403] * 3 + [429] * 2
        tokens = [signed_token(bytes([number])) for number in range(5)]
        sent_reports = [invited_report(number, survey_of(service), token) for number, token in enumerate(tokens)]
        assert [send(service, sent).status_code for sent in sent_reports] == [200] * 5


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("192.0.2.1", "192.0.2.200", True),
        ("192.0.2.1", "192.0.3.1", False),
        ("2001:db8:1::1", "2001:db8:1:ffff::2", True),
        ("2001:db8:1::1", "2001:db8:2::1", False),
        ("::ffff:192.0.2.1", "192.0.2.9", True),
        ("fe80::1%eth0", "fe80::2", True),
        ("unknown", "testclient", False),
    ],
)
def test_addresses_of_one_network_share_a_limit(first: str, second: str, same: bool) -> None:
    assert (network_of(first) == network_of(second)) == same


def test_service_closes_a_poll_on_time(invited: RunningService) -> None:
    [code] = invited.post(f"{CANTEEN}/invitations", {"count": 1}, OWNER).json()["codes"]
    send(invited, invited_report(0, survey_of(invited), token_over_http(invited, code)))
    schedule, survey = Schedule(invited.datasets, invited.app.state.metrics), survey_of(invited)
    schedule.check(CLOSES - timedelta(seconds=1))
    assert (survey.reports, survey.closed) == (0, False)
    schedule.check(CLOSES + timedelta(minutes=5))
    assert (survey.reports, survey.closed) == (1, True)
    entries = [entry for entry in invited.datasets.ledger.entries() if entry.account == "people/canteen"]
    assert {entry.at for entry in entries if entry.kind in ("reports", "closing")} == {"2100-01-01T00:00:00.000+00:00"}
    schedule.check(CLOSES + timedelta(minutes=6))
    assert len([entry for entry in invited.datasets.ledger.entries() if entry.kind == "closing"]) == 1


def test_schedule_opens_no_poll(tmp_path: Path) -> None:
    """A poll that was never opened, and whose time has passed, stays unopened and stops nothing."""
    with poll_service(tmp_path, poll_of("open")) as service:
        Schedule(service.datasets, service.app.state.metrics).check(CLOSES + timedelta(days=1))
        assert [entry.kind for entry in service.datasets.ledger.entries() if entry.account == "people/canteen"] == []


def test_remote_survey_sends_many_reports_of_a_poll_in_parts(tmp_path: Path) -> None:
    with poll_service(tmp_path, poll_of("open")) as service:
        listed = [report(number, survey_of(service).collection) for number in range(100)]
        remote = RemoteSurvey(_Posts(service), CANTEEN, lambda: policy_of(survey_of(service).collection))  # type: ignore[arg-type]
        assert remote.receive(listed).accepted == 100
        assert survey_of(service).received == 100


class _Posts:
    """The two calls of a remote session, as the public."""

    def __init__(self, service: RunningService) -> None:
        self._service = service

    def get(self, path: str) -> Any:
        return self._service.get(path, PUBLIC).json()

    def post(self, path: str, body: Any, **_: Any) -> Any:
        response = self._service.post(path, body, PUBLIC)
        assert response.status_code == 200, response.text
        return response.json()
