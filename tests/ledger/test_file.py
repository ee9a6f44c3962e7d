"""Copying, moving, deleting and restoring the file of a ledger. No ledger silently starts again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ledger.charges import charge, open_ledger, verify_clean
from support.people import people_policy
from support.shortcuts import run_in_folder as run

from tidegate.accounting import Amount
from tidegate.errors import LedgerUnavailable
from tidegate.ledger import Ledger, file, verify_export
from tidegate.ledger.backup import backup

POLICY = people_policy()
SAMPLES = Path(__file__).parent / "samples"
TOML = """
[dataset]
name = "people"
source = "people.csv"
rows = 4
unit = "row"

[attributes.sex]
kind = "category"
values = ["f", "m"]

[promise.loss]
epsilon = 2
"""
HOLD = """
import sys, time
from ledger.charges import charge, open_ledger
from support.people import people_policy
ledger = open_ledger(sys.argv[1])
for number in range(3):
    charge(ledger, people_policy(), number, "0.1")
print("charged", flush=True)
if sys.argv[2] == "hold":
    time.sleep(600)
"""  # and the ledger is never closed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.toml").write_text(TOML)
    (tmp_path / "people.csv").write_text("sex\nf\nm\nf\nm\n")
    return tmp_path


def ask(folder: Path, epsilon: str = "0.1") -> tuple[int, dict[str, Any], str]:
    words = (
        "answer",
        "people.toml",
        "SELECT COUNT(*) FROM people WHERE sex = 'f'",
        "--epsilon",
        epsilon,
        "--json",
        "--anyway",
    )
    code, out, err = run(folder, *words)
    return code, json.loads(out), err


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def in_use(tmp_path: Path) -> Any:
    """A process that has charged 0.4 and still has its ledger open."""
    path = tmp_path / "people.ledger"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), "hold"], env=_environment(), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "charged\n"
    yield path
    process.kill()
    process.wait()
    process.stdout.close()


# creation -----------------------------------------------------------------------------------------------------------


def test_only_the_first_command_reports_a_new_ledger(folder: Path) -> None:
    code, output, err = ask(folder)
    assert code == 0, err
    assert output["ledger_created"].endswith("people.ledger")
    assert "Created a new ledger" in err
    code, output, err = ask(folder, "0.2")
    assert (code, "ledger_created" in output, err) == (0, False, "")


def test_main_file_of_a_new_ledger_contains_the_genesis_entry(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "a.ledger"))
    with sqlite3.connect(f"file:{tmp_path / 'a.ledger'}?immutable=1", uri=True) as main:
        assert main.execute("SELECT number, kind FROM tidegate_entries").fetchall() == [(0, "genesis")]
    ledger.close()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("milliseconds", range(0, 240, 40))
def test_killed_creation_leaves_a_complete_ledger_or_none(tmp_path: Path, milliseconds: int) -> None:
    """Kill at one of several moments; the next process creates or opens the ledger, and nothing is refused."""
    path = tmp_path / "a.ledger"
    code = f"import tidegate.ledger.store\nprint('go', flush=True)\nfrom tidegate.ledger import Ledger\nLedger({str(path)!r})"
    process = subprocess.Popen([sys.executable, "-c", code], env=_environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(milliseconds / 1000)
    process.kill()
    process.wait()
    process.stdout.close()
    ledger = open_ledger(str(path))
    assert verify_clean(ledger).entries == 3
    ledger.close()


@pytest.mark.parametrize("end", ["-wal", "-journal", ".reports", ".diaries"])
def test_missing_ledger_with_a_companion_file_is_refused(tmp_path: Path, end: str) -> None:
    companion = tmp_path / f"people.ledger{end}"
    companion.mkdir() if end.startswith(".") else companion.write_bytes(b"x")
    with pytest.raises(LedgerUnavailable, match="the ledger was moved or deleted"):
        Ledger(str(tmp_path / "people.ledger"))
    assert companion.exists()
    assert not (tmp_path / "people.ledger").exists()


def test_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "people.ledger").touch()
    for read_only in (False, True):
        with pytest.raises(LedgerUnavailable, match="is empty"):
            Ledger(str(tmp_path / "people.ledger"), read_only=read_only)


def test_ledger_without_any_entry_is_refused(ledger_url: str) -> None:
    ledger = Ledger(ledger_url)
    with ledger.store.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM tidegate_entries")
    ledger.close()
    with pytest.raises(LedgerUnavailable, match="contains no ledger"):
        Ledger(ledger_url)


# copies -------------------------------------------------------------------------------------------------------------


def test_copy_of_the_main_file_of_a_ledger_in_use_is_refused(in_use: Path) -> None:
    copy = in_use.with_name("copy.ledger")
    shutil.copy(in_use, copy)
    for read_only in (False, True):
        with pytest.raises(LedgerUnavailable, match="latest entries are missing"):
            Ledger(str(copy), read_only=read_only)
    code, _, err = run(in_use.parent, "ledger", "verify", str(copy))
    assert code == 2
    assert "tidegate ledger backup" in err


@pytest.mark.parametrize("seconds", [0.2, 5.0])
def test_opening_waits_while_the_last_user_closes_the_ledger(in_use: Path, seconds: float) -> None:
    """SQLite removes the log when the last connection is closed; the file is marked a moment later."""
    closing = in_use.with_name("closing.ledger")
    with sqlite3.connect(in_use) as source, sqlite3.connect(closing) as target:
        source.backup(target)
    source.close()
    target.close()
    timer = threading.Timer(seconds, file.settle_closed, [closing])
    timer.start()
    try:
        if seconds > file.CLOSING:
            with pytest.raises(LedgerUnavailable, match="latest entries are missing"):
                Ledger(str(closing))
        else:
            Ledger(str(closing)).close()
    finally:
        timer.cancel()


@pytest.mark.long  # test_copy_after_a_kill_needs_its_log_and_the_ledger_works is similar
def test_copy_with_its_log_contains_every_charge(in_use: Path) -> None:
    for end in ("", "-wal"):
        shutil.copy(f"{in_use}{end}", f"{in_use.with_name('copy.ledger')}{end}")
    ledger = Ledger(str(in_use.with_name("copy.ledger")))
    assert verify_clean(ledger).spent["people"] == Amount.up("0.4")
    ledger.close()


def test_copy_after_a_kill_needs_its_log_and_the_ledger_works(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), "hold"], env=_environment(), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    shutil.copy(path, tmp_path / "copy.ledger")
    with pytest.raises(LedgerUnavailable, match="latest entries are missing"):
        Ledger(str(tmp_path / "copy.ledger"))
    ledger = Ledger(str(path))
    assert verify_clean(ledger).spent["people"] == Amount.up("0.4")
    ledger.close()


@pytest.mark.parametrize("closed", [True, False])
def test_file_is_complete_after_the_last_process_ends(tmp_path: Path, closed: bool) -> None:
    """Even if a process never closed its ledger, the file is complete without its log and can be moved."""
    path = tmp_path / "people.ledger"
    if closed:
        open_ledger(str(path)).close()
    else:
        subprocess.run([sys.executable, "-c", HOLD, str(path), "end"], env=_environment(), check=True)
    (tmp_path / "elsewhere").mkdir()
    shutil.move(path, tmp_path / "elsewhere" / "moved.ledger")
    ledger = Ledger(str(tmp_path / "elsewhere" / "moved.ledger"))
    assert verify_clean(ledger).spent["people"] == Amount.up("0.1" if closed else "0.4")
    charge(ledger, POLICY, "more", "0.1")
    ledger.close()
    assert file.mark_of(tmp_path / "elsewhere" / "moved.ledger") == file.WHOLE


def test_closing_one_connection_does_not_mark_a_file_in_use_as_whole(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    first, second = open_ledger(str(path)), Ledger(str(path))
    second.close()
    charge(first, POLICY, "more", "0.1")
    shutil.copy(path, tmp_path / "copy.ledger")
    with pytest.raises(LedgerUnavailable, match="latest entries are missing"):
        Ledger(str(tmp_path / "copy.ledger"))
    first.close()


def copy_with_mark_in_log_only(path: Path, at: Path) -> None:
    """Copy a ledger in the state of a process that died after writing its mark to the log but not to the main file."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA user_version = {file.IN_USE}")
    shutil.copy(path, at)
    shutil.copy(f"{path}-wal", f"{at}-wal")
    assert (file.mark_of(at), file.mark_of(path)) == (file.WHOLE, file.WHOLE)
    connection.close()


def test_ledger_opens_after_a_crash_between_the_two_marks(tmp_path: Path) -> None:
    open_ledger(str(tmp_path / "people.ledger")).close()
    copy_with_mark_in_log_only(tmp_path / "people.ledger", at := tmp_path / "crashed.ledger")
    for _ in range(2):  # the first round only reads, and removes the log when it closes
        ledger = Ledger(str(at))
        assert verify_clean(ledger).spent["people"] == Amount.up("0.1")
        ledger.close()
        assert file.mark_of(at) == file.WHOLE


def test_copy_without_log_is_refused_after_a_crash_between_the_two_marks(tmp_path: Path) -> None:
    open_ledger(str(tmp_path / "people.ledger")).close()
    copy_with_mark_in_log_only(tmp_path / "people.ledger", at := tmp_path / "crashed.ledger")
    ledger = Ledger(str(at))
    charge(ledger, POLICY, "more", "0.1")
    shutil.copy(at, tmp_path / "copy.ledger")
    with pytest.raises(LedgerUnavailable, match="latest entries are missing"):
        Ledger(str(tmp_path / "copy.ledger"))
    ledger.close()


def test_ledger_is_complete_after_a_writer_was_killed_during_close(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`settle` could not get the lock, and its owner died before the last connection was closed."""
    path = tmp_path / "people.ledger"
    ledger = open_ledger(str(path))
    monkeypatch.setattr(file, "settle", lambda path: None)
    ledger.close()
    assert file.mark_of(path) == file.WHOLE
    ledger = Ledger(str(path))
    assert verify_clean(ledger).spent["people"] == Amount.up("0.1")
    ledger.close()


OTHER = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT count(*) FROM sqlite_master').fetchone(); c.close()"


@pytest.mark.parametrize(
    "inspect",
    [
        file.mark_of,
        file.is_partial,
        lambda path: file.refuse_partial(path, read_only=False),
        lambda path: Ledger(str(path)).close(),
        lambda path: Ledger(str(path), read_only=True).close(),
        lambda path: backup(Ledger(str(path), read_only=True), path.with_name("copy")),
    ],
    ids=["mark", "partial", "refusal", "second ledger", "second reader", "backup"],
)
def test_reading_the_file_of_an_open_ledger_keeps_its_locks(tmp_path: Path, inspect: Callable[[Path], Any]) -> None:
    """Without the locks, another process assumes that it is the last one and removes the log: entries are lost."""
    path = tmp_path / "people.ledger"
    ledger = open_ledger(str(path))
    inspect(path)
    subprocess.run([sys.executable, "-c", OTHER, str(path)], check=True)
    assert file.log_of(path).exists()
    charge(ledger, POLICY, "more", "0.1")
    assert verify_clean(ledger).spent["people"] == Amount.up("0.2")
    ledger.close()


def test_file_that_replaces_an_open_ledger_is_not_marked_as_whole(tmp_path: Path) -> None:
    path, raw = tmp_path / "people.ledger", tmp_path / "raw.ledger"
    ledger = open_ledger(str(path))
    shutil.copy(path, raw)
    Path(f"{path}-wal").unlink()
    os.replace(raw, path)
    ledger.close()
    with pytest.raises(LedgerUnavailable, match="latest entries are missing"):
        Ledger(str(path))


# earlier versions ---------------------------------------------------------------------------------------------------


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A ledger that was written before there was a genesis entry."""
    path = tmp_path / "older.ledger"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript((SAMPLES / "schema_0004.sql").read_text())
    connection.close()
    return path


def test_earlier_ledger_is_read_unchanged_with_notes_on_uncovered_data(older: Path) -> None:
    ledger = Ledger(str(older), read_only=True)
    verdict = ledger.verify()
    assert (verdict.problems, verdict.entries) == ([], 18)
    assert any("The secret of soldiers is not covered" in note for note in verdict.notes)
    assert any("The report ids of the collection of entry 16" in note for note in verdict.notes)
    ledger.close()


def test_earlier_ledger_is_adopted_and_its_exports_and_heads_still_verify(older: Path) -> None:
    export = SAMPLES / "schema_0004.jsonl"
    before = verify_export(export)
    assert before.problems == []
    ledger = Ledger(str(older))
    entries = list(ledger.entries())
    assert [entry.kind for entry in entries][-3:] == ["reports", "adoption", "access"]
    assert "".join(f"{entry.line()}\n" for entry in entries[:4]).splitlines()[3] in export.read_text()
    verdict = ledger.verify(head=before.head)
    assert verdict.problems == []
    assert not any("not covered by an entry" in note for note in verdict.notes)
    assert ledger.spent_by("people", "ann") == Amount.up("0.1")
    charge(ledger, replace(POLICY, version=1), "more", "0.1", who="ann")
    assert ledger.spent_by("people", "ann") == Amount.up("0.2")
    ledger.close()
    again = Ledger(str(older))
    assert again.verify().problems == []
    again.close()


def test_empty_ledger_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "older.ledger"
    with sqlite3.connect(path) as connection:
        connection.executescript((SAMPLES / "schema_0004.sql").read_text())
        connection.execute("DELETE FROM tidegate_entries")
    connection.close()
    with pytest.raises(LedgerUnavailable, match="contains no ledger"):
        Ledger(str(path))


# permissions ------------------------------------------------------------------------------------------------------


def test_files_of_a_ledger_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = open_ledger(str(tmp_path / "a.ledger"))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        ledger.close()
    finally:
        os.umask(before)
    assert modes == {"a.ledger": 0o600, "a.ledger-wal": 0o600, "a.ledger-shm": 0o600}


def test_readable_ledger_is_reported_once_and_by_verify(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.ledger"
    open_ledger(str(path)).close()
    path.chmod(0o644)
    for _ in range(2):
        ledger = Ledger(str(path))
        verdict = ledger.verify()
        ledger.close()
    messages = [record.getMessage() for record in caplog.records if record.name == "tidegate.ledger"]
    assert len([message for message in messages if f"{path} (mode 0644)" in message]) == 1
    assert verdict.problems == []
    assert any("chmod 600" in note for note in verdict.notes)


# disks --------------------------------------------------------------------------------------------------------------


def charge_many(ledger: Ledger, count: int) -> None:
    for number in range(count):
        charge(ledger, POLICY, number, "1e-20")


def test_full_database_is_reported_and_nothing_is_charged(tmp_path: Path) -> None:
    ledger = open_ledger(str(tmp_path / "a.ledger"))
    with ledger.store.reading() as connection:
        (pages,) = connection.exec_driver_sql("PRAGMA page_count").one()
    with ledger.store.engine.connect() as connection:
        driver: Any = connection.connection.dbapi_connection
        driver.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(LedgerUnavailable, match=r"The disk of the ledger .* is full") as refused:
        charge_many(ledger, 200)
    assert "database is running" not in str(refused.value)
    ledger.close()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="mounting needs root")
def test_full_and_read_only_disks_are_reported(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        ledger = open_ledger(str(disk / "a.ledger"))
        with pytest.raises(LedgerUnavailable, match=r"full|disk I/O error"):
            charge_many(ledger, 2000)
        spent = ledger.account("people").spent
        ledger.close()
        (disk / "filler").unlink(missing_ok=True)
        subprocess.run(["mount", "-o", "remount,size=4m", disk], check=True)
        again = Ledger(str(disk / "a.ledger"))
        assert verify_clean(again).spent["people"] == spent
        again.close()
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        with pytest.raises(LedgerUnavailable, match=r"read-only|cannot be opened"):
            charge(Ledger(str(disk / "a.ledger")), POLICY, "more", "0.1")
        reader = Ledger(str(disk / "a.ledger"), read_only=True)
        assert reader.verify().problems == []
        reader.close()
        with pytest.raises(LedgerUnavailable, match="Read-only file system"):
            Ledger(str(disk / "new.ledger"))
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


# Ctrl-C -------------------------------------------------------------------------------------------------------------

STOPPED = """
import sys
from tidegate.cli import main
import tidegate.{module} as module
original = {object}.{name}
def stop(*arguments, **options):
    {first}
    raise KeyboardInterrupt
{object}.{name} = stop
main()
"""
MOMENTS = {
    "before the charge": ("answer.run", "module", "check_limits", "pass", "Nothing was charged"),
    "after the charge": (
        "ledger.ledger",
        "module.Ledger",
        "charge",
        "original(*arguments, **options)",
        "A charge was recorded",
    ),
    "during the charge": (
        "ledger.ledger",
        "module.shares",
        "put",
        "pass",
        "A charge was being written",
    ),
}


@pytest.mark.long_for("before", "during")  # each starts a process
@pytest.mark.parametrize("moment", MOMENTS)
def test_interrupted_command_reports_whether_it_charged(folder: Path, moment: str) -> None:
    assert ask(folder)[0] == 0
    words = ("answer", "people.toml", "SELECT sex, COUNT(*) FROM people GROUP BY sex", "--epsilon", "0.2", "--anyway")
    module, owner, name, first, says = MOMENTS[moment]
    code = STOPPED.format(module=module, object=owner, name=name, first=first)
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130, done.stderr
    assert says in done.stderr
    assert spent(folder) == ("0.3" if moment == "after the charge" else "0.1")


def spent(folder: Path) -> str:
    """Return what the command that verifies the ledger reports."""
    return str(json.loads(run(folder, "ledger", "verify", "people.toml", "--json")[1])["spent"]["people"])
