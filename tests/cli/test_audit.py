"""`tidegate audit`: a report, an exit code, and no charge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Run

POLICY = """\
version = 1
[dataset]
name = "people"
source = "nowhere.csv"
rows = 50
unit = "row"
[attributes]
age = { kind = "integer", from = 0, to = 9, missing = "dropped" }
sex = { kind = "category", values = ["f", "m"], missing = "dropped" }
[promise.identification]
rho = 0.4
worlds = "values"
protect = ["age"]
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A policy without a table: an audit needs none."""
    (tmp_path / "people.toml").write_text(POLICY, "utf-8")
    return tmp_path / "people.toml"


@pytest.mark.parametrize("verb", ["ledger", pytest.param("answer", marks=pytest.mark.long)])
def test_audit_writes_its_report_and_changes_nothing_else(run: Run, policy: Path, verb: str) -> None:
    out = policy.parent / "report"
    code, said, errors = run("audit", policy, "--seconds", 2, "--verb", verb, "--out", out)
    assert code == 0, errors
    assert "Created a new ledger" not in errors, "those of attacks are temporary"
    if verb == "answer":
        assert "No promise was broken" in said
        assert "answer: the informed adversary" in errors
    assert "held  " in said
    assert "What was not tried" in said
    assert {path.name for path in policy.parent.iterdir()} == {"people.toml", "report"}
    assert {path.name for path in out.iterdir()} == {"report.html", "report.json"}


def test_json_output_is_one_value(run: Run, policy: Path) -> None:
    code, said, _ = run("audit", policy, "--seconds", 1, "--verb", "ledger", "--seed", 4, "--json")
    content = json.loads(said)
    assert (code, content["broken"], content["seed"]) == (0, 0, 4)
    assert {finding["verb"] for finding in content["findings"]} == {"ledger"}


def test_broken_promise_exits_with_3(run: Run, policy: Path, tmp_path: Path) -> None:
    """The user's ledger was changed from outside."""
    import sqlite3

    import pyarrow as pa

    import tidegate as tg

    table = pa.table({"age": [1] * 50, "sex": ["f"] * 50})
    with tg.open(policy, table=table) as session:
        session.answer(tg.count().by("sex"), epsilon="0.1", anyway=True)
        address = session.ledger_address
    sql: Any = sqlite3.connect(address, isolation_level=None)
    sql.execute("UPDATE tidegate_entries SET amount = '0' WHERE kind = 'charge'")
    sql.close()
    code, said, _ = run("audit", policy, "--seconds", 1, "--verb", "ledger")
    assert code == 3
    assert "1 promise is broken" in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--verb", "everything"), "to attack"),
        (("--seconds", "0"), "--seconds"),
        (("--seed", "-1"), "--seed"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(run: Run, policy: Path, words: tuple[str, ...], says: str) -> None:
    code, _, error = run("audit", policy, *words)
    assert code == 2
    assert says in error
