"""A stored answer states its date, and whether the source has changed since."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tidegate.ledger.backup import export_lines
from tidegate.session import Session
from tidegate.tables.source import source_address, source_state

QUESTION = tg.count().by("sex")
DATED = re.compile(r"stored answer of \d{4}-\d\d-\d\d \d\d:\d\d UTC")


def policy(**dataset: Any) -> tg.Policy:
    attributes = {"age": tg.Integer(18, 90), "sex": tg.Category(("female", "male"))}
    return tg.Policy(tg.Dataset("people", **dataset), attributes, loss=tg.Loss(10))


def frame(seed: int = 1, rows: int = 200) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame({"age": random.integers(18, 90, rows), "sex": random.choice(["female", "male"], rows)})


def write_csv(path: Path, data: pd.DataFrame) -> None:
    data.to_csv(path, index=False)


def write_parquet(path: Path, data: pd.DataFrame) -> None:
    pq.write_table(pa.Table.from_pandas(data), path)


def answer_from(source: Any, ledger: Path, **dataset: Any) -> tg.Answer:
    with tg.open(policy(**dataset), table=source, ledger=str(ledger)) as session:
        return session.answer(QUESTION, epsilon=1)


@pytest.mark.parametrize(("name", "write"), [("people.csv", write_csv), ("people.parquet", write_parquet)])
def test_replaced_file_is_reported_with_the_date_of_the_stored_answer(
    tmp_path: Path, name: str, write: Callable[[Path, pd.DataFrame], None]
) -> None:
    path, ledger = tmp_path / name, tmp_path / "people.ledger"
    write(path, frame(1))
    first = answer_from(path, ledger)
    assert (first.charge.stored, str(first).count("stored answer")) == ("", 0)
    again = answer_from(path, ledger)
    assert (again.charge.source, again.to_dict()["source"]) == ("unchanged", "unchanged")
    assert DATED.search(str(again))
    assert "has changed" not in str(again)
    write(path, frame(2))
    stale = answer_from(path, ledger)
    assert stale.charge.source == "changed"
    assert stale.to_dict()["stored"] == first_entry_time(ledger)
    assert "The source has changed since." in str(stale)
    assert "set `edition` in [dataset] to another text" in str(stale)
    assert stale.rows() == first.rows()
    renewed = answer_from(path, ledger, edition="2")
    assert (str(renewed.cost), renewed.charge.stored) == ("1", "")
    assert answer_from(path, ledger, edition="2").charge.source == "unchanged"


def first_entry_time(ledger: Path) -> str:
    with tg.open(policy(), ledger=str(ledger)) as session:
        return next(entry.at for entry in session.ledger.entries("people") if entry.kind == "charge")


def test_touched_moved_or_rewritten_file_with_the_same_content_is_unchanged(tmp_path: Path) -> None:
    path, ledger = tmp_path / "people.csv", tmp_path / "people.ledger"
    write_csv(path, frame())
    answer_from(path, ledger)
    os.utime(path, ns=(1, 1))
    assert answer_from(path, ledger).charge.source == "unchanged"
    moved = tmp_path / "elsewhere.csv"
    moved.write_bytes(path.read_bytes())
    assert answer_from(moved, ledger).charge.source == "unchanged"


def test_source_that_returns_to_an_earlier_state_is_recognized(tmp_path: Path) -> None:
    path, ledger = tmp_path / "people.csv", tmp_path / "people.ledger"
    for seed, change in ((1, "unknown"), (2, "changed"), (1, "unchanged")):
        write_csv(path, frame(seed))
        assert answer_from(path, ledger).charge.source == change


def test_same_size_and_time_with_other_content_is_a_change(tmp_path: Path) -> None:
    """`cp --preserve` of an edited file keeps size and time but not the inode."""
    path, ledger = tmp_path / "people.csv", tmp_path / "people.ledger"
    path.write_text("age,sex\n20,female\n30,male\n")
    answer_from(path, ledger)
    old, other = path.stat(), tmp_path / "other.csv"
    other.write_text("age,sex\n20,male\n30,female\n"[: old.st_size])
    os.utime(other, ns=(old.st_atime_ns, old.st_mtime_ns))
    os.replace(other, path)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (old.st_size, old.st_mtime_ns)
    assert answer_from(path, ledger).charge.source == "changed"


def test_folder_of_parquet_files_changes_with_any_of_them(tmp_path: Path) -> None:
    folder, ledger = tmp_path / "people", tmp_path / "people.ledger"
    folder.mkdir()
    write_parquet(folder / "a.parquet", frame(1))
    answer_from(folder, ledger)
    assert answer_from(folder, ledger).charge.source == "unchanged"
    write_parquet(folder / "b.parquet", frame(2))
    assert answer_from(folder, ledger).charge.source == "changed"


@pytest.mark.parametrize("kind", ["pandas", "arrow", "polars"])
def test_table_in_memory_is_compared_by_its_declared_columns(tmp_path: Path, kind: str) -> None:
    def table(seed: int, **more: Any) -> Any:
        data = frame(seed).assign(**more)
        if kind == "polars":
            return pytest.importorskip("polars").from_pandas(data)
        return data if kind == "pandas" else pa.Table.from_pandas(data)

    ledger = tmp_path / "people.ledger"
    answer_from(table(1), ledger)
    assert answer_from(table(1, remark="new"), ledger).charge.source == "unchanged"
    assert answer_from(table(2), ledger).charge.source == "changed"


def test_running_session_notices_a_replaced_file(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    write_csv(path, frame(1))
    with tg.open(policy(), table=path, ledger=str(tmp_path / "people.ledger")) as session:
        session.answer(QUESTION, epsilon=1)
        assert session.answer(QUESTION, epsilon=1).charge.source == "unchanged"
        write_csv(path, frame(2))
        assert session.answer(QUESTION, epsilon=1, key="another").charge.source == "changed"


def test_stored_answer_outlives_its_source(tmp_path: Path) -> None:
    path, ledger = tmp_path / "people.csv", tmp_path / "people.ledger"
    write_csv(path, frame(1))
    first = answer_from(path, ledger)
    path.unlink()
    again = answer_from(path, ledger)
    assert (again.rows(), again.charge.source) == (first.rows(), "unknown")
    assert DATED.search(str(again))


def test_postgres_table_may_have_changed_after_an_update(tmp_path: Path, postgres_url: str) -> None:
    ledger, url = tmp_path / "people.ledger", f"{postgres_url}&table=stale"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS stale")
        connection.execute("CREATE TABLE stale AS SELECT 30 AS age, 'male' AS sex FROM generate_series(1, 50)")
        connection.execute("SELECT pg_stat_force_next_flush()")
        answer_from(url, ledger)
        assert answer_from(url, ledger).charge.source == "unchanged"
        connection.execute("UPDATE stale SET sex = 'female'")
        connection.execute("SELECT pg_stat_force_next_flush()")
        connection.execute("SELECT 1")
    stale = answer_from(url, ledger)
    assert stale.charge.source == "may have changed"
    assert "The source may have changed since." in str(stale)


def test_no_hash_of_the_data_is_exported(tmp_path: Path) -> None:
    """An adversary who knows all rows but one could test each candidate for it against such a hash."""
    path, ledger = tmp_path / "people.csv", tmp_path / "people.ledger"
    write_csv(path, frame(1))
    answer_from(path, ledger)
    content, digest = path.read_bytes(), hashlib.sha256(path.read_bytes()).hexdigest()
    [(salt, identity, stamp)] = sqlite3.connect(ledger).execute(
        "SELECT salt, identity, stamp FROM tidegate_source_states"
    )
    inner = hashlib.sha256(f". {digest}\n".encode()).hexdigest()
    assert identity == hmac.new(bytes.fromhex(salt), inner.encode(), hashlib.sha256).hexdigest()
    with tg.open(policy(), table=path, ledger=str(ledger)) as session:
        exported = "\n".join(export_lines(session.ledger))
    for secret in (digest, inner, salt, identity, stamp, hmac.new(b"", content, hashlib.sha256).hexdigest()):
        assert secret not in exported
    assert '\\"source\\":1' in exported


def test_answer_after_an_interrupted_run_describes_the_source_that_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, ledger = tmp_path / "people.csv", tmp_path / "people.ledger"
    write_csv(path, frame(1))
    with monkeypatch.context() as patched:
        patched.setattr("tidegate.ledger.ledger.Receipt.record", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            answer_from(path, ledger)
    write_csv(path, frame(2))
    assert str(answer_from(path, ledger).cost) == "0", "the charge remains, and the query is answered now"
    assert answer_from(path, ledger).charge.source == "unchanged"


def test_address_of_a_local_spark_source_is_understood(tmp_path: Path) -> None:
    """`local[2]` is not a host name."""
    folder = tmp_path / "people"
    folder.mkdir()
    write_parquet(folder / "a.parquet", frame(1))
    address = f"spark://local[2]?parquet={folder}"
    assert source_address(policy(), address) == address
    state = source_state(policy(), address, lambda: pytest.fail("Spark is not needed"))
    assert state is not None
    assert state.is_exact


def test_session_without_a_table_reports_nothing_about_the_source(tmp_path: Path) -> None:
    path, ledger = tmp_path / "people.csv", tmp_path / "people.ledger"
    write_csv(path, frame(1))
    answer_from(path, ledger)
    with Session(policy(), ledger=str(ledger)) as session:
        assert session.answer(QUESTION, epsilon=1).charge.source == "unknown"
