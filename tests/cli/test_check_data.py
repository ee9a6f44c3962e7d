"""`check --data` shows the data holder exactly where the data does not match the policy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.conftest import Run

from tidegate.ledger import Ledger

WARNING = "NOT FOR PUBLICATION: exact figures from private data"
POLICY = """
[dataset]
name = "diamonds"
source = "diamonds.csv"
unit = "row"
rows = {rows}
[attributes]
carat = {{ kind = "grid", from = 0.2, to = 3.0, step = 0.1 }}
cut = {{ kind = "category", values = {cuts} }}
[promise.loss]
epsilon = 2.0
"""
CUTS = '["Fair", "Good", "Ideal"]'


@pytest.fixture
def diamonds(tmp_path: Path) -> Path:
    """60 rows: 40% Ideal, ten carats above the bounds, one missing cut."""
    cuts = ["Ideal"] * 24 + ["Fair"] * 20 + ["Good"] * 15 + [""]
    rows = [f"{5.0 if n < 10 else 1.0},{cut}" for n, cut in enumerate(cuts)]
    (tmp_path / "diamonds.csv").write_text("carat,cut\n" + "\n".join(rows) + "\n")
    return tmp_path / "diamonds.toml"


def write(path: Path, *, rows: int = 60, cuts: str = CUTS) -> Path:
    path.write_text(POLICY.format(rows=rows, cuts=cuts))
    return path


def test_misspelled_label_is_reported_with_its_rows_and_the_nearest_label(run: Run, diamonds: Path) -> None:
    write(diamonds, cuts='["Fair", "Good", "ideal"]')
    assert run("check", diamonds)[0] == 0, "the check without --data reads no row"
    code, out, _ = run("check", diamonds, "--data")
    assert code == 1
    assert 'cut: "Ideal" 24 rows, not listed: did you mean "ideal"?' in out
    assert "! Column \"cut\": No row has 'ideal', which the policy lists." in out
    assert '! Column "cut": 40.0% of the rows are outside the values that the policy declares.' in out
    assert (out.splitlines()[0], out.splitlines()[-1]) == (WARNING, WARNING)


def test_values_that_count_as_other_are_reported_too(run: Run, diamonds: Path) -> None:
    write(diamonds, cuts='["Fair", "Good", "ideal"], outside = "other"')
    diamonds.write_text(diamonds.read_text().replace("to = 3.0", "to = 5.0"))
    code, out, _ = run("check", diamonds, "--data")
    assert code == 1
    assert "24 other" in out
    assert 'cut: "Ideal" 24 rows, not listed: did you mean "ideal"?' in out
    assert "% of the rows are outside" not in out, "the policy has a value for them"
    write(diamonds, cuts='["Fair", "Good"], outside = "other"')
    diamonds.write_text(diamonds.read_text().replace("to = 3.0", "to = 5.0"))
    code, out, _ = run("check", diamonds, "--data")
    assert (code, 'cut: "Ideal" 24 rows, not listed' in out) == (0, True)


def test_short_codes_are_not_taken_for_each_other(run: Run, diamonds: Path) -> None:
    diamonds.with_suffix(".csv").write_text("carat,cut\n" + "1,IL\n" * 50 + "1,MI\n" * 5 + "1,il\n" * 5)
    _, out, _ = run("check", write(diamonds, cuts='["IL", "NY"]'), "--data")
    assert 'cut: "MI" 5 rows, not listed\n' in out
    assert 'cut: "il" 5 rows, not listed: did you mean "IL"?' in out


def test_rows_outside_and_missing_values_are_counted(run: Run, diamonds: Path) -> None:
    code, out, _ = run("check", write(diamonds), "--data", "--json")
    content = json.loads(out)
    carat, cut = content["columns"]
    assert code == 1
    assert (carat["outside"], carat["missing"], carat["distinct"]) == ({"below": 0, "above": 10, "unreadable": 0}, 0, 2)
    assert (cut["outside"], cut["missing"], cut["absent"]) == ({"unlisted": 0, "unreadable": 0}, 1, [])
    assert (content["rows"], content["declared"], content["warning"]) == (60, 60, WARNING)


def test_matching_data_exits_with_0(run: Run, diamonds: Path) -> None:
    write(diamonds).write_text(diamonds.read_text().replace("to = 3.0", "to = 5.0"))
    code, out, _ = run("check", diamonds, "--data")
    assert (code, "The data matches the policy." in out) == (0, True)


def test_wrong_number_of_rows_is_reported_and_refuses_every_answer(run: Run, diamonds: Path) -> None:
    code, out, _ = run("check", write(diamonds, rows=10), "--data")
    assert code == 1
    assert "! The policy declares 10 rows, but the source has 60." in out
    for query in ("SELECT AVG(carat) FROM diamonds", "SELECT cut, COUNT(*) FROM diamonds GROUP BY cut"):
        code, _, err = run("answer", diamonds, query, "--epsilon", "1", "--anyway")
        assert code == 2
        assert "The policy declares 10 rows, but the source has a different number of rows." in err
        assert "60" not in err.partition("SourceUnreadable")[2], "the true number; the path of a new ledger may hold it"
    assert str(Ledger(str(diamonds.with_name("diamonds.ledger"))).account("diamonds").spent) == "0"  # type: ignore[union-attr]


def test_decimal_outside_of_its_bounds_is_counted(run: Run, tmp_path: Path) -> None:
    policy = tmp_path / "payments.toml"
    policy.write_text(
        '[dataset]\nname = "payments"\nsource = "payments.csv"\nunit = "row"\n'
        '[attributes]\namount = { kind = "decimal", from = 1, to = 2, step = 0.01 }\n[promise.loss]\nepsilon = 1.0\n'
    )
    (tmp_path / "payments.csv").write_text("amount\n0.50\n1.50\n1200.50\n3.50\n")
    code, out, _ = run("check", policy, "--data", "--json")
    assert code == 1
    assert json.loads(out)["columns"][0]["outside"] == {"below": 1, "above": 2, "unreadable": 0}


def test_persons_with_too_many_rows_and_rows_without_a_key_are_counted(run: Run, tmp_path: Path) -> None:
    policy = tmp_path / "visits.toml"
    policy.write_text(
        '[dataset]\nname = "visits"\nsource = "visits.csv"\nunit = { person = "patient", at_most = 2 }\nrows = 9\n'
        '[attributes]\npatient = { kind = "key" }\nage = { kind = "integer", from = 0, to = 99 }\n'
        "[promise.loss]\nepsilon = 1.0\n"
    )
    keys = ["a"] * 5 + ["b"] * 2 + ["c", "", ""]
    (tmp_path / "visits.csv").write_text("patient,age\n" + "\n".join(f"{key},30" for key in keys) + "\n")
    code, out, _ = run("check", policy, "--data")
    assert code == 1
    assert '3 persons by "patient"; the policy declares 9; 2 rows without a key are ignored' in out
    assert "1 person with more than 2 rows: 3 rows not counted" in out


@pytest.mark.parametrize(("records", "is_problem"), [(14, True), (15, False), (60, False), (61, True)])
def test_number_of_records_that_is_off_by_more_than_two_is_a_problem(
    run: Run, tmp_path: Path, records: int, is_problem: bool
) -> None:
    (tmp_path / "visits.csv").write_text("person,age\n" + "".join(f"p{n % 10},{n}\n" for n in range(30)))
    (tmp_path / "visits.toml").write_text(
        f"""
[dataset]
name = "visits"
source = "visits.csv"
unit = {{ person = "person", at_most = 3 }}
rows = 10
records = {records}
[attributes]
person = {{ kind = "key" }}
age = {{ kind = "integer", from = 0, to = 90 }}
[promise.loss]
epsilon = 1
"""
    )
    code, out, _ = run("check", tmp_path / "visits.toml", "--data")
    assert code == is_problem
    assert ("(`records`), but the source has 30: expected errors are wrong." in out) == is_problem


def test_records_that_are_not_well_formed_are_counted_and_never_shown_to_analysts(run: Run, diamonds: Path) -> None:
    write(diamonds, rows=64)
    with diamonds.with_name("diamonds.csv").open("ab") as file:
        file.write(b'a secret,Good\n1.0\n1.0,Good,a secret\n1.0,"\xe9 secret\n')
    code, out, _ = run("check", diamonds, "--data")
    assert code == 1
    assert "3 lines are not well formed, and 1 line has characters that are not UTF-8." in out
    assert '"carat"' in out
    content = json.loads(run("check", diamonds, "--data", "--json")[1])
    assert content["malformed"] == {"lines": 3, "characters": 1, "values": {"carat": 1, "cut": 0}}
    assert content["columns"][0]["outside"] == {"below": 0, "above": 10, "unreadable": 1}
    code, out, err = run("answer", diamonds, "SELECT cut, COUNT(*) FROM diamonds GROUP BY cut", "--epsilon", "1")
    assert (code, "secret" in out + err, "well formed" in out + err) == (0, False, False)


def test_nothing_is_recorded(run: Run, diamonds: Path) -> None:
    run("check", write(diamonds), "--data")
    assert not diamonds.with_name("diamonds.ledger").exists()
