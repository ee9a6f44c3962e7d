"""A service with a folder: it starts without a data set, and serves a policy that is added while it runs."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import httpx
import pytest
from service.processes import command, lines, run_server, write_policies
from support.service import quiet_settings
from typer.testing import CliRunner

from tidegate.cli.app import app as commands
from tidegate.cli.serve import _first_link
from tidegate.errors import NotSignedIn, Unsupported
from tidegate.ledger import Ledger
from tidegate.ledger.sessions import Sessions
from tidegate.ledger.tokens import Tokens
from tidegate.service.access.links import use_link
from tidegate.service.app import create_app
from tidegate.service.datasets import ServedDatasets
from tidegate.service.folder import ServiceFolder


def test_service_without_policies_needs_a_folder() -> None:
    with pytest.raises(Unsupported, match="no data set to serve"):
        ServedDatasets.from_files([])


def test_policy_that_is_added_to_the_folder_is_served_by_open_services(tmp_path: Path) -> None:
    services = [ServedDatasets.from_files([], folder=str(tmp_path / "gate")) for _ in range(2)]
    try:
        assert [list(served) for served in services] == [[], []]
        write_policies(tmp_path / "gate")
        (tmp_path / "gate" / "broken.toml").write_text("version = 9")
        assert "people" in services[0]
        assert sorted(services[1]) == ["others", "people"]
        assert services[1]["people"].session.account.spent.value == 0
        assert list(services[0].refused) == ["broken.toml"]
        (tmp_path / "gate" / "broken.toml").write_text(
            (tmp_path / "gate" / "people.toml").read_text().replace('name = "people"', 'name = "mended"')
        )
        assert "mended" in services[0]
        assert services[0].refused == {}
    finally:
        for served in services:
            served.close()


def test_folder_that_did_not_change_is_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ServiceFolder.open(tmp_path / "gate")
    write_policies(folder.path)
    served = ServedDatasets.from_files([], folder=str(folder.path))
    os.utime(folder.path, (1_000_000, 1_000_000))
    assert len(served) == 2
    monkeypatch.setattr(ServiceFolder, "policies", lambda self: pytest.fail("the folder was listed again"))
    assert "people" in served
    assert "nowhere" not in served
    served.close()


def test_folder_is_private_and_replaces_no_policy(tmp_path: Path) -> None:
    folder = ServiceFolder.open(tmp_path / "gate")
    assert {oct(part.stat().st_mode)[-3:] for part in (folder.path, folder.data, folder.drafts)} == {"700"}
    path = folder.write_new("people", "version = 2\n")
    assert oct(path.stat().st_mode)[-3:] == "600"
    with pytest.raises(Unsupported, match="already has a policy"):
        folder.write_new("People", "")
    assert path.read_text() == "version = 2\n"
    with pytest.raises(Unsupported, match="cannot be used"):
        ServiceFolder.open(path)


def test_empty_service_starts_and_its_pages_have_an_empty_state(tmp_path: Path) -> None:
    settings = quiet_settings(folder=str(tmp_path / "gate"))
    app = create_app(settings)
    assert len(app.state.datasets) == 0
    app.state.datasets.close()


def test_token_command_accepts_the_folder(tmp_path: Path) -> None:
    token = command("token", "make", str(ServiceFolder.open(tmp_path / "gate").path), "--role", "owner", "--name", "o")
    assert token["dataset"] is None
    listed = command("token", "list", str(tmp_path / "gate"))
    assert [stored["name"] for stored in listed] == ["o"]


def test_link_command_creates_a_user_or_takes_a_known_one(tmp_path: Path) -> None:
    gate = str(tmp_path / "gate")
    (tmp_path / "gate").mkdir()
    nina = command("token", "link", gate, "--name", "nina", "--dataset", "", "--url", "https://gate.example.org/")
    assert nina["link"].startswith("https://gate.example.org/console/sign-in#tgl_")
    assert (nina["name"], nina["role"], nina["method"]) == ("nina", "analyst", "link")
    assert nina["maker"].endswith("(command line)")
    again = command("token", "link", gate, "--id", nina["id"])
    assert (again["id"], again["link"] != nina["link"]) == (nina["id"], True)
    for wrong in (["--id", "0" * 16], [], ["--name", "x", "--id", nina["id"]]):
        assert CliRunner().invoke(commands, ["token", "link", gate, *wrong]).exit_code != 0
    with contextlib.closing(Ledger(str(tmp_path / "gate" / "tidegate.ledger"))) as ledger:
        secret = nina["link"].partition("#")[2]
        cookie, user = use_link(Sessions(ledger.store), secret, hours=1)
        assert (bool(cookie), user.name) == (True, "nina")
        with pytest.raises(NotSignedIn, match="a link works once"):
            use_link(Sessions(ledger.store), secret, hours=1)
        assert ledger.verify().problems == []


def test_first_owner_gets_a_new_link_at_each_start_until_there_is_a_token(tmp_path: Path) -> None:
    datasets = ServedDatasets.from_files([], folder=str(tmp_path / "gate"))
    links = [_first_link(datasets, "http://127.0.0.1:8480") for _ in range(2)]
    assert len(set(links)) == 2
    [owner] = Tokens(datasets.ledger.store).all()
    assert (owner.role, owner.hash, owner.name) == ("owner", "", "owner"), (
        "there is no token that could leak from the log"
    )
    datasets.close()


@pytest.mark.parametrize("address", ["mysql://host/db", "postgresql://host/db?table=people"])
def test_only_postgres_databases_can_be_allowed(tmp_path: Path, address: str) -> None:
    result = CliRunner().invoke(commands, ["serve", "--folder", str(tmp_path / "gate"), "--database", address])
    assert result.exit_code != 0
    assert not (tmp_path / "gate").exists()


@pytest.mark.long  # the other tests serve the folder in this process; tests/console/test_wizard.py publishes to two workers
def test_serve_starts_with_an_empty_folder_and_prints_a_link_for_the_owner(tmp_path: Path) -> None:
    with run_server(tmp_path, "--folder", str(tmp_path / "gate"), "--workers", "2") as (url, _):
        log = (tmp_path / "log").read_text()
        secret = log.partition("/console/sign-in#")[2].split()[0]
        owner = httpx.Client(base_url=url)
        assert owner.post("/v1/sign-in", json={"token": secret}).json()["role"] == "owner"
        assert httpx.post(f"{url}/v1/sign-in", json={"token": secret}).status_code == 401, "the link works once"
        as_owner = {"Cookie": f"tidegate={owner.cookies['tidegate']}"}
        assert httpx.get(f"{url}/v1/data", headers=as_owner).json() == {"datasets": []}
        write_policies(tmp_path / "gate")
        for _ in range(20):  # connections of their own: both workers answer
            listed = httpx.get(f"{url}/v1/data", headers=as_owner).json()["datasets"]
            assert sorted(dataset["name"] for dataset in listed) == ["others", "people"]
        assert not [line for line in lines(tmp_path) if line["event"] == "defect"]
