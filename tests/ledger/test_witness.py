"""Witnesses: a ledger that lost or changed entries no longer matches them, and nobody waits for them."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
from ledger.charges import charge
from support.people import people_policy
from typer.testing import CliRunner

import tidegate as tg
from tidegate.accounting import Amount
from tidegate.cli.app import app
from tidegate.errors import LedgerBroken, LedgerUnavailable
from tidegate.ledger import Ledger, backup, explain_entries, notes, restore, witness
from tidegate.ledger.checkpoint import parse, verify_note

POLICY = people_policy()


def spend(path: Path, *names: str, witnesses: tuple[str, ...] = ()) -> Ledger:
    """Charge queries, and return the closed ledger."""
    ledger = Ledger(str(path), witnesses=witnesses)
    ledger.open_account(POLICY)
    for name in names:
        charge(ledger, POLICY, name, "0.1", who="ann").record([1])
    ledger.close()
    return ledger


@pytest.fixture
def address(tmp_path: Path) -> str:
    (tmp_path / "other disk").mkdir()
    return str(tmp_path / "other disk" / "people.checkpoint")


def note_at(address: str) -> str:
    return Path(address).read_text("utf-8")


def test_checkpoint_has_the_newest_entry_and_the_totals(tmp_path: Path, address: str) -> None:
    path = tmp_path / "people.ledger"
    spend(path, "a", "b", witnesses=(address,))
    with Ledger(str(path), read_only=True).store.reading() as connection:
        checkpoint = verify_note(note_at(address), witness.public_keys(connection))
        assert checkpoint == witness.current(connection)
    assert checkpoint.accounts["people"].spent == "0.2"
    assert Path(address).stat().st_mode & 0o777 == 0o600
    assert Ledger(str(path), read_only=True).verify().problems == []


def test_settings_are_in_the_ledger_and_used_by_the_next_process(tmp_path: Path, address: str) -> None:
    path = tmp_path / "people.ledger"
    spend(path, "a", witnesses=(address,))
    before = parse(note_at(address)).size
    spend(path, "b")
    assert parse(note_at(address)).size == before + 2
    sentences = [text for _, text in explain_entries(Ledger(str(path), read_only=True).entries())]
    assert sum("Number of witnesses: 1." in text for text in sentences) == 1
    assert address not in str(list(Ledger(str(path), read_only=True).entries()))


def test_checkpoints_are_sent_in_the_background_at_most_once_a_second(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[float] = []
    original = notes.write

    def write(target: str, note: str) -> None:
        times.append(time.monotonic())
        original(target, note)

    monkeypatch.setattr(notes, "write", write)
    ledger = Ledger(str(tmp_path / "people.ledger"), witnesses=(address,))
    ledger.open_account(POLICY)
    until, number = time.monotonic() + 60, 0
    while len(times) < 3 and time.monotonic() < until:
        charge(ledger, POLICY, number, "1e-6")
        number += 1
    assert len(times) == 3
    assert min(later - earlier for earlier, later in pairwise(times)) >= 0.9
    ledger.close()
    assert parse(note_at(address)).head == ledger_head(tmp_path / "people.ledger")


def ledger_head(path: Path) -> str:
    return Ledger(str(path), read_only=True).head()


def test_unreachable_witness_blocks_no_charge_and_catches_up(
    tmp_path: Path, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    path, folder = tmp_path / "people.ledger", Path(address).parent
    spend(path, "a", witnesses=(address,))
    folder.rename(tmp_path / "away")
    ledger = spend(path, "b")
    assert ledger.witnesses is not None
    assert list(ledger.witnesses.problems) == [address]
    assert "Charges continue" in caplog.text
    with Ledger(str(path), read_only=True).store.reading() as connection:
        [standing] = witness.standings(connection)
    assert "cannot be reached" in standing.problem
    (tmp_path / "away").rename(folder)
    Ledger(str(path)).close()
    assert parse(note_at(address)).head == ledger_head(path)


def test_ledger_behind_its_witness_is_refused(tmp_path: Path, address: str) -> None:
    path = tmp_path / "people.ledger"
    spend(path, "a", witnesses=(address,))
    shutil.copy(path, tmp_path / "old")
    spend(path, "b")
    shutil.copy(tmp_path / "old", path)
    with pytest.raises(LedgerUnavailable, match="the latest entries are missing") as error:
        Ledger(str(path))
    assert "--write-off" in error.value.do
    assert Ledger(str(path), read_only=True).verify().problems == []


def test_fork_is_refused_and_named(tmp_path: Path, address: str) -> None:
    path = tmp_path / "people.ledger"
    spend(path, "a", witnesses=(address,))
    shutil.copy(path, tmp_path / "old")
    spend(path, "b")
    newest = note_at(address)
    shutil.copy(tmp_path / "old", path)
    Path(address).unlink()
    spend(path, "c", "d")
    Path(address).write_text(newest, "utf-8")
    with pytest.raises(LedgerBroken, match="fork"):
        Ledger(str(path))


def test_missing_and_exchanged_ledgers_are_refused(tmp_path: Path, address: str) -> None:
    path = tmp_path / "people.ledger"
    spend(path, "a", witnesses=(address,))
    path.rename(tmp_path / "moved")
    with pytest.raises(LedgerUnavailable, match="has seen one up to entry"):
        Ledger(str(path), witnesses=(address,))
    assert not path.exists()
    spend(path, "b")
    with pytest.raises(LedgerUnavailable, match="of another ledger"):
        Ledger(str(path), witnesses=(address,))


def test_witness_of_the_policy_and_of_the_environment_are_used(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = replace(POLICY, dataset=replace(POLICY.dataset, witness=("other disk/a.checkpoint",)))
    assert policy.fingerprint == POLICY.fingerprint
    assert policy.to_dict()["dataset"]["witness"] == ["other disk/a.checkpoint"]
    monkeypatch.setenv("TIDEGATE_WITNESS", f"{tmp_path}/e.checkpoint {tmp_path}/f.checkpoint")
    monkeypatch.chdir(tmp_path)
    with tg.open(policy, ledger="people.ledger") as session:
        session.ledger.open_account(policy)
    for name in ("other disk/a.checkpoint", "e.checkpoint", "f.checkpoint"):
        assert parse(note_at(str(tmp_path / name))).head == ledger_head(tmp_path / "people.ledger")


def test_changed_settings_are_reported(tmp_path: Path, address: str) -> None:
    path = tmp_path / "people.ledger"
    spend(path, "a", witnesses=(address,))
    ledger = Ledger(str(path), is_witnessed=False)
    with ledger.store.writing() as connection:
        connection.exec_driver_sql("DELETE FROM tidegate_witnesses")
    assert "addresses of the witnesses" in ledger.verify().problems[0]
    ledger.close()


def test_new_key_signs_later_checkpoints_and_older_ones_stay_valid(tmp_path: Path, address: str) -> None:
    path = tmp_path / "people.ledger"
    spend(path, "a", witnesses=(address,))
    earlier = note_at(address)
    ledger = Ledger(str(path))
    witness.configure(ledger.store, new_key=True)
    ledger.close()
    with Ledger(str(path), read_only=True).store.reading() as connection:
        new, old = witness.public_keys(connection)
        assert verify_note(note_at(address), [new]) != verify_note(earlier, [old])
        with pytest.raises(LedgerBroken):
            verify_note(note_at(address), [old])
        assert witness.compare(connection, earlier, address).size == parse(earlier).size
    assert Ledger(str(path), read_only=True).verify().problems == []


# Write-offs


@pytest.mark.parametrize("store", ["SQLite", "Postgres"])
def test_write_off_charges_up_to_the_witnessed_totals(
    store: str, tmp_path: Path, address: str, request: pytest.FixtureRequest
) -> None:
    url = str(tmp_path / "people.ledger") if store == "SQLite" else request.getfixturevalue("postgres_url")
    spend(Path(url) if store == "SQLite" else url, "a", witnesses=(address,))  # type: ignore[arg-type]
    backup(Ledger(url, read_only=True), tmp_path / "backup")
    spend(Path(url) if store == "SQLite" else url, "b", "c")  # type: ignore[arg-type]
    target = str(tmp_path / "new.ledger")  # the ledger itself is lost
    with pytest.raises(LedgerUnavailable, match="A witness has seen"):
        restore(tmp_path / "backup", target)
    restored = restore(tmp_path / "backup", target, write_off=True)
    assert restored.written_off == {"people": "0.2"}
    ledger = Ledger(target)
    account = ledger.account("people")
    assert account is not None
    assert account.spent == Amount.parse("0.3")
    assert ledger.spent_by("people", "ann") == Amount.parse("0.3")
    assert ledger.verify().problems == []
    charge(ledger, POLICY, "d", "0.1")
    ledger.close()
    assert parse(note_at(address)).accounts["people"].spent == "0.4"


def test_account_that_the_backup_lacks_needs_its_policy(tmp_path: Path, address: str) -> None:
    path = tmp_path / "people.ledger"
    Ledger(str(path), witnesses=(address,)).close()
    backup(Ledger(str(path), read_only=True), tmp_path / "backup")
    spend(path, "a")
    target = str(tmp_path / "new.ledger")
    with pytest.raises(LedgerUnavailable, match='the account "people"'):
        restore(tmp_path / "backup", target, write_off=True)
    assert not Path(target).exists()
    assert restore(tmp_path / "backup", target, write_off=True, policies=[POLICY]).written_off == {"people": "0.1"}
    assert Ledger(target, read_only=True).verify().problems == []


@pytest.mark.parametrize("store", ["SQLite", "Postgres"])
def test_restore_of_a_backup_from_before_the_witness_keeps_it(
    store: str, tmp_path: Path, address: str, request: pytest.FixtureRequest
) -> None:
    url = str(tmp_path / "people.ledger") if store == "SQLite" else request.getfixturevalue("postgres_url")
    path = Path(url) if store == "SQLite" else url
    spend(path, "a")  # type: ignore[arg-type]
    backup(Ledger(url, read_only=True), tmp_path / "backup")
    spend(path, "b", witnesses=(address,))  # type: ignore[arg-type]
    assert restore(tmp_path / "backup", url, write_off=True).written_off == {"people": "0.1"}
    with Ledger(url, read_only=True).store.reading() as connection:
        assert witness.stored_addresses(connection) == [address]
        assert verify_note(note_at(address), witness.public_keys(connection)) == witness.current(connection)
    spend(path, "c")  # type: ignore[arg-type]
    assert parse(note_at(address)).accounts["people"].spent == "0.3"
    assert Ledger(url, read_only=True).verify().problems == []


def test_unreachable_witness_refuses_a_restore(tmp_path: Path, address: str) -> None:
    path = tmp_path / "people.ledger"
    spend(path, "a", witnesses=(address,))
    backup(Ledger(str(path), read_only=True), tmp_path / "backup")
    Path(address).parent.rename(tmp_path / "away")
    with pytest.raises(LedgerUnavailable, match="the newest state of the ledger is unknown"):
        restore(tmp_path / "backup", str(tmp_path / "new.ledger"), write_off=True)


# Addresses


class NoteServer(BaseHTTPRequestHandler):
    """An HTTP endpoint that stores one note."""

    notes: ClassVar[dict[str, bytes]] = {}

    def do_GET(self) -> None:
        note = self.notes.get(self.path)
        self.send_response(200 if note is not None else 404)
        self.end_headers()
        self.wfile.write(note or b"")

    def do_PUT(self) -> None:
        self.notes[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), NoteServer)
    NoteServer.notes.clear()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://user:secret@127.0.0.1:{server.server_port}/people"
    server.shutdown()
    server.server_close()


def test_http_endpoint_and_fsspec_address_are_witnesses(tmp_path: Path, endpoint: str) -> None:
    path = tmp_path / "people.ledger"
    spend(path, "a", witnesses=(endpoint, "memory://checkpoints/people"))
    shutil.copy(path, tmp_path / "old")
    spend(path, "b")
    assert parse(NoteServer.notes["/people"].decode()) == parse(str(notes.read("memory://checkpoints/people")))
    assert parse(NoteServer.notes["/people"].decode()).head == ledger_head(path)
    shutil.copy(tmp_path / "old", path)
    with pytest.raises(LedgerUnavailable, match="missing") as error:
        Ledger(str(path))
    assert "secret" not in str(error.value)


def test_verify_show_and_witness_commands_report_the_witness(tmp_path: Path, address: str) -> None:
    path = tmp_path / "people.ledger"
    spend(path, "a", witnesses=(address,))
    run = CliRunner().invoke
    seen = parse(note_at(address)).size
    assert (
        f"has seen everything up to entry {seen - 1}."
        in run(app, ["ledger", "verify", str(path), "--witness", address]).output
    )
    assert f"has seen everything up to entry {seen - 1}" in run(app, ["ledger", "show", str(path)]).output
    assert "key tidegate/" in run(app, ["ledger", "witness", str(path)]).output
    other = str(tmp_path / "second.checkpoint")
    assert "has seen" in run(app, ["ledger", "witness", str(path), "--add", other]).output
    assert parse(note_at(other)).head == ledger_head(path)
