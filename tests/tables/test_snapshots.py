"""A CSV file is read once, whatever its records hold; answers come from a private snapshot."""

from __future__ import annotations

import gc
import hashlib
import logging
import os
import random
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tidegate.errors import SourceMissing, SourceUnreadable
from tidegate.tables import Table, csv_reader, open_table, snapshot
from tidegate.tables.csv_reader import Malformed
from tidegate.tables.engines import duckdb
from tidegate.tables.snapshot import Snapshot

POLICY = tg.Policy(
    tg.Dataset("people"),
    {"person": tg.Key(), "age": tg.Integer(18, 65), "town": tg.Category(("Aby", "Berg"))},
    loss=tg.Loss(10),
)
HEADER = "person,age,town\n"
GOOD = "p1,30,Aby\np2,40,Berg\n"


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "people.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path: Path, snapshots: Path | None = None) -> tuple[Table, Snapshot]:
    table = open_table(POLICY, path, snapshots=snapshots)
    opened = next(iter(duckdb.snapshots_of(table.source)), None)
    assert opened is not None
    return table, opened


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.source.to_pyarrow().to_pylist()), key=repr)


P1, P2 = ("p1", 30.0, "Aby"), ("p2", 40.0, "Berg")
RECORDS: dict[str, tuple[str | bytes, list[tuple[Any, ...]], tuple[int, int, int]]] = {
    "well formed": ("", [], (0, 0, 0)),
    "too short": ("p3,50\n", [("p3", 50.0, None)], (1, 0, 0)),
    "too long": ("p3,50,Aby,more,and more\n", [("p3", 50.0, "Aby")], (1, 0, 0)),
    "a word for a number": ("p3,secret,Aby\n", [("p3", None, "Aby")], (0, 0, 1)),
    "a number beyond 64 bits": ("p3,1e30,Aby\n", [("p3", 1e30, "Aby")], (0, 0, 0)),
    "an empty line": ("\n\n", [], (0, 0, 0)),
    "a quoted delimiter": ('"p,3",50,"Aby"\n', [("p,3", 50.0, "Aby")], (0, 0, 0)),
    "a quoted quote": ('"p""3",50,Aby\n', [('p"3', 50.0, "Aby")], (0, 0, 0)),
    "a quoted line end": ('"p\n3",50,Aby\n', [("p\n3", 50.0, "Aby")], (0, 0, 0)),
    "an open quote": ('"p3,50,Aby\n', [('"p3', 50.0, "Aby")], (1, 0, 0)),
    "an open quote at the end": ('p3,50,"Aby', [("p3", 50.0, '"Aby')], (1, 0, 0)),
    "a quote inside": ('p"3,50,A"by\n', [('p"3', 50.0, 'A"by')], (0, 0, 0)),
    "a quote before more text": ('"p"3,50,Aby\n', [("p3", 50.0, "Aby")], (0, 0, 0)),
    "other line ends": ("p3,50,Aby\r\np4,60,Aby\rp5,18,Aby\n", [(f"p{n}", age, "Aby") for n, age in ((3, 50.0), (4, 60.0), (5, 18.0))], (0, 0, 0)),
    "bytes that are not UTF-8": (b"p3,50,\xc3\xa9\xe9\n", [("p3", 50.0, "é\ufffd")], (0, 1, 0)),
    "a zero byte": ("p\x003,50,Aby\n", [("p\x003", 50.0, "Aby")], (0, 0, 0)),
    "a long value": ("p3,50," + "x" * 300_000 + "\n", [("p3", 50.0, "x" * 300_000)], (0, 0, 0)),
    "a long quoted value": ('p3,50,"' + "x," * 300_000 + '"\n', [("p3", 50.0, "x," * 300_000)], (0, 0, 0)),
    "not a number": ("p3,nan,Aby\np4,-inf,Aby\n", [("p3", float("nan"), "Aby"), ("p4", float("-inf"), "Aby")], (0, 0, 0)),
}  # fmt: skip


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", RECORDS)
def test_record_changes_only_its_own_row(case: str, tmp_path: Path) -> None:
    record, rows, (lines, characters, values) = RECORDS[case]
    content = record if isinstance(record, bytes) else record.encode()
    table, opened = read(write(tmp_path, HEADER.encode() + b"p1,30,Aby\n" + content + (b"" if case.endswith("end") else b"p2,40,Berg\n")))  # fmt: skip
    expected = [P1, *rows] if case.endswith("end") else [P1, P2, *rows]
    assert repr(rows_of(table)) == repr(sorted(expected, key=repr))
    malformed = opened.malformed
    assert (malformed.lines, malformed.characters, malformed.values["age"]) == (lines, characters, values)
    assert table.count(["town"]).sum() <= len(expected)


def test_file_with_a_byte_order_mark_or_tabs_is_read(tmp_path: Path) -> None:
    table, _ = read(write(tmp_path, b"\xef\xbb\xbf" + (HEADER + GOOD).replace(",", "\t").encode()))
    assert rows_of(table) == [P1, P2]


def test_open_quote_does_not_swallow_the_rest_of_the_file(tmp_path: Path) -> None:
    """Neither the records within the limit nor those beyond it."""
    rest = "".join(f"q{n},20,Aby\n" for n in range(3 * csv_reader.MOST_LINES))
    table, opened = read(write(tmp_path, f'{HEADER}"p1,30,Aby\n{rest}p2,40,"Berg\n{GOOD}'))
    assert table.size == 3 * csv_reader.MOST_LINES + 4
    assert opened.malformed.lines == 2


@pytest.mark.long  # test_record_changes_only_its_own_row keeps the claim
@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=80) | st.text('a,"\n\r é;\t', max_size=80).map(str.encode))
def test_no_content_makes_an_answer_fail(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    table, opened = read(write(tmp_path_factory.mktemp("any"), HEADER.encode() + content))
    assert table.count(["town", "age"]).sum() <= table.size
    assert opened.malformed.lines <= table.size


@pytest.mark.parametrize("files", [100, pytest.param(400, marks=pytest.mark.long)])
def test_fast_reader_and_tolerant_reader_agree(files: int, tmp_path: Path) -> None:
    """On every file that the fast one accepts: otherwise one record could change how others are read."""
    draw, accepted, path = random.Random(3), 0, tmp_path / "any.csv"
    parts = ["a", "b", ",", "\n", "\r", "\r\n", " ", "é", "'", "\\", '"', "\x00", "\ufeff", "1,2,3\n", "1,2,3\r\n"]
    for _ in range(files):
        names = ["x", "y", "z"][: draw.choice([1, 2, 3])]
        end = draw.choice(["\n", "\r\n"])
        fields = [[draw.choice(["a", "", " a", "é", "\x00", "'"]) for _ in names] for _ in range(draw.randrange(6))]
        regular = end.join([",".join(names), *(",".join(row) for row in fields)]) + draw.choice(["", end])
        odd = "".join([",".join(names), "\n", *(draw.choice(parts) for _ in range(draw.randrange(25)))])
        path.write_bytes(draw.choice([regular, odd]).encode())
        read_by = [_read(reader, path, names) for reader in (csv_reader.read_strictly, csv_reader.read_tolerantly)]
        if read_by[0] is not None:
            accepted += 1
            assert read_by[0] == read_by[1]
    assert accepted > files * 3 // 8


def _read(reader: Any, path: Path, names: list[str]) -> list[tuple[Any, ...]] | None:
    try:
        batches = list(reader(path, (",", names), names, Malformed(), duckdb.connect))
    except csv_reader.Unfit:
        return None
    rows = [tuple(value or None for value in row.values()) for batch in batches for row in batch.to_pylist()]
    return sorted(rows, key=repr)


def test_whole_numbers_beyond_53_bits_and_listed_numbers_are_exact(tmp_path: Path) -> None:
    attributes = {"big": tg.Integer(0, 2**60), "code": tg.Category((1, 2)), "yes": tg.Category((False, True))}
    (tmp_path / "n.csv").write_text(
        f"big,code,yes\n{2**60 - 1},1,true\n{10**30},2.0,no word\n-{10**30},1.7,0\nx,0x2,\n"
    )
    table = open_table(tg.Policy(tg.Dataset("n"), attributes), tmp_path / "n.csv")
    columns = table.source.to_pyarrow().to_pydict()
    assert set(columns["big"]) == {2**60 - 1, 2**63 - 1, -(2**63), None}
    assert sorted(columns["code"], key=repr) == [1, 2, None, None]
    assert sorted(columns["yes"], key=repr) == [False, None, None, True]


def test_second_opening_does_not_read_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, HEADER + GOOD)
    first, _ = read(path, tmp_path / "snapshots")
    for name in ("read_strictly", "read_tolerantly"):
        monkeypatch.setattr(snapshot, name, lambda *_: pytest.fail("the file is read again"))
    assert rows_of(read(path, tmp_path / "snapshots")[0]) == rows_of(first)


def test_changed_file_replaces_its_snapshot_unless_a_table_reads_it(tmp_path: Path) -> None:
    folder = tmp_path / "snapshots"
    old, opened = read(write(tmp_path, HEADER + GOOD), folder)
    assert opened.is_current()
    new, _ = read(write(tmp_path, HEADER + GOOD + "p3,50,Aby\n"), folder)
    assert not opened.is_current()
    assert (old.count().item(), new.count().item()) == (2, 3), "a table that is open still has its rows"
    assert len(list(folder.glob("*.parquet"))) == 2
    del old, opened, new, _
    gc.collect()
    latest, _ = read(write(tmp_path, HEADER), folder)
    assert (latest.count().item(), len(list(folder.glob("*.parquet")))) == (0, 1)


def test_other_types_have_their_own_snapshot(tmp_path: Path) -> None:
    path, folder = write(tmp_path, HEADER + GOOD), tmp_path / "snapshots"
    read(path, folder)
    text = tg.Policy(tg.Dataset("people"), {"age": tg.Category(("30", "40"))})
    assert open_table(text, path, snapshots=folder).count(["age"]).tolist() == [1, 1]
    assert rows_of(read(path, folder)[0]) == [P1, P2]


def test_only_the_owner_can_read_a_snapshot_and_its_name_reveals_nothing(tmp_path: Path) -> None:
    path, folder = write(tmp_path, HEADER + GOOD), tmp_path / "snapshots"
    read(path, folder)
    modes = {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    assert (stat.S_IMODE(folder.stat().st_mode), modes) == (0o700, {0o600})
    status = path.stat()
    guesses = [path.read_bytes(), str(status.st_size).encode(), f"{status.st_size} {status.st_mtime_ns} {status.st_ino}".encode()]  # fmt: skip
    names = " ".join(file.name for file in folder.iterdir())
    assert all(hashlib.sha256(guess).hexdigest()[:32] not in names for guess in guesses)
    [stored] = folder.glob("*.parquet")
    assert pq.read_schema(stored).names == list(POLICY.attributes), "undeclared columns are not copied"


def test_interrupted_writer_leaves_no_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder = write(tmp_path, HEADER + GOOD), tmp_path / "snapshots"
    with monkeypatch.context() as patched:
        patched.setattr(snapshot, "_convert", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            read(path, folder)
    assert [file.suffix for file in folder.glob("*.p*")] == [".part"]
    assert rows_of(read(path, folder)[0]) == [P1, P2]
    assert [file.suffix for file in folder.glob("*.p*")] == [".parquet"]


def test_folder_that_cannot_be_written_is_replaced_by_a_private_one(tmp_path: Path) -> None:
    (tmp_path / "snapshots").write_text("a file, not a folder")
    table, opened = read(write(tmp_path, HEADER + GOOD), tmp_path / "snapshots")
    assert rows_of(table) == [P1, P2]
    assert stat.S_IMODE(opened.path.parent.stat().st_mode) == 0o700
    assert tmp_path not in opened.path.parents


def test_full_disk_is_reported_without_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(SourceUnreadable, match="cannot be written: No space left on device") as raised:
        read(write(tmp_path, HEADER + GOOD), tmp_path / "snapshots")
    assert raised.value.__context__ is None


CHILD = """
import sys
from tables.test_snapshots import POLICY
from tidegate.tables import open_table
from pathlib import Path
for _ in range(8):
    assert open_table(POLICY, Path(sys.argv[1]), snapshots=Path(sys.argv[2])).count().item() == int(sys.argv[3])
"""


@pytest.mark.long  # two more processes
def test_processes_share_a_snapshot_while_the_file_changes(tmp_path: Path) -> None:
    path, folder = write(tmp_path, HEADER + GOOD), tmp_path / "snapshots"
    command = [sys.executable, "-c", CHILD, str(path), str(folder), "2"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    children = [subprocess.Popen(command, env=environment) for _ in range(2)]
    for _ in range(10):
        os.utime(path)  # another state of the file, with the same rows
        assert read(path, folder)[0].count().item() == 2
    assert [child.wait(120) for child in children] == [0, 0]
    assert not list(folder.glob("*.part"))


def test_session_reads_a_changed_file_again(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + GOOD)
    with tg.open(POLICY, table=path, ledger=str(tmp_path / "people.ledger")) as session:
        first = session.table
        assert (session.table is first, first.count().item()) == (True, 2)
        write(tmp_path, HEADER + GOOD + "p3,50,Aby\n")
        assert session.table.count().item() == 3
        assert (tmp_path / "people.ledger.snapshots").is_dir()
        path.unlink()
        with pytest.raises(SourceMissing):
            session.answer(tg.count().by("town"), epsilon=1)
        assert str(session.account.spent) == "0"


def test_long_reading_is_announced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(snapshot, "SECONDS_UNTIL_NOTE", -1.0)
    with caplog.at_level(logging.INFO, "tidegate.tables"):
        read(write(tmp_path, HEADER + GOOD))
    assert [record.getMessage() for record in caplog.records] == [
        'Reading "people.csv". This is needed once; answers then read a snapshot of it.'
    ]
