"""Code to copy asks exactly what the page asks: Python and SQL come back as the same question."""

from __future__ import annotations

import shlex
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

import tidegate as tg
from tidegate.answer.request import Query
from tidegate.answer.sql import plan_sql
from tidegate.exact import exact
from tidegate.policy import Category, Dataset, Integer, Loss, Policy
from tidegate.policy.predicates import Both, Compare, Either, Missing, Opposite, Predicate
from tidegate.web.notebook import plain
from tidegate.web.snippets.answer import python_of, python_options, query_code, shell
from tidegate.web.snippets.ledger import token_code
from tidegate.web.snippets.sql import sql_of

NUMBERS = ("age", "order", 'my "x"', "Größe 🦊")
TOWNS = ("Aby", "O'Brien", 'say "hi"', "$(reboot)", "back\\slash", "line\nbreak", "🦊")
POLICY = Policy(
    Dataset("people", rows=100),
    {**{name: Integer(-10, 90) for name in NUMBERS}, "town": Category(TOWNS)},
    loss=Loss(1),
)
numbers = some.one_of(
    some.integers(-99, 99).map(Fraction),
    some.decimals(-99, 99, places=3).map(Fraction),
    some.fractions(-9, 9, max_denominator=7),
)
comparisons = some.one_of(
    some.builds(Compare, some.sampled_from(NUMBERS), some.sampled_from(["=", "!=", "<", "<=", ">", ">="]), numbers),
    some.builds(Compare, some.just("town"), some.sampled_from(["=", "!="]), some.sampled_from(TOWNS)),
    some.builds(Missing, some.sampled_from((*NUMBERS, "town"))),
)
conditions: some.SearchStrategy[Predicate] = some.recursive(
    comparisons,
    lambda inner: some.one_of(
        some.builds(Both, inner, inner), some.builds(Either, inner, inner), some.builds(Opposite, inner)
    ),
    max_leaves=5,
)


@some.composite
def questions(draw: some.DrawFn) -> Query:
    column = draw(some.sampled_from(NUMBERS))
    request = draw(
        some.sampled_from(["count", "mean", "sum", "variance", "std", "min", "max", "histogram", "quantile"])
    )
    query = Query(request, "" if request == "count" else column)
    if request == "quantile":
        query = tg.quantile(column, draw(some.sampled_from(["1/2", "0.9", "0.001", "1/3"])))
    if draw(some.booleans()):
        query = query.where(draw(conditions))
    return query.by(*draw(some.lists(some.sampled_from(("town", *NUMBERS)), unique=True, max_size=2)))


def run(code: str) -> Any:
    return eval(code, {"tg": tg, "Fraction": Fraction})


@given(query=questions())
def test_python_snippet_defines_the_same_query(query: Query) -> None:
    assert run(python_of(query)) == query


@given(query=questions())
def test_sql_snippet_defines_the_same_query_if_there_is_one(query: Query) -> None:
    said = sql_of(query, "people")
    if said is None:
        assert "Fraction(" in python_of(query) or '"1/3"' in python_of(query)
    else:
        public = query == Query("count")  # the number of all rows, which the policy states
        assert plan_sql(said, POLICY, cells=2**25).queries == (() if public else (query,))


def test_regression_has_a_python_snippet_and_no_sql() -> None:
    for method in ("k-norm", "functional"):
        query = tg.regression("age ~ order", method=method)
        assert run(python_of(query)) == query
        assert sql_of(query, "people") is None
    result = query_code([query], {"epsilon": "1"}, address="http://x", dataset="people")
    assert result["Command line"].startswith("#")


@pytest.mark.parametrize("value", ["0.1", "1/3", "2.387742901334352536837447134499", "5", 0.25, "123456.5"])
def test_options_are_exact_to_the_last_digit(value: Any) -> None:
    assert exact(run(f"dict({python_options({'epsilon': value})})")["epsilon"]) == exact(value)


def test_snippets_omit_default_options() -> None:
    options = {
        "error": "0.2",
        "rho": None,
        "epsilon": None,
        "confidence": 0.95,
        "calibration": "equation-15",
        "window": 1,
    }
    assert python_options(options) == "error=0.2"
    assert python_options({**options, "confidence": 0.9}) == "error=0.2, confidence=0.9"


@given(text=some.text(some.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1))
def test_shell_parses_the_quoted_text(text: str) -> None:
    assert shlex.split(shell(text)) == [text]


def test_names_cannot_inject_into_a_command() -> None:
    result = token_code({"role": "analyst", "name": "$(reboot) 'x'"}, address="http://x", policy="people")[
        "Command line"
    ].splitlines()[0]
    assert shlex.split(result) == [
        "tidegate",
        "token",
        "make",
        "people.toml",
        "--role",
        "analyst",
        "--name",
        "$(reboot) 'x'",
    ]


def test_markdown_shows_names_unchanged() -> None:
    assert plain("<img src=x onerror=y> [a](b)\n# c") == r"\<img src=x onerror=y\> \[a\]\(b\) \# c"
