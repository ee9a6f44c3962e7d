"""Backup and restore: everything is copied while the ledger is in use, and no restore refunds budget."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ledger.charges import charge, open_ledger, verify_clean
from ledger.full_ledger import ENTRIES, write_everything
from ledger.test_file import HOLD, _environment, ask, run
from ledger.test_file import folder as folder  # a fixture
from sqlalchemy import select
from support.people import people_policy

from tidegate.accounting import Amount
from tidegate.errors import LedgerBroken, LedgerUnavailable
from tidegate.ledger import Ledger, backup, restore
from tidegate.ledger.schema import metadata
from tidegate.policy import Dataset, Policy

POLICY = people_policy()


def rows(ledger: Ledger) -> dict[str, list[tuple[object, ...]]]:
    """Return all rows of a ledger, by table."""
    with ledger.store.reading() as connection:
        return {
            table.name: sorted(
                (tuple(map(_plain, row)) for row in connection.execute(select(table))), key=lambda row: str(row)
            )
            for table in metadata.sorted_tables
        }


def _plain(value: object) -> object:
    return bytes(value) if isinstance(value, memoryview) else value


@pytest.mark.long_for("postgres")
def test_backup_contains_every_row_and_is_private(ledger_url: str, tmp_path: Path) -> None:
    write_everything(ledger_url, tmp_path / "reports")
    ledger = Ledger(ledger_url)
    copied = backup(ledger, tmp_path / "b.ledger")
    copy = Ledger(str(tmp_path / "b.ledger"), read_only=True)
    assert rows(copy) == rows(ledger)
    assert (copied.head, copied.entries) == (ledger.head(), 35 + ENTRIES + 1)
    assert copied.size == (tmp_path / "b.ledger").stat().st_size
    assert stat.S_IMODE((tmp_path / "b.ledger").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    ledger.close()
    copy.close()


def test_backup_is_verified_and_cannot_be_charged_or_replaced(tmp_path: Path) -> None:
    ledger = open_ledger(str(tmp_path / "a.ledger"))
    backup(ledger, tmp_path / "b.ledger")
    with pytest.raises(LedgerUnavailable, match="is a backup"):
        Ledger(str(tmp_path / "b.ledger"))
    with pytest.raises(LedgerUnavailable, match="exists"):
        backup(ledger, tmp_path / "b.ledger")
    with ledger.store.writing() as connection:
        connection.exec_driver_sql("UPDATE tidegate_results SET payload = '1'")
    with pytest.raises(LedgerBroken):
        backup(ledger, tmp_path / "c.ledger")
    assert not (tmp_path / "c.ledger").exists()
    ledger.close()


def test_backups_during_charges_are_complete(tmp_path: Path) -> None:
    ledger, stop = open_ledger(str(tmp_path / "a.ledger")), threading.Event()

    def spend() -> None:
        number = 0
        while not stop.is_set():
            charge(ledger, POLICY, number, "1e-9").record(number)
            number += 1

    spender = threading.Thread(target=spend)
    spender.start()
    try:
        heads = [backup(ledger, tmp_path / f"{number}.ledger").head for number in range(5)]
    finally:
        stop.set()
        spender.join()
    for head in heads:
        assert ledger.verify(head=head).problems == []
    ledger.close()


def test_restored_ledger_continues_where_the_backup_ended(ledger_url: str, tmp_path: Path) -> None:
    ledger = open_ledger(ledger_url)
    backup(ledger, tmp_path / "b.ledger")
    ledger.close()
    restored = restore(tmp_path / "b.ledger", ledger_url)
    assert restored.written_off == {}
    again = Ledger(ledger_url)
    assert again.head() == restored.head
    assert charge(again, POLICY, "before", "0.1").stored == "stored"
    charge(again, POLICY, "more", "0.2")
    assert verify_clean(again).spent["people"] == Amount.up("0.3")
    again.close()


def test_older_backup_is_refused_and_a_write_off_refunds_nothing(ledger_url: str, tmp_path: Path) -> None:
    others = Policy(Dataset("others"), POLICY.attributes, POLICY.identification)
    ledger = open_ledger(ledger_url)
    backup(ledger, tmp_path / "b.ledger")
    stricter = people_policy(rho="0.09")
    ledger.open_account(stricter)
    charge(ledger, stricter, "more", "0.25", who="ann")
    ledger.open_account(others)
    charge(ledger, others, "first", "0.5", who="ben")
    head, account = ledger.head(), ledger.account("people")
    ledger.close()
    with pytest.raises(LedgerUnavailable, match="4 entries that the backup lacks, up to entry 7"):
        restore(tmp_path / "b.ledger", ledger_url)
    with pytest.raises(LedgerBroken, match="noted head"):
        restore(tmp_path / "b.ledger", ledger_url, head=head)
    same = Ledger(ledger_url)
    assert same.head() == head
    same.close()
    restored = restore(tmp_path / "b.ledger", ledger_url, write_off=True)
    assert restored.written_off == {"people": "0.25", "others": "0.5"}
    again = Ledger(ledger_url)
    assert again.account("people") == account
    assert again.account("others").spent == Amount.up("0.5")
    assert (again.spent_by("people", "ann"), again.spent_by("others", "ben")) == (Amount.up("0.25"), Amount.up("0.5"))
    assert verify_clean(again).problems == []
    charge(again, stricter, "and more", "0.1")
    again.close()


def test_restore_keeps_the_replaced_ledger_and_refuses_other_ledgers(tmp_path: Path) -> None:
    open_ledger(str(tmp_path / "a.ledger")).close()
    other = open_ledger(str(tmp_path / "other.ledger"))
    backup(other, tmp_path / "b.ledger")
    other.close()
    with pytest.raises(LedgerUnavailable, match="of another ledger"):
        restore(tmp_path / "b.ledger", str(tmp_path / "a.ledger"), write_off=True)
    restored = restore(tmp_path / "b.ledger", str(tmp_path / "other.ledger"))
    with pytest.raises(LedgerUnavailable, match="is a backup, or was replaced"):
        Ledger(restored.aside)
    Ledger(restored.aside, read_only=True).close()


def test_restore_refuses_to_lose_release_decisions(tmp_path: Path) -> None:
    url = str(tmp_path / "a.ledger")
    open_ledger(url).close()
    ledger = Ledger(url)
    backup(ledger, tmp_path / "b.ledger")
    ledger.close()
    write_everything(url, tmp_path / "reports")
    with pytest.raises(LedgerUnavailable, match="release decisions"):
        restore(tmp_path / "b.ledger", url, write_off=True)


def test_restore_refuses_a_ledger_in_use_or_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    ledger = open_ledger(str(path))
    backup(ledger, tmp_path / "b.ledger")
    with pytest.raises(LedgerUnavailable, match="in use"):
        restore(tmp_path / "b.ledger", str(path))
    charge(ledger, POLICY, "more", "0.1")
    ledger.close()
    path.write_bytes(b"x" * 5000)
    with pytest.raises(LedgerUnavailable, match="cannot be read"):
        restore(tmp_path / "b.ledger", str(path))
    path.unlink()
    Path(f"{path}-wal").write_bytes(b"x")
    with pytest.raises(LedgerUnavailable, match="write-ahead log"):
        restore(tmp_path / "b.ledger", str(path))


def test_tampered_backup_is_not_restored(tmp_path: Path) -> None:
    ledger = open_ledger(str(tmp_path / "a.ledger"))
    backup(ledger, tmp_path / "b.ledger")
    ledger.close()
    before = (tmp_path / "a.ledger").read_bytes()
    with sqlite3.connect(tmp_path / "b.ledger") as connection:
        connection.execute("UPDATE tidegate_secrets SET value = 'x'")
    connection.close()
    with pytest.raises(LedgerBroken, match="secret"):
        restore(tmp_path / "b.ledger", str(tmp_path / "a.ledger"))
    assert (tmp_path / "a.ledger").read_bytes() == before


def test_partial_file_is_restored_only_with_its_newest_head(tmp_path: Path) -> None:
    path, partial = tmp_path / "a.ledger", tmp_path / "partial.ledger"
    ledger = open_ledger(str(path))
    head = ledger.head()
    with sqlite3.connect(path) as source, sqlite3.connect(partial) as target:
        source.backup(target)  # by hand: complete, but marked as in use
    source.close()
    target.close()
    charge(ledger, POLICY, "more", "0.1")
    newest = ledger.head()
    ledger.close()
    path.rename(tmp_path / "lost.ledger")
    with pytest.raises(LedgerUnavailable, match="latest entries are missing"):
        restore(partial, str(path))
    with pytest.raises(LedgerBroken, match="noted head"):
        restore(partial, str(path), head=newest)
    assert restore(partial, str(path), head=head).head == head


@pytest.mark.parametrize("kills", [range(0, 6, 2), pytest.param(range(6), marks=pytest.mark.long)], ids=["3", "6"])
def test_killed_restore_leaves_the_old_ledger_or_the_new_one(tmp_path: Path, kills: range) -> None:
    code = "import sys\nfrom tidegate.ledger import restore\nprint('go', flush=True)\nrestore(sys.argv[1], sys.argv[2], write_off=True)"
    path = tmp_path / "a.ledger"
    ledger = open_ledger(str(path))
    backup(ledger, tmp_path / "b.ledger")
    charge(ledger, POLICY, "more", "0.2", who="ann")
    ledger.close()
    for number in kills:
        words = [sys.executable, "-c", code, str(tmp_path / "b.ledger"), str(path)]
        process = subprocess.Popen(words, env=_environment(), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.03 * number)
        process.kill()
        process.wait()
        process.stdout.close()
        ledger = Ledger(str(path), read_only=True)
        assert verify_clean(ledger).spent["people"] == Amount.up("0.3")
        ledger.close()
    assert restore(tmp_path / "b.ledger", str(path), write_off=True).entries == 4


def test_commands_back_up_and_restore_while_another_process_charges(folder: Path) -> None:
    assert ask(folder, "0.1")[0] == 0
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder / "busy.ledger"), "hold"],
        env=_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    code, out, err = run(folder, "ledger", "backup", "busy.ledger", "busy.backup", "--json")
    assert (code, json.loads(out)["entries"]) == (0, 6), err
    process.kill()
    process.wait()
    process.stdout.close()
    code, out, _ = run(folder, "ledger", "backup", "people.toml", "people.backup")
    assert code == 0
    assert "head " in out
    assert ask(folder, "0.2")[0] == 0
    code, _, err = run(folder, "ledger", "restore", "people.toml", "people.backup")
    assert code == 2
    assert "--write-off" in err
    code, out, _ = run(folder, "ledger", "restore", "people.toml", "people.backup", "--write-off", "--json")
    assert (code, json.loads(out)["written_off"]) == (0, {"people": "0.2"})
    code, out, _ = run(folder, "ledger", "verify", "people.toml", "--json")
    assert json.loads(out)["spent"] == {"people": "0.3"}
    assert os.listdir(folder).count("people.ledger") == 1
