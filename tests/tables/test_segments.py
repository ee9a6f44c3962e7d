"""Segments: nothing in them but randomized answers, no order of arrival, and the same counts from every engine."""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import SourceMissing, SourceUnreadable, Unsupported
from tidegate.tables.segments import Column, Segments

COLUMNS = {"age": Column("code", 53), "town": Column("set", 70), "Age": Column("code", 3)}


def draw_reports(seed: int, rows: int) -> dict[str, Any]:
    chance = np.random.default_rng(seed)
    bits = chance.integers(0, 2, (rows, 128), dtype=np.uint8)
    bits[:, 70:] = 0
    return {
        "age": chance.integers(0, 53, rows, dtype=np.int32),
        "town": np.packbits(bits, axis=1, bitorder="little"),
        "Age": chance.integers(0, 3, rows, dtype=np.int32),
    }


def count_slowly(reports: dict[str, Any]) -> dict[str, list[int]]:
    """Counts by looking at one report after the other."""
    bits = [[int(row[v // 8]) >> (v % 8) & 1 for v in range(70)] for row in reports["town"]]
    return {
        "age": [int((reports["age"] == code).sum()) for code in range(53)],
        "town": [sum(column) for column in zip(*bits, strict=True)] if bits else [0] * 70,
        "Age": [int((reports["Age"] == code).sum()) for code in range(3)],
    }


def lists(counts: dict[str, Any]) -> dict[str, list[int]]:
    return {name: column_counts.tolist() for name, column_counts in counts.items()}


@settings(max_examples=20)
@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=3), seed=st.integers(0, 99))
def test_duckdb_counts_equal_counts_by_hand(tmp_path_factory: Any, sizes: list[int], seed: int) -> None:
    segments = Segments(tmp_path_factory.mktemp("segments"), COLUMNS)
    parts = [draw_reports(seed + n, size) for n, size in enumerate(sizes)]
    names = [segments.write(part, batch=str(n)).name for n, part in enumerate(parts)]
    whole = {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}
    assert lists(segments.count(names)) == count_slowly(whole)
    assert lists({name: column.count(whole[name]) for name, column in COLUMNS.items()}) == count_slowly(whole)


@pytest.mark.spark
@pytest.mark.every_run
def test_spark_counts_equal_duckdb_counts(spark: Any, tmp_path: Path) -> None:
    segments = Segments(tmp_path, COLUMNS)
    names = [segments.write(draw_reports(n, 500), batch=str(n)).name for n in range(3)]
    segments.write(draw_reports(9, 500), batch="an orphan")
    assert lists(segments.count(names, engine="spark")) == lists(segments.count(names))


def test_segment_has_one_column_per_question(tmp_path: Path) -> None:
    segments = Segments(tmp_path, COLUMNS)
    written = segments.write(draw_reports(1, 20), batch="b")
    file = pq.ParquetFile(segments.path(written.name))
    assert [(field.name, str(field.type)) for field in file.schema_arrow] == [
        ("age", "int32"),
        ("town", "fixed_size_binary[16]"),
        ("Age_2", "int32"),
    ]
    assert file.metadata.metadata is None
    assert [path.name for path in tmp_path.iterdir()] == [written.name]


def test_segment_does_not_store_the_order_of_arrival(tmp_path: Path) -> None:
    reports, order = draw_reports(2, 200), np.random.default_rng(1).permutation(200)
    shuffled = {name: array[order] for name, array in reports.items()}
    segments = Segments(tmp_path, COLUMNS)
    assert segments.write(reports, batch="b") == segments.write(shuffled, batch="b")


def test_wide_sets_are_sorted_too(tmp_path: Path) -> None:
    segments = Segments(tmp_path, {"town": Column("set", 2000)})
    rows = np.random.default_rng(3).integers(0, 256, (50, segments.columns["town"].width), dtype=np.uint8)
    assert segments.write({"town": rows}, batch="b") == segments.write({"town": rows[::-1].copy()}, batch="b")


def test_batches_with_equal_reports_are_separate_segments(tmp_path: Path) -> None:
    segments = Segments(tmp_path, COLUMNS)
    names = [segments.write(draw_reports(4, 1), batch=batch).name for batch in ("one", "two")]
    assert len(set(names)) == 2
    assert int(segments.count(names)["age"].sum()) == 2


def test_segments_accept_any_fsspec_url() -> None:
    segments = Segments(f"memory://{uuid.uuid4().hex}", COLUMNS, below="people/shoppers")
    reports = draw_reports(5, 300)
    written = segments.write(reports, batch="b")
    assert segments.path(written.name).startswith("memory://")
    assert segments.digest(written.name) == written.sha256
    assert lists(segments.count([written.name])) == count_slowly(reports)
    read = {
        name: np.concatenate([part[name] for part in segments.read([written.name], ["town", "age"])])
        for name in ("town", "age")
    }
    rows = [(*town.tolist(), age) for town, age in zip(read["town"], read["age"], strict=True)]
    assert sorted(rows) == sorted((*t.tolist(), a) for t, a in zip(reports["town"], reports["age"], strict=True))


def test_digest_is_that_of_the_file_or_empty(tmp_path: Path) -> None:
    segments = Segments(tmp_path, COLUMNS)
    written = segments.write(draw_reports(6, 10), batch="b")
    assert hashlib.sha256(Path(segments.path(written.name)).read_bytes()).hexdigest() == written.sha256
    assert segments.digest(written.name) == written.sha256
    assert segments.digest("gone.parquet") == ""


def test_impossible_reports_are_refused(tmp_path: Path) -> None:
    wider = Segments(tmp_path, {"age": Column("code", 99)})
    name = wider.write({"age": np.array([98], np.int32)}, batch="b").name
    with pytest.raises(SourceUnreadable, match="cannot have"):
        Segments(tmp_path, {"age": Column("code", 53)}).count([name])


def test_unwritable_location_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SourceMissing, match="cannot be written"):
        Segments(tmp_path / "file", COLUMNS).write(draw_reports(7, 1), batch="b")
    with pytest.raises(Unsupported, match="Unknown engine"):
        Segments(tmp_path, COLUMNS).count(["x"], engine="duckbd")
    assert int(Segments(tmp_path, COLUMNS).count([])["age"].sum()) == 0
