"""Drawing from a stored model: the same rows for the same seed, conditions, streams in constant memory, files, fit and sample."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from ledger.charges import charges
from support.towns import open_session, people, policy
from synthesize.margins import BANNER, Margins

import tidegate as tg
from tidegate.errors import TidegateError, UnknownColumn, Unsupported
from tidegate.policy import Category, Dataset, Date, Decimal, Integer, Loss, Policy, Shapes, Timestamp
from tidegate.session import Session
from tidegate.synthesize import mechanisms, plan
from tidegate.synthesize.files import write_tables
from tidegate.synthesize.request import DEFAULT
from tidegate.synthesize.result import SyntheticTable, SyntheticTables


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files restore the model of these tests, as they restore the product's."""
    monkeypatch.setitem(mechanisms.MODELS, "margins/1", ("synthesize.margins", "Margins"))


@pytest.fixture(params=[Margins(), DEFAULT], ids=["margins", "forest"])
def tables(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SyntheticTables]:
    """The smallest counts are 5 rows; at epsilon 40 the probability that noise removes one of them is below 1e-8."""
    with open_session(tmp_path, epsilon="40") as session:
        yield session.synthesize(epsilon=40, model=request.param, seed=11)


def rows_of(table: SyntheticTable) -> list[dict[str, Any]]:
    return table.to_arrow().to_pylist()


# ---- rows and seeds


def test_same_seed_and_rows_give_the_same_table(tables: SyntheticTables) -> None:
    table = tables[0]
    assert table.draw(250_000, seed=3).to_arrow() == table.draw(250_000, seed=3).to_arrow()
    assert table.draw(500, seed=3).to_arrow() != table.draw(500, seed=4).to_arrow()
    assert table.draw(500).to_arrow() == table.draw(500, seed=11).to_arrow()


def test_batches_are_the_table_and_no_chunk_repeats_another(tables: SyntheticTables) -> None:
    table = tables[0].draw(250_000, seed=3)
    batches = list(table.to_batches())
    assert [len(batch) for batch in batches] == [100_000, 100_000, 50_000]
    assert pa.Table.from_batches(batches) == table.to_arrow()
    assert batches[0] != batches[1]
    assert table.to_pandas().shape == table.to_polars().shape == (250_000, 5)


def test_chunks_number_rows_and_draw_days_of_their_own(tmp_path: Path) -> None:
    """A third of the days of January to March would agree by chance in less than 1 in 20 rows; one stream would give all."""
    attributes = {"id": tg.Key(), "day": Date(dt.date(2024, 1, 1), dt.date(2024, 3, 31), grid="quarter")}
    about = Policy(Dataset("days", rows=3), attributes, None, Loss(4), synthesis=Shapes(fresh_keys=True))
    original = pa.table({"id": ["a", "b", "c"], "day": [dt.date(2024, 2, 1)] * 3})
    with Session(about, table=original, folder=tmp_path) as session:
        drawn = session.synthesize(epsilon=2, model=Margins(), rows=150_000)[0].to_arrow()
    assert drawn["id"].to_pylist() == list(range(1, 150_001))
    days = drawn["day"].to_numpy()
    assert np.mean(days[:50_000] == days[100_000:]) < 0.05
    assert len(np.unique(days)) == 91


# ---- conditions

FITTING: dict[str, tuple[dict[str, Any], Any]] = {
    "a value": ({"town": "Aby"}, lambda row: row["town"] == "Aby"),
    "a range": ({"age": (30, 39)}, lambda row: row["age"] is not None and 30 <= row["age"] <= 39),
    "a list": ({"town": ["Aby", None]}, lambda row: row["town"] in ("Aby", None)),
    "missing": ({"age": None}, lambda row: row["age"] is None),
    "a range off the grid": ({"pay": (1.1, "2.6")}, lambda row: 1.25 <= row["pay"] <= 2.5),
    "a value of the grid": ({"pay": 2.25}, lambda row: row["pay"] == 2.25),
    "a column that follows": ({"zip": [1, 5]}, lambda row: row["zip"] in (1, 5)),
    "both kinds": (
        {"zip": (5, 9), "age": range(20, 60), "gain": 0},
        lambda row: row["zip"] in (5, 9) and row["age"] in range(20, 60) and row["gain"] == 0,
    ),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("case", FITTING)
def test_rows_of_a_conditional_draw_fit_and_follow_the_seed(tables: SyntheticTables, case: str) -> None:
    where, fits = FITTING[case]
    drawn = tables[0].draw(300, seed=5, where=where)
    assert len(drawn) == 300
    rows = rows_of(drawn)
    assert len(rows) == 300
    assert all(map(fits, rows))
    assert (
        rows == rows_of(tables[0].draw(300, seed=5, where=where)) != rows_of(tables[0].draw(300, seed=6, where=where))
    )


def binned(rows: list[dict[str, Any]], column: str) -> dict[Any, int]:
    counts: dict[Any, int] = {}
    for row in rows:
        value = row[column]
        key = value if value is None or isinstance(value, str) else int(float(value) * 4) // 12
        counts[key] = counts.get(key, 0) + 1
    return counts


@pytest.mark.one_in(5)
@pytest.mark.parametrize("case", FITTING)
def test_conditional_draw_agrees_with_the_filtered_unconditional_one(tables: SyntheticTables, case: str) -> None:
    """Chi-square of two samples, in every column. The limit is 6 standard deviations above the mean: with 32 comparisons, the
    probability of a false alarm is below 1e-4 (seeds are fixed, so that the noise of the model decides alone).
    """
    where, fits = FITTING[case]
    unconditional = [row for row in rows_of(tables[0].draw(100_000, seed=8)) if fits(row)]
    conditional = rows_of(tables[0].draw(min(20_000, 2 * len(unconditional)), seed=9, where=where))
    for column in ("age", "pay", "town", "gain"):
        left, right = binned(unconditional, column), binned(conditional, column)
        left_share = len(unconditional) / (len(unconditional) + len(conditional))
        statistic, cells = 0.0, 0
        for key in {*left, *right}:
            both = left.get(key, 0) + right.get(key, 0)
            if both * min(left_share, 1 - left_share) >= 10:
                expected = both * left_share
                statistic += (left.get(key, 0) - expected) ** 2 / (expected * (1 - left_share))
                cells += 1
        assert statistic <= cells + 6 * (2 * max(cells, 1)) ** 0.5, (column, statistic, cells)


@pytest.mark.parametrize("tables", [Margins()], indirect=True)
def test_comparison_finds_a_condition_that_is_ignored(tables: SyntheticTables) -> None:
    """The planted fault of the test above: rows of all ages instead of those from 30 to 39."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("synthesize.margins.Independent.chunks", _ignoring)
        rows = rows_of(tables[0].draw(300, where={"age": (30, 39)}))
    assert not all(row["age"] is not None and 30 <= row["age"] <= 39 for row in rows)


def _ignoring(self: Any, rows: int, *, seed: int, where: Any = None) -> Iterator[Any]:
    source = np.random.default_rng(seed)
    yield np.stack([self._codes(n, rows, source, {}) for n in range(len(self.columns))], axis=1)


def test_conditions_on_moments_decimals_and_other_values(tmp_path: Path) -> None:
    attributes = {
        "month": Date(dt.date(2024, 1, 1), dt.date(2024, 12, 31), grid="month"),
        "at": Timestamp("2024-01-01", "2024-01-31", grid="hour"),  # type: ignore[arg-type]
        "price": Decimal("0", "9.99", "0.01"),
        "kind": Category(("a", "b"), outside="other"),
        "wide": Integer(0, 10**9),
    }
    about = Policy(Dataset("odd", rows=2_000), attributes, None, Loss(1_000))
    numbers = range(2_000)
    original = pa.table(
        {
            "month": [dt.date(2024, 1 + n % 12, 5) for n in numbers],
            "at": [dt.datetime(2024, 1, 1 + n % 31, n % 24) for n in numbers],
            "price": [n % 1_000 / 100 for n in numbers],
            "kind": ["abc"[n % 3] for n in numbers],
            "wide": [n * 500_000 for n in numbers],
        }
    )
    with Session(about, table=original, folder=tmp_path) as session:
        table = session.synthesize(epsilon=900, model=Margins())[0]
    days = rows_of(table.draw(50, where={"month": ("2024-02-10", dt.date(2024, 3, 5))}))
    assert all(dt.date(2024, 2, 10) <= row["month"] <= dt.date(2024, 3, 5) for row in days)
    single = rows_of(table.draw(20, where={"month": dt.date(2024, 2, 10)}))
    assert {row["month"] for row in single} == {dt.date(2024, 2, 10)}
    hours = rows_of(table.draw(50, where={"at": ("2024-01-05", "2024-01-06")}))
    assert {row["at"].day for row in hours} == {5, 6}, "a day as the last end means its end"
    prices = rows_of(table.draw(50, where={"price": ("1.25", 2)}))
    assert all(1.25 <= row["price"] <= 2 for row in prices)
    assert {row["kind"] for row in rows_of(table.draw(9, where={"kind": "(other)"}))} == {"(other)"}
    wide = rows_of(table.draw(50, where={"wide": (10**8, 9 * 10**8)}))  # too many codes for the model
    assert all(10**8 <= row["wide"] <= 9 * 10**8 for row in wide)


WRONG: dict[str, tuple[dict[str, Any], type[TidegateError], str]] = {
    "an unknown column": ({"agee": 3}, UnknownColumn, 'Did you mean "age"'),
    "a column that is left out": ({"person": "p1"}, UnknownColumn, "no column"),
    "a value that is not listed": ({"town": "Abi"}, Unsupported, 'Did you mean "Aby"'),
    "a number out of bounds": ({"age": 17}, Unsupported, "does not have this value"),
    "a number off the grid": ({"pay": 0.6}, Unsupported, "does not have this value"),
    "a range of a category": ({"town": ("Aby", "Berg")}, Unsupported, "List the values"),
    "a range of three": ({"age": (1, 2, 3)}, Unsupported, r"\(lowest, highest\)"),
    "a reversed range": ({"age": (40, 30)}, Unsupported, "no value in the range"),
    "a range out of bounds": ({"age": (91, 99)}, Unsupported, "no value in the range"),
    "text for a number": ({"age": "old"}, Unsupported, "compared only with a number"),
    "an empty list": ({"age": []}, Unsupported, "empty list"),
    "missing where nothing is": ({"pay": None}, Unsupported, "never missing"),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("case", WRONG)
def test_impossible_condition_is_refused_at_once(tables: SyntheticTables, case: str) -> None:
    where, kind, message = WRONG[case]
    with pytest.raises(kind, match=message):
        tables[0].draw(5, where=where)


def test_rare_conditions_are_refused_with_the_share_of_the_model(tmp_path: Path) -> None:
    attributes = {"x": Integer(0, 99), "y": Integer(0, 99), "z": Integer(0, 99)}
    about = Policy(Dataset("cube", rows=1000), attributes, None, Loss(1000))
    values = pa.array(np.arange(1000) % 100)
    original = pa.table(dict.fromkeys(attributes, values))
    with Session(about, table=original, folder=tmp_path) as session:
        table = session.synthesize(epsilon=900, model=Margins())[0]
    assert len(table.draw(5, where={"x": 3, "y": (0, 9)}).to_arrow()) == 5  # 1 in 1,000
    with pytest.raises(
        Unsupported, match=r"Only about 0\.0001\d*% of the model's rows fit the conditions on x, y, z"
    ) as no:
        table.draw(5, where={"x": 3, "y": 4, "z": 5})
    assert "wider conditions" in no.value.do


def test_rare_values_of_a_column_that_follows_are_refused(tmp_path: Path) -> None:
    attributes = {"x": Integer(0, 99), "name": Category(tuple("abcdefghij")), "follows": Integer(0, 9)}
    rule = {letter: index for index, letter in enumerate("abcdefghij")}
    shapes = Shapes(follows={"follows": tg.Follows("name", rule)})
    about = Policy(Dataset("letters", rows=1000), attributes, None, Loss(10**6), synthesis=shapes)
    original = pa.table({"x": np.arange(1000) % 100, "name": ["a"] * 999 + ["b"], "follows": [0] * 999 + [1]})
    with Session(about, table=original, folder=tmp_path) as session:
        table = session.synthesize(epsilon=10**5, model=Margins())[0]
    assert set(table.draw(20, where={"follows": 1}).to_arrow()["name"].to_pylist()) == {"b"}  # 1 in 1,000
    with pytest.raises(Unsupported, match=r"less than 0\.001% of the model's rows fit the conditions on follows"):
        table.draw(20, where={"follows": 2}).to_arrow()
    with pytest.raises(Unsupported, match="of the model's rows fit the conditions on x, follows"):
        table.draw(20, where={"x": 1, "follows": 1}).to_arrow()


# ---- files


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
def test_files_are_written_in_batches_and_contain_the_table(tmp_path: Path, kind: str) -> None:
    with open_session(tmp_path) as session:
        drawn = session.synthesize(epsilon=4, model=Margins(), rows=120_000)
        (path,) = write_tables(drawn, tmp_path / "out", kind=kind)
        page = (tmp_path / "out" / "README.md").read_text()
    read = {"parquet": pq.read_table, "csv": pa_csv.read_csv, "arrow": lambda p: pa.ipc.open_file(p).read_all()}[kind]
    assert read(str(path)).to_pylist()[-1] == drawn.to_arrow().to_pylist()[-1] or kind == "csv"
    assert read(str(path)).num_rows == 120_000
    top, banner = page.splitlines()[:3:2]
    assert top == "# Synthetic tables of people"
    assert banner == f"**{BANNER[0].upper()}{BANNER[1:]}.**"
    assert "loses at most epsilon 4 about one row" in page.replace("\n", " ")
    assert "cells of each column, with the standard deviation of the noise in rows: age 73 (sd 1.5)" in page
    assert "pairs of columns that were counted, with groups and standard deviation: none" in page
    assert "columns that are independent of all others: age, pay, gain, town" in page
    assert "spent: epsilon 4 (Z 0.5)" in page


def test_saved_model_draws_the_same_without_policy_ledger_or_rows(tmp_path: Path) -> None:
    folder = tmp_path / "holder"
    folder.mkdir()
    with open_session(folder) as session:
        tables = session.synthesize(epsilon=1, tables=2, model=Margins(), user="ana")
        path = tables.save(tmp_path / "people.model")
        second = tables[1].save(tmp_path / "second.model")
    expected = [rows_of(table) for table in tables]
    conditional = rows_of(tables[0].draw(50, seed=2, where={"zip": 5, "age": (30, 60)}))
    described, said = tables.to_dict(), tables.says()
    for file in folder.iterdir():
        file.unlink() if file.is_file() else None
    loaded = tg.load_model(path)
    assert [rows_of(table) for table in loaded] == expected
    assert rows_of(loaded[0].draw(50, seed=2, where={"zip": 5, "age": (30, 60)})) == conditional
    assert rows_of(loaded.draw(70, seed=4)[1]) == rows_of(tables[1].draw(70, seed=4))
    assert (loaded.to_dict(), loaded.says()) == (described, said)
    assert rows_of(tg.load_model(second)[0]) == expected[1]
    assert loaded.save(tmp_path / "again.model").read_bytes() == path.read_bytes()


def test_saved_model_contains_nothing_of_the_source(tmp_path: Path) -> None:
    secret = people().to_pydict()["person"]
    with open_session(tmp_path) as session:
        path = session.synthesize(epsilon=1, model=Margins(), user="ana").save(tmp_path / "people.model")
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["model.json"]
        text = archive.read("model.json").decode()
    assert not any(f'"{person}"' in text for person in secret)
    assert str(tmp_path) not in text
    assert set(json.loads(text)) == {"format", "version", "policy", "columns", "learnt", "request", "tables"}
    assert set(json.loads(text)["tables"][0]) == {"number", "seed", "requested", "rows", "summary", "fitted"}


def rewrite(path: Path, change: Any) -> Path:
    """Change the content of a saved model, as somebody else's program could."""
    with zipfile.ZipFile(path) as archive:
        content = json.loads(archive.read("model.json"))
    change(content)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.json", json.dumps(content))
    return path


CHANGES: dict[str, tuple[Any, str]] = {
    "a newer version": (lambda content: content.update(version=2), "newer version"),
    "another format": (lambda content: content.update(format="pickle"), "not a saved model, or it is damaged"),
    "no tables": (lambda content: content.pop("tables"), "damaged"),
    "an unknown model": (lambda content: content["request"].update(model="other/1"), "not a model of this version"),
    "a model that lacks a part": (lambda content: content["tables"][0]["fitted"].pop("columns"), "cannot be read"),
    "other columns": (
        lambda content: content["learnt"][0].__setitem__(1, 3),
        "reads the columns of the model differently",
    ),
    "no policy": (lambda content: content.update(policy=[1]), "damaged"),
    "a charge in words": (lambda content: content["request"].update(cost="much"), "damaged"),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", CHANGES)
def test_changed_model_is_refused_with_a_plain_message(tables: SyntheticTables, tmp_path: Path, case: str) -> None:
    change, message = CHANGES[case]
    path = rewrite(tables.save(tmp_path / "people.model"), change)
    with pytest.raises(Unsupported, match=message) as refused:
        tg.load_model(path)
    assert refused.value.do
    assert refused.value.__context__ is None


def test_damaged_file_is_refused_wherever_it_is_damaged(tables: SyntheticTables, tmp_path: Path) -> None:
    path = tables.save(tmp_path / "people.model")
    content = path.read_bytes()
    for position in range(0, len(content), 97):
        damaged = bytearray(content)
        damaged[position] ^= 0x55
        path.write_bytes(damaged)
        try:
            again = tg.load_model(path)
        except Unsupported:
            continue
        assert again.to_dict() == tables.to_dict(), "a byte that changes nothing, such as the time of the archive"
    for size in (0, 10, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(Unsupported, match="damaged"):
            tg.load_model(path)
    with pytest.raises(Unsupported, match="cannot be read: No such file"):
        tg.load_model(tmp_path / "nothing.model")
    with pytest.raises(Unsupported, match="cannot be written"):
        tables.save(tmp_path / "nowhere" / "people.model")


PICKLE = (
    b"\x80\x04\x95\x1e\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R\x94."
)


def test_pickle_is_never_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    monkeypatch.setattr("os.system", called.append)
    path = tmp_path / "evil.model"
    for content in (PICKLE, json.dumps(PICKLE.decode("latin-1")).encode()):
        path.write_bytes(content)
        with pytest.raises(Unsupported, match="damaged"):
            tg.load_model(path)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("model.json", content)
        with pytest.raises(Unsupported, match="damaged"):
            tg.load_model(path)
    assert called == []


# ---- memory

STREAM = """
import sys
from pathlib import Path
import tidegate as tg
from tidegate.synthesize import mechanisms
from tidegate.synthesize.files import write_batches

def write(rows, whole=False):
    drawn = table.draw(rows)
    batches = drawn.to_arrow().to_batches() if whole else drawn.to_batches()
    write_batches(batches, sys.argv[2], kind=sys.argv[3])

def peak(*arguments, **options):
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from the present memory
    before = memory("VmRSS")
    write(*arguments, **options)
    return memory("VmHWM") - before

def memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(name))

mechanisms.MODELS["margins/1"] = ("synthesize.margins", "Margins")
table = tg.load_model(sys.argv[1])[0]
write(200_000)  # everything is imported
print(peak(300_000), peak(3_000_000), peak(3_000_000, whole=True))
"""


@pytest.mark.long  # 3 s or more; test_files_are_written_in_batches_and_contain_the_table is in every run
@pytest.mark.parametrize(
    ("tables", "kind"),
    [(Margins(), "parquet"), (Margins(), "csv"), (Margins(), "arrow"), (DEFAULT, "parquet")],
    indirect=["tables"],
    ids=["parquet", "csv", "arrow", "forest"],
)
def test_any_number_of_rows_is_streamed_in_the_same_memory(tables: SyntheticTables, tmp_path: Path, kind: str) -> None:
    """Peaks of a process in MB. A table in memory, which is the planted fault, needs 40 MB for a million of these rows."""
    model, out = tables.save(tmp_path / "people.model"), tmp_path / f"rows.{kind}"
    command = [sys.executable, "-c", STREAM, str(model), str(out), kind]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    printed = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    some, streamed, whole = map(int, printed.split())
    assert max(some, streamed) < 80
    assert whole > streamed + 40, "the measurement would not find a table in memory"


# ---- fit and sample


@pytest.fixture
def fitted_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the default model be the one of these tests."""
    monkeypatch.setattr(plan, "model_for", lambda name: Margins())


@pytest.mark.usefixtures("fitted_default")
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "path"])
def test_fit_and_sample_charge_a_durable_ledger_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    original = people()
    pq.write_table(original, tmp_path / "people.parquet")
    frames: dict[str, Any] = {"pandas": original.to_pandas(), "polars": pl.from_arrow(original), "arrow": original}
    frames["path"] = tmp_path / "people.parquet"
    synthesizer = tg.Synthesizer(policy(), epsilon=1)
    with pytest.raises(Unsupported, match="Nothing was learned yet"):
        synthesizer.sample(10)
    assert synthesizer.fit(frames[kind]) is synthesizer
    assert synthesizer.ledger_ == str(tmp_path / "people.ledger")
    assert Path(synthesizer.ledger_).exists()
    sample = synthesizer.sample(25, seed=3, where={"town": "Aby"})
    expected = {"polars": pl.DataFrame, "arrow": pa.Table}.get(kind, pd.DataFrame)
    assert isinstance(sample, expected)
    assert len(sample) == 25
    tg.Synthesizer(policy(), epsilon=1).fit(frames[kind])
    with Session(policy(), folder=tmp_path) as session:
        assert (len(charges(session.ledger)), str(session.account.spent)) == (1, "1")
    loaded = tg.load_model(synthesizer.save(tmp_path / "people.model"))
    assert (
        loaded[0]
        .draw(25, seed=3, where={"town": "Aby"})
        .to_pandas()
        .equals(synthesizer.tables_[0].draw(25, seed=3, where={"town": "Aby"}).to_pandas())
    )
