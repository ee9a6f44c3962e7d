"""risk value: the shares equal those of the library, and bad input is reported in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from tidegate_papers.valuation.command import value
from typer.testing import CliRunner

from tidegate.errors import TidegateError


def run(*words: str) -> Any:
    app = typer.Typer()
    app.command()(value)
    done = CliRunner().invoke(app, list(words))
    if isinstance(done.exception, TidegateError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return json.loads(done.output) if "--json" in words else done.output


def test_server_and_clients_share_by_the_closed_form() -> None:
    result = run("--clients", "8", "--gain", "sqrt", "--json")
    assert [row["share"] for row in result["players"]] == pytest.approx([1.8117778362261912, 0.1270811610649999])
    assert result["shapley_in_core"] is True
    assert "each client" in run("--clients", "3", "--gain", "0,3,5,6")


def test_clients_with_the_same_data_get_little() -> None:
    result = run("--groups", "2", "--json")
    assert [row["share"] for row in result["players"]] == pytest.approx([2 / 3, 1 / 6])


def test_game_from_a_file_reports_deviating_players(tmp_path: Path) -> None:
    path = tmp_path / "game.json"
    path.write_text(json.dumps({"players": ["server", "ann", "bob"], "worth": {"server,ann": 1, "server, bob": 1}}))
    result = run("--game", str(path), "--json")
    assert [row["share"] for row in result["players"]] == pytest.approx([2 / 3, 1 / 6, 1 / 6])
    assert result["least_core"]["division"] == pytest.approx({"server": 1, "ann": 0, "bob": 0}, abs=1e-9)
    assert result["would_leave"]["short"] == pytest.approx(1 / 6)
    assert "would earn" in run("--game", str(path))


def test_empty_core_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "game.json"
    path.write_text(json.dumps({"players": ["a", "b", "c"], "worth": {"a,b": 1, "a,c": 1, "b,c": 1}}))
    assert "The core is empty" in run("--game", str(path))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "exactly one of --clients, --groups, or --game"),
        (("--clients", "2", "--groups", "1"), "exactly one of --clients, --groups, or --game"),
        (("--clients", "0"), "--clients must be from 1 to 1,000,000"),
        (("--clients", "2", "--gain", "cubic"), "Unknown gain"),
        (("--clients", "2", "--gain", "0,1"), "There are 2 gains"),
        (("--groups", "1.5"), "must list integers"),
        (("--groups", "x"), "numbers separated by commas"),
        (("--groups", "2", "--worths", "1,2"), "needs a worth and at least one member"),
        (("--game", "nothing.json"), "does not exist"),
    ],
)
def test_bad_input_is_reported_in_one_sentence(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(TidegateError, match=said):
        run(*words)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"players": ["a", "a"], "worth": {"a": 1}}', '{"players": ["a"], "worth": {"b": 1}}']
)
def test_invalid_game_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "game.json"
    path.write_text(text)
    with pytest.raises(TidegateError, match=r"contains no game|A group contains"):
        run("--game", str(path))
