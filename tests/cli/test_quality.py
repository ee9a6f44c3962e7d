"""`tidegate quality`: a report for the data holder, or charged numbers."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest
from cli.conftest import Run


@pytest.fixture
def synthetic(demo: Path) -> Path:
    """Two tables without the key, sampled from the demo's rows."""
    with (demo / "people.csv").open() as file:
        head, *rows = list(csv.reader(file))
    (demo / "synthetic").mkdir()
    for number in range(2):
        draw = random.Random(number)
        with (demo / "synthetic" / f"table-{number}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([head[1:], *(draw.choice(rows)[1:] for _ in range(2000))])
    return demo / "synthetic"


def test_report_of_a_folder_states_its_audience(run: Run, demo: Path, synthetic: Path) -> None:
    code, out, error = run("quality", demo / "people.toml", synthetic, "--out", demo / "report.html", "--rows", 1000)
    assert code == 0, error
    assert out.startswith("NOT FOR ANALYSTS")
    assert "2 synthetic tables of 2,000 rows" in out
    assert "Not for analysts" in (demo / "report.html").read_text()


def test_json_contains_the_whole_report_and_nothing_is_charged(run: Run, demo: Path, synthetic: Path) -> None:
    before = json.loads(run("ledger", "show", demo / "people.toml", "--json")[1])
    code, out, error = run("quality", demo / "people.toml", synthetic / "table-0.csv", "--rows", 500, "--json")
    assert code == 0, error
    assert json.loads(out)["rows"] == {"original": 10_000, "synthetic": [2000]}
    assert json.loads(run("ledger", "show", demo / "people.toml", "--json")[1]) == before


@pytest.mark.long
def test_paid_numbers_are_charged_once(run: Run, demo: Path, synthetic: Path) -> None:
    command = ("quality", demo / "people.toml", synthetic, "--epsilon", "0.1", "--json")
    first, again = (json.loads(run(*command)[1]) for _ in range(2))
    assert (first["cost"], again["cost"]) == ("0.1", "0")
    assert first["distances"] == again["distances"]
    assert "how far a synthetic table" in run("ledger", "show", demo / "people.toml")[1]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nowhere",), "no synthetic table"),
        (("synthetic", "--formula", "age ~ nothing"), "nothing"),
        (("synthetic", "--rule", "magic"), "Unknown combining rule"),
        (("synthetic", "--epsilon", "1", "--out", "x.html"), "no report"),
        (("synthetic", "--epsilon", "much"), "epsilon"),
        (("synthetic", "--rows", "0"), "--rows"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(
    run: Run, demo: Path, synthetic: Path, words: tuple[str, ...], says: str
) -> None:
    code, _, error = run("quality", demo / "people.toml", demo / words[0], *words[1:])
    assert code == 2
    assert says in error
