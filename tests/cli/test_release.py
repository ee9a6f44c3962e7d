"""`tidegate release`: requests from a file, a queue, charts, and runs that can be repeated."""

from __future__ import annotations

import csv
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from cli.conftest import Run

from tidegate.demo import soldiers
from tidegate.policy import Policy
from tidegate.policy.toml import write_policy

NAMES = random.Random(4).sample(soldiers.records()["name"], 400)


@pytest.fixture
def army(tmp_path: Path) -> Path:
    """A folder with the soldiers, their policy, and 400 keys to request."""
    rows = soldiers.records()
    with (tmp_path / "soldiers.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows)
        writer.writerows(zip(*rows.values(), strict=True))
    policy = soldiers.policy()
    policy = Policy(replace(policy.dataset, source="soldiers.csv"), policy.attributes, None, None, policy.concealments)
    (tmp_path / "soldiers.toml").write_text(write_policy(policy))
    (tmp_path / "ids.csv").write_text("rank,name\n" + "".join(f"x,{name}\n" for name in NAMES) + "x,nobody\n")
    return tmp_path


def test_file_of_requests_is_decided_and_can_be_repeated(army: Path, run: Run) -> None:
    command = ["release", str(army / "soldiers.toml"), "headquarters", "--requests", str(army / "ids.csv")]
    first = json.loads(run(*command, "--out", str(army / "out.csv"), "--json")[1])
    assert (first["asked"], first["refused"]) == (401, 1)
    assert first["released"] + first["deferred"] == 400
    assert first["deferred"] == first["waiting"] > 0
    rows = list(csv.DictReader((army / "out.csv").open()))
    assert len(rows) == first["released"] == sum(first["out_in_all"].values())
    assert set(rows[0]) == {"name", "age", "location"}
    again = json.loads(run(*command, "--out", str(army / "again.csv"), "--json")[1])
    assert first.pop("ledger_created") == str(army / "soldiers.ledger")
    assert again == {**first, "out": str(army / "again.csv")}
    assert (army / "again.csv").read_text() == (army / "out.csv").read_text()
    assert run("ledger", "verify", str(army / "soldiers.toml"))[0] == 0


def test_request_shows_its_status_and_can_be_withdrawn(army: Path, run: Run) -> None:
    policy = str(army / "soldiers.toml")
    run("release", policy, "--requests", str(army / "ids.csv"))
    out = {row["name"] for row in _write(army, run)}
    waiting = [name for name in NAMES if name not in out]
    result = run("release", policy, "--status", waiting[0])[1]
    assert "It is number 1 in the queue" in result
    assert "It can be withdrawn" in result
    assert "withdrawn" in run("release", policy, "--withdraw", waiting[0])[1]
    assert "Refused" in run("release", policy, "--status", waiting[0])[1]
    assert "It is number 1 in the queue" in run("release", policy, "--status", waiting[1])[1]
    gone = run("release", policy, "--withdraw", waiting[0])
    assert gone[0] == 2
    assert "is not waiting" in gone[2]
    assert run("release", policy, "--key", next(iter(out)))[1].startswith("Released: name")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--key", "nobody"], 2),
        (["--key", "nobody", "--key", "no one"], 2),
        (["--key", "nobody", "--key", NAMES[0]], 0),
        (["--key", NAMES[0]], 0),
        (["--status", "nobody"], 2),
    ],
)
def test_refused_request_exits_with_2(army: Path, run: Run, arguments: list[str], code: int) -> None:
    for form in ([], ["--json"]):
        answer = run("release", str(army / "soldiers.toml"), *arguments, *form)
        assert answer[0] == code
        assert ("refused" in answer[1].lower()) == (code == 2 or len(arguments) > 2 or bool(form))


def _write(army: Path, run: Run) -> list[dict[str, str]]:
    run("release", str(army / "soldiers.toml"), "--out", str(army / "all.csv"))
    return list(csv.DictReader((army / "all.csv").open()))


def test_charts_and_the_state_of_every_test_are_shown(army: Path, run: Run) -> None:
    policy = str(army / "soldiers.toml")
    shown = run("release", policy, "--requests", str(army / "ids.csv"), "--plot", str(army / "pictures"))[1]
    assert "mutual-information" in shown
    assert {path.name for path in (army / "pictures").iterdir()} == {
        "exposure-mutual-information.png",
        "exposure-kullback-leibler.png",
        "shares.png",
        "distributions.png",
    }
    assert "requested records" in run("ledger", "show", policy)[1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["headquarter"], 'Did you mean "headquarters"'),
        (["--requests", "nowhere.csv"], "The file nowhere.csv does not exist"),
        (["--requests", "other.csv"], 'no column "name"'),
        (["--status", "a", "--withdraw", "b"], "Specify only one of"),
        (["--out", "no/such/folder.csv"], "Cannot write"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(
    army: Path, run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(army)
    (army / "other.csv").write_text("rank,age\nx,3\n")
    result = run("release", "soldiers.toml", *arguments)
    assert result[0] == 2
    assert says in result[2]


def test_unwritable_charts_are_reported_and_decisions_remain(army: Path, run: Run) -> None:
    command = ["release", str(army / "soldiers.toml"), "--requests", str(army / "ids.csv")]
    code, _, err = run(*command, "--plot", str(army / "ids.csv" / "pictures"))
    assert (code, "Cannot write" in err, "No decision is lost" in err) == (2, True, True)
    assert "defect" not in err
    assert len(_write(army, run)) > 300
