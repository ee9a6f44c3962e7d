"""Commands as people type them: sentences, --json, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Run

BY_SEX = "SELECT sex, COUNT(*) FROM people GROUP BY sex"


def as_json(result: tuple[int, str, str]) -> Any:
    assert result[0] == 0, result
    return json.loads(result[1])


def test_demo_tour_answers_repeats_refuses_and_verifies(run: Run, tmp_path: Path) -> None:
    content = as_json(run("demo", "--no-serve", "--folder", tmp_path, "--json"))
    assert content["answer"]["rows"] == content["again"]["rows"]
    assert content["free"]["values"] == content["answer"]["rows"][0]["count"]
    assert (content["answer"]["cost"], content["again"]["cost"]) == ("0.2", "0")
    assert "remaining of" in content["refused"]
    assert content["verified"]


def test_demo_tour_can_be_repeated_at_no_cost(run: Run, demo: Path) -> None:
    content = as_json(run("demo", "--no-serve", "--folder", demo, "--json"))
    assert content["answer"]["cost"] == "0"


def test_check_counts_the_open_decisions_of_a_draft(run: Run, demo: Path) -> None:
    out = demo / "new.toml"
    assert as_json(run("init", demo / "people.csv", "--out", out, "--json"))["open"] == 13
    code, _, err = run("check", out)
    assert code == 2
    assert "13 decisions are still open" in err
    code, _, err = run("init", demo / "people.csv", "--out", out)
    assert (code, "was not changed" in err) == (2, True)


def test_init_copies_no_value_from_the_data(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ill.csv").write_text("patient_id,age,ward\n1,87,HIV-positive\n2,33,Oncology\n")
    run("init", tmp_path / "ill.csv")
    text = (tmp_path / "ill.toml").read_text()
    assert not any(value in text for value in ("87", "33", "HIV", "Oncology"))
    assert 'patient_id = { kind = "key" }' in text


def test_check_explains_the_promise(run: Run, demo: Path) -> None:
    code, out, _ = run("check", demo / "people.toml")
    assert code == 0
    assert "Among 73 possibilities, a random guess is right with probability 0.0137" in out
    assert "No problem" in out
    assert as_json(run("check", demo / "people.toml", "--json"))["problems"] == 0


def test_check_refuses_an_infeasible_rho_and_suggests_another(run: Run, demo: Path) -> None:
    policy = demo / "people.toml"
    policy.write_text(policy.read_text().replace('protect = ["age"]', 'protect = ["age", "town"]'))
    code, out, _ = run("check", policy)
    assert code == 2
    assert 'rho = 0.05 cannot be promised for "town"' in out
    assert "at least 0.2001" in out


def test_preview_is_free_and_states_the_cost(run: Run, demo: Path) -> None:
    policy = demo / "people.toml"
    before = as_json(run("answer", policy, BY_SEX, "--epsilon", "0.1", "--preview", "--json"))
    code, out, _ = run("answer", policy, BY_SEX, "--epsilon", "0.1", "--preview")
    assert (code, "nothing was charged" in out) == (0, True)
    content = as_json(run("answer", policy, BY_SEX, "--epsilon", "0.1", "--json"))
    assert content["cost"] == before["cost"] == "0.1"
    assert float(before["left"]) - float(content["left"]) == pytest.approx(0.1)
    code, out, _ = run("answer", policy, BY_SEX, "--epsilon", "0.1")
    assert "female" in out
    assert "cost 0," in out


def test_several_queries_fit_the_remaining_budget_and_some_are_free(run: Run, demo: Path) -> None:
    policy = demo / "people.toml"
    content = as_json(run("answer", policy, "SELECT AVG(age), MEDIAN(age) FROM people", BY_SEX, "--fit", "--json"))
    assert content["fits"]
    assert len(content["expected"]) == 3
    free = as_json(
        run(
            "answer",
            policy,
            "SELECT COUNT(*) FROM people WHERE town = 'Ek'",
            "SELECT MAX(age) FROM people",
            "--free",
            "--json",
        )
    )
    assert [item["values"] is None for item in free] == [False, True]
    assert "cannot be derived from earlier answers" in run("answer", policy, "SELECT MAX(age) FROM people", "--free")[1]
    assert "nothing was charged" in run("answer", policy, "SELECT AVG(age) FROM people", "--error", "1", "--preview")[1]


def test_answer_can_be_plotted(run: Run, demo: Path) -> None:
    picture = demo / "sex.png"
    assert run("answer", demo / "people.toml", BY_SEX, "--epsilon", "0.1", "--plot", picture)[0] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    code, _, err = run("answer", demo / "people.toml", BY_SEX, "--epsilon", "0.1", "--plot", demo / "no" / "x.png")
    assert (code, "Run the query again with another --plot" in err) == (2, True)
    assert run("answer", demo / "people.toml", BY_SEX, "--epsilon", "0.1", "--plot", "x.txt")[0] == 2
    ordered = run("answer", demo / "people.toml", f"{BY_SEX} ORDER BY 1", "--epsilon", "0.1", "--plot", picture)
    assert (ordered[0], "Leave out AS, HAVING, ORDER BY" in ordered[2]) == (2, True), "no chart would be written"


def test_ledger_is_shown_verified_and_exported(run: Run, demo: Path, tmp_path: Path) -> None:
    policy = demo / "people.toml"
    code, out, _ = run("ledger", "show", policy)
    assert code == 0
    assert "the demo queried the number of rows by town: 0.2 charged" in out
    head = as_json(run("ledger", "verify", policy, "--json"))["head"]
    assert as_json(run("ledger", "verify", demo / "demo.ledger", "--head", head, "--json"))["holds"]
    export = tmp_path / "people.jsonl"
    assert as_json(run("ledger", "export", policy, "--out", export, "--json"))["lines"] == 9
    assert as_json(run("ledger", "verify", export, "--head", head, "--json"))["head"] == head
    assert run("ledger", "export", policy)[1] == export.read_text()
    code, _, err = run("ledger", "verify", export, "--head", "ab" * 32)
    assert (code, "cut off or rewritten" in err) == (2, True)


def test_changed_ledger_is_detected(run: Run, demo: Path) -> None:
    import sqlite3

    with sqlite3.connect(demo / "demo.ledger") as database:
        database.execute("UPDATE tidegate_entries SET amount = '0.1' WHERE kind = 'charge'")
    code, out, err = run("ledger", "verify", demo / "people.toml", "--json")
    assert code == 2
    assert json.loads(out)["error"]["code"] == "ledger-broken"
    assert "does not match its hash" in err


def test_convert_works_in_both_directions(run: Run) -> None:
    content = as_json(run("risk", "convert", "--worlds", "99", "--rho", "0.1", "--json"))
    assert content["epsilon"].startswith("2.3877")
    back = as_json(run("risk", "convert", "--worlds", "99", "--epsilon", content["epsilon"], "--json"))
    assert float(back["rho"]) == pytest.approx(0.1, abs=1e-9)
    assert run("risk", "convert", "--worlds", "9", "--rho", "0.1")[0] == 2


def test_version_and_help_are_printed(run: Run) -> None:
    assert run("--version")[1].startswith("tidegate ")
    assert "Publish data" in run("--help")[1]


def test_groups_are_called_different_only_where_the_noise_supports_it(run: Run, demo: Path) -> None:
    policy = demo / "people.toml"
    code, out, _ = run(
        "answer", policy, "SELECT sex, COUNT(*) FROM people GROUP BY sex", "--epsilon", "0.0001", "--anyway"
    )
    assert code == 0
    assert "The noise could explain all differences between groups." in out
    code, out, _ = run(
        "answer", policy, "SELECT sex, COUNT(*) FROM people GROUP BY sex", "--epsilon", "0.0001", "--anyway", "--json"
    )
    assert json.loads(out)["comparison"]["differing"] == 0
