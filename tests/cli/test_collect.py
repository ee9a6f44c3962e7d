"""collect define, randomize, submit, estimate, verify: from a policy file to a chart, with clear errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.conftest import Run

POLICY = """
[dataset]
name = "people"
unit = "row"
[attributes]
age = { kind = "integer", from = 16, to = 60 }
town = { kind = "category", values = ["north", "south"], missing = "value" }
size = { kind = "category", values = [1, 2, 3] }
[collection.shoppers]
questions.age = { attribute = "age", operator = "square-wave", epsilon = 2.0 }
questions.town = { attribute = "town", operator = "subset", epsilon = 1.0 }
questions.size = { attribute = "size", operator = "randomized-response", epsilon = 1.5 }
"""


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.toml"
    path.write_text(POLICY)
    rows = [f"p{n},{20 + n % 30},{('north', 'south', '')[n % 3]},{1 + n % 3}" for n in range(300)]
    (tmp_path / "answers.csv").write_text("name,age,town,size\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def reports_file(run: Run, people: Path) -> Path:
    """The reports of three hundred people."""
    folder = people.parent
    assert run("collect", "define", people, "shoppers", "--out", folder / "d.json")[0] == 0
    words = ("--answers", folder / "answers.csv", "--out", folder / "reports.jsonl")
    assert run("collect", "randomize", folder / "d.json", *words)[0] == 0
    return folder / "reports.jsonl"


def test_policy_with_only_a_collection_is_valid(run: Run, people: Path) -> None:
    code, out, _ = run("check", people)
    assert code == 0
    assert "One person loses at most epsilon 4.5 (age 2, town 1, size 1.5)" in out
    assert "tidegate collect define" in out


def test_policy_without_promises_is_still_a_problem(run: Run, people: Path) -> None:
    people.write_text(POLICY.partition("[collection")[0])
    assert run("check", people)[0] == 2


def test_define_opens_and_describes_a_collection(run: Run, people: Path) -> None:
    code, out, err = run("collect", "define", people)
    described = json.loads(out)
    assert code == 0
    assert described["collection"] == "shoppers"
    assert described["fingerprint"] in err
    assert "loses at most epsilon 4.5" in err
    assert json.loads(run("collect", "define", people, "--json")[1])["description"] == described
    assert "The collection opened, version 1" in run("ledger", "show", people)[1]
    assert "spent" not in run("ledger", "show", people)[1], "a collection has no budget"


def test_answers_become_a_distribution_and_a_chart(run: Run, people: Path, reports_file: Path) -> None:
    folder = people.parent
    assert "north" not in reports_file.read_text()
    code, out, _ = run("collect", "submit", people, "shoppers", reports_file)
    assert (code, out) == (0, "300 reports accepted, 0 refused. 300 in total.\n")
    code, out, _ = run("collect", "estimate", people, "shoppers", "age", "--plot", folder / "age.png")
    assert code == 0
    assert "300 reports, method bank; the mean is" in out
    assert (folder / "age.png").read_bytes().startswith(b"\x89PNG")
    content = json.loads(run("collect", "estimate", people, "shoppers", "--json")[1])
    assert [item["question"] for item in content] == ["age", "town", "size"]
    assert json.loads(run("collect", "estimate", people, "shoppers", "town", "--json")[1])["labels"][-1] == "missing"
    assert run("collect", "verify", people)[1].startswith("300 reports in 1 segment ")
    assert run("ledger", "verify", people)[0] == 0


def test_repeated_submission_counts_nothing_twice(run: Run, people: Path, reports_file: Path) -> None:
    run("collect", "submit", people, "shoppers", reports_file)
    code, out, _ = run("collect", "submit", people, "shoppers", reports_file)
    assert (code, out) == (0, "0 reports accepted, 0 refused. 300 were counted before. 300 in total.\n")


def test_interrupted_submission_continues(
    run: Run, people: Path, reports_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.cli.collect.BATCH", 100)
    lines = reports_file.read_text().splitlines(keepends=True)
    first = reports_file.with_name("first.jsonl")
    first.write_text("".join(lines[:200]))
    run("collect", "submit", people, "shoppers", first)
    content = json.loads(run("collect", "submit", people, "shoppers", reports_file, "--json")[1])
    assert (content["taken"], content["taken_before"], content["refused"], content["reports"]) == (100, 200, 0, 300)


def test_refusals_are_grouped_with_their_lines(run: Run, people: Path, reports_file: Path) -> None:
    lines = reports_file.read_text().splitlines()
    wrong = lines[3].replace('"version":1', '"version":2')
    reports_file.write_text("\n".join([lines[0], "{", lines[1], lines[0], wrong, ""]))
    code, out, _ = run("collect", "submit", people, "shoppers", reports_file)
    assert code == 0
    assert "2 reports accepted, 3 refused." in out
    assert "1: malformed" in out
    assert "(line 2)" in out
    assert "1: it answers another version; this is version 1 (line 5)" in out
    reports_file.write_text("{}\n[]\n")
    assert run("collect", "submit", people, "shoppers", reports_file)[0] == 2


def test_memory_repeats_the_report_of_a_person(run: Run, people: Path, reports_file: Path) -> None:
    folder = people.parent
    (folder / "me.csv").write_text("age,town,size\n34,north,2\n34,north,2\n")
    for out in ("one.jsonl", "two.jsonl"):
        words = ("--answers", folder / "me.csv", "--memory", folder / "memory.json", "--out", folder / out)
        code, said, _ = run("collect", "randomize", folder / "d.json", *words)
        assert code == 0
        assert "stored" not in said
    reports = [line for out in ("one.jsonl", "two.jsonl") for line in (folder / out).read_text().splitlines()]
    assert len(reports) == 4
    assert len(set(reports)) == 1


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ("age,town\n34,north\n", "missing columns: size"),
        ("age,town,size\n34,north\n", "has 2 fields"),
        ("age,town,size\n34,north,2\nsecret,north,2\n", 'Row 2: "age" needs a number'),
        ("age,town,size\n34,north,7\n", 'Row 1: "size" must be one of its 3 listed values'),
        ("age,town,size\n,north,1\n", "it was left empty"),
    ],
)
def test_invalid_answers_are_refused_without_being_quoted(
    run: Run, people: Path, reports_file: Path, answers: str, said: str
) -> None:
    folder = people.parent
    (folder / "bad.csv").write_text(answers)
    code, out, err = run(
        "collect", "randomize", folder / "d.json", "--answers", folder / "bad.csv", "--out", folder / "x"
    )
    assert code == 2
    assert said in err
    assert "secret" not in out + err
    assert not (folder / "x").exists()


def test_unreadable_and_unwritable_files_are_reported(run: Run, people: Path, reports_file: Path) -> None:
    folder = people.parent
    answers = ("--answers", folder / "answers.csv", "--out", folder / "y.jsonl")
    assert "not the description of a collection" in run("collect", "randomize", folder / "answers.csv", *answers)[2]
    assert "No such file" in run("collect", "randomize", folder / "none.json", *answers)[2]
    assert (
        "does not have the fingerprint"
        in run("collect", "randomize", folder / "d.json", *answers, "--fingerprint", "00")[2]
    )
    assert "it already exists" in run("collect", "randomize", folder / "d.json", *answers[:3], reports_file)[2]
    assert "Cannot read" in run("collect", "submit", people, "shoppers", folder / "none.jsonl")[2]
    assert "no collection called" in run("collect", "submit", people, "voters", reports_file)[2]
    assert "There is no counted report yet" in run("collect", "estimate", people, "shoppers", "age")[2]
    assert (
        "`--plot` needs a single question"
        in run("collect", "estimate", people, "shoppers", "--plot", folder / "z.png")[2]
    )


def test_changed_description_is_refused(run: Run, people: Path, reports_file: Path) -> None:
    folder = people.parent
    described = json.loads((folder / "d.json").read_text())
    described["questions"]["age"]["epsilon"] = 9
    (folder / "e.json").write_text(json.dumps(described))
    code, _, err = run(
        "collect", "randomize", folder / "e.json", "--answers", folder / "answers.csv", "--out", folder / "x"
    )
    assert code == 2
    assert "was changed in transit" in err


def test_changed_segments_are_detected(run: Run, people: Path, reports_file: Path) -> None:
    run("collect", "submit", people, "shoppers", reports_file)
    (segment,) = people.parent.rglob("*.parquet")
    segment.write_bytes(segment.read_bytes() + b"x")
    code, _, err = run("collect", "verify", people)
    assert code == 2
    assert "is missing or differs from its entry" in err


def test_closed_collection_reports_its_state(run: Run, people: Path, reports_file: Path) -> None:
    people.write_text(POLICY + "closed = true\n")
    assert "is closed" in run("collect", "define", people, "--out", people.parent / "f.json")[1]
    code, out, _ = run("collect", "submit", people, "shoppers", reports_file)
    assert code == 2
    assert '300: the collection "shoppers" is closed' in out


def test_rows_with_a_memory_count_as_one_person(run: Run, people: Path, reports_file: Path) -> None:
    folder = people.parent
    words = ("--answers", folder / "answers.csv", "--memory", folder / "memory.json", "--out")
    code, _, err = run("collect", "randomize", folder / "d.json", *words, folder / "all.jsonl")
    assert (code, "have used" in err) == (2, True), "one person has no room for the answers of 300"
    assert not (folder / "all.jsonl").exists()
    (folder / "answers.csv").write_text("age,town,size\n" + "20,north,1\n" * 3)
    words = ("--answers", folder / "answers.csv", "--memory", folder / "own.json", "--out")
    result = run("collect", "randomize", folder / "d.json", *words, folder / "mine.jsonl")
    assert (result[0], "All 3 rows count as one person" in result[1]) == (0, True)
    result = run("collect", "randomize", folder / "d.json", *words, folder / "again.jsonl", "--json")
    assert (json.loads(result[1])["persons"], json.loads(result[1])["reports"]) == (1, 3)


SETS = """
[dataset]
name = "canteen"
unit = "row"
[attributes]
dishes = { kind = "items", vocabulary = ["curry", "pasta", "tofu"] }
[collection.poll]
questions.dishes = { attribute = "dishes", operator = "privset", epsilon = 4.0, choose = 2 }
"""


def test_shares_of_chosen_options(run: Run, tmp_path: Path) -> None:
    policy = tmp_path / "canteen.toml"
    policy.write_text(SETS)
    (tmp_path / "a.csv").write_text("dishes\n" + "curry;pasta\n" * 200 + "pasta\n" * 100)
    assert run("collect", "define", policy, "--out", tmp_path / "d.json")[0] == 0
    words = ("--answers", tmp_path / "a.csv", "--out", tmp_path / "r.jsonl")
    assert run("collect", "randomize", tmp_path / "d.json", *words)[0] == 0
    assert run("collect", "submit", policy, "poll", tmp_path / "r.jsonl")[0] == 0
    code, out, _ = run("collect", "shares", policy)
    assert code == 0
    assert out.startswith("dishes: 300 reports; intervals are at most")
    assert "if 1% were false" in out
    _, out, _ = run("collect", "shares", policy, "poll", "--question", "dishes", "--json")
    rows = {row["option"]: row for row in json.loads(out)["rows"]}
    assert rows["pasta"]["high"] == 1
    assert rows["tofu"]["low"] == 0
    assert abs(rows["curry"]["raw"] - 2 / 3) < 0.3
