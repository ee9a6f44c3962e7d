"""Queries with SQL expressions on the real engine: one row or one person moves an answer by no more than its price.

Each query is run on random pairs of tables that differ in one unit, and on pairs that attain the bound. Values outside the
universe, missing values and persons with more rows than count are among the rows.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidegate.accounting import DiscreteLaplace, Moments
from tidegate.answer import Query, count, distinct, max, mean, median, persons, sum, variance
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.mechanisms.ranks import Ranks, _rate
from tidegate.policy import Category, Dataset, EachPerson, EachRow, Grid, Identification, Key, Policy, Unit
from tidegate.policy.predicates import col
from tidegate.tables import open_table

ATTRIBUTES = {"who": Key(), "x": Grid("-1", "1.5", "0.5", ("0",)), "g": Category(("a", "b"), "value")}
X, G = [None, -2.0, -1.0, -0.3, 0.0, 0.5, 1.5, 7.0], [None, "a", "b", "c", "A"]
QUERIES = [
    count().by("CASE WHEN x < 0 THEN 'low' WHEN g = 'a' THEN 'high' END"),
    count().where("x * 2 > 1 OR g IS NULL"),
    count().where("COALESCE(x, 0) <= 0").by("UPPER(g)"),
    sum("1 - 2 * x"),
    sum("x * x + 0.25").by("g"),
    mean("CASE WHEN g = 'a' THEN x ELSE 3 END"),
    mean("ABS(x)").by("x > 0"),
    variance("3 * x"),
    median("x * x"),
    max("-x").by("g"),
    distinct("x"),
    distinct("ROUND(x)").by("g"),
    distinct("g").where(col("x") > 0),
    distinct("who").where("x > 0"),
]
OF_PERSONS = [persons(), persons().where("x > 0"), persons().by("g"), persons().by("x > 0", "g")]
Row = tuple[str, float | None, str | None]
PAIRS = pytest.mark.parametrize("pairs", [2, pytest.param(10, marks=pytest.mark.long)])


def policy(unit: Unit) -> Policy:
    return Policy(Dataset("d", unit=unit, rows=9), ATTRIBUTES, Identification("0.5", protect=("x",)))


def exact(query: Query, rows: list[Row], unit: Unit) -> Any:
    columns = {"who": pa.string(), "x": pa.float64(), "g": pa.string()}
    arrays = [pa.array([row[n] for row in rows], kind) for n, kind in enumerate(columns.values())]
    table = open_table(policy(unit), pa.table(dict(zip(columns, arrays, strict=True))))
    return mechanism_for(query).exact(query, table)


def loss_between(query: Query, unit: Unit, before: list[Row], after: list[Row]) -> tuple[float, float]:
    """Return the largest log ratio of the probabilities of any response, and the price."""
    event: Any = mechanism_for(query).event(query, policy(unit), epsilon=Fraction(1))
    left, right = exact(query, before, unit), exact(query, after, unit)
    price = float(event.price.pure.value)
    if isinstance(event, DiscreteLaplace | Moments):
        scales = [event.scale] if isinstance(event, DiscreteLaplace) else [s for s in event.scales if s is not None]
        parts = zip(left.numbers, right.numbers, scales, strict=True)
        return float(np.sum([np.abs(np.asarray(a - b, float)).sum() / float(scale) for a, b, scale in parts])), price
    mechanism, total = Ranks(), 0.0
    groups = [of.numbers[0].reshape(-1, of.numbers[0].shape[-1]) for of in (left, right)]
    for counts, others in zip(*groups, strict=True):
        scores = [mechanism.scores(query, policy(unit), event, np.asarray(of, np.int64)) for of in (counts, others)]
        total += 2 * float(_rate(event)) * float(np.abs(scores[0] - scores[1]).max())
    return total, price


def draw_row(chance: random.Random, person: str) -> Row:
    return person, chance.choice(X), chance.choice(G)


@PAIRS
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.says())
def test_one_row_moves_an_answer_by_no_more_than_its_price(query: Query, pairs: int) -> None:
    chance = random.Random(query.says())
    for _ in range(pairs):
        rows = [draw_row(chance, f"p{n}") for n in range(8)]
        moved, price = loss_between(query, EachRow(), [*rows, draw_row(chance, "p8")], [*rows, draw_row(chance, "p9")])
        assert moved <= price + 1e-9


@PAIRS
@pytest.mark.parametrize("query", [*QUERIES[:-1], *OF_PERSONS], ids=lambda query: query.says())
def test_one_person_moves_an_answer_by_no_more_than_its_price(query: Query, pairs: int) -> None:
    chance = random.Random(query.says())
    for _ in range(pairs):
        others = [draw_row(chance, f"p{chance.randrange(3)}") for _ in range(5)]
        own = [draw_row(chance, "me") for _ in range(chance.randrange(5))]
        another = [draw_row(chance, "you") for _ in range(chance.randrange(5))]
        moved, price = loss_between(query, EachPerson("who", 2), [*others, *own], [*others, *another])
        assert moved <= price + 1e-9


ATTAINED: list[tuple[Query, list[Row], list[Row]]] = [
    (persons(), [], [("me", 0.0, "a"), ("me", 0.5, "a"), ("me", 1.5, "b")]),
    (persons().by("g"), [("me", 0.0, "a"), ("me", 0.0, "b")], [("you", 0.0, None)]),
    (count().by("x > 0"), [("me", 1.5, "a"), ("me", 0.5, "a")], [("you", -1.0, "b"), ("you", 0.0, "b")]),
    (distinct("x"), [], [("me", 0.5, "a"), ("me", 1.5, "a")]),
    (sum("x * x + 0.25").by("g"), [("me", 1.5, "a"), ("me", 7.0, "a")], [("you", 1.5, "b"), ("you", 1.5, "b")]),
]


@pytest.mark.parametrize(
    ("query", "own", "another"), ATTAINED, ids=lambda part: part.says() if isinstance(part, Query) else ""
)
def test_prices_are_attained(query: Query, own: list[Row], another: list[Row]) -> None:
    moved, price = loss_between(query, EachPerson("who", 2), own, another)
    expected = price if query != persons().by("g") else price * 3 / 4  # one person is in two cells, the other in one
    assert moved == pytest.approx(expected, rel=1e-6)


def test_planted_faults_are_found() -> None:
    """An expression that is charged as if a person had one row, and a count of persons that is charged as one cell."""
    own, another = [("me", 1.5, "a"), ("me", 0.5, "a")], [("you", -1.0, "b"), ("you", 0.0, "b")]
    moved, _ = loss_between(count().by("x > 0"), EachPerson("who", 2), own, another)
    _, price = loss_between(count().by("x > 0"), EachPerson("who", 1), own, another)
    assert moved <= price  # the same loss, but with the noise of one row:
    event = mechanism_for(count()).event(count().by("x > 0"), policy(EachPerson("who", 1)), epsilon=Fraction(1))
    cells = [exact(count().by("x > 0"), rows, EachPerson("who", 2)).numbers[0] for rows in (own, another)]
    assert float(np.abs(cells[0] - cells[1]).sum() / float(event.scale)) > float(event.price.pure.value)  # type: ignore[attr-defined]
