"""Mistakes and mishaps of administration: nothing is refunded, nothing is lost, and one sentence says what happened.

Others are elsewhere: copies of a file in use and lost logs (test_file.py), old backups (test_backup.py), replaced and forked
files (test_witness.py), a second or a moved ledger over one source (test_known_sources.py), moves to another store
(test_custody.py), terminated connections (test_postgres_gone.py).
"""

from __future__ import annotations

import os
import resource
import signal
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ledger.charges import charge, charges, has_one_sentence, open_ledger, verify_clean
from ledger.children import Child
from ledger.network import Network
from sqlalchemy.engine import make_url
from support.people import people_policy

from tidegate.accounting import ZERO, Amount
from tidegate.errors import LedgerUnavailable, TidegateError
from tidegate.ledger import Ledger, chain, postgres
from tidegate.ledger.backup import backup
from tidegate.tables.header import find_file
from tidegate.tables.source import _file_state

POLICY = people_policy()
NOBODY = 65534


# The clock ----------------------------------------------------------------------------------------------------------


class Yesterday(datetime):
    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return datetime.now(tz) - timedelta(days=1)


def test_clock_set_back_changes_no_total_and_is_noted(ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = open_ledger(ledger_url)
    monkeypatch.setattr(chain, "datetime", Yesterday)
    charge(ledger, POLICY, "more", "0.1").record("stored")
    assert charge(ledger, POLICY, "before", "0.1").cost == ZERO
    verdict = ledger.verify()
    assert (verdict.problems, verdict.spent["people"]) == ([], Amount.up("0.2"))
    assert verdict.notes == ["Entry 4: its time is before that of the previous entry."]
    ledger.close()


# Files --------------------------------------------------------------------------------------------------------------


def fill_disk(pipe: Any, path: str, room: int) -> None:
    """Charge until the file system accepts no more bytes; send the number of charges and the error."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    ledger = Ledger(path)
    sizes = [Path(f"{path}{end}").stat().st_size for end in ("", "-wal")]
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(sizes) + room, resource.RLIM_INFINITY))
    count = 0
    try:
        while count < 2000:
            charge(ledger, POLICY, count, "1e-20")
            count += 1
    except TidegateError as error:
        pipe.send((count, error.what, error.do))
    os._exit(0)


@pytest.mark.parametrize("room", [30_000, 31_111, 64_000])
def test_full_disk_in_the_middle_of_a_charge_keeps_every_earlier_charge(tmp_path: Path, room: int) -> None:
    path = str(tmp_path / "people.ledger")
    open_ledger(path).close()
    child = Child(fill_disk, path, room)
    count, what, do = child.hear()
    child.process.join()
    assert 0 < count < 2000
    assert what in (
        f"The disk of the ledger {path} is full, so the entry was not written.",
        f"The disk of the ledger {path} cannot be written or read (disk I/O error), so the entry was not written.",
    )
    assert "the same query is charged once" in do
    ledger = Ledger(path)
    assert len(charges(ledger)) == 1 + count
    assert charge(ledger, POLICY, count, "1e-20").cost == Amount.up("1e-20"), "there is room again"
    verify_clean(ledger)
    ledger.close()


def back_up_without_room(pipe: Any, path: str, to: str) -> None:
    """Back up to a file system that accepts few bytes; send the error."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    ledger = Ledger(path, read_only=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
    try:
        backup(ledger, to)
    except TidegateError as error:
        pipe.send((error.what, error.do))
    os._exit(0)


def test_backup_to_a_full_disk_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    path, to = tmp_path / "people.ledger", tmp_path / "backups" / "people.backup"
    to.parent.mkdir()
    open_ledger(str(path)).close()
    child = Child(back_up_without_room, str(path), str(to))
    what, do = child.hear()
    child.process.join()
    assert what.startswith(f"The backup {to} cannot be written (SQLITE_")
    assert "another disk" in do
    assert list(to.parent.iterdir()) == []
    ledger = Ledger(str(path))
    verify_clean(ledger)
    ledger.close()


def try_permissions(pipe: Any, path: str, user: int) -> None:
    """Charge as another user; send the error. All modules are loaded before, because that user may not read them."""
    open_ledger(f"{path}.first").close()
    if os.geteuid() == 0:
        os.setgroups([])
        os.setuid(user)
    try:
        charge(Ledger(path), POLICY, "more", "0.1")
        pipe.send(("charged", ""))
    except TidegateError as error:
        pipe.send((error.what, error.do))
    os._exit(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "sentence"),
    [
        (0o755, 0o600, "The ledger {path} cannot be opened: Permission denied."),
        (0o700, 0o600, "The ledger {path} cannot be opened: Permission denied."),
        (0o755, 0o644, "The ledger {path} is read-only, so nothing was charged."),
    ],
)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a child as another user")
def test_wrong_permissions_are_reported_and_nothing_is_charged(
    open_folder: Path, folder_mode: int, file_mode: int, sentence: str
) -> None:
    path = open_folder / "people.ledger"
    ledger = open_ledger(str(path))
    ledger.close()
    path.chmod(file_mode)
    open_folder.chmod(folder_mode)
    child = Child(try_permissions, str(path), NOBODY)
    what, do = child.hear()
    child.process.join()
    open_folder.chmod(0o755)
    path.chmod(0o600)
    assert what == sentence.format(path=path)
    assert do
    ledger = Ledger(str(path))
    assert verify_clean(ledger).spent["people"] == Amount.up("0.1")
    ledger.close()


def read_source(pipe: Any, path: Path, user: int) -> None:
    """Find a source and hash it, as another user; send the errors."""
    state = _file_state(path)
    assert state is not None
    os.setgroups([])
    os.setuid(user)
    for read in (lambda: find_file(path), state.digest):
        try:
            read()
            pipe.send("read")
        except TidegateError as error:
            pipe.send(error.what)
    os._exit(0)


@pytest.mark.parametrize(("folder_mode", "file_mode"), [(0o755, 0o600), (0o700, 0o644)])
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a child as another user")
def test_source_without_permission_is_refused_before_a_charge(
    open_folder: Path, folder_mode: int, file_mode: int
) -> None:
    path = open_folder / "people.csv"
    path.write_text("age\n30\n")
    path.chmod(file_mode)
    open_folder.chmod(folder_mode)
    child = Child(read_source, path, NOBODY)
    for _ in range(2):  # opening an account hashes the source, before anything is charged
        assert child.hear() == f'The file "{path}" cannot be read: Permission denied.'
    child.process.join()
    open_folder.chmod(0o755)


# Postgres -----------------------------------------------------------------------------------------------------------


def test_stopped_and_started_server_loses_nothing(postgres_server: Any, postgres_url: str) -> None:
    ledger = open_ledger(postgres_url)
    waiting = charge(ledger, POLICY, "charged, not yet recorded", "0.1")
    postgres_server.stop()
    try:
        for attempt in (lambda: charge(ledger, POLICY, "more", "0.1"), lambda: waiting.record("late"), ledger.head):
            with pytest.raises(LedgerUnavailable) as refused:
                attempt()
            assert refused.value.what == f"The ledger {ledger.store.shown} does not respond (OperationalError)."
            assert "Check that the database is running" in refused.value.do
    finally:
        postgres_server.ensure_postgres_running()
    assert waiting.record("late") == "late"
    assert charge(ledger, POLICY, "more", "0.1").cost == Amount.up("0.1")
    assert verify_clean(ledger).spent["people"] == Amount.up("0.3")
    ledger.close()


@pytest.fixture
def network(postgres_server: Any) -> Iterator[Network]:
    [path] = Path(postgres_server.pgdata).glob(".s.PGSQL.[0-9]*[0-9]")
    network = Network(path)
    yield network
    network.close()


@pytest.mark.parametrize("lost", ["requests", "replies"])
def test_partitioned_worker_reports_it_and_the_request_is_charged_once(
    network: Network, postgres_url: str, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """Without replies, the server may have committed: the repetition finds out."""
    monkeypatch.setattr(postgres, "REPLY_SECONDS", 0.5)
    name = make_url(postgres_url).database
    ledger = open_ledger(f"postgresql://postgres@127.0.0.1:{network.port}/{name}?connect_timeout=2")
    waiting = charge(ledger, POLICY, "charged, not yet recorded", "0.1")
    commit = postgres.LedgerConnection.commit

    def cut(connection: Any) -> None:
        (network.has_requests if lost == "requests" else network.has_replies).clear()
        commit(connection)

    monkeypatch.setattr(postgres.LedgerConnection, "commit", cut)
    for attempt in (lambda: charge(ledger, POLICY, "more", "0.1"), lambda: waiting.record("late")):
        with pytest.raises(LedgerUnavailable) as refused:
            attempt()
        assert refused.value.what == f"The ledger {ledger.store.shown} does not respond (OperationalError)."
        assert has_one_sentence(refused.value)
    monkeypatch.setattr(postgres.LedgerConnection, "commit", commit)
    network.heal()
    again = charge(ledger, POLICY, "more", "0.1")
    assert again.cost == (Amount.up("0.1") if lost == "requests" else ZERO)
    assert (again.record("result"), waiting.record("later")) == ("result", "later")
    assert verify_clean(ledger).spent["people"] == Amount.up("0.3")
    ledger.close()


def test_partitioned_reader_does_not_wait_forever(
    network: Network, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "REPLY_SECONDS", 0.5)
    ledger = open_ledger(f"postgresql://postgres@127.0.0.1:{network.port}/{make_url(postgres_url).database}")
    network.has_replies.clear()
    with pytest.raises(LedgerUnavailable, match=r"does not respond \(OperationalError\)"):
        list(ledger.entries())
    network.heal()
    assert len(list(ledger.entries())) == 4
    ledger.close()
