"""Settings by flag, variable and file: precedence, every field, clear refusals, and no secret on the screen."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest
from service.processes import free_port, write_policies
from support.service import RunningService
from typer.testing import CliRunner

from tidegate.cli.app import app as commands
from tidegate.errors import Unsupported
from tidegate.service import configuration
from tidegate.service.configuration import as_text, descriptions, kinds, read_settings
from tidegate.service.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
SAMPLES: dict[str, tuple[str, Any]] = {  # a text for a variable, and the value
    "str": ("/somewhere", "/somewhere"),
    "int": ("7", 7),
    "float": ("7.5", 7.5),
    "bool": ("no", False),
    "tuple[str, ...]": ("a; b", ("a", "b")),
}


def sample(name: str) -> tuple[str, Any]:
    url = "https://gate.example.org/privacy"
    return (url, url) if name == "public_url" else SAMPLES[kinds()[name]]


@pytest.mark.parametrize("name", list(kinds()))
def test_every_setting_is_read_from_a_variable_a_file_and_a_flag(name: str, tmp_path: Path) -> None:
    text, value = sample(name)
    assert getattr(Settings(), name) != value
    by_variable = read_settings({}, {f"TIDEGATE_{name.upper()}": text})
    assert getattr(by_variable.settings, name) == value
    file = tmp_path / "tidegate.toml"
    file.write_text(f"{name} = {json.dumps(value)}\n")
    by_file = read_settings({}, {}, str(file))
    expected = tuple(str(tmp_path / part) for part in value) if name == "policies" else value
    assert getattr(by_file.settings, name) == expected
    by_flag = read_settings({name: text}, {})
    assert getattr(by_flag.settings, name) == value
    assert [read.origins[name] for read in (by_variable, by_file, by_flag)] == [
        f"TIDEGATE_{name.upper()}",
        str(file),
        "flag",
    ]
    assert descriptions()[name], "the table of settings needs a comment behind the field"


def test_flag_precedes_variable_precedes_file_precedes_default(tmp_path: Path) -> None:
    file = tmp_path / "tidegate.toml"
    file.write_text("threads = 2\nport = 2\nworkers = 2\n")
    read = read_settings(
        {"threads": "4"}, {"TIDEGATE_THREADS": "3", "TIDEGATE_PORT": "3", "TIDEGATE_CONFIG": str(file)}
    )
    settings = read.settings
    assert (settings.threads, settings.port, settings.workers, settings.host) == (4, 3, 2, "127.0.0.1")


def test_plain_new_field_needs_nothing_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class More(Settings):
        most_things: int = 5  # things of one request

    monkeypatch.setattr(configuration, "Settings", More)
    kinds.cache_clear()
    descriptions.cache_clear()
    try:
        assert read_settings({}, {"TIDEGATE_MOST_THINGS": "6"}).settings.most_things == 6  # type: ignore[attr-defined]
        assert descriptions()["most_things"] == "things of one request"
        assert "| `most_things` | `TIDEGATE_MOST_THINGS` | `5` | things of one request |" in as_text()
    finally:
        monkeypatch.undo()
        kinds.cache_clear()
        descriptions.cache_clear()


def test_secret_is_read_from_a_file_and_never_shown(tmp_path: Path) -> None:
    (tmp_path / "address").write_text("postgresql://gate:s3cret@db/tidegate\n")
    by_variable = read_settings({}, {"TIDEGATE_LEDGER_FILE": str(tmp_path / "address")})
    (tmp_path / "tidegate.toml").write_text('ledger_file = "address"\n')
    by_file = read_settings({}, {}, str(tmp_path / "tidegate.toml"))
    for read in (by_variable, by_file):
        assert read.settings.ledger == "postgresql://gate:s3cret@db/tidegate"
        assert "s3cret" not in str(read.rows())
    odd = ("postgresql://db/x?user=u&password=s3cret", "postgresql://u:s3cret@h/d")
    assert "s3cret" not in str(read_settings({"databases": odd}, {}).rows())


@pytest.mark.parametrize(
    ("environment", "text", "said", "do"),
    [
        ({"TIDEGATE_THREDS": "3"}, "", "TIDEGATE_THREDS", "TIDEGATE_THREADS"),
        ({}, "largest_bodi = 3", '"largest_bodi"', "`largest_body`"),
        ({}, "zzz = 3", '"zzz"', "--show-settings"),
        ({"TIDEGATE_PORT": "http"}, "", 'must be a whole number, but it is "http"', "Correct"),
        ({"TIDEGATE_PORT": "70000"}, "", "between 1 and 65535", "Correct"),
        ({"TIDEGATE_WRONG_RATE": "-1"}, "", "not negative", "Correct"),
        ({"TIDEGATE_THREADS": "0"}, "", "between 1 and 1024", "Correct"),
        ({}, "idle_minutes = 0", "at least 1", "Correct"),
        ({}, "caller_burst = 0.5", "at least 1", "Correct"),
        ({"TIDEGATE_PATIENCE": "nan"}, "", "`patience`", "Correct"),
        ({}, "run_jobs = 3", "must be true or false", "Correct"),
        ({}, "databases = 3", "must be a list of texts.", "Correct"),
        ({}, "= 3", "not valid TOML", "name = value"),
        ({}, 'ledger = "a"\nledger_file = "b"', "given twice", "Remove"),
        ({"TIDEGATE_LEDGER": "a", "TIDEGATE_LEDGER_FILE": "b"}, "", "given twice", "Remove"),
        ({"TIDEGATE_LEDGER_FILE": "/does/not/exist"}, "", "TIDEGATE_LEDGER_FILE", "permissions"),
        ({"TIDEGATE_PUBLIC_URL": "http://gate.example.org"}, "", "https://", "certificate"),
    ],
)
def test_wrong_setting_is_refused_with_what_to_do(
    environment: dict[str, str], text: str, said: str, do: str, tmp_path: Path
) -> None:
    (tmp_path / "tidegate.toml").write_text(text)
    with pytest.raises(Unsupported) as error:
        read_settings({}, environment, str(tmp_path / "tidegate.toml"))
    assert said in error.value.what
    assert do in error.value.do


def test_missing_settings_file_is_refused() -> None:
    with pytest.raises(Unsupported, match="Cannot read the settings file"):
        read_settings({}, {}, "/does/not/exist.toml")


def test_workers_get_the_same_settings() -> None:
    settings = read_settings({name: sample(name)[0] for name in kinds()}, {}).settings
    assert Settings.from_json(settings.to_json()) == settings


def serve(folder: Path, *words: str, **environment: str) -> Any:
    return CliRunner().invoke(commands, ["serve", *words], env=environment)


def test_command_reads_all_three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[dict[str, Any]] = []
    folder = write_policies(tmp_path)
    (folder / "tidegate.toml").write_text('policies = ["people.toml"]\nworkers = 3\nthreads = 5\n')
    monkeypatch.setattr("tidegate.service.server.run", lambda *_, **options: started.append(options))
    monkeypatch.setenv("TIDEGATE_SERVICE", "")  # put back afterwards: serve sets it for its workers
    port = str(free_port())
    words = ("--config", str(folder / "tidegate.toml"), "--set", "threads=6")
    result = serve(folder, *words, TIDEGATE_PORT=port, TIDEGATE_WORKERS="2")
    assert result.exit_code == 0, result.output
    assert "Serving people" in result.output
    assert (started[0]["port"], started[0]["workers"]) == (int(port), 2)
    assert Settings.from_json(os.environ["TIDEGATE_SERVICE"]).threads == 6
    listed = serve(folder, *words, "--show-settings", TIDEGATE_LEDGER="postgresql://u:s3cret@h/d")
    assert "TIDEGATE_LEDGER" in listed.output
    assert "s3cret" not in listed.output
    assert len(started) == 1, "--show-settings serves nothing"


@pytest.mark.parametrize("host", ["0.0.0.0", "10.1.2.3", "::"])
def test_open_host_needs_a_public_url(tmp_path: Path, host: str) -> None:
    result = serve(tmp_path, str(write_policies(tmp_path) / "people.toml"), "--host", host)
    assert isinstance(result.exception, Unsupported)
    assert "--public-url" in result.exception.do


def test_reference_lists_every_setting() -> None:
    assert as_text() in PAGE.read_text("utf-8")
    assert len(fields(Settings)) == len(kinds())


def test_owner_reads_the_running_configuration_without_secrets(fresh_service: RunningService) -> None:
    app = fresh_service.app
    app.state.settings = replace(app.state.settings, databases=("postgresql://ann:geheim@db/town",), threads=3)
    app.state.origins = {**dict.fromkeys(kinds(), "default"), "threads": "flag"}
    reply = fresh_service.get("/v1/settings")
    rows = {row["name"]: row for row in reply.json()["settings"]}
    assert set(rows) == set(kinds())
    assert (rows["threads"]["value"], rows["threads"]["origin"]) == ("3", "flag")
    assert rows["threads"]["description"]
    page = fresh_service.get("/console/settings")
    assert page.status_code == 200
    assert "geheim" not in reply.text + page.text
    assert "ann:(hidden)@db" in page.text
    assert fresh_service.get("/v1/settings", "analyst").status_code == 403
    assert fresh_service.get("/console/settings", "analyst").status_code in (302, 303, 403)
