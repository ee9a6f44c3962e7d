"""Long and deep conditions, huge numbers and misplaced arguments: answered, or refused publicly before the charge."""

from __future__ import annotations

import functools
import json
import operator
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.answer import count
from tidegate.answer.query_json import condition_from_dict, query_from_dict, query_to_dict
from tidegate.answer.sql import parse_sql
from tidegate.errors import TidegateError, Unsupported
from tidegate.policy import Category, Dataset, Grid, Integer, Loss, Policy
from tidegate.policy.predicates import DEEPEST, MOST_COMPARISONS, Both, Either, Predicate, col
from tidegate.session import Session

TOWNS = tuple(f"t{n}" for n in range(1_200))
POLICY = Policy(Dataset("people"), {"town": Category(TOWNS), "age": Integer(0, 9_999)}, loss=Loss(50))
ROWS = pa.table({"town": [f"t{n}" for n in range(1_000)], "age": list(range(1_000))})


def join_conditions(part: Any, join: Any, number: int) -> Predicate:
    condition: Predicate = functools.reduce(join, [part(n) for n in range(number)])
    return condition


LONG: dict[str, tuple[Callable[[], Predicate], int]] = {  # built by the tests: while tests are collected, it would take seconds
    "a list of 900 texts": (lambda: col("town").isin(list(TOWNS[:900])), 900),
    "a list of 900 numbers": (lambda: col("age").isin(list(range(900))), 900),
    "1,000 conditions joined by or": (lambda: join_conditions(lambda n: col("age") == n, operator.or_, 1_000), 1_000),
    "1,000 conditions joined by and": (lambda: join_conditions(lambda n: col("age") != n + 1, operator.and_, 1_000), 1),
    "1,000 different ones": (lambda: join_conditions(lambda n: col("age") >= n if n % 2 else col("town") != f"t{n}", operator.and_, 1_000), 1),
    "not one of 900": (lambda: ~col("town").isin(list(TOWNS[:900])), 100),
}  # fmt: skip


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", LONG)
def test_long_condition_is_built_serialized_and_counted(case: str, tmp_path: Path) -> None:
    build, rows = LONG[case]
    condition = build()
    query = count().where(condition)
    written = json.dumps(query_to_dict(query))
    assert query_from_dict(json.loads(written)) == query
    assert pickle.loads(pickle.dumps(query)) == query
    assert hash(query) == hash(query_from_dict(json.loads(written)))
    assert query.says()
    assert repr(query)
    with Session(POLICY, table=ROWS, folder=tmp_path) as session:
        assert session.table.count(where=condition).item() == rows
        session.answer(query, epsilon=1)
        before = session.account.spent
        session.answer(query, epsilon=1)
        assert session.account.spent == before


def test_identity_of_a_condition_matches_old_ledgers() -> None:
    first, second, third, fourth = (col("age") >= n for n in range(4))
    pair = {"and": [first.to_dict(), second.to_dict()]}
    assert (first & second & third).identity() == {"and": [pair, third.to_dict()]}
    assert (first & (second & third)).identity() == {
        "and": [first.to_dict(), {"and": [second.to_dict(), third.to_dict()]}]
    }
    assert ((first & second) & (third & fourth)).identity() == {
        "and": [pair, {"and": [third.to_dict(), fourth.to_dict()]}]
    }
    assert (~(first | second | third)).identity() == {
        "not": {"or": [{"or": [first.to_dict(), second.to_dict()]}, third.to_dict()]}
    }


SQL = {
    "a list of 900 texts": ("town IN ({})", ", ".join(f"'t{n}'" for n in range(900)), 900),
    "1,000 conditions joined by and": ("{}", " AND ".join(f"age <> {n + 1}" for n in range(1_000)), 1_000),
    "1,000 conditions joined by or": ("{}", " OR ".join(f"age = {n}" for n in range(1_000)), 1_000),
}


@pytest.mark.parametrize("case", SQL)
def test_long_sql_condition_is_accepted(case: str) -> None:
    form, inner, parts = SQL[case]
    (query,) = parse_sql(f"SELECT COUNT(*) FROM people WHERE {form.format(inner)}", POLICY)
    assert isinstance(query.condition, Both | Either)
    assert len(query.condition.parts) == parts


DEEP = {
    "parentheses": "(" * 3_000 + "age = 1" + ")" * 3_000,
    "negations": "NOT " * 3_000 + "age = 1",
    "one in the other": "".join(f"(age = {n} {'OR' if n % 2 else 'AND'} " for n in range(400)) + "age = 1" + ")" * 400,
    "too many": " OR ".join(f"age = {n}" for n in range(MOST_COMPARISONS + 1)),
    "too long a text": " OR ".join(f"age = {n}" for n in range(20_000)),
}


@pytest.mark.parametrize("case", DEEP)
def test_deep_or_endless_sql_condition_is_refused(case: str) -> None:
    with pytest.raises(Unsupported) as raised:
        parse_sql(f"SELECT COUNT(*) FROM people WHERE {DEEP[case]}", POLICY)
    assert raised.value.do
    assert raised.value.__context__ is None


def nested(step: Any) -> Any:
    return functools.reduce(step, range(5_000), col("age") == 1)


def test_deep_condition_is_refused_while_it_is_built() -> None:
    with pytest.raises(Unsupported, match=f"more than {DEEPEST} levels"):
        nested(lambda condition, n: (condition & (col("age") > n)) | (col("age") < n))
    with pytest.raises(Unsupported, match="levels deep"):
        nested(lambda condition, _: ~condition)
    with pytest.raises(Unsupported, match=f"more than {MOST_COMPARISONS:,} comparisons"):
        col("age").isin(list(range(MOST_COMPARISONS + 1)))


def test_deep_json_condition_is_refused() -> None:
    content: Any = {"compare": ["age", "=", 1]}
    for _ in range(500):
        content = {"not": content}
    with pytest.raises(Unsupported):
        condition_from_dict(content)


HUGE = ["1e6000", "-1e6000", "1e-6000", "9" * 5_000, "1" + "0" * 4_299 + "e4000"]


@pytest.mark.parametrize("number", HUGE)
def test_number_with_too_many_digits_is_refused(number: str) -> None:
    for build in (
        lambda: parse_sql(f"SELECT COUNT(*) FROM people WHERE age < {number}", POLICY),
        lambda: col("age") < Decimal(number),
        lambda: Grid(0, number, 1),
        lambda: Loss(number),
    ):
        with pytest.raises(TidegateError) as raised:
            build()
        assert raised.value.do
    with pytest.raises(TidegateError):
        Integer(0, 10**5_000)


MISPLACED: dict[str, Any] = {
    "a loss in another position": lambda: tg.Policy(Dataset("people"), {"age": Integer(0, 9)}, tg.Loss(1)),  # type: ignore[arg-type]
    "a name for a data set": lambda: tg.Policy("people", {"age": Integer(0, 9)}),  # type: ignore[arg-type]
    "a list of attributes": lambda: tg.Policy(Dataset("people"), ["age"]),  # type: ignore[arg-type]
    "a range for an attribute": lambda: tg.Policy(Dataset("people"), {"age": (0, 9)}),  # type: ignore[dict-item]
    "a number for a loss": lambda: tg.Policy(Dataset("people"), {"age": Integer(0, 9)}, loss=1),  # type: ignore[arg-type]
    "text for a bound": lambda: Integer("0", "9"),  # type: ignore[arg-type]
    "text for rho": lambda: tg.Identification("small"),
    "nothing for epsilon": lambda: Loss(None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", MISPLACED)
def test_misplaced_argument_is_refused_with_a_next_step(case: str) -> None:
    with pytest.raises(TidegateError) as raised:
        MISPLACED[case]()
    assert raised.value.do
