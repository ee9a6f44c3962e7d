"""Bad input: one clear sentence, exit code 2, no charge, no loss, no private value."""

from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Run

from tidegate.ledger import Ledger

SECRET = "HIV-positive"
BY_SEX = "SELECT sex, COUNT(*) FROM people GROUP BY sex"
ALL = "SELECT COUNT(*) FROM people WHERE sex = 'female'"


def spent(folder: Path) -> str:
    account = Ledger(str(folder / "demo.ledger"), read_only=True).account("people")
    return str(account.spent) if account else "0"


def rewrite(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def make_ragged(folder: Path) -> None:
    with (folder / "people.csv").open("a") as file:
        file.write(f"p1,{SECRET}\n")


def wrong_type(folder: Path) -> None:
    with (folder / "people.csv").open("a") as file:
        file.write(f"p1,{SECRET},female,Aby\n")


def no_data(folder: Path) -> None:
    (folder / "people.csv").unlink()


def infeasible(folder: Path) -> None:
    rewrite(folder / "people.toml", "rho     = 0.05", "rho     = 0.01")


def loosen(folder: Path) -> None:
    rewrite(folder / "people.toml", "rho     = 0.05", "rho     = 0.5")


def declare_missing_column(folder: Path) -> None:
    rewrite(folder / "people.toml", "age       = {", 'years = { kind = "integer", from = 0, to = 9 }\nage = {')


def not_a_ledger(folder: Path) -> None:
    for path in folder.glob("demo.ledger*"):
        if path.is_file():
            path.unlink()
    (folder / "demo.ledger").write_text("this is not a database, it is a long text\n" * 50)


CASES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a short row": (make_ragged, "The policy declares 10,000 rows, but the source has a different number of rows."),
    "a wrong type": (wrong_type, "The policy declares 10,000 rows, but the source has a different number of rows."),
    "no data": (no_data, "There is no file"),
    "an infeasible rho": (infeasible, "cannot be promised"),
    "a loosened promise": (loosen, "can only become stricter"),
    "a column that the source lacks": (declare_missing_column, 'The source has no column "years"'),
    "a file that is no ledger": (not_a_ledger, "is not a ledger"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_reported_in_one_sentence_and_charges_nothing(case: str, run: Run, demo: Path) -> None:
    spoil, says = CASES[case]
    before = spent(demo)
    spoil(demo)
    code, out, err = run("answer", demo / "people.toml", BY_SEX, "--epsilon", "0.1", "--json")
    assert code == 2
    assert says in err
    assert set(json.loads(out)["error"]) == {"code", "what", "do", "facts"}
    assert SECRET not in out + err
    if case != "a file that is no ledger":
        assert spent(demo) == before


WORDS = {
    "an unknown column": (
        ["SELECT towns, COUNT(*) FROM people GROUP BY towns", "--epsilon", "0.1"],
        'Did you mean "town"?',
    ),
    "a key": (
        ["SELECT person, COUNT(*) FROM people GROUP BY person", "--epsilon", "0.1"],
        "cannot be part of a grouping",
    ),
    "no epsilon": ([ALL, "--epsilon", "0"], "above 0"),
    "a word for epsilon": ([ALL, "--epsilon", "much"], "above 0"),
    "percent": ([ALL, "--rho", "2%"], "Write it as a decimal"),
    "a rho above 1": ([ALL, "--rho", "1.5"], "Write 0.05 for 5%"),
    "rows": (["SELECT * FROM people", "--epsilon", "0.1"], "Ask for statistics: SELECT"),
    "two ways": ([ALL, "--epsilon", "0.1", "--rho", "0.02"], "exactly one of `rho`, `epsilon`, `error`, or `share`"),
    "more than is left": ([ALL, "--epsilon", "9"], "remaining of"),
    "a ledger nowhere": ([ALL, "--epsilon", "0.1", "--ledger", "no/such/folder/x.ledger"], "does not exist"),
    "a ledger of another kind": (
        [ALL, "--epsilon", "0.1", "--ledger", "mysql://u:hunter2@h/d"],
        "SQLite file or a Postgres",
    ),
    "a server that is not there": (
        [ALL, "--epsilon", "0.1", "--ledger", "postgresql://u:hunter2@127.0.0.1:1/d"],
        "does not respond",
    ),
    "so small an epsilon that no integer holds its noise": ([ALL, "--epsilon", "1e-40"], "too small"),
}


@pytest.mark.parametrize("case", WORDS)
def test_bad_arguments_are_refused_and_charge_nothing(case: str, run: Run, demo: Path) -> None:
    words, says = WORDS[case]
    before = spent(demo)
    code, out, err = run("answer", demo / "people.toml", *words)
    assert (code, says in err) == (2, True), err
    assert "hunter2" not in out + err
    assert spent(demo) == before


def test_policy_without_budget_explains_how_to_add_a_promise(run: Run, demo: Path) -> None:
    policy, ledger = demo / "people.toml", demo / "bare.ledger"
    policy.write_text(policy.read_text().partition("[promise.")[0])
    code, _, err = run("answer", policy, ALL, "--epsilon", "0.1", "--ledger", ledger)
    assert (code, "add [promise.identification] or [promise.loss]." in err) == (2, True), err
    assert "what was spent" not in err


def test_spent_budget_recommends_no_smaller_request(run: Run, demo: Path) -> None:
    policy, ledger = demo / "people.toml", demo / "loss.ledger"
    policy.write_text(policy.read_text().partition("[promise.")[0] + "[promise.loss]\nepsilon = 0.5\n")
    assert run("answer", policy, ALL, "--epsilon", "0.5", "--ledger", ledger)[0] == 0
    code, _, err = run("answer", policy, BY_SEX, "--epsilon", "0.1", "--ledger", ledger)
    assert (
        code,
        "The budget of this data set is spent: only stored answers are available. See what was spent" in err,
    ) == (2, True), err


def test_missing_column_message_names_both_solutions(run: Run, demo: Path) -> None:
    declare_missing_column(demo)
    _, _, err = run("answer", demo / "people.toml", BY_SEX, "--epsilon", "0.1")
    assert "Add it to the source, or remove it from [attributes]." in err


@pytest.mark.parametrize(
    ("name", "says"), [("peple.csv", 'Did you mean "people.csv"?'), ("zzz", "Name a CSV, Parquet or Arrow file")]
)
def test_init_of_a_missing_file_names_the_next_step(name: str, says: str, run: Run, demo: Path) -> None:
    code, _, err = run("init", demo / name)
    assert (code, says in err) == (2, True), err


def test_used_port_is_refused_before_the_service_starts(run: Run, demo: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, out, err = run("serve", demo / "people.toml", "--port", taken.getsockname()[1])
    assert (code, out) == (2, "")
    assert "Cannot listen on 127.0.0.1" in err
    assert "--port 9000" in err


def test_invalid_port_is_refused(run: Run, demo: Path) -> None:
    code, out, err = run("serve", demo / "people.toml", "--port", "99999")
    assert (code, out, "65535" in err) == (2, "", True)


def test_locked_ledger_is_reported_in_one_sentence(run: Run, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.ledger.store.BUSY_SECONDS", 1)
    before = spent(demo)
    holder = sqlite3.connect(demo / "demo.ledger", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    code, _, err = run("answer", demo / "people.toml", BY_SEX, "--epsilon", "0.1")
    holder.execute("ROLLBACK")
    assert code == 2
    assert "locked by another process" in err
    assert spent(demo) == before
    assert run("answer", demo / "people.toml", BY_SEX, "--epsilon", "0.1")[0] == 0


def test_read_only_ledger_is_reported_in_one_sentence(run: Run, demo: Path) -> None:
    address = f"sqlite:///file:{demo / 'demo.ledger'}?mode=ro&uri=true"
    code, _, err = run("answer", demo / "people.toml", BY_SEX, "--epsilon", "0.1", "--ledger", address)
    assert code == 2
    assert "is read-only, so nothing was charged" in err


def test_internal_error_shows_no_value(run: Run, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"a row with {SECRET}")

    for function, expected, says in (
        ("tidegate.answer.run.check_limits", 1, "This is a bug"),
        ("tidegate.answer.mechanisms.counts.Counts.perturb", 2, "The source could not be read; the charge stands"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(function, broken)
            code, out, err = run("answer", demo / "people.toml", BY_SEX, "--epsilon", "0.1")
        assert (code, says in err) == (expected, True)
        assert SECRET not in out + err


def test_missing_source_after_a_charge_costs_nothing_more(
    run: Run, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidegate.tables import Table

    count, before = Table.count, spent(demo)

    def gone(*args: Any, **named: Any) -> Any:
        if spent(demo) != before:
            raise ConnectionError("gone")
        return count(*args, **named)

    monkeypatch.setattr(Table, "count", gone)
    assert run("answer", demo / "people.toml", BY_SEX, "--epsilon", "0.1")[0] == 2
    charged = spent(demo)
    monkeypatch.setattr(Table, "count", count)
    code, out, _ = run("answer", demo / "people.toml", BY_SEX, "--epsilon", "0.1", "--json")
    assert (code, json.loads(out)["cost"]) == (0, "0")
    assert spent(demo) == charged
