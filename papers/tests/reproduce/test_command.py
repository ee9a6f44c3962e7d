"""The commands `reproduce` and `risk worlds`, as users type them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.conftest import Run

WORLDS = ("risk", "worlds", "--universe", "1,2,3,4,5,10", "--known", "1,2,3", "--scale", "1.125")


def test_missing_data_is_explained_in_one_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEGATE_DATA", raising=False)
    code, out, err = run("reproduce", "identifiability")
    assert code == 0
    assert "60 reproduced, 12 within noise, 8 errata, 2 differ." in out
    assert "erratum t4_sd_AG_S: local to this table" in out
    assert "10.24432/C5XW20" in err
    assert "23 items were left out" in err


def test_folder_without_the_table_counts_as_no_data(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIDEGATE_DATA", str(tmp_path))
    assert "23 items were left out" in run("reproduce", "identifiability")[2]


def test_json_is_a_list_of_items(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEGATE_DATA", raising=False)
    code, out, _ = run("reproduce", "identifiability", "--json")
    items = json.loads(out)
    assert code == 0
    assert len(items) == 82
    assert {key for item in items for key in item} == {
        "id",
        "where",
        "published",
        "ours",
        "tolerance",
        "status",
        "note",
        "z",
        "size",
        "noise",
    }
    assert {item["status"] for item in items} == {"reproduced", "within noise", "erratum", "differs"}


def test_every_item_is_computed_with_data(run: Run, public_data: Path) -> None:
    code, out, err = run("reproduce", "identifiability")
    assert (code, err) == (0, "")
    assert "82 reproduced, 12 within noise, 9 errata, 2 differ." in out


@pytest.mark.long  # test_identifiability.py writes the same page
def test_option_out_writes_figures_and_a_page(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TIDEGATE_DATA", raising=False)
    code, out, _ = run("reproduce", "identifiability", "--out", tmp_path / "new" / "folder")
    assert code == 0
    written = sorted(path.name for path in (tmp_path / "new" / "folder").iterdir())
    assert written == ["figure-1.png", "figure-2.png", "figure-3.png", "figure-4.png", "identifiability.html"]
    assert all(name in out for name in written)


def test_folder_that_cannot_be_created_is_reported(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = run("reproduce", "identifiability", "--out", tmp_path / "file" / "folder")
    assert (code, "cannot be created" in err) == (2, True)


def test_worlds_of_section_3_5_are_reproduced(run: Run) -> None:
    code, out, _ = run(*WORLDS, "--response", "5.041")
    assert code == 0
    assert "probability 0.6278 (before: 0.3333)." in out
    result = json.loads(run(*WORLDS, "--response", "5.041", "--json")[1])
    assert [row["missing"] for row in result["worlds"]] == ["4", "5", "10"]
    assert sum(row["after"] for row in result["worlds"]) == pytest.approx(1)
    assert result["worst_risk"] == pytest.approx(max(row["at_worst"] for row in result["worlds"]))


def test_worst_risk_is_shown_without_a_response(run: Run) -> None:
    code, out, _ = run(*WORLDS)
    assert code == 0
    assert "No answer gives any value a probability above 0.6278. The answer 4 gives it to 10." in out
    assert "after" not in json.loads(run(*WORLDS, "--json")[1])["worlds"][0]


def test_ranges_priors_and_repeated_values_are_accepted(run: Run) -> None:
    ten = ("risk", "worlds", "--universe", "1..10", "--known", "1,3", "--scale", "2", "--json")
    assert len(json.loads(run(*ten)[1])["worlds"]) == 8
    assert len(json.loads(run(*ten, "--may-repeat")[1])["worlds"]) == 10
    prior = json.loads(run(*ten, "--prior", ".3,.1,.1,.1,.1,.1,.1,.1")[1])
    assert prior["worlds"][0]["before"] == 0.3
    assert prior["worst_risk"] > json.loads(run(*ten)[1])["worst_risk"]


@pytest.mark.parametrize(
    ("statistic", "answers"),
    [
        ("mean", [2.5, 2.75, 4]),
        ("sum", [10, 11, 16]),
        ("median", [2.5, 2.5, 2.5]),
        ("min", [1, 1, 1]),
        ("max", [4, 5, 10]),
        ("std", [1.2909944487, 1.7078251277, 4.0824829046]),
    ],
)
def test_worlds_have_every_statistic(statistic: str, answers: list[float], run: Run) -> None:
    result = json.loads(run(*WORLDS, "--statistic", statistic, "--json")[1])
    assert [row["answer"] for row in result["worlds"]] == pytest.approx(answers)


def test_count_uses_its_threshold(run: Run) -> None:
    result = json.loads(run(*WORLDS, "--statistic", "count", "--at-least", "5", "--json")[1])
    assert [row["answer"] for row in result["worlds"]] == [0, 1, 1]


BAD = {
    "a word": (["--universe", "1,x", "--scale", "1"], "must be a number"),
    "nothing": (["--universe", ",", "--scale", "1"], "`--universe` is empty"),
    "a division by zero": (["--universe", "1/0,2", "--scale", "1"], "must be a number"),
    "a number beyond all bounds": (["--universe", "1,2", "--scale", "1e999999999"], "must be"),
    "a range backwards": (["--universe", "9..1", "--scale", "1"], "is not a range"),
    "an unknown value": (["--universe", "1,2", "--known", "3", "--scale", "1"], "not in `--universe`"),
    "a repeated value": (["--universe", "1,2", "--known", "1,1", "--scale", "1"], "--may-repeat"),
    "all values known": (["--universe", "1,2", "--known", "1,2", "--scale", "1"], "no possible value remains"),
    "no noise": (["--universe", "1,2", "--scale", "0"], "above 0"),
    "a misspelt statistic": (["--universe", "1,2", "--scale", "1", "--statistic", "meen"], 'Did you mean "mean"?'),
    "a deviation of one row": (["--universe", "1,2", "--scale", "1", "--statistic", "std"], "two rows"),
    "a count of nothing": (["--universe", "1,2", "--scale", "1", "--statistic", "count"], "--at-least"),
    "a threshold for a mean": (["--universe", "1,2", "--scale", "1", "--at-least", "1"], "works only with"),
    "too short a prior": (["--universe", "1,2", "--scale", "1", "--prior", "1"], "for 2 possible values"),
    "a prior that does not sum to one": (["--universe", "1,2", "--scale", "1", "--prior", ".5,.4"], "has the sum 0.9"),
    "an impossible world": (["--universe", "1,2", "--scale", "1", "--prior", "1,0"], "above 0"),
    "too many worlds": (["--universe", "1..99999", "--scale", "1"], "99,999 possible values"),
    "more than a list can hold": (["--universe", "1..1e11", "--scale", "1"], "contains more than"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_worlds_are_refused_with_a_next_step(case: str, run: Run) -> None:
    words, says = BAD[case]
    code, out, err = run("risk", "worlds", *words, "--json")
    assert (code, says in err) == (2, True), err
    assert json.loads(out)["error"]["code"] == "unsupported"
    assert json.loads(out)["error"]["do"]
