"""Answers about dates, times, truth values, decimals and text."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.answer.result import Answer
from tidegate.errors import Unsupported
from tidegate.frames import arrow_table
from tidegate.policy import Boolean, Category, Dataset, Date, Decimal, Loss, Policy, Text, Time, Timestamp
from tidegate.session import Session

ROWS = 1_000
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
POLICY = Policy(
    Dataset("orders", rows=ROWS),
    {
        "joined": Date(dt.date(2015, 1, 1), dt.date(2024, 12, 31)),
        "ordered": Timestamp(dt.date(2024, 1, 1), dt.date(2024, 12, 31), "hour", "Europe/Paris"),
        "opened": Time(dt.time(8), dt.time(20), "hour", "value"),
        "married": Boolean("value"),
        "price": Decimal("0.00", "10.00", "0.01"),
        "town": Category(("Aby", "Berg"), outside="other"),
        "coupon": Text(4, "value"),
        "note": Text(),
    },
    loss=Loss(10**6),
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Any:
    rows = {
        "joined": [dt.date(2020, 1, 1) + dt.timedelta(n % 11 - 5) for n in range(ROWS)],
        "ordered": [START + dt.timedelta(hours=n % 5) for n in range(ROWS)],
        "opened": [dt.time(n % 24, 30) for n in range(ROWS)],
        "married": [[True, False, None][n % 3] for n in range(ROWS)],
        "price": [n / 100 for n in range(ROWS)],
        "town": [["Aby", "Berg", "aby", "Ceda"][n % 4] for n in range(ROWS)],
        "coupon": [["SUMMER", None][n % 2] for n in range(ROWS)],
        "note": [["called", None][n % 2] for n in range(ROWS)],
    }
    with Session(POLICY, table=pa.table(rows), folder=tmp_path_factory.mktemp("orders")) as opened:
        yield opened


def answer(session: Session, query: Any) -> Answer:
    result = session.answer(query, epsilon=5_000)
    assert isinstance(result, Answer)
    assert json.loads(json.dumps(result.to_dict()))["rows"] == result.rows()
    assert result.plot().svg()
    assert result._repr_html_()
    return result


def test_statistics_of_dates_are_dates(session: Session) -> None:
    mean = answer(session, tg.mean("joined"))
    assert mean.value == dt.date(2020, 1, 1)
    assert mean.interval() == (dt.date(2020, 1, 1), dt.date(2020, 1, 1))
    assert mean.rows()[0]["mean"] == "2020-01-01"
    assert mean.line().startswith("2020-01-01   (noise: 2020-01-01 to 2020-01-01, 95%)")
    assert answer(session, tg.median("joined")).value == dt.date(2020, 1, 1)
    assert answer(session, tg.min("joined")).value <= dt.date(2019, 12, 28)
    assert answer(session, tg.std("joined")).value == pytest.approx(3.16, abs=3)  # in days
    assert answer(session, tg.median("ordered")).value == dt.datetime(2024, 1, 1, 3)  # 02:00 in UTC
    assert answer(session, tg.median("opened")).value == dt.time(14)
    by_marriage = answer(session, tg.mean("joined").by("married")).rows()
    assert [row["married"] for row in by_marriage] == [False, True, None]
    assert {row["mean"] for row in by_marriage} <= {"2019-12-31", "2020-01-01", "2020-01-02"}


DATES_IN_SQL = {
    "SELECT AVG(joined), MEDIAN(ordered) FROM orders": {
        "mean_joined": dt.date(2020, 1, 1),
        "mean_joined_low": dt.date(2020, 1, 1),
        "mean_joined_high": dt.date(2020, 1, 1),
        "quantile_ordered": dt.datetime(2024, 1, 1, 3),
    },
    "SELECT CAST(AVG(joined) + INTERVAL 12 HOUR AS DATE) AS joined, AVG(price) AS price FROM orders ORDER BY 1": {
        "joined": dt.date(2020, 1, 1),
        "price": pytest.approx(4.995, abs=0.01),
    },
    "SELECT YEAR(AVG(ordered)) AS year, DATE_DIFF('day', AVG(joined), AVG(ordered)) AS days FROM orders": {
        "year": 2024,
        "days": pytest.approx(1461, abs=1),  # not a difference of a number of days and a number of hours
    },
    "SELECT MAX(ordered) - MIN(ordered) AS span FROM orders": {"span": dt.timedelta(hours=4)},
    "SELECT AVG(joined) FROM orders": {"mean": dt.date(2020, 1, 1), "low": dt.date(2020, 1, 1)},
}


@pytest.mark.long_for("DATE_DIFF")  # 6 s
@pytest.mark.parametrize("text", DATES_IN_SQL)
def test_every_table_of_an_answer_shows_dates_as_dates(session: Session, text: str) -> None:
    result = session.answer(text, epsilon=10_000)
    row = result.to_arrow().to_pylist()[0]
    assert {name: row[name] for name in DATES_IN_SQL[text]} == DATES_IN_SQL[text]
    assert type(result).from_dict(json.loads(json.dumps(result.to_dict())), POLICY).rows() == result.rows()
    assert result._repr_html_()


def test_mean_of_dates_has_a_time_in_arithmetic_and_an_interval_around_it(session: Session) -> None:
    text = "SELECT AVG(joined) AS joined, AVG(joined) - TIMESTAMP '2019-12-01' AS since FROM orders"
    row = session.answer(text, epsilon=2_000).rows()[0]
    assert row["joined_low"] < row["joined"] < row["joined_high"]
    assert abs(row["joined"] - dt.datetime(2020, 1, 1)) < dt.timedelta(hours=12)
    assert row["joined"].time() != dt.time()
    assert row["since"] == row["joined"] - dt.datetime(2019, 12, 1)


def test_table_has_the_names_of_the_query_and_only_cells_that_its_condition_allows(session: Session) -> None:
    named = session.answer("SELECT town AS place_of_order, COUNT(*) AS n FROM orders GROUP BY town", epsilon=10_000)
    names, numbers = ["Aby", "Berg", "(other)"], [250, 250, 500]
    assert named.to_arrow().to_pydict() == {"place_of_order": names, **dict.fromkeys(("n", "n_low", "n_high"), numbers)}
    chosen = session.answer("SELECT town, COUNT(*) FROM orders WHERE town <> 'Aby' GROUP BY town", epsilon=10_000)
    assert chosen.to_arrow().column("town").to_pylist() == ["Berg", "(other)"]
    with_its_name = session.answer("SELECT town AS town, COUNT(*) FROM orders GROUP BY town", epsilon=10_000)
    assert isinstance(with_its_name, Answer)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("expression", "label"),
    [
        ("DATEPART(year, [joined])", 2020),  # T-SQL
        ("DATE_PART('year', joined)", 2020),  # DuckDB and PostgreSQL
        ("TO_CHAR(joined, 'YYYY')", "2020"),  # PostgreSQL
        ("DATE_FORMAT(joined, 'yyyy')", "2020"),  # Spark
    ],
)
def test_dialects_have_their_functions_of_dates(
    session: Session, caplog: pytest.LogCaptureFixture, expression: str, label: int | str
) -> None:
    text = f"SELECT {expression} AS y, COUNT(*) AS n FROM orders GROUP BY {expression} ORDER BY n DESC"
    first = session.answer(text, epsilon=10_000).to_arrow().slice(0, 1).to_pydict()
    assert (first["y"], first["n"]) == ([label], [545])
    with pytest.raises(Unsupported, match="TO_CHAR cannot be used"):
        session.answer("SELECT COUNT(*) FROM orders WHERE TO_CHAR(price) = '1'", epsilon=1)
    assert "Argument" not in caplog.text, "the parser does not write into the log"


def test_cells_of_every_kind_have_labels(session: Session) -> None:
    def counts(column: str) -> dict[Any, int]:
        return {row[column]: round(row["count"]) for row in answer(session, tg.count().by(column)).rows()}

    assert counts("married") == {True: 334, False: 333, None: 333}
    assert counts("town") == {"Aby": 250, "Berg": 250, "(other)": 500}
    assert counts("coupon") == {bucket: 500 * (bucket == Text(4).bucket("SUMMER")) for bucket in range(4)} | {None: 500}
    assert counts("joined")["2020-01-02"] == 91
    hours = counts("opened")
    assert (hours["08:00:00"], hours[None]) == (42, 8 * 42 + 3 * 41)
    assert "true is higher than" in str(answer(session, tg.count().by("married")).comparison.says())  # type: ignore[union-attr]


def test_conditions_on_every_kind_count_rows(session: Session) -> None:
    conditions = {
        tg.col("joined") >= "2020-01-06": 90,
        tg.col("ordered") < dt.datetime(2024, 1, 1, 2): 200,
        tg.col("married") == True: 334,  # noqa: E712
        tg.col("price") < 5: 500,
        tg.col("town") == "(other)": 500,
        tg.col("coupon") == "SUMMER": 500,
        tg.col("note").missing(): 500,
    }
    counts = {condition.says(): round(answer(session, tg.count().where(condition)).value) for condition in conditions}
    assert counts == {condition.says(): rows for condition, rows in conditions.items()}


def test_sum_of_decimals_is_exact_without_noise(session: Session) -> None:
    assert answer(session, tg.sum("price")).value == pytest.approx(sum(range(ROWS)) / 100, abs=0.5)


def test_text_without_buckets_is_not_a_group(session: Session, tmp_path: Path) -> None:
    spent = session.account.spent
    for query in (tg.count().by("note"), tg.count().where(tg.col("note") == "called"), tg.mean("coupon")):
        with pytest.raises(Unsupported):
            session.answer(query, epsilon=1)
    assert session.account.spent == spent


@pytest.mark.parametrize(
    "query",
    [
        tg.count(),
        tg.count().by("town"),
        tg.count().by("town", "married"),
        tg.count().by("joined"),
        tg.count().by("opened"),
        tg.mean("price").by("married", "town"),
        tg.mean("joined").by("married"),
        tg.median("price"),
        tg.sum("price"),
    ],
    ids=lambda query: query.says(),
)
def test_arrow_table_equals_the_table_of_its_rows(session: Session, query: tg.Query) -> None:
    result = answer(session, query)
    by_rows = arrow_table(result.rows(), result._kinds())
    assert result.to_arrow().schema.equals(by_rows.schema)
    assert result.to_arrow().to_pylist() == by_rows.to_pylist()
