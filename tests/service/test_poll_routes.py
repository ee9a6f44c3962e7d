"""Polls over HTTP: drafts that write nothing, creation that is complete or does not happen, state in steps, invitations once."""

from __future__ import annotations

import time
import tomllib
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import segno
from service.processes import free_port
from starlette.testclient import TestClient
from support.poll_service import EMPTY, answer, canteen, closing_time
from support.service import QUIET, RunningService
from typer.testing import CliRunner

from tidegate.cli.app import app as commands
from tidegate.errors import Unsupported
from tidegate.ledger.tokens import Tokens
from tidegate.policy.toml import read_policy
from tidegate.service.access.permissions import ANALYST, OWNER, PUBLIC, RESPONDENT
from tidegate.service.access.tokens import make_token
from tidegate.service.app import create_app
from tidegate.service.datasets import ServedDatasets
from tidegate.service.routes.polls import qr_modules

AT = "/v1/data/polls/polls"
SOME: dict[str, Any] = {
    "often": {"text": "How often?", "options": ["never", "weekly", "daily"]},
    "dishes": {"text": "Which?", "options": ["curry", "pasta", "sushi"], "choose": 2},
    "likes": {"text": "All that you like?", "options": ["a", "b", "c"], "choose": "any"},
    "price": {"text": "How much?", "from": 0, "to": "20.5", "step": 0.5},
    "mean": {"text": "How old?", "from": 18, "to": 99, "want": "mean"},
}


@pytest.fixture(scope="module")
def polls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that was started with an empty file for polls. `datasets["polls"].file` is that file."""
    file = tmp_path_factory.mktemp("polls") / "polls.toml"
    file.write_text(EMPTY, "utf-8")
    datasets = ServedDatasets.from_files([str(file)])
    store = Tokens(datasets.ledger.store)
    tokens = {role: make_token(store, role=role, name=role, dataset="polls")[0] for role in (OWNER, ANALYST)}
    tokens[RESPONDENT] = make_token(store, role=RESPONDENT, name="rosa", dataset="polls", record="1")[0]
    app = create_app(QUIET, datasets)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield RunningService(client, app, datasets, tokens)


def text_of(polls: RunningService) -> str:
    file = polls.datasets["polls"].file
    assert file is not None
    return file.path.read_text("utf-8")


def entries(polls: RunningService) -> int:
    return len(polls.get("/v1/ledger/entries").json()["entries"])


def test_draft_states_errors_loss_and_texts_and_writes_nothing(polls: RunningService) -> None:
    before = text_of(polls), entries(polls)
    draft = polls.post(f"{AT}/drafts", canteen()).json()
    assert (text_of(polls), entries(polls)) == before
    section = tomllib.loads(draft["section"])["poll"]["canteen"]
    assert (section["questions"]["often"]["random"], "invitation_key" in section) == ("1/3", False)
    (question,) = draft["questions"]
    assert question["error"] == pytest.approx((9 / 4 * 1 / 4 / 250) ** 0.5), "k = 2, b = 1/3: variance 9/16 per person"
    assert question["margin"] == pytest.approx(1.96 * question["error"])
    assert draft["gives"]["in_all"] == "1.609438"
    english, german = draft["reads"]
    assert (english["title"], german["title"]) == ("Canteen", "Kantine")
    assert "17" in english["questions"][0]["sentences"][0]
    assert "1 oder 2" in german["questions"][0]["sentences"][1]
    assert draft["problem"] is None


def test_settings_go_from_most_privacy_to_least(polls: RunningService) -> None:
    shares = polls.post(f"{AT}/drafts", canteen()).json()["settings"]
    assert [setting["random"] for setting in shares][::5] == ["9/10", "2/5", "1/10"]
    assert "45" in shares[0]["sentences"][0]
    question = {"often": {"text": "How often?", "options": ["never", "weekly"]}}
    body = canteen(questions=question, epsilon="1.7", title="Canteen", purpose="Menu", languages=["en"])
    totals = polls.post(f"{AT}/drafts", body).json()["settings"]
    assert "1.7" in [setting["epsilon"] for setting in totals], "the chosen one is among them"
    for settings in (shares, totals):
        assert [setting["error"] for setting in settings] == sorted((each["error"] for each in settings), reverse=True)
        assert [setting["loss"] for setting in settings] == sorted(each["loss"] for each in settings)
    stated = {"often": {**question["often"], "epsilon": 1.5}}
    assert polls.post(f"{AT}/drafts", {**body, "questions": stated, "epsilon": None}).json()["settings"] == []


def test_best_number_of_questions_is_drafted_for_every_kind(polls: RunningService) -> None:
    body = canteen(questions=SOME, epsilon=2, ask="best", clients=2000)
    draft = polls.post(f"{AT}/drafts", body).json()
    assert [question["kind"] for question in draft["questions"]] == ["choice", "choices", "choices", "number", "number"]
    assert (draft["ask"], draft["units"]) == (1, 5)
    every = polls.post(f"{AT}/drafts", {**body, "ask": "all"}).json()
    assert max(q["error"] for q in draft["questions"]) < max(q["error"] for q in every["questions"])
    assert all(len(question["sentences"]) == 2 for question in draft["reads"][0]["questions"])


REFUSED = {
    "past": ({"closes": "2020-01-01T00:00:00Z"}, "which has passed"),
    "no zone": ({"closes": "2099-01-01T00:00:00"}, ""),
    "no such time": ({"closes": "2099-13-01T00:00:00Z"}, "closes"),
    "a language is missing": ({"title": {"en": "Canteen"}}, "needs every text in each language"),
    "one option": ({"questions": {"a": {"text": "A?", "options": ["x"], "random": "1/3"}}}, "at least 2 options"),
    "too large an error": ({"clients": 20}, "above 10"),
    "lifetime": ({"lifetime": 1}, "one report needs"),
    "no loss": ({"questions": {"a": {"text": "A?", "options": ["x", "y"]}}}, "states no loss"),
    "unknown key": ({"question": {}}, ""),
    "an open decision": ({"holder": "?"}, "open decision"),
    "limit of an invited poll": ({"at_most": 10}, "at_most"),
    "no options and no ends": ({"questions": {"a": {"text": "A?", "random": "1/3"}}}, "from is missing"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_poll_leaves_no_key_no_entry_and_no_section(polls: RunningService, name: str) -> None:
    change, why = REFUSED[name]
    before = text_of(polls), entries(polls)
    response = polls.post(AT, canteen(**change))
    assert 400 <= response.status_code < 500, response.text
    assert why in response.json()["detail"]
    assert (text_of(polls), entries(polls)) == before


def test_created_poll_is_in_file_and_ledger_and_accepts_invited_reports_once(polls: RunningService) -> None:
    name = "created"
    drafted = polls.post(f"{AT}/drafts", canteen(poll=name)).json()["section"]
    response = polls.post(AT, canteen(poll=name))
    assert (response.status_code, response.json()["state"], response.json()["reports"]) == (201, "open", 0)
    file = polls.datasets["polls"].file
    assert file is not None
    collection = read_policy(file.path).polls[name]
    assert collection.poll is not None
    assert len(collection.poll.invitation_key) == 342
    without_key = [line for line in text_of(polls).splitlines() if not line.startswith("invitation_key")]
    assert set(drafted.splitlines()) - set(without_key) <= {line for line in drafted.splitlines() if "closes" in line}
    assert polls.post(AT, canteen(poll=name)).status_code in (400, 409, 422), "the name is taken"
    sheet = polls.post(f"{AT}/{name}/sheets", {"count": 2}).json()
    first, second = sheet["slips"]
    assert first["link"] == f"{sheet['form']}#code={first['code']}"
    assert first["code"] != second["code"]
    survey = polls.datasets["polls"].survey(name)
    at = f"/v1/data/polls/collections/{name}/reports"
    report = answer(survey, {"often": "yes"}, first["code"])
    assert polls.post(at, {"reports": [report]}, PUBLIC).json()["accepted"] == 1
    forged = {**report, "id": "0" * 32}
    assert polls.post(at, {"reports": [forged]}, PUBLIC).json()["accepted"] == 0
    state = polls.get(f"{AT}/{name}", ANALYST).json()
    assert (state["waiting"], state["invitations"]) == (0, {"codes": 2, "used": 0}), (
        "in steps of 100: nobody is counted alone"
    )


def test_open_poll_has_no_invitations(polls: RunningService) -> None:
    assert polls.post(AT, canteen(poll="street", access="open", at_most=500)).status_code == 201
    assert polls.post(f"{AT}/street/sheets", {"count": 1}).status_code in (400, 422)
    state = polls.get(f"{AT}/street").json()
    assert (state["invitations"], state["at_most"]) == (None, 500)


def test_list_has_the_state_of_every_poll(polls: RunningService) -> None:
    assert polls.post(AT, canteen(poll="listed")).status_code == 201
    polls.post("/v1/data/polls/collections/listed/closing", {"version": 1})
    states = {poll["poll"]: poll["state"] for poll in polls.get(AT, ANALYST).json()["polls"]}
    assert states["listed"] == "closed"


def test_poll_whose_time_has_come_is_not_open(polls: RunningService) -> None:
    for seconds in (1.5, 6, 24):  # a busy machine may need longer than the first to open it
        if polls.post(AT, canteen(poll="brief", closes=closing_time(seconds / 86_400))).status_code == 201:
            break
    time.sleep(seconds + 0.1)
    assert polls.get(f"{AT}/brief").json()["state"] in ("over", "closed")


@pytest.mark.parametrize(("kind", "start"), [("svg", b"<svg"), ("png", b"\x89PNG")])
def test_results_are_a_chart_file(polls: RunningService, kind: str, start: bytes) -> None:
    polls.post(AT, canteen(poll="charted"))
    response = polls.get(f"{AT}/charted/chart?format={kind}&language=de", ANALYST)
    assert response.content.startswith(start)
    assert response.headers["content-disposition"] == f'attachment; filename="polls-charted.{kind}"'
    assert polls.get(f"{AT}/charted/chart?language=fr").status_code in (400, 422), "the poll has no French"
    assert polls.get(f"{AT}/nowhere/chart").status_code == 404


def test_codes_are_in_no_entry_and_in_no_log(polls: RunningService, capfd: pytest.CaptureFixture[str]) -> None:
    polls.post(AT, canteen(poll="secret"))
    (slip,) = polls.post(f"{AT}/secret/sheets", {"count": 1}).json()["slips"]
    assert slip["code"] not in polls.get("/v1/ledger/export").text
    written = capfd.readouterr()
    assert slip["code"] not in written.out + written.err


def test_modules_of_a_qr_code_are_those_of_the_library() -> None:
    text = "https://gate.example.org/forms/polls/canteen#code=34VE-HJ0A-HS9C-AN81-9YQV-10EF-D8"
    drawn = qr_modules(text)
    bits = "".join(f"{byte:08b}" for byte in b64decode(drawn["bits"]))[: drawn["size"] ** 2]
    expected = segno.make(text, micro=False, error="m").matrix
    assert bits == "".join(str(int(bool(module))) for row in expected for module in row)


def test_file_without_a_data_set_section_accepts_new_polls(tmp_path: Path) -> None:
    """The data set is called after the file; the new section must not change that."""
    file = tmp_path / "council.toml"
    file.write_text(
        '[poll.old]\nholder = "H"\ntitle = "T"\npurpose = "P"\naccess = "open"\ncloses = 2099-01-01T00:00:00Z\n'
        '[poll.old.questions.a]\ntext = "A?"\noptions = ["x", "y"]\nrandom = "1/3"\n',
        "utf-8",
    )
    datasets = ServedDatasets.from_files([str(file)])
    token = make_token(Tokens(datasets.ledger.store), role=OWNER, name="olga")[0]
    with TestClient(create_app(QUIET, datasets), base_url="http://127.0.0.1") as client:
        headers = {"Authorization": f"Bearer {token}"}
        assert client.post("/v1/data/council/polls", json=canteen(), headers=headers).status_code == 201
    assert set(read_policy(file).polls) == {"old", "canteen"}


def test_serve_creates_a_file_for_polls_and_keeps_an_existing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.service.server.run", lambda *arguments, **how: None)
    monkeypatch.setenv("TIDEGATE_SERVICE", "")  # put back afterwards: serve sets it for its workers
    file = tmp_path / "2nd council.toml"
    words = ["serve", "--polls", str(file), "--port", str(free_port())]
    first = CliRunner().invoke(commands, words, catch_exceptions=False)
    assert "Created" in first.output
    assert "Serving nd-council on" in first.output
    assert read_policy(file).is_for_polls
    content = file.read_bytes()
    again = CliRunner().invoke(commands, words, catch_exceptions=False)
    assert "Created" not in again.output
    assert file.read_bytes() == content


def test_serve_without_anything_to_serve_is_refused() -> None:
    with pytest.raises(Unsupported, match="nothing to serve"):
        CliRunner().invoke(commands, ["serve"], catch_exceptions=False)
