"""The three policies of the corpus of analysts' queries, with random tables that fit them."""

from __future__ import annotations

import datetime as dt
import os
import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.policy import Policy
from tidegate.policy.toml import parse_policy

PEOPLE = """
[dataset]
name = "people"
unit = "row"
rows = 1000
[attributes]
pid = { kind = "key" }
age = { kind = "integer", from = 0, to = 100, missing = "value" }
sex = { kind = "category", values = ["female", "male", "other"], missing = "value" }
region = { kind = "category", values = ["north", "south", "east", "west"], missing = "value" }
educ = { kind = "integer", from = 1, to = 16, missing = "value" }
income = { kind = "grid", from = 0, to = 200000, step = 100, missing = "value" }
married = { kind = "boolean", missing = "value" }
joined = { kind = "date", from = 2015-01-01, to = 2024-12-31, missing = "value" }
height = { kind = "decimal", from = "120.0", to = "220.0", step = "0.1", missing = "value" }
[promise.loss]
epsilon = 1000000
"""
CLINIC = """
[dataset]
name = "clinic"
unit = { person = "patient_id", at_most = 5 }
[tables]
patients = { rows_per_person = 1 }
visits = {}
departments = { source = "departments.csv", reference = true }
[relations]
"visits.patient_id" = "patients.patient_id"
"visits.department" = "departments.department"
[attributes.patients]
patient_id = { kind = "key" }
sex = { kind = "category", values = ["female", "male"], missing = "value" }
birth_year = { kind = "integer", from = 1920, to = 2024, missing = "value" }
insurance = { kind = "category", values = ["public", "private", "none"], missing = "value" }
[attributes.visits]
patient_id = { kind = "key" }
visit_date = { kind = "date", from = 2022-01-01, to = 2024-12-31, missing = "value" }
department = { kind = "category", values = ["cardiology", "oncology", "emergency", "pediatrics"], missing = "value" }
doctor = { kind = "text" }
cost = { kind = "integer", from = 0, to = 20000, missing = "value" }
minutes = { kind = "integer", from = 0, to = 480, missing = "value" }
urgent = { kind = "boolean", missing = "value" }
diagnosis = { kind = "category", values = ["I10", "E11", "J45", "C50"], missing = "value" }
[attributes.departments]
department = { kind = "category", values = ["cardiology", "oncology", "emergency", "pediatrics"] }
floor = { kind = "integer", from = 0, to = 9, missing = "value" }
kind = { kind = "category", values = ["inpatient", "outpatient"], missing = "value" }
[promise.loss]
epsilon = 1000000
"""
SHOP = """
[dataset]
name = "shop"
unit = { person = "customer_id", at_most = 10 }
[tables]
orders = {}
products = { source = "products.csv", reference = true }
[relations]
"orders.product" = "products.product"
[attributes.orders]
order_id = { kind = "key" }
customer_id = { kind = "key" }
ordered_at = { kind = "timestamp", from = 2023-01-01, to = 2024-12-31, grid = "hour", missing = "value" }
product = { kind = "category", values = ["P1", "P2", "P3", "P4", "P5", "P6"], missing = "value" }
quantity = { kind = "integer", from = 1, to = 20, missing = "value" }
price = { kind = "decimal", from = "0.00", to = "500.00", step = "0.01", missing = "value" }
country = { kind = "category", values = ["DE", "FR", "US", "GB"], missing = "value" }
coupon = { kind = "text", buckets = 64 }
returned = { kind = "boolean", missing = "value" }
[attributes.products]
product = { kind = "category", values = ["P1", "P2", "P3", "P4", "P5", "P6"] }
category = { kind = "category", values = ["food", "toys", "books"], missing = "value" }
list_price = { kind = "decimal", from = "0.00", to = "500.00", step = "0.01", missing = "value" }
[promise.loss]
epsilon = 1000000
"""
DEPARTMENTS = "department,floor,kind\ncardiology,1,inpatient\noncology,2,inpatient\nemergency,0,outpatient\npediatrics,2,outpatient\n"
PRODUCTS = "product,category,list_price\nP1,food,3.50\nP2,food,12.00\nP3,toys,49.99\nP4,toys,20.00\nP5,books,15.25\nP6,books,30.00\n"
LINE = re.compile(r"(.*;) -- (\w+)-(\d+) (\w+)(?:: (.*))?")


@dataclass(frozen=True)
class CorpusQuery:
    """One query of the corpus with its tag."""

    sql: str
    policy: str
    name: str
    tag: str
    reason: str


OWN = """
SELECT sex, region, AVG(age) AS a FROM people WHERE educ BETWEEN 5 AND 12 GROUP BY sex, region ORDER BY a; -- people-901 postprocess
SELECT married, COUNT(*) AS n, SUM(income) AS total, SUM(income) / COUNT(*) AS each FROM people GROUP BY married; -- people-902 postprocess
SELECT CASE region WHEN 'north' THEN 'cold' WHEN 'south' THEN 'warm' ELSE 'mild' END AS climate, COUNT(*) FROM people GROUP BY 1; -- people-903 answer
SELECT MONTHNAME(joined) AS m, COUNT(*) AS n FROM people GROUP BY m HAVING n >= 0 ORDER BY n DESC; -- people-904 postprocess
SELECT YEAR(joined) AS y, QUARTER(joined) AS q, COUNT(*) FROM people WHERE joined >= '2019-01-01' GROUP BY y, q ORDER BY 1, 2; -- people-905 postprocess
SELECT COUNT(*) FROM people WHERE (age < 20 OR age > 80) AND region NOT IN ('west') AND married IS NOT FALSE; -- people-906 answer
SELECT ROUND(height) AS h, COUNT(*) AS n FROM people WHERE height > 200.05 GROUP BY h ORDER BY h; -- people-907 postprocess
SELECT region, COUNT(*) FILTER (WHERE sex = 'female') AS f, COUNT(*) FILTER (WHERE sex = 'male') AS m FROM people GROUP BY ALL; -- people-908 answer
SELECT region, ROUND(100.0 * AVG(CASE WHEN income > 100000 THEN 1 ELSE 0 END), 1) AS rich FROM people GROUP BY region; -- people-909 postprocess
WITH base AS (SELECT region AS r, income / 12 AS monthly FROM people WHERE age >= 18), agg AS (SELECT r, AVG(monthly) AS m FROM base GROUP BY r) SELECT r, m - AVG(m) OVER () AS above FROM agg ORDER BY r; -- people-910 postprocess
SELECT t.band, SUM(t.n) FROM (SELECT age // 20 AS band, sex, COUNT(*) AS n FROM people GROUP BY 1, 2) AS t GROUP BY t.band; -- people-911 postprocess
SELECT LENGTH(region) AS letters, COUNT(DISTINCT educ) AS kinds FROM people GROUP BY 1; -- people-912 answer
SELECT COUNT(*) FROM people WHERE STRFTIME(joined, '%Y-%m') = '2020-05'; -- people-913 answer
SELECT SUM(GREATEST(age - 65, 0)) AS years_over FROM people; -- people-914 answer
SELECT AVG(income) AS m FROM people WHERE sex = 'female' INTERSECT SELECT AVG(income) FROM people WHERE sex = 'female'; -- people-915 postprocess
SELECT MIN(joined), MAX(joined) FROM people; -- people-916 answer
SELECT income FROM people ORDER BY income DESC LIMIT 1; -- people-917 refuse: rows
SELECT COUNT(*) FROM people p, people q WHERE p.pid = q.pid; -- people-918 refuse: self-join
SELECT region FROM people GROUP BY region HAVING COUNT(*) > 3; -- people-919 postprocess
SELECT AVG(age) FROM people GROUP BY pid; -- people-920 refuse: groups by the person key
SELECT v.department, p.sex, COUNT(DISTINCT v.patient_id) AS persons FROM visits AS v LEFT JOIN patients AS p ON p.patient_id = v.patient_id GROUP BY 1, 2; -- clinic-901 answer
SELECT d.floor, COUNT(*) AS n, AVG(v.cost) AS c FROM visits v JOIN departments d ON d.department = v.department WHERE d.kind = 'inpatient' GROUP BY d.floor ORDER BY n; -- clinic-902 postprocess
SELECT p.insurance, SUM(CASE WHEN v.urgent THEN v.minutes END) AS urgent_minutes FROM visits v JOIN patients p USING (patient_id) GROUP BY p.insurance; -- clinic-903 answer
SELECT COUNT(*) FROM patients p LEFT JOIN visits v ON p.patient_id = v.patient_id WHERE v.cost IS NULL; -- clinic-904 answer
SELECT YEAR(visit_date) - p.birth_year AS age, COUNT(*) FROM visits v JOIN patients p USING (patient_id) WHERE p.birth_year > 2015 GROUP BY 1 ORDER BY 1; -- clinic-905 postprocess
SELECT COUNT(*) FROM visits v JOIN patients p ON v.patient_id = p.birth_year; -- clinic-906 refuse: join that is not a declared relation
SELECT patient_id FROM visits WHERE urgent GROUP BY patient_id HAVING COUNT(*) > 2; -- clinic-907 refuse: groups by the person key
SELECT p.sex, AVG(v.cost) FROM visits v, patients p WHERE v.patient_id = p.patient_id AND v.urgent GROUP BY p.sex; -- clinic-908 answer
SELECT d.kind, p.sex, COUNT(*) FROM visits v, departments d, patients p WHERE d.department = v.department AND p.patient_id = v.patient_id GROUP BY 1, 2; -- clinic-909 answer
SELECT COUNT(*) FROM visits v, patients p WHERE v.patient_id = p.patient_id OR v.urgent; -- clinic-910 refuse: join without a condition of its own
SELECT COUNT(*) FROM visits v, patients p WHERE v.cost = p.birth_year; -- clinic-911 refuse: join that is not a declared relation
SELECT d.kind, p.sex, COUNT(*) FROM departments d JOIN visits v USING (department) JOIN patients p USING (patient_id) GROUP BY 1, 2; -- clinic-912 answer
SELECT p.sex, COUNT(*) FROM (SELECT * FROM visits WHERE urgent) v JOIN (SELECT * FROM patients WHERE birth_year > 1990) p USING (patient_id) GROUP BY 1; -- clinic-913 answer
SELECT p.sex, COUNT(v.cost) FROM (SELECT * FROM patients WHERE birth_year > 1990) p LEFT JOIN visits v ON p.patient_id = v.patient_id GROUP BY 1; -- clinic-914 answer
SELECT p.sex, COUNT(*) FROM patients p LEFT JOIN (SELECT * FROM visits WHERE urgent) v ON p.patient_id = v.patient_id GROUP BY 1; -- clinic-915 refuse: condition before a left join
SELECT p.sex, COUNT(DISTINCT patient_id) AS patients FROM visits v JOIN patients p USING (patient_id) GROUP BY p.sex; -- clinic-921 answer
SELECT department, COUNT(*) AS n FROM departments JOIN visits USING (department) JOIN patients USING (patient_id) GROUP BY department; -- clinic-922 answer
SELECT HOUR(ordered_at) < 12 AS morning, ROUND(SUM(price * quantity), 0) AS t FROM orders GROUP BY morning; -- shop-901 postprocess
SELECT pr.category, o.country, COUNT(*) AS n FROM orders o LEFT JOIN products pr USING (product) WHERE o.quantity > 5 GROUP BY ROLLUP (pr.category, o.country); -- shop-902 answer
SELECT COUNT(DISTINCT CASE WHEN returned THEN customer_id END) AS returners, COUNT(DISTINCT customer_id) AS customers FROM orders; -- shop-903 answer
SELECT DAYNAME(ordered_at) AS d, AVG(price) FILTER (WHERE product = 'P2') AS p2 FROM orders GROUP BY d; -- shop-904 answer
SELECT product, price FROM orders WHERE country = 'DE' LIMIT 3; -- shop-905 refuse: rows
"""


def own_queries() -> list[CorpusQuery]:
    """Return queries that were written for this repository, after the corpus was answered."""
    return _read(OWN)


def read_corpus(path: Path) -> list[CorpusQuery]:
    """Return the queries of the corpus."""
    return _read(path.read_text("utf-8"))


def corpus_queries() -> list[CorpusQuery]:
    """Return the corpus, if TIDEGATE_DATA names a folder with it, and the queries of this repository."""
    path = Path(os.environ.get("TIDEGATE_DATA", "")) / "queries.sql"
    return [*(read_corpus(path) if os.environ.get("TIDEGATE_DATA") and path.exists() else []), *own_queries()]


def _read(text: str) -> list[CorpusQuery]:
    matches = [LINE.match(line) for line in text.splitlines()]
    return [
        CorpusQuery(match[1].rstrip(";"), match[2], f"{match[2]}-{match[3]}", match[4], match[5] or "")
        for match in matches
        if match
    ]


def corpus_policies(folder: Path) -> dict[str, Policy]:
    """Return the three policies; reference tables are written to a folder."""
    (folder / "departments.csv").write_text(DEPARTMENTS)
    (folder / "products.csv").write_text(PRODUCTS)
    texts = {"people": PEOPLE, "clinic": CLINIC, "shop": SHOP}
    return {name: parse_policy("version = 2\n" + text, folder=folder) for name, text in texts.items()}


def corpus_tables(seed: int, *, missing: float = 0.03) -> dict[str, dict[str, pa.Table]]:
    """Return random clean tables with missing values: for people one, for the others one by name."""
    random = np.random.default_rng(seed)

    def pick(values: Any, count: int, *, always: bool = False) -> list[Any]:
        chosen = [values[i] for i in random.integers(0, len(values), count)]
        return [None if not always and random.random() < missing else value for value in chosen]

    def days(first: dt.date, last: dt.date) -> list[dt.date]:
        return [first + dt.timedelta(n) for n in range((last - first).days + 1)]

    people = pa.table(
        {
            "pid": list(range(1000)),
            "age": pa.array(pick(range(101), 1000), pa.int64()),
            "sex": pick(["female", "male", "other"], 1000),
            "region": pick(["north", "south", "east", "west"], 1000),
            "educ": pa.array(pick(range(1, 17), 1000), pa.int64()),
            "income": pa.array(pick(range(0, 200001, 100), 1000), pa.int64()),
            "married": pick([True, False], 1000),
            "joined": pa.array(pick(days(dt.date(2015, 1, 1), dt.date(2024, 12, 31)), 1000), pa.date32()),
            "height": pa.array(pick([Decimal(n) / 10 for n in range(1200, 2201)], 1000), pa.decimal128(6, 1)),
        }
    )
    persons = list(range(300))
    patients = pa.table(
        {
            "patient_id": persons,
            "sex": pick(["female", "male"], 300),
            "birth_year": pa.array(pick(range(1920, 2025), 300), pa.int64()),
            "insurance": pick(["public", "private", "none"], 300),
        }
    )
    owners = [person for person in persons for _ in range(int(random.integers(0, 6)))]
    count = len(owners)
    visits = pa.table(
        {
            "patient_id": owners,
            "visit_date": pa.array(pick(days(dt.date(2022, 1, 1), dt.date(2024, 12, 31)), count), pa.date32()),
            "department": pick(["cardiology", "oncology", "emergency", "pediatrics"], count),
            "doctor": pick(["Dr. A", "Dr. B", "Dr. C"], count),
            "cost": pa.array(pick(range(20001), count), pa.int64()),
            "minutes": pa.array(pick(range(481), count), pa.int64()),
            "urgent": pick([True, False], count),
            "diagnosis": pick(["I10", "E11", "J45", "C50"], count),
        }
    )
    customers = [person for person in range(400) for _ in range(int(random.integers(0, 11)))]
    count = len(customers)
    hours = [dt.datetime(2023, 1, 1) + dt.timedelta(hours=n) for n in range(731 * 24)]
    orders = pa.table(
        {
            "order_id": list(range(count)),
            "customer_id": customers,
            "ordered_at": pa.array(pick(hours, count), pa.timestamp("us")),
            "product": pick(["P1", "P2", "P3", "P4", "P5", "P6"], count),
            "quantity": pa.array(pick(range(1, 21), count), pa.int64()),
            "price": pa.array(pick([Decimal(n) / 100 for n in range(50001)], count), pa.decimal128(6, 2)),
            "country": pick(["DE", "FR", "US", "GB"], count),
            "coupon": pick(["SUMMER", "WINTER", "x", "y"], count),
            "returned": pick([True, False], count),
        }
    )
    return {
        "people": {"people": people},
        "clinic": {"patients": patients, "visits": visits},
        "shop": {"orders": orders},
    }
