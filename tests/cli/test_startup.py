"""The command line starts quickly and supports shell completion."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli.conftest import Run

MAIN = "import sys; sys.argv[0] = 'tidegate'; from tidegate.cli import main; main()"
HEAVY = ("rich", "numpy", "ibis", "sqlalchemy", "fastapi", "numba", "pyarrow")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("words", [["--help"], ["--version"], ["demo", "--help"], ["collect", "randomize", "--help"]])
def test_help_loads_no_slow_module(words: list[str]) -> None:
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", MAIN, *words], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in result.stderr.splitlines()}
    assert "tidegate" in loaded
    assert not loaded & set(HEAVY)


@pytest.mark.parametrize("group", [[], ["collect"], ["risk"], ["ledger"], ["token"], ["reproduce"]])
def test_every_command_is_listed_with_a_sentence(group: list[str], run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = run(*group, "--help")[1].partition("Commands:\n")[2].splitlines()
    assert len(listed) >= 3
    assert [line for line in listed if not line.endswith(".") or line.endswith(("...", "et al."))] == []


def test_interrupted_command_reports_that_nothing_was_charged(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tidegate.demo.write", interrupt)
    code, _, err = run("demo", "--no-serve")
    assert (code, "Nothing was charged" in err) == (130, True)


def test_completion_can_be_installed_and_lists_the_commands(tmp_path: Path) -> None:
    home = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    start = [sys.executable, "-c", MAIN]
    output = subprocess.run(
        [*start, "--install-completion", "bash"], env=home, capture_output=True, text=True, check=True, timeout=60
    )
    script = tmp_path / ".bash_completions" / "tidegate.sh"
    assert str(script) in output.stdout
    assert str(script) in (tmp_path / ".bashrc").read_text()
    asking = {**home, "_TIDEGATE_COMPLETE": "complete_bash", "COMP_WORDS": "tidegate collect ran", "COMP_CWORD": "2"}
    assert "_TIDEGATE_COMPLETE=complete_bash" in script.read_text()
    result = subprocess.run(start, env=asking, capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.split() == ["randomize"]
