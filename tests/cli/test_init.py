"""A first policy from a table: kinds from names and types, and a dialog of at most six decisions."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Run

from tidegate.cli.init import DECISIONS
from tidegate.policy import Category, Date, Decimal, EachPerson, Integer, Key, Policy, Text, read_policy
from tidegate.policy.draft import ColumnType, draft_policy, first_query, guess_kind, propose

HEADER = "visit_id,patient_id,age,sex,town,joined,ordered_at,opened,is_member,married,price,weight,note,paid"
ROWS = [
    f"{n},{n // 2},{20 + n % 60},{'female' if n % 3 else 'male'},{'north' if n % 2 else 'Atlantis'},2021-{1 + n % 12:02}-17,"
    f"2024-10-{1 + n % 28:02} 02:3{n % 10}:41,{n % 24:02}:37:11,{n % 2},{'true' if n % 2 else 'false'},{n}.93,{50 + n % 40}.25,"
    f"secret {n},{'true' if n % 5 else 'false'}"
    for n in range(200)
]
PRIVATE = ["Atlantis", "2021", "secret", "male\n1", ".93", "41,", "37:11", "199"]
KINDS = {
    "visit_id": "key",
    "patient_id": "key",
    "age": "integer",
    "sex": "category",
    "town": "text",
    "joined": "date",
    "ordered_at": "timestamp",
    "opened": "time",
    "is_member": "category",
    "married": "boolean",
    "price": "decimal",
    "weight": "grid",
    "note": "text",
    "paid": "boolean",
}


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    path.write_text("\n".join([HEADER, *ROWS]) + "\n", "utf-8")
    return path


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write answers to the dialog, one per line."""

    def write(*lines: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))

    return write


GUESSES: list[tuple[str, ColumnType, str]] = [
    ("customerid", "whole", "key"),
    ("paid", "whole", "integer"),
    ("covid", "yes-no", "boolean"),
    ("email", "text", "key"),
    ("comment", "text", "text"),
    ("born", "date", "date"),
    ("at", "instant", "timestamp"),
    ("total_price", "decimal", "decimal"),
    ("speed", "decimal", "grid"),
    ("x", "exact", "decimal"),
    ("x", "uuid", "key"),
    ("x", "other", ""),
]


@pytest.mark.parametrize(("column", "kind", "guess"), GUESSES)
def test_kind_follows_from_name_and_type(column: str, kind: ColumnType, guess: str) -> None:
    assert guess_kind(column, kind) == guess
    proposal = propose(column, kind)
    assert (proposal.kind if proposal else "") == guess


def test_draft_guesses_kinds_and_takes_no_value_from_the_data(run: Run, visits: Path) -> None:
    code, out, _ = run("init", visits, "--json")
    assert code == 0
    text = visits.with_suffix(".toml").read_text()
    assert json.loads(out)["open"] == text.partition("[promise")[0].count('"?"') - 1 + 3  # one "?" is in the first line
    assert not [value for value in PRIVATE if value in text]
    for name, kind in {**KINDS, "town": "category"}.items():
        assert f'{name} = {{ kind = "{kind}"' in text
    for name in ("joined", "ordered_at", "age", "price"):
        assert f'{name} = {{ kind = "{KINDS[name]}", from = "?", to = "?"' in text


def test_dialog_needs_at_most_six_decisions(run: Run, visits: Path, answers: Any) -> None:
    answers(*[""] * DECISIONS)
    code, out, err = run("init", visits, "--ask", "--json")
    assert code == 0, err
    result = json.loads(out)
    assert (result["decisions"], result["open"], result["columns"]) == (6, 0, KINDS)
    assert result["query"] == "SELECT sex, COUNT(*) FROM visits GROUP BY sex"
    assert "must be public knowledge" in err
    text = visits.with_suffix(".toml").read_text()
    assert not [value for value in PRIVATE if value in text + err]
    assert read_policy(visits.with_suffix(".toml")).loss is not None


def test_dialog_reads_decisions(run: Run, visits: Path, answers: Any, tmp_path: Path) -> None:
    (tmp_path / "towns.csv").write_text("town,land\nnorth,A\nsouth,B\n")
    answers(
        "visit_id, note",
        "patient_id 3",
        "age 18 90; price 0 500 0.05; joined 2015-01-01 2024-12-31 month; opened 08:00 20:00 hour",
        "sex = female, male, diverse; town = towns.csv:town",
        "1,000",
        "rho 0.1 age, joined",
    )
    code, out, err = run("init", visits, "--ask")
    assert code == 0, err
    assert "6 decisions, none open" in out
    policy = read_policy(visits.with_suffix(".toml"))
    assert policy.dataset.unit == EachPerson("patient_id", 3)
    assert policy.dataset.rows == 1_000
    assert not {"visit_id", "note"} & set(policy.attributes)
    assert policy.attributes["age"] == Integer(18, 90)
    assert policy.attributes["price"] == Decimal(0, 500, "0.05")
    joined = policy.attributes["joined"]
    assert isinstance(joined, Date)
    assert (joined.size, joined.grid) == (120, "month")
    assert policy.attributes["sex"] == Category(("female", "male", "diverse"), outside="other")
    assert policy.attributes["town"].labels() == ["north", "south", "(other)"]
    assert policy.identification is not None
    assert policy.identification.protect == ("age", "joined")


def test_wrong_answers_are_explained_and_asked_again(run: Run, visits: Path, answers: Any) -> None:
    wrong = [["ages"], ["patient"], ["age x 9", "age 9", "sex 1 2", "joined 2024-13-01 2025-01-01", "age 9 1"]]
    wrong += [["towns = a"], ["many"], ["rho", "epsilon -1", "rho 0.001 age", "rho 0.1 note"]]
    answers(*(line for lines in wrong for line in (*lines, "")))
    code, out, err = run("init", visits, "--ask", "--json")
    assert code == 0, err
    assert json.loads(out)["decisions"] == 6
    assert 'Did you mean "age"?' in err
    assert "rho = 0.001 cannot be promised" in err


@pytest.mark.parametrize("count", range(DECISIONS))
def test_dialog_that_ends_early_writes_nothing(count: int, run: Run, visits: Path, answers: Any) -> None:
    answers(*[""] * count)
    code, out, err = run("init", visits, "--ask")
    assert (code, out) == (130, "")
    assert "No file was written." in err
    assert sorted(path.name for path in visits.parent.iterdir()) == ["visits.csv"]


def test_interrupted_dialog_writes_nothing(visits: Path) -> None:
    command = [sys.executable, "-c", "from tidegate.cli import main; main()", "init", str(visits), "--ask"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        seen = b""
        end = time.monotonic() + 60
        while b"2. Protect" not in seen and time.monotonic() < end:
            seen += process.stderr.read1(4096)  # type: ignore[attr-defined]
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(60) == 130
    assert b"No file was written." in rest
    assert sorted(path.name for path in visits.parent.iterdir()) == ["visits.csv"]


def test_policy_of_the_dialog_passes_check_and_answers_the_first_query(run: Run, visits: Path, answers: Any) -> None:
    answers("", "patient_id 2", "", "", "", "")
    run("init", visits, "--ask")
    policy = visits.with_suffix(".toml")
    code, out, err = run("check", policy)
    assert code == 0, (out, err)
    assert "joined: date, 7,305 days from 2010-01-01 to 2029-12-31" in out
    query = first_query(read_policy(policy))
    code, out, err = run("answer", policy, query, "--epsilon", "0.5", "--json")
    assert code == 0, err
    assert [row["sex"] for row in json.loads(out)["rows"]] == ["female", "male", "(other)"]


def test_first_query_has_a_group_or_a_condition() -> None:
    def query(**attributes: Any) -> str:
        from tidegate.policy import Dataset

        return first_query(Policy(Dataset("my-data"), attributes))

    assert query(x=Key(), age=Integer(0, 100)) == 'SELECT COUNT(*) FROM "my-data" WHERE age >= 50'
    day = Date("2020-01-01", "2020-12-31")  # type: ignore[arg-type]
    assert query(day=day, note=Text()) == "SELECT COUNT(*) FROM \"my-data\" WHERE day >= DATE '2020-07-02'"
    assert query(note=Text()) == 'SELECT COUNT(note) FROM "my-data"'
    assert query(age=Integer(0, 100), sex=Category(("a", "b"))).endswith("GROUP BY sex")


def test_draft_names_open_decisions_of_all_kinds() -> None:
    columns: dict[str, ColumnType] = {"day": "date", "at": "instant", "t": "time", "sum": "exact", "ok": "yes-no"}
    text = draft_policy("people", "people.csv", columns)
    assert 'zone = "?"' in text
    assert 'ok = { kind = "boolean"' in text


FORMS = """admitted,seen,us,cost,count,comma,iso,ward
13.01.2024,13.01.2024 10:30,01/13/2024,12.50,3,"1.234,50",2024-01-13,NA
02.02.2024,,02/02/2024,NA,NA,"7,5",2024-02-02,a
,03.02.2024 23:59,,7,4,,,b
"""


def test_columns_in_forms_that_are_not_read_have_their_type_and_a_hint(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "my visits.csv"
    data.write_text(FORMS)
    code, out, err = run("init", data)
    assert code == 0, err
    assert f"tidegate check '{data.with_suffix('.toml')}'" in out
    text = data.with_suffix(".toml").read_text()
    attributes = text[text.index("[attributes]") : text.index("[promise")]
    kinds = dict(re.findall(r'^(\w+) = { kind = "(\w+)"', attributes, re.MULTILINE))
    assert kinds == {
        **dict.fromkeys(("admitted", "us", "iso"), "date"),
        "seen": "timestamp",
        "cost": "decimal",
        "count": "integer",
        "comma": "grid",
        "ward": "category",
    }
    hinted = re.findall(r"^# CHANGE THE DATA: .*\n(\w+) =", attributes, re.MULTILINE)
    assert hinted == re.findall(r'Change the column "(\w+)"', err) == ["admitted", "seen", "us", "comma"]
