"""SQL queries equal their Python form; unsupported SQL is refused with the supported form."""

from __future__ import annotations

import pytest
from answer.conftest import policy

from tidegate.answer import Query, count, histogram, max, mean, median, min, quantile, std, sum, variance
from tidegate.answer.sql import parse_sql
from tidegate.errors import UnknownColumn, Unsupported
from tidegate.policy.predicates import col

AGE, SEX, TOWN = col("age"), col("sex"), col("town")
SAME: dict[str, tuple[Query, ...]] = {
    "SELECT COUNT(*) FROM people": (count(),),
    "select avg(age) from people": (mean("age"),),
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
    "SELECT COUNT(*) AS n FROM people WHERE town IN ('Aby', 'Berg')": (count().where(TOWN.isin(["Aby", "Berg"])),),
    "SELECT COUNT(*) FROM people WHERE age BETWEEN 20 AND 30.5": (count().where(AGE.between(20, 30.5)),),
    "SELECT COUNT(*) FROM people WHERE 30 <= age AND NOT sex = 'f'": (count().where((AGE >= 30) & ~(SEX == "f")),),
    "SELECT COUNT(*) FROM people WHERE town IS NULL OR age > -1": (count().where(TOWN.missing() | (AGE > -1)),),
    "SELECT COUNT(*) FROM people p WHERE (age <> 3);": (count().where(AGE != 3),),
    "SELECT COUNT(*) FROM people; SELECT COUNT(*) FROM people WHERE age <> 3": (count(), count().where(AGE != 3)),
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
    "SELECT COUNT(*) FROM (SELECT * FROM people)",
    "SELECT COUNT(*) FROM people LIMIT 5",
    "SELECT COUNT(*) FROM people ORDER BY 1",
    "SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING COUNT(*) > 5",
    "SELECT DISTINCT COUNT(*) FROM people",
    "SELECT COUNT(DISTINCT age) FROM people",
    "SELECT COUNT(age) FROM people",
    "SELECT AVG(age + 1) FROM people",
    "SELECT AVG(age) + 1 FROM people",
    "SELECT AVG(age) FILTER (WHERE sex = 'f') FROM people",
    "SELECT AVG(age) OVER () FROM people",
    "SELECT AVG(DISTINCT age) FROM people",
    "SELECT COUNT(*) FROM people WHERE age > pay",
    "SELECT COUNT(*) FROM people WHERE age IN (SELECT 1)",
    "SELECT COUNT(*) FROM people WHERE sex LIKE 'f%'",
    "SELECT COUNT(*) FROM people WHERE random() > 0.5",
    "SELECT COUNT(*) FROM people UNION SELECT COUNT(*) FROM people",
    "WITH x AS (SELECT 1) SELECT COUNT(*) FROM people",
    "DROP TABLE people",
    "SELECT COUNT(*) FROM people; DROP TABLE people",
    "SELECT STRING_AGG(sex) FROM people",
    "SELECT COUNT(*) FROM people TABLESAMPLE 10%",
    "SELECT COUNT(*) FROM people GROUP BY ROLLUP (sex)",
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
    "SELECT QUANTILE(age, 2) FROM people",
    "SELECT COUNT(*) FROM people WHERE " + "(" * 500 + "age = 1" + ")" * 500,
]


@pytest.mark.parametrize("text", REFUSED)
def test_unsupported_sql_is_refused(text: str) -> None:
    with pytest.raises(Unsupported):
        parse_sql(text, policy())


def test_refusal_shows_the_supported_form() -> None:
    with pytest.raises(Unsupported, match=r"Supported: SELECT \[columns,\] COUNT\(\*\).*FROM people"):
        parse_sql("SELECT * FROM people", policy())


def test_unknown_column_suggests_the_nearest() -> None:
    with pytest.raises(UnknownColumn, match='Did you mean "age"'):
        parse_sql("SELECT AVG(ages) FROM people", policy())
