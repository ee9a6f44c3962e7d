"""tidegate poll: from a new file to results, with codes, a real service and respondents that are programs."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Run
from support.console_service import on_loopback
from support.hashes import quick_hashes  # noqa: F401  a fixture
from support.service import QUIET

import tidegate as tg
from tidegate.cli.poll_dialog import read_question
from tidegate.collect.invitations import obtain
from tidegate.collect.polls.draft import with_invitation_key
from tidegate.errors import PolicyUnreadable, Unsupported
from tidegate.ledger.tokens import Tokens
from tidegate.policy import read_policy
from tidegate.service.access.permissions import OWNER
from tidegate.service.access.tokens import make_token
from tidegate.service.app import create_app
from tidegate.service.datasets import ServedDatasets

OFTEN = (
    "often: How often do you eat here? | Wie oft essen Sie hier? = Never | Nie, Weekly | Jede Woche, Daily | Täglich"
)
SETTINGS = [
    *("--holder", "Works council", "--title", "Canteen | Kantine", "--purpose", "Plan the menu | Speiseplan"),
    *("--languages", "en, de", "--people", "200", "--closes", "14 days", "--access", "invited", "--error", "8"),
]
OPEN_POLL = """
[poll.vote]
holder = "Town"            # a comment
title = "Vote"
purpose = "Plan"
access = "open"
closes = 2999-12-01T18:00:00+01:00
clients = 2000
[poll.vote.questions.park]
text = "A park?"
options = ["Yes", "No"]
random = "1/3"
[poll.vote.questions.age]
text = "Age?"
from = 18
to = 80
epsilon = 2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def canteen(run: Run, folder: Path) -> Path:
    assert run("poll", "new", "canteen", "--question", OFTEN, *SETTINGS)[0] == 0
    return folder / "canteen.toml"


@pytest.fixture
def vote(folder: Path) -> Path:
    path = folder / "vote.toml"
    path.write_text(OPEN_POLL, "utf-8")
    return path


def codes_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))


def test_new_writes_a_poll_that_can_be_read(run: Run, folder: Path) -> None:
    questions = [
        OFTEN,
        "dishes: Which? = Curry, Pasta, Tofu; choose 2",
        "age: Age? = 18 to 80",
        "pay: Pay? = 0 to 900 step 50; mean",
    ]
    words = [word for question in questions for word in ("--question", question)]
    code, out, _ = run("poll", "new", "canteen", *words, *SETTINGS[:-1], "10", "--json")
    assert code == 0
    policy = read_policy(folder / "canteen.toml")
    collection = policy.polls["canteen"]
    assert (policy.dataset.name, collection.clients, collection.holder) == ("canteen", 200, "Works council")
    operators = {name: question.operator for name, question in collection.questions.items()}
    assert operators["dishes"] == "privset"
    assert (operators["age"], operators["pay"]) == ("square-wave", "hybrid")
    assert collection.poll is not None
    assert collection.poll.languages == ("en", "de")
    assert collection.poll.questions["often"].options["daily"] == {"en": "Daily", "de": "Täglich"}
    assert collection.poll.questions["dishes"].text == {"en": "Which?", "de": "Which?"}
    answer = json.loads(out)
    assert answer["errors"] == pytest.approx(collection.expected_errors())
    assert answer["worst"] <= 0.1
    assert run("poll", "new", "canteen", *words, *SETTINGS)[0] == 2, "an existing file is not replaced"


def test_dialog_asks_for_what_is_missing(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that cannot be read are asked again; the table shows errors and texts before the decision."""
    answers = [
        "",
        "Council",
        "",
        "",
        "A menu",
        "often",
        "often: How often? = Never, Daily",
        "",
        "many",
        "300",
        "",
        "",
        "x",
        "4",
    ]
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in answers)))
    code, out, shown = run("poll", "new", "food")
    assert code == 0, shown
    poll = read_policy(folder / "food.toml").polls["food"]
    assert (poll.holder, poll.clients, poll.poll.access if poll.poll else "") == ("Council", 300, "invited")
    assert poll.expected_errors()["often"] <= 0.04
    assert "Expected error in percentage points" in shown
    assert "people who mean" in shown
    assert shown.count("How many people") == 2
    assert "tidegate poll preview food.toml" in out


def test_dialog_without_answers_names_the_option(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("Council\n"))
    code, _, shown = run("poll", "new", "food")
    assert code == 130
    assert "--languages" in shown
    assert not (folder / "food.toml").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("often How? = A, B", "cannot be read"),
        ("often: How?", "cannot be read"),
        ("often: How? = A", "at least 2 options"),
        ("often: How? = A, B; pick 2", "cannot be read"),
        ("often: How? = A, B; choose 0", "cannot be read"),
        ("age: Age? = 0 to 9; choose 2", "cannot have"),
        ("2: How? = A, B", "cannot be read"),
    ],
)
def test_question_that_cannot_be_read_is_refused(text: str, says: str) -> None:
    with pytest.raises(Unsupported, match=says):
        read_question(text)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (["--error", "0.1"], "expected error is"),
        (["--error", "much"], "not a number"),
        (["--closes", "soon"], "closing time"),
        (["--access", "all"], "invited"),
        (["--people", "0"], "number of people"),
        (["--title", "A | B | C"], "3 texts"),
    ],
)
def test_new_refuses_what_cannot_be_a_poll(run: Run, folder: Path, changes: list[str], says: str) -> None:
    code, _, shown = run("poll", "new", "canteen", "--question", OFTEN, *SETTINGS, *changes)
    assert code == 2
    assert says in shown
    assert not (folder / "canteen.toml").exists()


def test_preview_shows_operators_errors_and_texts(run: Run, canteen: Path) -> None:
    code, out, _ = run("poll", "preview", canteen, "--lang", "de")
    assert code == 0
    assert "Wie oft essen Sie hier?" in out
    assert "randomized-response with epsilon" in out
    assert "One person loses at most epsilon" in out
    assert "Von 100" in out
    described = json.loads(run("poll", "preview", canteen, "--people", "800", "--json")[1])
    fewer = json.loads(run("poll", "preview", canteen, "--json")[1])
    errors = [data["questions"]["often"]["expected_error"] for data in (described, fewer)]
    assert errors[0] == pytest.approx(errors[1] / 2)
    assert run("poll", "preview", canteen, "--lang", "fr")[0] == 2
    assert not (canteen.parent / "canteen.ledger").exists(), "a preview writes nothing"


def test_open_writes_codes_that_only_the_owner_can_read(run: Run, canteen: Path) -> None:
    before = canteen.read_text("utf-8")
    code, out, shown = run(
        "poll", "open", canteen, "--invite", 3, "--out", "codes.csv", "--qr", "qr", "--url", "https://poll.example/"
    )
    assert code == 0, shown
    assert stat.S_IMODE(os.stat("codes.csv").st_mode) == 0o600
    codes = codes_of(Path("codes.csv"))
    assert len({line["code"] for line in codes}) == 3
    assert codes[0]["link"] == f"https://poll.example/forms/canteen/canteen#code={codes[0]['code']}"
    assert sorted(path.name for path in Path("qr").iterdir()) == ["001.svg", "002.svg", "003.svg"]
    assert codes[0]["code"] not in out + shown
    lines = canteen.read_text("utf-8").splitlines()
    added = [line for line in lines if line not in before.splitlines()]
    assert [line.partition(" = ")[0] for line in added] == ["invitation_key"]
    assert [line for line in lines if line not in added] == before.splitlines(), "all other lines stay"
    assert run("poll", "open", canteen, "--invite", 2, "--out", "codes.csv")[0] == 2, "codes are not replaced"
    assert len(codes_of(Path("codes.csv"))) == 3
    assert run("poll", "open", canteen, "--invite", 2, "--out", "more.csv")[0] == 0
    assert canteen.read_text("utf-8").splitlines() == lines, "the key stays"
    assert run("poll", "open", canteen, "--invite", 2)[0] == 2


def test_poll_that_cannot_open_changes_no_file(run: Run, canteen: Path) -> None:
    text = canteen.read_text("utf-8").replace("clients = 200", "clients = 20")
    canteen.write_text(text, "utf-8")
    code, _, shown = run("poll", "open", canteen, "--invite", 3, "--out", "codes.csv")
    assert code == 2
    assert "expected error" in shown
    assert canteen.read_text("utf-8") == text
    assert not Path("codes.csv").exists()


@pytest.mark.parametrize(
    "text",
    [
        "poll.canteen.holder = 'x'\n[poll.canteen.questions.a]\ntext = 'b'\n",
        "[poll]\ncanteen = { holder = 'x' }\n",
        "note = '''\n[poll.canteen]\n'''\n[poll.canteen]\nholder = 'x'\n",
    ],
)
def test_key_is_not_written_where_it_would_change_anything_else(text: str) -> None:
    with pytest.raises(PolicyUnreadable, match="cannot be written"):
        with_invitation_key(text, "canteen", "abc")


def test_key_keeps_comments_and_is_replaced() -> None:
    text = '# top\r\n[ poll . "canteen" ]  # here\nholder = "x"  # who\n\n[poll.other]\nholder = "y"\n'.replace(
        "\r", ""
    )
    first = with_invitation_key(text, "canteen", "abc")
    assert first == text.replace("# here\n", '# here\ninvitation_key = "abc"\n')
    assert with_invitation_key(first, "canteen", "def") == first.replace("abc", "def")


def test_open_poll_has_no_codes_and_says_so(run: Run, vote: Path) -> None:
    code, _, shown = run("poll", "status", vote)
    assert (code, "not open yet" in shown) == (2, True)
    assert run("poll", "open", vote, "--invite", 3, "--out", "codes.csv")[0] == 2
    code, out, _ = run("poll", "open", vote, "--json")
    assert json.loads(out)["form"] == "http://127.0.0.1:8480/forms/vote/vote"
    with tg.open(vote) as session:
        survey = session.poll()
        answers = [{"park": "Yes" if n % 4 else "No", "age": 20 + n % 40} for n in range(300)]
        survey.receive([survey.client(memory={}).randomize(answer) for answer in answers])
    state = json.loads(run("poll", "status", vote, "--json")[1])
    assert (state["reports"], state["waiting"], state["closed"]) == (0, 300, False)
    before = run("poll", "results", vote)[1]
    assert "Open: no report was counted yet, 300 or more wait; the next count is at the close" in before
    assert before.count("Too few answers to say: 0 of at least 30.") == 2
    assert "any number of times" in before
    assert "300 reports counted" in run("poll", "close", vote)[1]
    code, out, _ = run("poll", "results", vote, "--csv", "out.csv", "--plot", "out.svg", "--json")
    results = json.loads(out)
    assert [(of["question"], of["reports"], of["too_few"]) for of in results["questions"]] == [
        ("park", 300, None),
        ("age", 300, None),
    ]
    assert (
        Path("out.csv").read_text("utf-8").startswith("question,option,label,share,low,high,low_poisoned,high_poisoned")
    )
    assert Path("out.svg").read_text("utf-8").startswith("<svg")
    assert run("poll", "results", vote, "--lang", "de")[0] == 2


def test_several_polls_in_a_file_need_a_name(run: Run, vote: Path) -> None:
    vote.write_text(OPEN_POLL + OPEN_POLL.replace("poll.vote", "poll.second"), "utf-8")
    code, _, shown = run("poll", "preview", vote)
    assert code == 2
    assert "vote, second" in shown
    assert run("poll", "preview", vote, "--poll", "second")[0] == 0
    assert "second" in run("poll", "preview", vote, "--poll", "secnd")[2]


@pytest.fixture
def service(canteen: Path, run: Run, quick_hashes: None) -> Iterator[tuple[str, str]]:  # noqa: F811
    """The service of an opened poll, and a token of its owner."""
    assert run("poll", "open", canteen, "--invite", 60, "--out", "codes.csv")[0] == 0
    datasets = ServedDatasets.from_files([str(canteen)])
    token, _ = make_token(Tokens(datasets.ledger.store), role=OWNER, name="olga")
    with on_loopback(create_app(QUIET, datasets)) as url:
        yield url, token
    datasets.close()


def answer(url: str, code: str, truth: Any) -> None:
    """Answer as a device does: exchange the code for a token, randomize, send."""
    with tg.connect(url, dataset="canteen") as public:
        survey, memory = public.collect("canteen"), {}
        client = survey.client(memory=memory)
        key = client.collection.poll.invitation_key if client.collection.poll else ""
        token = obtain(key, code, memory, survey.sign)
        report = client.randomize(dict.fromkeys(client.asked, truth), invitation=token)
        assert survey.receive([report]).accepted == 1


def test_whole_journey_without_a_browser(run: Run, canteen: Path, service: tuple[str, str]) -> None:
    url, token = service
    at = ("--service", url, "--token", token)
    for line in codes_of(Path("codes.csv")):
        answer(url, line["code"], "never")  # a clear result: no chance of a tie
    state = json.loads(run("poll", "status", canteen, *at, "--json")[1])
    assert (state["reports"], state["waiting"], state["closed"]) == (0, 0, False), "60 waiting reports are rounded to 0"
    early = run("poll", "results", canteen, *at)[1]
    assert "no report was counted yet" in early
    assert run("poll", "open", canteen, "--invite", 2, "--out", "more.csv", *at)[0] == 0
    assert len(codes_of(Path("more.csv"))) == 2
    assert "60 reports counted" in run("poll", "close", canteen, *at)[1]
    code, out, shown = run("poll", "results", canteen, *at, "--lang", "de", "--csv", "results.csv")
    assert code == 0, shown
    assert "Wie oft essen Sie hier? (60 answers)" in out
    assert "Nie is more frequent than" in out
    lines = codes_of(Path("results.csv"))
    assert [line["label"] for line in lines] == ["Nie", "Jede Woche", "Täglich"]
    assert all(0 <= float(line["low"]) <= float(line["share"]) <= float(line["high"]) <= 1 for line in lines)
    assert run("poll", "results", canteen, "--lang", "de")[1] + "Written: results.csv\n" == out, (
        "the same without the service"
    )


def test_used_code_gives_no_second_report(service: tuple[str, str]) -> None:
    url, _ = service
    code = codes_of(Path("codes.csv"))[0]["code"]
    answer(url, code, "never")
    with pytest.raises(tg.TidegateError):
        answer(url, code, "daily")


def test_commands_run_as_a_process(canteen: Path) -> None:
    command = [sys.executable, "-m", "tidegate", "poll"]
    opened = subprocess.run(
        [*command, "open", canteen, "--invite", "5", "--out", "codes.csv", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert opened.returncode == 0, opened.stderr
    assert json.loads(opened.stdout)["invited"] == 5


@pytest.mark.long
def test_preview_serves_the_form_and_stores_nothing(canteen: Path) -> None:
    import httpx

    command = [sys.executable, "-m", "tidegate", "poll", "preview", str(canteen), "--serve", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            lines = iter(process.stdout.readline, "") if process.stdout else iter(())
            text = ""
            for line in lines:
                text += line
                if line.startswith("}"):
                    break
            link = json.loads(text)["link"]
            address, _, code = link.partition("#code=")
            assert code
            assert httpx.get(address, timeout=30).status_code == 200
        finally:
            process.terminate()
            process.wait(30)
    assert not (canteen.parent / "canteen.ledger").exists()
    assert "invitation_key" not in canteen.read_text("utf-8")


def test_closing_time_has_a_zone(canteen: Path) -> None:
    poll = read_policy(canteen).polls["canteen"].poll
    assert poll is not None
    assert isinstance(poll.closes, datetime)
    assert poll.closes.tzinfo is not None
