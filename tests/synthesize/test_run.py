"""Check, charge, run, record: properties of every synthetic table."""

from __future__ import annotations

import io
import json
import sqlite3
import threading
import traceback
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from ledger.charges import charges, verify_clean
from support.diaries import diary_lines
from support.towns import open_session, people, policy
from synthesize.margins import BANNER, Independent, Margins

from tidegate.accounting import Amount
from tidegate.arrays import Ints
from tidegate.errors import (
    BudgetExceeded,
    LedgerBroken,
    LedgerNewer,
    LedgerUnavailable,
    SourceUnreadable,
    StalePolicy,
    TidegateError,
    Unsupported,
)
from tidegate.ledger import diaries
from tidegate.ledger.entry import FAILED
from tidegate.noise import SeededBits
from tidegate.policy import EachPerson, Identification
from tidegate.session import Session
from tidegate.synthesize.diary import NOTHING, Diary
from tidegate.synthesize.facts import Facts
from tidegate.synthesize.learn import Learning
from tidegate.synthesize.model import Learnt, Progress, Rows
from tidegate.synthesize.plan import plan_for
from tidegate.synthesize.private_rows import NoRows
from tidegate.synthesize.progress import silent
from tidegate.synthesize.request import DEFAULT, resolve_request
from tidegate.synthesize.run import _tables


def spent(session: Session) -> Amount:
    return session.account.spent


class Screen(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_terminal_shows_one_line_of_progress_and_removes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_session(tmp_path) as session:
        screen, pipe = Screen(), io.StringIO()
        monkeypatch.setattr("sys.stderr", screen)
        tables = session.synthesize(epsilon=1.0, model=Margins())
        assert "synthesis: margins" in screen.getvalue()
        assert "\n" not in screen.getvalue()
        tables.quality()
        assert "quality: columns" in screen.getvalue()
        assert screen.getvalue().split("\r")[-1] == ""
        shown = screen.getvalue()
        tables.quality(progress=False)
        assert screen.getvalue() == shown
        monkeypatch.setattr("sys.stderr", pipe)
        tables.quality()
        assert pipe.getvalue() == ""


def test_repeated_request_returns_the_same_table_at_no_cost(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        first = session.synthesize(epsilon=1.0, model=Margins())
        assert (str(first.cost), first[0].rows, len(first)) == ("1", 400, 1)
        again = session.synthesize(epsilon="1", model=Margins(), key="another key")
        assert (str(again.cost), again.entry) == ("0", first.entry)
        assert again[0].to_arrow() == first[0].to_arrow()
        assert str(spent(session)) == "1"
        assert verify_clean(session.ledger).holds
    with open_session(tmp_path) as later:  # another process, another day
        assert later.synthesize(epsilon=1, model=Margins())[0].to_arrow() == first[0].to_arrow()
        assert len(charges(later.ledger)) == 1


def test_synthesis_that_cannot_be_compiled_is_refused_before_the_charge(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        column = next(name for name, attribute in session.policy.attributes.items() if attribute.countable)
        session.table._source = session.table._source.rename(other=column)  # it changed since it was opened
        with pytest.raises(TidegateError):
            session.synthesize(epsilon=1, model=Margins())
        assert not spent(session)


def test_more_rows_are_free(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        first = session.synthesize(epsilon=1, model=Margins())
        more = first[0].draw(1_000, seed=7)
        assert (len(more), len(more.to_arrow())) == (1_000, 1_000)
        assert more.to_arrow() == first[0].draw(1_000, seed=7).to_arrow() != first[0].draw(1_000, seed=8).to_arrow()
        again = session.synthesize(epsilon=1, model=Margins(), rows=10, seed=3)
        assert (str(again.cost), len(again[0].to_arrow())) == ("0", 10)
        with pytest.raises(Unsupported, match="`rows` must be a whole number"):
            first[0].draw(0)


def test_several_tables_are_charged_and_learned_separately(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        tables = session.synthesize(epsilon="0.5", tables=3, model=Margins())
        assert (len(tables), str(tables.cost)) == (3, "1.5")
        diaries = [json.dumps([step.to_dict() for step in table.steps]) for table in tables]
        assert len(set(diaries)) == 3
        assert all(sum(step.epsilon for step in table.steps) <= Fraction(1, 2) for table in tables)
        assert len({str(table.to_arrow().to_pydict()) for table in tables}) == 3
        assert [len(table) for table in tables] == [400] * 3
        assert [table.number for table in tables[1:]] == [1, 2]


def test_whole_loss_is_charged_before_a_row_is_read(tmp_path: Path) -> None:
    class Looks(Margins):
        def learn(self, facts: Facts, rows: Rows, diary: Diary, **options: Any) -> Learnt:
            seen.append(str(session.ledger.account("people").spent))  # type: ignore[union-attr]
            return super().learn(facts, rows, diary, **options)

    seen: list[str] = []
    with open_session(tmp_path) as session:
        session.synthesize(epsilon="0.5", tables=2, model=Looks())
    assert seen == ["1", "1"]


def test_columns_keep_their_kind_and_values(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        table = session.synthesize(epsilon=2, model=Margins(), rows=2_000)[0].to_arrow()
    assert table.column_names == ["age", "pay", "gain", "town", "zip"]
    rows = table.to_pylist()
    assert {row["town"] for row in rows} == {"Aby", "Berg", "Ceder", None}
    assert all(row["zip"] == {"Aby": 1, "Berg": 5, "Ceder": 9, None: None}[row["town"]] for row in rows)
    assert all(row["age"] is None or (18 <= row["age"] <= 90 and isinstance(row["age"], int)) for row in rows)
    assert all(row["pay"] * 4 == int(row["pay"] * 4) and 0.5 <= row["pay"] <= 9.5 for row in rows)
    assert sum(row["gain"] == 0 for row in rows) > 900  # the atom, two rows in three


def test_answers_and_synthetic_tables_share_one_account(tmp_path: Path) -> None:
    import tidegate as tg

    with open_session(tmp_path, epsilon="1") as session:
        session.answer(tg.count(), epsilon="0.4")
        with pytest.raises(
            BudgetExceeded, match=r"The request costs epsilon 0.7, but .people. has 0.6 remaining"
        ) as refused:
            session.synthesize(epsilon="0.7", model=Margins())
        assert "Request at most 0.6" in refused.value.do
        session.synthesize(epsilon="0.3", tables=2, model=Margins())
        assert str(spent(session)) == "1"
        with pytest.raises(BudgetExceeded, match="remaining of 1"):
            session.synthesize(epsilon="0.01", model=Margins())
        assert session.derive(tg.count()) is not None  # what earlier answers say is still found
        assert str(spent(session)) == "1"


class Overdraws(Margins):
    name = "overdraws/1"

    def learn(self, facts: Facts, rows: Rows, diary: Diary, **options: Any) -> Learnt:
        fitted = super().learn(facts, rows, diary, **options)
        measured.append("all")
        diary.step("all", Fraction(1), lambda: measured.append("more") or rows.margin(facts.columns[0]))  # type: ignore[func-returns-value]
        return fitted


measured: list[str] = []


def test_model_cannot_spend_more_than_the_charge(tmp_path: Path) -> None:
    measured.clear()
    with open_session(tmp_path) as session:
        with pytest.raises(SourceUnreadable):
            session.synthesize(epsilon=1, model=Overdraws())
        assert measured == ["all"], "the filter stops before the number is measured"


SECRET = 31337


class Fails(Margins):
    """A model whose failure depends on a row."""

    name = "fails/1"

    def learn(self, facts: Facts, rows: Rows, diary: Diary, **options: Any) -> Learnt:
        super().learn(facts, rows, diary, **options)
        raise RuntimeError(f"the third row has {SECRET}")


def test_failure_after_the_charge_is_recorded_with_a_constant_message(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        for _ in range(2):
            with pytest.raises(SourceUnreadable, match="the charge stands") as failed:
                session.synthesize(epsilon=1, model=Fails())
            shown = "".join(traceback.format_exception(failed.value))
            assert str(SECRET) not in shown
            assert failed.value.__context__ is None
        assert str(spent(session)) == "1", "the repetition costs nothing"
        failures = [entry for entry in session.ledger.entries() if entry.kind == FAILED]
        assert len(failures) == 2
        assert str(SECRET) not in "".join(entry.body for entry in session.ledger.entries())


def test_full_disk_is_reported_as_it_is_and_the_run_continues_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = 0

    def fill(end: Any, **fields: Any) -> None:
        nonlocal writes
        writes += 1
        if writes > 3:
            raise sqlite3.OperationalError("database or disk is full")

    with open_session(tmp_path) as session:
        with monkeypatch.context() as patch:
            patch.setattr(diaries, "refuse_moved", fill)
            with pytest.raises(LedgerUnavailable, match="is full"):
                session.synthesize(epsilon=1, model=Margins())
        written = [line["value"] for line in diary_lines(tmp_path / "people.ledger")[1:]]
        assert len(written) == 2
        tables = session.synthesize(epsilon=1, model=Margins())
        assert (str(tables.cost), str(spent(session))) == ("0", "1")
        assert [step.value.tolist() for step in tables[0].steps[:2]] == written
        assert not [entry for entry in session.ledger.entries() if entry.kind == FAILED]


BAD_TABLES = {
    "no row": (people(2).slice(0, 0), None, Unsupported, "no row"),
    "one row": (people(2).slice(0, 1), None, Unsupported, "one row"),
    "another number of rows than the policy's": (people(10), 400, SourceUnreadable, "a different number of rows"),
    "a column that is not there": (people(10).drop_columns(["age"]), None, SourceUnreadable, 'no column "age"'),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_unusable_table_is_refused_and_nothing_charged(tmp_path: Path, case: str) -> None:
    table, rows, kind, message = BAD_TABLES[case]
    with open_session(tmp_path, table, rows=rows) as session:
        with pytest.raises(kind, match=message):
            session.synthesize(epsilon=1, model=Margins())
        assert not spent(session)


def odd_tables() -> dict[str, pa.Table]:
    table, none = people(), pa.nulls(400)
    constant = table.set_column(1, "age", pa.array([33] * 400))
    missing = table.set_column(1, "age", none.cast(pa.int64())).set_column(2, "pay", none.cast(pa.float64()))
    strange = table.set_column(4, "town", pa.array(["nowhere"] * 400))
    return {"a constant column": constant, "all missing": missing, "no category of the list": strange}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", odd_tables())
@pytest.mark.parametrize("model", [Margins(), DEFAULT], ids=["margins", "forest"])
def test_unusual_columns_still_give_a_table(tmp_path: Path, case: str, model: Any) -> None:
    with open_session(tmp_path, odd_tables()[case], rows=None) as session:
        tables = session.synthesize(epsilon=2, model=model)
        assert len(tables[0].to_arrow()) == 400


def test_unreadable_source_charges_nothing(tmp_path: Path) -> None:
    with Session(policy(), folder=tmp_path) as session:
        with pytest.raises(TidegateError, match="does not name a source"):
            session.synthesize(epsilon=1, model=Margins())
        assert not spent(session)


def test_loss_that_the_model_refuses_charges_nothing(tmp_path: Path) -> None:
    class Refuses(Margins):
        def stages(self, facts: Facts, *, limit: Any) -> Any:
            raise Unsupported("This loss is too small.")

    with open_session(tmp_path) as session:
        with pytest.raises(Unsupported, match="too small"):
            session.synthesize(epsilon=1, model=Refuses())
        assert not charges(session.ledger)


def test_old_model_never_charges(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        for key in ("", "a key"):
            with pytest.raises(Unsupported, match='no such table of "forest/1"') as refused:
                session.synthesize(epsilon=1, model="forest/1", key=key)
        assert 'use "forest/2"' in refused.value.do
        assert not session.preview_synthesis(epsilon=1, model="forest/1").cost
        assert not charges(session.ledger)


# ---- persons


def test_number_of_rows_is_noisy_if_persons_are_protected(tmp_path: Path) -> None:
    with open_session(tmp_path, unit=EachPerson("person", 2), rows=None) as session:
        tables = session.synthesize(epsilon=4, model=Margins())
        size, *rest = tables[0].steps
        assert (size.name, size.epsilon) == ("size", Fraction(1, 50))
        assert sum(step.epsilon for step in (size, *rest)) <= 4
        assert tables[0].rows == max(2, int(size.value[0]))
        assert [stage.name for stage in tables.stages] == ["size", "margins"]
        assert "one person with at most 2 rows" in tables.promise
        assert session.synthesize(epsilon=4, model=Margins())[0].to_arrow() == tables[0].to_arrow()


def test_replacing_a_person_changes_the_number_of_rows_by_at_most_k() -> None:
    from tidegate.tables import open_table

    here = policy(unit=EachPerson("person", 2), rows=None)
    rows = people().to_pylist()
    sizes = {open_table(here, people()).size}
    for gone in ("p1", "p7", "p50"):
        for new in range(4):  # a newcomer with no, one, two and more rows
            left = [row for row in rows if row["person"] != gone]
            left += [{**rows[0], "person": "newcomer", "age": 20 + n} for n in range(new)]
            sizes.add(open_table(here, pa.Table.from_pylist(left, schema=people().schema)).size)
    assert max(sizes) - min(sizes) > 0
    assert all(abs(size - open_table(here, people()).size) <= 2 for size in sizes)


def test_plan_and_question_do_not_depend_on_the_rows(tmp_path: Path) -> None:
    """Plan, cells, shares, price and names depend on the policy and the number of rows, never on a value."""
    chosen = []
    for number, seed in enumerate((5, 6)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with open_session(folder, people(seed=seed)) as session:
            tables = session.synthesize(epsilon=1, model=Margins())
            steps = [(step.name, step.epsilon, step.value.shape) for step in tables[0].steps]
            facts = tables.plan.facts(400)
            chosen.append((steps, facts, tables.stages, tables.plan.question(), tables.plan.says(), tables[0].rows))
    assert chosen[0] == chosen[1]


# ---- resuming


class Stops(Margins):
    """A model that is interrupted before its n-th number."""

    def __init__(self, before: int) -> None:
        self.before = before

    def learn(self, facts: Facts, rows: Rows, diary: Diary, *, bits: Any, progress: Progress) -> Independent:
        def stop_midway(stage: str, done: int, of: int) -> None:
            if done == self.before:
                raise KeyboardInterrupt

        return super().learn(facts, rows, diary, bits=bits, progress=stop_midway)


@pytest.mark.parametrize("before", range(4))
def test_stopped_run_continues_from_its_diary_at_no_cost(tmp_path: Path, before: int) -> None:
    with open_session(tmp_path) as session:
        with pytest.raises(KeyboardInterrupt):
            session.synthesize(epsilon=1, model=Stops(before))
        assert str(spent(session)) == "1"
        assert verify_clean(session.ledger).holds
    written = diary_lines(tmp_path / "people.ledger")[1:]
    assert len(written) == before
    continue_run(tmp_path, written)


def continue_run(folder: Path, written: list[dict[str, Any]]) -> None:
    """Request the tables of a stopped run again: they contain what was written before, and cost nothing."""
    with open_session(folder) as session:
        tables = session.synthesize(epsilon=1, model=Margins())
        assert (str(tables.cost), str(spent(session))) == ("0", "1")
        steps = [step.to_dict() for step in tables[0].steps]
        assert [{k: v for k, v in line.items() if k != "table"} for line in written] == steps[: len(written)]
        assert len(steps) == 4
        assert not diary_lines(folder / "people.ledger")
        assert verify_clean(session.ledger).holds


@pytest.mark.parametrize("torn", [b"", b'{"table":0,"name":"pay","eps'], ids=["whole", "torn"])
def test_diary_file_of_an_earlier_version_is_read_once(tmp_path: Path, torn: bytes) -> None:
    file = diary_file_of_a_stopped_run(tmp_path)
    file.write_bytes(file.read_bytes() + torn)
    written = [json.loads(line) for line in file.read_bytes().splitlines()[1:3]]
    with open_session(tmp_path) as session, pytest.raises(KeyboardInterrupt):
        session.synthesize(epsilon=1, model=Stops(2))
    assert not file.parent.exists(), "the file is in the ledger now"
    assert diary_lines(tmp_path / "people.ledger")[1:] == written
    continue_run(tmp_path, written)


def diary_file_of_a_stopped_run(folder: Path) -> Path:
    """Stop a run after two numbers, and move its diary into a file, as earlier versions wrote it."""
    with open_session(folder) as session:
        with pytest.raises(KeyboardInterrupt):
            session.synthesize(epsilon=1, model=Stops(2))
        lines = diary_lines(folder / "people.ledger")
        (charge,) = charges(session.ledger)
        diaries.delete_diary(session.ledger.store, charge.number)
    file = folder / "people.ledger.diaries" / f"{charge.hash}.jsonl"
    file.parent.mkdir()
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return file


def test_modified_diary_is_refused(tmp_path: Path) -> None:
    file = diary_file_of_a_stopped_run(tmp_path)
    lines = file.read_bytes().splitlines(keepends=True)
    with open_session(tmp_path) as session:
        file.write_bytes(lines[0] + b"nonsense\n" + lines[2])
        with pytest.raises(LedgerUnavailable, match="it was changed"):
            session.synthesize(epsilon=1, model=Margins())
        file.write_bytes(lines[0] + b"{}\n" + lines[2])
        with pytest.raises(LedgerBroken, match="Line 2 of the diary"):
            session.synthesize(epsilon=1, model=Margins())


def test_resumed_run_refuses_a_changed_table(tmp_path: Path) -> None:
    with open_session(tmp_path, rows=None) as session, pytest.raises(KeyboardInterrupt):
        session.synthesize(epsilon=1, model=Stops(2))
    with open_session(tmp_path, people(300), rows=None) as session, pytest.raises(StalePolicy, match="number of rows"):
        session.synthesize(epsilon=1, model=Margins())


class Cells(Margins):
    """A model that is stored by its diary alone, as forest/1 was."""

    def learn(self, facts: Facts, rows: Rows, diary: Diary, **options: Any) -> Learnt:
        return OnlyDraws(super().learn(facts, rows, diary, **options))


@dataclass(frozen=True)
class OnlyDraws:
    fitted: Independent

    def draw(self, rows: int, *, seed: int) -> Ints:
        return self.fitted.draw(rows, seed=seed)


def test_stored_diary_of_another_model_is_refused(tmp_path: Path) -> None:
    class Other(Cells):
        def learn(self, facts: Facts, rows: Rows, diary: Diary, **options: Any) -> Learnt:
            return super().learn(replace(facts, columns=facts.columns[::-1]), rows, diary, **options)

    class Longer(Cells):
        def learn(self, facts: Facts, rows: Rows, diary: Diary, **options: Any) -> Learnt:
            model = super().learn(facts, rows, diary, **options)
            diary.step("more", Fraction(0), lambda: rows.margin(facts.columns[0]))
            return model

    with open_session(tmp_path) as session:
        drawn = session.synthesize(epsilon=1, model=Cells())[0].to_arrow()
        assert session.synthesize(epsilon=1, model=Cells())[0].to_arrow() == drawn
        for model in (Other(), Longer()):
            with pytest.raises(LedgerBroken, match="stored diary"):
                session.synthesize(epsilon=1, model=model)[0].to_arrow()


def test_record_of_an_earlier_version_is_rebuilt_from_its_diary(tmp_path: Path) -> None:
    """The form in which forest/1 was stored: a list of steps for each table."""
    with open_session(tmp_path) as session:
        new = session.synthesize(epsilon=1, model=Cells())
        steps = [step.to_dict() for step in new[0].steps]
        old = {"model": "margins/1", "rows": 400, "tables": [steps]}
        again = _tables(new.plan, old, new.charge, lambda: session.table)
        assert again[0].to_arrow() == new[0].to_arrow()
        assert (again.summary, again.banner) == ((), "")
        with pytest.raises(Unsupported, match="cannot be saved"):
            again.save(tmp_path / "model")


def test_stored_model_is_drawn_without_learning_again(tmp_path: Path) -> None:
    """A later version whose learning changed draws the same rows: nothing of a stored table is computed again."""

    class Later(Margins):
        def learn(self, facts: Facts, rows: Rows, diary: Diary, **options: Any) -> Independent:
            raise AssertionError("learned again")

    with open_session(tmp_path) as session:
        first = session.synthesize(epsilon=1, model=Margins())[0].to_arrow()
        assert session.synthesize(epsilon=1, model=Later())[0].to_arrow() == first


def test_record_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        tables = session.synthesize(epsilon=1, model=Margins())
        newer = {"model": "margins/1", "rows": 400, "tables": [[]], "fitted": [{"version": 2, "rows": 9, "model": {}}]}
        with pytest.raises(LedgerNewer, match="newer version"):
            _tables(tables.plan, newer, tables.charge, lambda: session.table)


def test_concurrent_requests_get_the_same_table_for_one_charge(tmp_path: Path) -> None:
    results: list[Any] = []

    def ask() -> None:
        with open_session(tmp_path) as session:
            results.append(session.synthesize(epsilon=1, model=Margins()))

    with open_session(tmp_path) as first:
        first.account
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 4
    assert all(tables[0].to_arrow() == results[0][0].to_arrow() for tables in results)
    with open_session(tmp_path) as session:
        assert (len(charges(session.ledger)), str(spent(session))) == (1, "1")
        assert verify_clean(session.ledger).holds


# ---- texts


def test_preview_charges_nothing_and_reads_no_data(tmp_path: Path) -> None:
    with Session(policy(rho="0.1"), folder=tmp_path) as session:
        preview = session.preview_synthesis(epsilon=1, tables=2, model=Margins())
        assert (str(preview.cost), preview.fits, preview.model) == ("2", True, "margins/1")
        text = str(preview)
        assert "would cost   epsilon 2 (2.08 remaining); identification of age" in text
        assert "person is left out (a key)" in text
        assert "100%  margins: count every column" in text
        assert text.endswith("Preview only: nothing was charged.")
        assert preview.to_dict()["stages"] == [{"name": "margins", "share": 1.0, "says": "count every column"}]
        assert not session.preview_synthesis(epsilon=9, model=Margins()).fits
        assert not spent(session)


def test_result_states_the_promise_the_shares_and_the_cost(tmp_path: Path) -> None:
    from tidegate.ledger import explain_entries

    with open_session(tmp_path) as session:
        tables = session.synthesize(epsilon="0.5", tables=2, model=Margins(), user="ana")
        text = str(tables)
        assert text.startswith(f"{BANNER}\n"), "the warning about the budget comes first"
        assert "2 synthetic tables of 400 rows and 5 columns by margins/1 (passed by the caller)" in text
        assert "loses at most epsilon 0.5 about one row, and all 2 tables together at most epsilon 1" in text
        assert "cost 1, 3 remaining" in text
        assert tables.to_dict()["rows"] == [400, 400]
        assert [summary["banner"] for summary in tables.to_dict()["summary"]] == [BANNER] * 2
        assert tables.summary[0].spent.pure == Fraction(1, 2)
        assert "<table>" in tables._repr_html_()
        lines = [line for _, line in explain_entries(session.ledger.entries())]
        assert lines[2].startswith(
            "ana requested 2 synthetic tables of 5 columns by margins/1: 1 charged, 1 of 4 spent"
        )


def test_quality_compares_with_the_original(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        quality = session.synthesize(epsilon=4, model=Margins()).quality()
    assert quality.rows == 400
    assert "town" in quality.columns


def test_other_model_settings_are_another_question() -> None:
    @dataclass(frozen=True)
    class Coarse(Margins):
        cells: int = 5

    def question_of(model: object) -> dict[str, object]:
        return plan_for(resolve_request(policy(), epsilon=1, model=model), policy()).question()

    assert question_of(Coarse()) == question_of(Margins())
    assert question_of(Coarse(7)) == question_of(Coarse(7)) != question_of(Coarse())


def test_too_small_epsilon_is_refused_and_nothing_charged(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        with pytest.raises(Unsupported, match="too small to learn a table"):
            session.synthesize(epsilon="1e-7", model=Margins())
        assert not spent(session)


@pytest.mark.long
@pytest.mark.parametrize("model", [Margins(), DEFAULT], ids=["margins", "forest"])
def test_paid_tables_are_made_for_any_noisy_number_of_rows(tmp_path: Path, model: Any) -> None:
    """With an epsilon of 0.02 for 4 rows the noise is some thousands of rows. The probability that none of 20 tables has the
    smallest number of rows is below 1e-6.
    """
    with open_session(tmp_path, people(4), unit=EachPerson("person", 2), rows=None) as session:
        tables = session.synthesize(epsilon="0.02", tables=20, model=model)
        assert len(tables) == 20
        assert min(table.rows for table in tables) == 2
        assert all(len(table.draw(5).to_arrow()) == 5 for table in list(tables)[:3])
        assert len(charges(session.ledger)) == 1


# ---- z


def average_session(folder: Path, **changes: Any) -> Session:
    promise = Identification("0.1", protect=("age",), guarantee="average")
    return Session(replace(policy(rho="0.1", **changes), identification=promise), table=people(), folder=folder)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("options", [{"z": "0.02"}, {"rho": "0.05"}, {"share": "0.5"}, {"epsilon": 1, "delta": "1e-5"}])
@pytest.mark.parametrize("unit", [None, EachPerson("person", 2)])
@pytest.mark.parametrize("model", [Margins(), DEFAULT], ids=["margins", "forest"])
def test_z_run_is_charged_stored_and_drawn_again(
    tmp_path: Path, options: dict[str, Any], unit: Any, model: Any
) -> None:
    with average_session(tmp_path, unit=unit, rows=None if unit else 400) as session:
        tables = session.synthesize(**options, model=model)
        total = sum((step.loss for step in tables[0].steps), NOTHING)
        price = tables.charge.price
        assert total.z <= price.z.value
        assert total.zcdp <= price.zcdp.value
        assert price.pure is None
        assert tables.cost == price.z == session.account.spent
        again = session.synthesize(**options, model=model)
        assert (str(again.cost), again[0].to_arrow()) == ("0", tables[0].to_arrow())
        assert (tables[0].steps[0].name == "size") == (unit is not None)
        assert verify_clean(session.ledger).holds


def test_promise_of_a_z_run_states_identification_and_epsilon_at_delta(tmp_path: Path) -> None:
    with average_session(tmp_path) as session:
        preview = session.preview_synthesis(epsilon=1, delta="1e-5", tables=2, model=Margins())
        tables = session.synthesize(epsilon=1, delta="1e-5", tables=2, model=Margins())
    assert "loses at most Z 0.0153 (epsilon 1 at delta = 1e-05) about one row" in tables.promise
    assert "all 2 tables together at most Z 0.0306 (epsilon 1.46 at delta = 1e-05)" in tables.promise
    assert "for age at most 0.027" in tables.promise
    assert "(the policy allows 0.1)" in tables.promise
    assert tables.promise in str(preview)
    described = tables.to_dict()
    assert described["epsilon"] is None
    assert Fraction(described["zcdp"]) == 2 * Fraction(described["z"])
    assert described["delta"] == "1/100000"


def test_noise_of_a_private_number_of_rows_has_the_variance_of_its_price(tmp_path: Path) -> None:
    """Empirical variance of 4,000 draws within 12% of sigma**2 = reach**2 / (8 z): about 5 standard errors, so that a false
    alarm has a probability below 1e-6; half or twice the variance is found.
    """
    with average_session(tmp_path, unit=EachPerson("person", 2), rows=None) as session:
        plan = plan_for(resolve_request(session.policy, z="0.01", model=Margins()), session.policy)
        learning = Learning(plan, NoRows(), lambda: 400, None, SeededBits(7), silent)
        sizes = np.array([int(learning._noisy_size()[0]) for _ in range(4_000)])
    assert np.var(sizes) == pytest.approx(float(4 / (8 * plan.size_loss.z)), rel=0.12)
    assert plan.size_loss.zcdp == 4 * plan.size_loss.z
