"""Verification, export and listing in constant memory, and verification that continues from an earlier one."""

from __future__ import annotations

import shutil
import sqlite3
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger.charges import charge
from ledger.full_ledger import write_everything
from ledger.tampering import Record
from support.people import people_policy
from typer.testing import CliRunner

from benchmarks.large_ledgers import fill
from tidegate.cli.app import app
from tidegate.errors import LedgerBroken, LedgerUnavailable
from tidegate.ledger import Entry, Ledger, export_lines, scratch, verify, verify_export
from tidegate.ledger.entry import FORMAT, canonical, sha256
from tidegate.ledger.tail import latest

POLICY = people_policy()


# Mappings


@given(st.lists(st.tuples(st.sampled_from("sgpf"), st.integers(0, 12), st.integers())))
def test_mapping_equals_a_dictionary(steps: list[tuple[str, int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scratch, "AT_ONCE", 3)
        store = scratch.Scratch()
        mapping, expected = store.mapping("a"), dict[str, Any]()
        store.mapping("b")["1"] = "another mapping"
        for step, key, value in steps:
            name = str(key)
            if step == "s":
                mapping[name] = [value]
                expected[name] = [value]
            elif step == "p":
                mapping.pop(name)
                expected.pop(name, None)
            elif step == "f":
                mapping.flush()
            assert mapping.get(name) == expected.get(name)
            assert (name in mapping) == (name in expected)
            assert len(mapping) == len(expected)
        assert dict(mapping.items()) == expected
        store.close()


def test_mapping_is_saved_and_read_back(tmp_path: Path) -> None:
    store = scratch.Scratch()
    store.mapping("a")["key"] = {"value": [1, "é", None]}
    store.save(tmp_path / "saved")
    store.close()
    assert (tmp_path / "saved").stat().st_mode & 0o777 == 0o600
    again = scratch.Scratch(tmp_path / "saved")
    assert dict(again.mapping("a").items()) == {"key": {"value": [1, "é", None]}}
    again.mapping("a")["other"] = 1
    assert len(again.mapping("a")) == 2
    again.close()
    with pytest.raises(LedgerUnavailable, match="File exists"):
        scratch.Scratch().save(tmp_path / "saved")
    with pytest.raises(LedgerUnavailable, match="is not a file of"):
        scratch.Scratch(tmp_path / "missing").mapping("a")


# Streams


def test_hash_covers_the_canonical_form_of_all_fields(record: Record) -> None:
    for entry in record.entries:
        fields = {name: value for name, value in entry.__dict__.items() if name != "hash"}
        assert entry.digest() == sha256(canonical({"format": FORMAT, **fields}))


@given(st.text(), st.integers(0, 2**40))
def test_hash_of_any_text_is_that_of_its_canonical_form(text: str, number: int) -> None:
    entry = Entry(number, text, text, "k", text, "", text[::-1], "0", "0", "0", text, text)
    fields = {name: value for name, value in entry.__dict__.items() if name != "hash"}
    encoded = canonical({"format": FORMAT, **fields}).encode("utf-8", "surrogatepass").decode("utf-8", "surrogatepass")
    assert entry.digest() == sha256(encoded)


def test_verdict_of_streams_is_that_of_a_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "AT_ONCE", 20)  # most items are in the file
    write_everything(str(tmp_path / "a.ledger"), tmp_path / "reports")
    ledger = Ledger(str(tmp_path / "a.ledger"), read_only=True)
    streamed, snapshot = ledger.verify(), verify(*ledger.snapshot())
    assert streamed == snapshot
    assert streamed.problems == []
    lines = [f"{line}\n" for line in export_lines(ledger)]
    (tmp_path / "a.jsonl").write_text("".join(lines), "utf-8")
    exported = verify_export(tmp_path / "a.jsonl", head=ledger.head())
    assert (exported.problems, exported.spent) == ([], streamed.spent)
    ledger.close()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("work", ["verify export", "verify", "export", "show"])
def test_memory_does_not_grow_with_the_entries(work: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "AT_ONCE", 200)
    peaks = []
    for size in (3_000, 9_000):
        path = tmp_path / f"{size}.ledger"
        ledger = Ledger(str(path))
        fill(ledger, size)
        if work == "verify export":
            (tmp_path / f"{size}.jsonl").write_text("".join(f"{line}\n" for line in export_lines(ledger)), "utf-8")
        tracemalloc.start()
        if work == "verify":
            assert ledger.verify().problems == []
        elif work == "export":
            assert sum(1 for _ in export_lines(ledger)) > size
        elif work == "verify export":
            assert verify_export(tmp_path / f"{size}.jsonl").problems == []
        else:
            CliRunner().invoke(app, ["ledger", "show", str(path), "--last", "5"], catch_exceptions=False)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        ledger.close()
    assert peaks[1] < peaks[0] + 700_000, peaks  # 6,000 entries take 15 MB in memory


def test_latest_entries_are_explained_as_in_the_whole_list(tmp_path: Path) -> None:
    from tidegate.ledger import explain_entries

    ledger = Ledger(str(tmp_path / "a.ledger"))
    ledger.open_account(POLICY)
    for number in range(10):
        charge(ledger, POLICY, number, "0.01", who="ann").record([1])
    every = list(explain_entries(ledger.entries()))
    for count in (1, 3, 100):
        assert latest(ledger, count) == every[-count:]
        assert latest(ledger, count, account="people") == every[1:][-count:]
    ledger.close()


# Verification that continues


@pytest.fixture
def halves(tmp_path: Path) -> tuple[Path, Path]:
    """A ledger that was verified in the middle: its path, and the file of the verification."""
    path, saved = tmp_path / "a.ledger", tmp_path / "half.verified"
    write_everything(str(path), tmp_path / "reports")
    ledger = Ledger(str(path), is_witnessed=False)
    charge(ledger, POLICY, "late", "0.001", request="late key")
    assert ledger.verify(save=saved).problems == []
    charge(ledger, POLICY, "late", "0.001", request="late key").record([1])
    charge(ledger, POLICY, 7, "1e-9", request="repeated")
    charge(ledger, POLICY, "later", "0.01").record([2])
    ledger.close()
    return path, saved


def test_verification_continues_with_later_entries(halves: tuple[Path, Path], tmp_path: Path) -> None:
    path, saved = halves
    ledger = Ledger(str(path), read_only=True)
    whole, continued = ledger.verify(), ledger.verify(since=saved, save=tmp_path / "second")
    assert continued == whole
    assert continued.problems == []
    assert ledger.verify(since=tmp_path / "second", head=ledger.head()) == whole
    first = next(iter(ledger.entries())).hash
    assert ledger.verify(since=saved, head=first).problems == []
    assert "noted head" in ledger.verify(since=saved, head="0" * 63 + "1").problems[0]
    ledger.close()


LATER = {
    "a later amount": "UPDATE tidegate_entries SET amount = '9' WHERE number = (SELECT max(number) - 1 FROM tidegate_entries)",
    "a later result": "UPDATE tidegate_results SET payload = '[3]' WHERE number = (SELECT max(number) FROM tidegate_results)",
    "a total by user": "UPDATE tidegate_shares SET spent = '0' WHERE who = 'ann'",
    "an earlier request": "UPDATE tidegate_requests SET record = '{}' WHERE number = 1 AND account = 'soldiers'",
    "a listed answer": "UPDATE tidegate_sources SET noise = noise / 2",
    "a secret": "UPDATE tidegate_secrets SET value = 'ab'",
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("change", LATER)
def test_later_changes_and_changed_tables_are_found(halves: tuple[Path, Path], change: str) -> None:
    path, saved = halves
    with sqlite3.connect(path) as connection:
        connection.execute(LATER[change])
    connection.close()
    assert Ledger(str(path), read_only=True).verify(since=saved).problems


def test_other_earlier_hashes_are_refused(halves: tuple[Path, Path], tmp_path: Path) -> None:
    path, saved = halves
    shutil.copy(path, tmp_path / "b.ledger")
    with sqlite3.connect(tmp_path / "b.ledger") as connection:
        connection.execute("UPDATE tidegate_entries SET hash = previous WHERE number = 3")
    connection.close()
    with pytest.raises(LedgerBroken, match="not those that were verified before"):
        Ledger(str(tmp_path / "b.ledger"), read_only=True).verify(since=saved)
    other = Ledger(str(tmp_path / "other.ledger"))
    with pytest.raises(LedgerBroken, match="not those that were verified before"):
        other.verify(since=saved)
    other.close()


def test_command_saves_and_continues(halves: tuple[Path, Path], tmp_path: Path) -> None:
    path, saved = halves
    run = CliRunner().invoke(
        app, ["ledger", "verify", str(path), "--since", str(saved), "--save", str(tmp_path / "new")]
    )
    assert "entries are valid" in run.output
    assert (tmp_path / "new").exists()
