"""Queries and conditions as JSON: valid ones survive, and everything else is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from answer.conftest import policy

from tidegate.answer import count, histogram, max, mean, median, min, quantile, regression, std, sum, variance
from tidegate.answer.query_json import DEEPEST, condition_from_dict, query_from_dict, query_to_dict
from tidegate.answer.request import Query
from tidegate.errors import Unsupported
from tidegate.policy.predicates import Both, Either, Predicate, col, holds

CONDITIONS: dict[str, Predicate] = {
    "a comparison": col("age") >= 30,
    "a fraction": col("pay") == Fraction(1, 3),
    "a word": col("town") != "Aby",
    "missing": col("age").missing(),
    "not": ~(col("age") < 30),
    "one of": col("town").isin(["Aby", "Berg", "Ceder"]),
    "between": col("age").between(30, 60),
    "mixed": (col("age") > 30) & (col("sex") == "f") | ~col("town").missing(),
}
QUERIES: list[Query] = [
    count(),
    count().by("sex", "town"),
    mean("age").where(col("sex") == "f"),
    sum("pay"),
    variance("pay"),
    std("pay"),
    median("age"),
    quantile("age", "0.9").by("sex"),
    min("age"),
    max("age"),
    histogram("town"),
    regression("pay ~ age", method="functional").where(col("age") >= 30),
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.says())
def test_query_survives_json(query: Query) -> None:
    assert query_from_dict(query_to_dict(query)) == query


@pytest.mark.parametrize("name", CONDITIONS)
def test_condition_survives_json(name: str) -> None:
    condition = CONDITIONS[name]
    assert condition_from_dict(condition.to_dict()) == condition
    condition.check(policy())
    assert condition.columns() <= {"age", "pay", "town", "sex"}


def test_numbers_can_be_json_numbers() -> None:
    plain = condition_from_dict({"compare": ["pay", ">=", 0.25]})
    assert plain == condition_from_dict({"compare": ["pay", ">=", {"number": "1/4"}]}) == (col("pay") >= 0.25)
    assert query_from_dict({"ask": "quantile", "column": "age", "share": 0.5}) == median("age")
    assert query_from_dict({"ask": "regression", "column": "pay", "on": ["age"]}) == regression("pay ~ age")


@pytest.mark.parametrize(("word", "pair"), [("and", Both), ("or", Either)])
@pytest.mark.parametrize("number", [2, 3, 5, 8])
def test_list_of_conditions_equals_nested_pairs(word: str, pair: type[Both] | type[Either], number: int) -> None:
    parts = [{"compare": ["age", "!=" if word == "and" else "=", 20 + index]} for index in range(number)]
    condition = condition_from_dict({word: parts})
    assert isinstance(condition, pair)
    for age in range(18, 40):
        inside = 20 <= age < 20 + number
        assert holds(condition, policy(), {"age": age - 18}) is (inside if word == "or" else not inside)


INVALID_QUERIES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "another statistic": {"ask": "mode", "column": "age"},
    "a mean of nothing": {"ask": "mean"},
    "a count of a column": {"ask": "count", "column": "age"},
    "a column that is no name": {"ask": "mean", "column": ["age"]},
    "groups that are no list": {"ask": "count", "by": "sex"},
    "a group without a name": {"ask": "count", "by": ["sex", ""]},
    "a group that is no name": {"ask": "count", "by": [1]},
    "a quantile of nothing": {"ask": "quantile", "column": "age"},
    "a quantile beyond the end": {"ask": "quantile", "column": "age", "share": 1},
    "a share in words": {"ask": "quantile", "column": "age", "share": "half"},
    "a share in tens": {"ask": "quantile", "column": "age", "share": "5e-1"},
    "an endless share": {"ask": "quantile", "column": "age", "share": "0." + "5" * 60},
    "a regression on nothing": {"ask": "regression", "column": "pay"},
    "a regression on itself": {"ask": "regression", "column": "pay", "on": ["age", "pay"]},
    "a regression on one twice": {"ask": "regression", "column": "pay", "on": ["age", "age"]},
    "a regression on too many": {"ask": "regression", "column": "pay", "on": list("abcdef")},
    "a regression by another method": {"ask": "regression", "column": "pay", "on": ["age"], "method": "luck"},
}
INVALID_CONDITIONS: dict[str, Any] = {
    "no values": "age >= 30",
    "nothing": {},
    "two at once": {"missing": "age", "not": {"missing": "sex"}},
    "another word": {"xor": [{"missing": "age"}, {"missing": "sex"}]},
    "missing nothing": {"missing": None},
    "one of one": {"and": [{"missing": "age"}]},
    "a pair that is no list": {"or": {"missing": "age"}},
    "half a comparison": {"compare": ["age", ">="]},
    "a comparison of words": {"compare": "age >= 30"},
    "another operator": {"compare": ["age", "~", 30]},
    "a column that is no name": {"compare": [1, ">=", 30]},
    "a value that is none": {"compare": ["age", ">=", None]},
    "a value in tens": {"compare": ["age", ">=", {"number": "1e9"}]},
    "more than a number": {"compare": ["age", ">=", {"number": "1", "unit": "years"}]},
}


@pytest.mark.parametrize("case", INVALID_QUERIES)
def test_invalid_query_is_refused(case: str) -> None:
    with pytest.raises(Unsupported):
        query_from_dict(INVALID_QUERIES[case])


@pytest.mark.parametrize("case", INVALID_CONDITIONS)
def test_invalid_condition_is_refused(case: str) -> None:
    with pytest.raises(Unsupported):
        condition_from_dict(INVALID_CONDITIONS[case])


@pytest.mark.parametrize(("deep", "fits"), [(DEEPEST, True), (DEEPEST + 1, False)])
def test_conditions_nest_up_to_the_stated_depth(deep: int, fits: bool) -> None:
    content: dict[str, Any] = {"missing": "age"}
    for _ in range(deep):
        content = {"not": content}
    if fits:
        assert condition_from_dict(content).columns() == {"age"}
    else:
        with pytest.raises(Unsupported, match=f"{DEEPEST} levels deep"):
            condition_from_dict(content)


KNOWN = {"age": 12, "sex": 0, "town": None, "pay": 3}  # 30 years, f, missing, 1.25


@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        (col("age") == 30, True),
        (col("age") == 30.5, False),  # no such value
        (col("age") != 30.5, True),
        (col("age") != 900, True),
        (col("age") > 29, True),
        (col("age") > 29.5, True),
        (col("age") < 30.5, True),
        (col("age") <= 29, False),
        (col("age") >= 900, False),
        (col("age") < -900, False),
        (col("sex") == "f", True),
        (col("sex") != "f", False),
        (col("town") == "Aby", None),
        (~(col("town") == "Aby"), None),
        (col("town").missing(), True),
        ((col("town") == "Aby") & (col("sex") == "m"), False),
        ((col("town") == "Aby") & (col("sex") == "f"), None),
        ((col("town") == "Aby") | (col("sex") == "f"), True),
        ((col("town") == "Aby") | (col("sex") == "m"), None),
        (~(col("sex") == "m"), True),
    ],
    ids=str,
)
def test_conditions_are_true_false_or_unknown_as_in_sql(condition: Predicate, truth: bool | None) -> None:
    assert holds(condition, policy(), KNOWN) is truth


def test_conditions_print_and_have_no_truth_value() -> None:
    condition = (~(col("age") >= 30) | col("town").missing()) & (col("sex") == "f")
    assert condition.says().count("(") == condition.says().count(")")
    for part in ("not (age >= 30)", "town", "sex = 'f'"):
        assert part in condition.says()
    with pytest.raises(TypeError):
        bool(col("age") >= 30)
    with pytest.raises(Unsupported, match="at least one value"):
        col("age").isin([])
    with pytest.raises(TypeError):
        holds(Predicate(), policy(), KNOWN)
