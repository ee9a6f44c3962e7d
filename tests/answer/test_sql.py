"""SQL queries equal their Python form; unsupported SQL is refused with the supported form."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from answer.conftest import policy
from answer.corpus import corpus_policies

from tidegate.answer import Query, count, distinct, histogram, max, mean, median, min, quantile, std, sum, variance
from tidegate.answer.sql import parse_sql, plan_sql
from tidegate.errors import UnknownColumn, Unsupported
from tidegate.policy import Dataset, Integer, Loss, Policy
from tidegate.policy.predicates import col
from tidegate.tables import expressions
from tidegate.tables.expressions import ParserStopped, parse_text

AGE, SEX, TOWN = col("age"), col("sex"), col("town")
SAME: dict[str, tuple[Query, ...]] = {
    "SELECT COUNT(*) FROM people": (),  # the policy states the number of rows
    "SELECT COUNT(1), AVG(age) FROM people": (mean("age"),),
    "select avg(age) from people": (mean("age"),),
    "SELECT (SELECT AVG(age) FROM people)": (mean("age"),),
    "SELECT (SELECT AVG(age) FROM people) AS years": (mean("age"),),
    "SELECT sex, AVG(age), COUNT(*) FROM people WHERE age >= 30 GROUP BY sex": (
        mean("age").where(AGE >= 30).by("sex"),
        count().where(AGE >= 30).by("sex"),
    ),
    "SELECT SUM(pay), VARIANCE(pay), STDDEV(pay), MIN(age), MAX(age) FROM people": (
        sum("pay"),
        variance("pay"),
        std("pay"),
        min("age"),
        max("age"),
    ),
    "SELECT VAR_SAMP(pay), STDDEV_SAMP(pay) FROM people": (variance("pay"), std("pay")),
    "SELECT MEDIAN(age), QUANTILE(age, 0.9) FROM people": (median("age"), quantile("age", "0.9")),
    "SELECT HISTOGRAM(age) FROM people": (histogram("age"),),
    "SELECT sex, HISTOGRAM(age) AS h FROM people WHERE sex = 'f' GROUP BY sex": (
        histogram("age").where(SEX == "f").by("sex"),
    ),
    "SELECT COUNT(*) AS n FROM people WHERE town IN ('Aby', 'Berg')": (count().where(TOWN.isin(["Aby", "Berg"])),),
    "SELECT COUNT(*) FROM people WHERE age BETWEEN 20 AND 30.5": (count().where(AGE.between(20, 30.5)),),
    "SELECT COUNT(*) FROM people WHERE 30 <= age AND NOT sex = 'f'": (count().where((AGE >= 30) & ~(SEX == "f")),),
    "SELECT COUNT(*) FROM people WHERE town IS NULL OR age > -1": (count().where(TOWN.missing() | (AGE > -1)),),
    "SELECT COUNT(*) FROM people p WHERE (age <> 3);": (count().where(AGE != 3),),
    "SELECT AVG(age) FROM people; SELECT COUNT(*) FROM people WHERE age <> 3": (mean("age"), count().where(AGE != 3)),
    "SELECT COUNT(*) FROM (SELECT * FROM people WHERE age > 3)": (count().where(AGE > 3),),
    "SELECT Sex, COUNT(*) n FROM PEOPLE GROUP BY 1 HAVING n > 5 ORDER BY n LIMIT 1": (count().by("sex"),),
    "SELECT COUNT(DISTINCT age) FROM people": (distinct("age"),),
    "SELECT COUNT(age) FROM people": (count().where(~AGE.missing()),),
    "SELECT AVG(age + 1) FROM people": (mean("age + 1"),),
    "SELECT AVG(age) + 1, AVG(age) * 2 FROM people": (mean("age"),),
    "SELECT AVG(age) FILTER (WHERE sex = 'f') FROM people": (mean("age").where(SEX == "f"),),
    "SELECT SUM(CASE WHEN sex = 'f' THEN 1 ELSE 0 END) FROM people": (count().where(SEX == "f"),),
    "SELECT SUM(CASE WHEN sex = 'f' THEN age END) FROM people": (sum("age").where(SEX == "f"),),
    "SELECT COUNT(*) FROM people WHERE sex LIKE 'f%'": (count().where("sex LIKE 'f%'"),),
    "SELECT age // 10, COUNT(*) FROM people GROUP BY age // 10": (count().by("age // 10"),),
    "SELECT AVG(age) FROM people WHERE TRUE UNION SELECT AVG(age) FROM people": (mean("age"),),
    "WITH x AS (SELECT age a FROM people) SELECT AVG(a) FROM x": (mean("age"),),
    "SELECT TOP 1 sex, COUNT(*) FROM [people] GROUP BY sex": (count().by("sex"),),
    "SELECT TOP (1) sex, COUNT(*) FROM people GROUP BY sex": (count().by("sex"),),
    "SELECT `sex`, COUNT(*) FROM `people` GROUP BY `sex`": (count().by("sex"),),
}


@pytest.mark.parametrize("text", SAME)
def test_sql_equals_the_python_query(text: str) -> None:
    assert parse_sql(text, policy()) == SAME[text]


REFUSED = [
    "",
    "hello",
    "SELECT * FROM people",
    "SELECT age FROM people",
    "SELECT age, COUNT(*) FROM people GROUP BY sex",
    "SELECT COUNT(*) FROM others",
    "SELECT COUNT(*) FROM people JOIN people p2 ON 1 = 1",
    "SELECT COUNT(*) FROM people, others",
    "SELECT COUNT(*) FROM (SELECT * FROM people LIMIT 3)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT age FROM people)",
    "SELECT AVG(age) OVER () FROM people",
    "SELECT AVG(DISTINCT age) FROM people",
    "SELECT COUNT(*) FROM people WHERE age IN (SELECT 1)",
    "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people)",
    "SELECT COUNT(*) FROM people WHERE random() > 0.5",
    "SELECT RANDOM(), AVG(age) FROM people",
    "SELECT 1",
    "DROP TABLE people",
    "SELECT COUNT(*) FROM people; DROP TABLE people",
    "SELECT STRING_AGG(sex) FROM people",
    "SELECT COUNT(*) FROM people TABLESAMPLE 10%",
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
    "SELECT AVG(age) FROM people WHERE sex = (SELECT content FROM read_text('/etc/passwd'))",
    "SELECT AVG(age), (SELECT content FROM read_text('/etc/passwd')) FROM people",
    "SELECT QUANTILE(age, 2) FROM people",
    "SELECT AVG(age) FROM people WHERE AVG(age) > 3",
    "SELECT AVG(age) FROM people GROUP BY AVG(age)",
    "SELECT AVG(age / (age - age)) FROM people",
    "SELECT AVG(age) FROM people HAVING AVG(age) > 'x'",
    "SELECT HISTOGRAM(age), COUNT(*) FROM people HAVING COUNT(*) > 1",
    "SELECT HISTOGRAM(age) FROM people; SELECT AVG(age) * 2 FROM people",
    "SELECT YEAR(), COUNT(*) FROM people",
    "SELECT SUM(age) FROM people WHERE age = '" + "x" * 60_000 + "'",
    "SELECT COUNT(*) FROM people WHERE " + "(" * 500 + "age = 1" + ")" * 500,
]


@pytest.mark.parametrize("text", REFUSED)
def test_unsupported_sql_is_refused(text: str) -> None:
    with pytest.raises(Unsupported):
        parse_sql(text, policy())


def test_refusal_shows_the_supported_form() -> None:
    with pytest.raises(Unsupported, match=r"Supported: SELECT columns or expressions, COUNT\(\*\).*FROM people"):
        parse_sql("DROP TABLE people", policy())


def test_unknown_column_suggests_the_nearest() -> None:
    with pytest.raises(UnknownColumn, match='Did you mean "age"'):
        parse_sql("SELECT AVG(ages) FROM people", policy())


INVALID = {
    "SELECT COUNT(* FROM people": '"FROM" cannot follow "SELECT COUNT(*" in line 1',
    "SELECT sex\nCOUNT(*) FROM people": '"(" cannot follow "SELECT sex COUNT" in line 2',
    "SELECT COUNT(*) FROM people WHERE": 'something is missing after "WHERE" in line 1',
    "SELECT COUNT(*) FROM people WHERE sex = 'f": "a quote or a comment is not closed",
}


@pytest.mark.parametrize("text", INVALID)
def test_invalid_sql_is_refused_with_its_position(text: str) -> None:
    with pytest.raises(Unsupported) as caught:
        parse_sql(text, policy())
    assert caught.value.what == f"The text is not valid SQL: {INVALID[text]}."


HELPFUL = {
    "SELECT COUNT(*) FROM people WHERE town = 'aby'": 'Did you mean "Aby"? Listed: Aby, Berg, Ceder.',
    "SELECT COUNT(*) FROM people WHERE town = 'xyz'": "Listed: Aby, Berg, Ceder.",
    "SELECT FLOR(age / 10), COUNT(*) FROM people GROUP BY 1": 'Did you mean "FLOOR"? Supported: ',
    "SELECT COUNT(*) FROM peple": 'Did you mean "people"? Tables: people.',
    "SELECT COUNT(*) FROM shop": "Known: people.",
}


@pytest.mark.parametrize("text", HELPFUL)
def test_refusal_says_what_to_write_instead(text: str) -> None:
    with pytest.raises(Unsupported) as caught:
        parse_sql(text, policy())
    assert caught.value.do.startswith(HELPFUL[text])


def test_refusals_on_linked_tables_name_the_join_and_the_mean_per_person(tmp_path: Path) -> None:
    clinic = corpus_policies(tmp_path)["clinic"]
    with pytest.raises(UnknownColumn, match=r"JOIN patients ON visits.patient_id = patients.patient_id"):
        parse_sql("SELECT AVG(cost) FROM visits WHERE sex = 'female'", clinic)
    with pytest.raises(Unsupported, match=r"divide: COUNT\(\*\) \* 1.0 / COUNT\(DISTINCT visits.patient_id\)"):
        parse_sql("SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id)", clinic)
    parse_sql("SELECT COUNT(*) * 1.0 / COUNT(DISTINCT visits.patient_id) FROM visits", clinic)


def test_column_that_needs_quotes_is_suggested_with_them() -> None:
    columns = {"hours-per-week": Integer(1, 99), "age": Integer(0, 99)}
    with pytest.raises(UnknownColumn, match='Did you mean "hours-per-week", in double quotes'):
        parse_sql("SELECT AVG(hours-per-week) FROM jobs", Policy(Dataset("jobs"), columns, loss=Loss(1)))


def test_text_in_double_quotes_is_explained() -> None:
    with pytest.raises(UnknownColumn, match="Text is written in single quotes: 'f'"):
        parse_sql('SELECT COUNT(*) FROM people WHERE sex = "f"', policy())


def test_equal_measures_of_a_query_are_measured_once() -> None:
    text = "SELECT sex, AVG(age), AVG(age) / COUNT(*), COUNT(*) FROM people GROUP BY sex HAVING AVG(age) > 3"
    assert parse_sql(text, policy()) == (mean("age").by("sex"), count().by("sex"))


HEAVY = [
    "SELECT REPEAT('x', 2000000000), AVG(age) FROM people",
    "WITH t AS (SELECT age, COUNT(*) AS n FROM people GROUP BY age) SELECT COUNT(*) FROM t a, t b, t c, t d, t e",
    "WITH t AS (SELECT age, COUNT(*) AS n FROM people GROUP BY age) SELECT a.n FROM t a, t b, t c, t d",
    "SELECT RANGE(1000000000), AVG(age) FROM people",
]


@pytest.mark.parametrize("text", HEAVY)
def test_heavy_arithmetic_on_released_numbers_is_refused_in_time(text: str) -> None:
    started = time.monotonic()
    with pytest.raises(Unsupported):
        parse_sql(text, policy())
    assert time.monotonic() - started < 20


def test_nested_queries_on_released_numbers_are_compiled_once() -> None:
    text = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
    for level in range(15):
        text = f"SELECT sex, n + 1 AS n FROM ({text}) AS t{level}"
    (statement,) = plan_sql(text, policy()).statements
    assert len(statement.cores) == 1


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM people " + "JOIN people " * 60,
        "SELECT COUNT(*) FROM people " + "JOIN people " * 90 + "ON age = age",
        "SELECT COUNT(*) FROM people " + "JOIN people ON age = age JOIN people " * 60,
    ],
    ids=["joins", "many joins", "joins with and without a condition"],
)
def test_parser_that_tries_everything_twice_is_stopped(text: str) -> None:
    """The parser of sqlglot 30 takes 2^n steps for n joins without ON: 60 joins would take longer than anybody can wait."""
    with pytest.raises(ParserStopped):
        parse_text(text, "duckdb")
    with pytest.raises(Unsupported):
        plan_sql(text, policy())


def test_steps_of_ordinary_sql_are_far_below_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "STEPS_PER_TOKEN", 2)
    monkeypatch.setattr(expressions, "LEAST_STEPS", 0)
    for text in (
        "SELECT a FROM people WHERE " + " AND ".join(["age = 1"] * 2_000),
        f"SELECT COUNT(*) FROM people WHERE age IN ({', '.join(map(str, range(5_000)))})",
        "SELECT a.age FROM people a " + "JOIN people b ON a.age = b.age " * 100,
        "SELECT CASE " + "WHEN age = 1 THEN DATE '2020-01-01' + INTERVAL 1 DAY " * 300 + "END FROM people",
        "WITH w AS (SELECT age, COUNT(*) AS n FROM people GROUP BY age) SELECT MAX(n) OVER () FROM w ORDER BY 1 LIMIT 3",
    ):
        assert parse_text(text, "duckdb")
