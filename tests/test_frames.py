"""Every result is a table: `rows()`, Arrow, pandas and polars agree, and columns have the types of their values."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from support.towns import open_session, people

import tidegate as tg
from tidegate.audit.finding import Finding
from tidegate.audit.report import Audit
from tidegate.errors import UnknownColumn
from tidegate.frames import Frames, Rows, arrow_table
from tidegate.release.result import NOBODY, Deferred, Outcomes, Records, Released
from tidegate.session import Session
from tidegate.tables.inspection import inspect


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_session(tmp_path_factory.mktemp("frames"), rho="0.9") as opened:
        yield opened


class Listed(Rows):
    """A result with rows of the test's choice."""

    def __init__(self, rows: list[dict[str, Any]], kinds: dict[str, type] | None = None) -> None:
        self._rows, self._named = rows, kinds or {}

    def rows(self) -> list[dict[str, Any]]:
        return self._rows

    def _kinds(self) -> dict[str, type]:
        return self._named


def test_columns_have_the_types_of_their_values() -> None:
    moment = datetime(2024, 2, 29, 12, 30)
    row = {
        "yes": True,
        "whole": 7,
        "real": 0.5,
        "text": "a",
        "day": date(2024, 2, 29),
        "moment": moment,
        "hour": time(8, 15),
        "price": Decimal("1.25"),
        "share": Fraction(1, 4),
        "names": ["a", "b"],
    }
    table = Listed([row, dict.fromkeys(row)]).to_arrow()
    types = {
        "yes": pa.bool_(),
        "whole": pa.int64(),
        "real": pa.float64(),
        "text": pa.string(),
        "day": pa.date32(),
        "moment": pa.timestamp("us"),
        "hour": pa.time64("us"),
        "price": pa.decimal128(3, 2),
        "share": pa.float64(),
        "names": pa.list_(pa.string()),
    }
    assert dict(zip(table.column_names, table.schema.types, strict=True)) == types
    assert table.to_pylist() == [{**row, "share": 0.25}, dict.fromkeys(row)]


def test_whole_numbers_stay_whole_beside_missing_ones() -> None:
    result = Listed([{"n": 2**53 + 1, "yes": True}, {"n": None, "yes": None}])
    frame = result.to_pandas()
    assert (str(frame["n"].dtype), str(frame["yes"].dtype)) == ("Int64", "boolean")
    assert frame["n"][0] == 2**53 + 1
    assert frame["n"].isna().tolist() == [False, True]
    assert str(Listed([{"n": 1}]).to_pandas()["n"].dtype) == "int64"
    polars = result.to_polars()
    assert (str(polars["n"].dtype), polars["n"].to_list()) == ("Int64", [2**53 + 1, None])


def test_dates_as_iso_texts_become_dates_where_a_class_says_so() -> None:
    rows = [{"day": "2024-02-29", "quarter": "2024 Q1"}, {"day": None, "quarter": "2024 Q2"}]
    result = Listed(rows, {"day": date, "quarter": date})
    table = result.to_arrow()
    assert table.schema.types == [pa.date32(), pa.string()]
    assert table["day"].to_pylist() == [date(2024, 2, 29), None]
    assert str(result.to_pandas()["day"].dtype).startswith("datetime64")
    assert str(result.to_polars()["day"].dtype) == "Date"
    aware = Listed([{"at": "2024-02-29T12:00:00+02:00"}], {"at": datetime}).to_arrow()
    assert aware["at"].to_pylist()[0] == datetime.fromisoformat("2024-02-29T10:00:00+00:00")


def test_mixed_columns_and_huge_numbers_never_fail() -> None:
    table = arrow_table([{"a": 1, "b": 1, "c": 2**80}, {"a": 0.5, "b": "x", "c": 1}])
    assert table.to_pydict() == {"a": [1.0, 0.5], "b": ["1", "x"], "c": [float(2**80), 1.0]}


def test_empty_tables_have_their_columns() -> None:
    table = arrow_table([], {"name": str, "n": int, "share": float, "at": datetime, "price": Decimal, "items": list})
    assert table.column_names == ["name", "n", "share", "at", "price", "items"]
    assert pa.null() not in table.schema.types


def test_answers_with_the_same_groups_are_side_by_side(session: Session) -> None:
    answers = session.answer([tg.count().by("town"), tg.mean("age").by("town")], epsilon=1, anyway=True)
    rows = answers.rows()
    assert list(rows[0]) == ["town", "count", "count_low", "count_high", "mean_age", "mean_age_low", "mean_age_high"]
    assert [row["town"] for row in rows] == ["Aby", "Berg", "Ceder", None]
    assert [row["count"] for row in rows] == answers[0].values.tolist()
    assert [row["mean_age"] for row in rows] == answers[1].values.tolist()
    twice = session.answer([tg.count(), tg.count().where(tg.col("age") >= 30)], epsilon=1, anyway=True)
    assert list(twice.rows()[0]) == ["count", "count_low", "count_high", "count_2", "count_2_low", "count_2_high"]


def test_answers_with_other_groups_are_one_below_the_other(session: Session) -> None:
    answers = session.answer([tg.count().by("town"), tg.mean("age"), tg.median("age")], epsilon=1, anyway=True)
    rows = answers.rows()
    assert list(rows[0]) == ["question", "town", "value", "low", "high"]
    assert [row["value"] for row in rows] == [*answers[0].values.tolist(), answers[1].value, answers[2].value]
    assert (rows[-1]["question"], rows[-1]["town"], rows[-1]["low"]) == ("the median of age", None, None)
    assert answers.to_arrow().schema.types == [pa.string(), pa.string(), *[pa.float64()] * 3]


def test_group_named_like_a_number_keeps_its_labels(tmp_path: Path) -> None:
    policy = tg.Policy(
        tg.Dataset("people", rows=40),
        {"count": tg.Category(("a", "b")), "value": tg.Category(("x", "y"))},
        loss=tg.Loss(10),
    )
    table = pa.table({"count": ["a", "b"] * 20, "value": ["x"] * 40})
    with Session(policy, table=table, folder=tmp_path) as session:
        answer = session.answer(tg.count().by("count"), epsilon=1, anyway=True)
        assert [(row["count_"], type(row["count"])) for row in answer.rows()] == [("a", int), ("b", int)]
        assert "a" in answer._repr_html_()
        both = session.answer([tg.count().by("value"), tg.count()], epsilon=1, anyway=True)
        assert [row["value_"] for row in both.rows()] == ["x", "y", None]
        derived = session.derive(tg.count().by("value"))
        assert derived is not None
        assert [row["value_"] for row in derived.rows()] == ["x", "y"]


def results(session: Session) -> dict[str, Frames]:
    """Return one result of each kind that this session can compute."""
    answer = session.answer(tg.count().by("town"), epsilon=30)
    comparison, derived = answer.comparison, session.derive(tg.count())
    assert comparison is not None
    assert derived is not None
    synthetic = session.synthesize(epsilon=1, tables=2, rows=20, columns=["age", "town"])
    released = Released(1, {"town": "Aby", "number": 5})
    finding = Finding("answer", "a promise", "an attack", "all rows", "it held", "held")
    return {
        "answer": answer,
        "comparison": comparison,
        "derived": derived,
        "preview": session.preview([tg.count(), tg.median("age")], epsilon=1),
        "account": session.account,
        "policy": session.policy,
        "ledger": session.ledger,
        "outcome": released,
        "outcomes": Outcomes({"7": released, "8": Deferred(2, 0), "9": NOBODY}),
        "records": Records([released.record]),
        "synthetic tables": synthetic,
        "synthetic table": synthetic[0],
        "synthesis preview": session.preview_synthesis(epsilon=1),
        "quality": synthetic.quality(),
        "paid quality": session.paid_quality(synthetic, epsilon=1),
        "inspection": inspect(session.table),
        "audit": Audit("people", "f" * 64, "2026-01-01T00:00:00", (finding,), 0.01, 1, 2.0),
    }


def test_all_forms_of_every_result_agree(tmp_path: Path) -> None:
    with open_session(tmp_path, epsilon="90") as session:
        for name, result in results(session).items():
            table, frame, polars = result.to_arrow(), result.to_pandas(), result.to_polars()
            assert isinstance(frame, pd.DataFrame), name
            assert table.num_rows > 0, name
            assert list(frame.columns) == polars.columns == table.column_names, name
            assert len(frame) == len(polars) == table.num_rows, name
            assert frame.isna().sum().tolist() == [table[column].null_count for column in table.column_names], name
            assert pa.null() not in table.schema.types, name
            if isinstance(result, Rows):
                assert [list(row) for row in result.rows()] == [list(row) for row in result.rows()], name
                assert table.num_rows == len(result.rows()), name


def test_tables_contain_the_numbers_of_their_result(tmp_path: Path) -> None:
    with open_session(tmp_path, epsilon="90") as session:
        by_name = results(session)
        ledger, outcomes = by_name["ledger"].to_pandas(), by_name["outcomes"].to_pandas()
        account = session.account
        spent = account.to_arrow().to_pylist()[0]
        assert (spent["spent"], spent["left"]) == (33.0, 57.0)
        assert ledger["spent"].iloc[-1] == 33.0
        assert str(ledger["at"].dtype).startswith("datetime64")
        assert ledger["number"].tolist() == list(range(len(ledger)))
        assert outcomes["outcome"].tolist() == ["released", "deferred", "refused"]
        assert (outcomes["number"].tolist()[:2], outcomes["number_"][0]) == ([1, 2], 5)
        tables = by_name["synthetic tables"].to_arrow()
        assert tables.column_names == ["table", "age", "town"]
        assert tables["table"].to_pylist() == [0] * 20 + [1] * 20
        columns = by_name["policy"].to_polars()
        assert columns["column"].to_list() == list(session.policy.attributes)
        assert columns["size"].to_list()[:2] == [None, 73]


def test_missing_polars_is_one_sentence_with_its_command() -> None:
    script = """
import sys
sys.modules["polars"] = None
import tidegate as tg
from tidegate.errors import MissingExtra
policy = tg.Policy(tg.Dataset("people"), {"age": tg.Integer(0, 9)})
try:
    policy.to_polars()
except MissingExtra as error:
    print(error.what, error.do)
"""
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == (
        "A polars data frame needs polars, which is not installed. Install it with: pip install 'tidegate[polars]'"
    )


EVIL = "<script>alert(1)</script>"


def test_notebooks_show_results_without_script_and_escaped(tmp_path: Path) -> None:
    table = people().set_column(4, "town", pa.array([EVIL] * 400))
    attributes = {"age": tg.Integer(18, 90), "town": tg.Category((EVIL, "Berg"))}
    policy = tg.Policy(tg.Dataset("people", rows=400), attributes, tg.Identification("0.6", protect=("town",)))
    with Session(policy, table=table, folder=tmp_path) as session:
        queries = [tg.count().by("town"), tg.mean("age").where(tg.col("town") == EVIL)]
        preview = session.preview(queries, share="0.5")
        answers = session.answer(queries, share="0.5")
        derived = session.derive(tg.count().by("town"))
        assert derived is not None
        over = session.preview(queries, epsilon=50)
        for shown in (preview, over, answers, derived, session.account, policy, inspect(session.table)):
            html = shown._repr_html_()
            assert html.count('<div class="tidegate">') == 1
            assert not re.search(r"<script|\son\w+=|https?:|url\(|src=|<link", html), type(shown)
        assert "&lt;script&gt;" in answers._repr_html_()
        page = preview._repr_html_()
        assert preview.cost.say() in page
        assert "identification of town" in page
        assert "nothing was charged" in page
        assert "exceeds the budget" in over._repr_html_()
        assert session.account.left.say() in session.account._repr_html_()
        assert "one row per person" in policy._repr_html_()
        assert "&lt;/script&gt;, Berg" in session._repr_html_()
        assert repr(session) == 'Session("people"): see its columns in `policy` and its budget in `account`'
        assert answers.plot().title == "Answers with their 95% intervals"
        assert [panel.title for panel in answers.plot().panels] == [answer.plot().title for answer in answers]
        assert "identification at most 0.6" in policy._repr_html_()


def test_notebooks_show_errors_as_the_callers_line_and_the_message(session: Session) -> None:
    with pytest.raises(UnknownColumn) as caught:
        session.answer(tg.mean("agee"), epsilon="0.1")
    where, line, message = caught.value._render_traceback_()
    assert where.startswith(f"{__file__}, line ")
    assert line.strip() == 'session.answer(tg.mean("agee"), epsilon="0.1")'
    assert message == f"UnknownColumn: {caught.value}"


def test_shells_show_the_text_of_a_result_and_not_its_fields(session: Session) -> None:
    answer = session.answer(tg.histogram("age"), epsilon="0.1")
    preview = session.preview(tg.count().by("town"), epsilon="0.1")
    for result in (
        answer,
        session.answer([tg.count(), tg.count().by("town")], epsilon="0.1"),
        preview,
        session.account,
    ):
        assert repr(result) == str(result)
        assert "Policy(" not in repr(result)
    assert str(tg.mean("age").by("town")) == "the mean of age by town"
    assert "(--free, in Python `derive`): " in str(
        session.preview(tg.count().where(tg.col("age") == 20), epsilon="0.1")
    )
    lines = str(answer).splitlines()
    assert lines[0].split() == ["age", "histogram", "low", "high"]
    assert lines[1].split()[0] == "18"
    assert lines[31] == "and 44 more rows"


def test_notebooks_compare_by_bars_only_what_can_be_compared(session: Session) -> None:
    assert "<rect" in session.answer(tg.count().by("town"), epsilon="0.1")._repr_html_()
    assert "<rect" not in session.answer(tg.mean("age"), epsilon="0.1")._repr_html_()
    assert "<rect" not in session.answer(tg.regression("age ~ pay"), epsilon="0.1")._repr_html_()


def test_tab_completion_lists_public_names_alone() -> None:
    assert set(dir(tg)) == {*tg.__all__, "__version__", "errors"}
