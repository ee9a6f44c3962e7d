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


ENGINES = {"ibis", "duckdb", "pyarrow", "pandas", "pyspark", "psycopg"}
SERVERS = {"fastapi", "starlette", "uvicorn"}
ARRAYS = {"numpy", "scipy", "numba"}
LISTED = "import atexit; atexit.register(lambda: print('LOADED', *sys.modules, file=sys.stderr)); "
PEOPLE = "age,sex\n34,female\n51,male\n28,female\n"
POLICY = """
version = 1
[dataset]
name = "people"
source = "people.csv"
unit = "row"
rows = 3
[attributes]
age = { kind = "integer", from = 18, to = 90 }
sex = { kind = "category", values = ["female", "male"] }
[promise.loss]
epsilon = 2
"""
MEAN = "SELECT sex, AVG(age) FROM people GROUP BY sex"


def loaded_by(folder: Path, *words: str) -> set[str]:
    """Return the packages that a command has loaded when it ends."""
    start = MAIN.replace("import sys; ", f"import sys; {LISTED}", 1)
    result = subprocess.run(
        [sys.executable, "-c", start, *words], cwd=folder, capture_output=True, text=True, check=True, timeout=120
    )
    return {name.partition(".")[0] for name in result.stderr.rpartition("LOADED ")[2].split()}


@pytest.fixture(scope="module")
def people_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy, its table, and a ledger with one answer."""
    folder = tmp_path_factory.mktemp("people")
    (folder / "people.csv").write_text(PEOPLE, "utf-8")
    (folder / "people.toml").write_text(POLICY, "utf-8")
    loaded_by(folder, "answer", "people.toml", MEAN, "--epsilon", "0.5", "--anyway")
    return folder


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("words", "absent"),
    [
        (["check", "people.toml"], {*ENGINES, *SERVERS, *ARRAYS, "sqlalchemy", "sqlglot", "jinja2"}),
        (["ledger", "show", "people.toml"], {*ENGINES, *SERVERS, *ARRAYS, "sqlglot"}),
        (["ledger", "verify", "people.toml"], {*ENGINES, *SERVERS, *ARRAYS, "sqlglot"}),
        (
            ["init", "people.csv", "--out", "draft.toml"],
            {*ENGINES - {"duckdb"}, *SERVERS, *ARRAYS, "sqlalchemy", "sqlglot"},
        ),
        (["answer", "people.toml", MEAN, "--epsilon", "0.3", "--preview"], {*ENGINES, *SERVERS, "scipy", "numba"}),
        (
            ["answer", "people.toml", MEAN, "--epsilon", "0.4", "--anyway"],
            {*SERVERS, "scipy", "numba", "pandas", "pyspark"},
        ),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_command_loads_only_what_it_needs(people_folder: Path, words: list[str], absent: set[str]) -> None:
    loaded = loaded_by(people_folder, *words)
    assert "tidegate" in loaded
    assert loaded & absent == set()


def test_scan_of_loaded_modules_detects_an_engine(people_folder: Path) -> None:
    assert {"ibis", "duckdb", "sqlalchemy"} <= loaded_by(people_folder, "check", "people.toml", "--data")


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
