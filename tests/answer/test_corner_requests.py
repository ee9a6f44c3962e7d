"""Edge cases of requests: impossible losses, and answers as charts, tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from html import unescape
from typing import Any

import pytest
from answer.conftest import ATTRIBUTES, policy

from tidegate.answer import Query, count, histogram, mean, median, regression, sum
from tidegate.answer.charts import error_chart
from tidegate.answer.run import plan
from tidegate.answer.spending import RequestedLoss, resolve_loss
from tidegate.charts import Cell, Interval
from tidegate.errors import Infeasible, SourceUnreadable, Unsupported
from tidegate.policy import Dataset, Identification, Integer, Loss, Policy
from tidegate.policy.predicates import col
from tidegate.session import Session

OpenSession = Callable[..., Session]
WRONG: dict[str, tuple[tuple[Query, ...], dict[str, Any], str]] = {
    "no loss": ((count(),), {}, "exactly one of"),
    "two losses": ((count(),), {"rho": "0.2", "epsilon": 1}, "exactly one of"),
    "no confidence": ((count(),), {"epsilon": 1, "confidence": 0}, "between 0 and 1"),
    "full confidence": ((count(),), {"epsilon": 1, "confidence": 1}, "between 0 and 1"),
    "another calibration": ((mean("pay"),), {"rho": "0.2", "calibration": "loose"}, 'must be "equation-15"'),
    "tight without rho": ((mean("pay"),), {"error": 1, "calibration": "tight"}, 'must be "equation-15"'),
    "tight for a count": ((count(),), {"rho": "0.2", "calibration": "tight"}, "requires one sum or mean"),
    "tight for two": ((sum("pay"), mean("pay")), {"rho": "0.2", "calibration": "tight"}, "requires one sum or mean"),
    "tight for some rows": ((mean("age"),), {"rho": "0.2", "calibration": "tight"}, "requires one sum or mean"),
    "an error of two": ((count(), mean("pay")), {"error": 1}, "one query at a time"),
    "an error of a rank": ((median("age"),), {"error": 1}, "depends on the data"),
    "an error below 0": ((count(),), {"error": -1}, "error must be a number above 0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_impossible_request_is_refused_with_a_reason(case: str) -> None:
    queries, options, says = WRONG[case]
    with pytest.raises(Unsupported) as refused:
        resolve_loss(queries, policy(rho="0.5"), **options)
    assert says in refused.value.what


@pytest.mark.parametrize(("rho", "window"), [("1/37", 1), ("0.2", 37), ("0.2", 38), ("0.2", 0), ("0.1", 4)])
def test_window_no_better_than_a_random_guess_is_refused(rho: str, window: int) -> None:
    with pytest.raises(Infeasible, match="neighboring values of 37"):
        resolve_loss((mean("pay"),), policy(rho="0.5"), rho=rho, calibration="tight", window=window)


def test_wider_window_needs_more_noise() -> None:
    people = policy(rho="0.5")
    losses = [
        resolve_loss((mean("pay"),), people, rho="0.2", calibration="tight", window=window).amount
        for window in (1, 2, 4)
    ]
    assert losses == sorted(losses, reverse=True)
    assert len(set(losses)) == 3


def test_error_below_that_of_the_largest_loss_is_refused() -> None:
    people = Policy(Dataset("people", rows=300), {"gain": Integer(0, 10**7)}, None, Loss(10**5))
    with pytest.raises(Unsupported, match=r"An error of 0\.5 is too small for the sum of gain"):
        resolve_loss((sum("gain"),), people, error="0.5")
    assert resolve_loss((sum("gain"),), people, error=10**6).amount < 100


def test_empty_request_and_tiny_loss_are_refused() -> None:
    with pytest.raises(Unsupported, match="contains no queries"):
        plan((), policy(), loss=RequestedLoss(Fraction(1)))
    with pytest.raises(Unsupported, match="would exceed 64-bit"):
        plan((sum("age"),), policy(), loss=RequestedLoss(Fraction(1, 10**29)))


@pytest.mark.parametrize("query", [count(), mean("pay"), median("age")], ids=lambda query: query.statistic)
def test_wrong_number_of_rows_refuses_every_answer(open_session: OpenSession, query: Query) -> None:
    with open_session(count=301) as session, pytest.raises(SourceUnreadable, match="declares 301 rows"):
        session.answer(query, epsilon="0.1")


def test_charts_show_dots_for_groups_and_cells_for_two_columns(open_session: OpenSession) -> None:
    with open_session(epsilon="50") as session:
        short = session.answer(count().by("sex"), epsilon=1)
        long = session.answer(histogram("pay").by("town"), epsilon=1)
        single = session.answer(median("age"), epsilon=1)
    (dots,) = short.plot().marks
    assert isinstance(dots, Interval)
    assert dots.y == tuple(short.values.tolist())
    assert (dots.low, dots.high) == tuple(tuple(end.tolist()) for end in short.interval() or ())
    (cells,) = long.plot().marks  # of two columns
    assert isinstance(cells, Cell)
    assert len(cells.values) == long.values.size > 60
    assert f"and {long.values.size - 60:,} more" in long._repr_html_()
    assert "more</p>" not in short._repr_html_()
    assert (short.plot().x.title, single.plot().x.title) == ("sex", "")
    assert (short.plot().y.title, single.plot().y.title) == ("rows, with 95% intervals", "age")
    assert short.plot().title.startswith("The number of rows by sex. ")
    assert short.plot().table is not None


def test_preview_chart_shows_the_noise_of_one_query(open_session: OpenSession) -> None:
    with open_session(epsilon="50") as session:
        seen = session.preview(count(), epsilon=1)
        unknown = session.preview(median("age"), epsilon=1)
        several = session.preview([count(), mean("pay")], epsilon=1)
    chart = error_chart(seen)
    assert chart is not None
    assert chart.title == "The number of rows is within 3 rows of the true value with 95% confidence"
    assert chart.table is not None
    assert dict(chart.table.rows)["95%"] == pytest.approx(seen.error)
    assert error_chart(unknown) is None
    assert error_chart(several) is None


def test_several_answers_print_one_line_each_and_one_charge(open_session: OpenSession) -> None:
    with open_session(epsilon="50") as session:
        both = session.answer([count(), mean("pay")], epsilon=1)
    assert len(both) == 2
    assert [answer.query for answer in both] == [count(), mean("pay")]
    lines = str(both).splitlines()
    assert [line.partition(":")[0] for line in lines[:2]] == ["the number of rows", "the mean of pay"]
    assert lines[2].startswith("cost 1, 49 remaining")
    assert both._repr_html_().count("<table>") == 2
    assert both.to_dict()["cost"] == str(both.cost) == "1"
    assert "cost" not in both.to_dict()["answers"][0]


def test_value_without_an_interval_prints_its_caution(open_session: OpenSession) -> None:
    with open_session(epsilon="50") as session:
        answer = session.answer(median("age"), epsilon=1)
    assert answer.interval() is None
    assert "low" not in answer.rows()[0]
    assert answer.caution in answer.line()
    assert answer.caution in unescape(answer._repr_html_())


def test_preview_json_has_the_risk_before_and_after(open_session: OpenSession) -> None:
    with open_session(rho="0.5") as session:
        seen = session.preview([count().where(col("age") >= 30)], epsilon="0.5")
    content = seen.to_dict()
    assert content["fits"] is True
    assert Fraction(content["left"]) - Fraction(content["left_after"]) == Fraction(content["cost"]) <= Fraction(1, 2)
    assert content["identification"]["age"]["now"] == pytest.approx(1 / 73)
    assert (
        content["identification"]["age"]["after"]
        == content["identification"]["age"]["alone"]
        == pytest.approx(1 / (1 + 72 * math.exp(-float(content["cost"]))), rel=1e-9)
    )
    assert content["expected"][0]["question"] == "the number of rows where age >= 30"
    assert content["expected"][0]["free"] == ""


@pytest.mark.parametrize(
    "formula", ["pay", "pay ~", "~ age", "pay ~ pay", "pay ~ age + age", "pay ~ a + b + c + d + e + f"]
)
def test_formula_needs_one_column_on_the_left_and_distinct_ones_on_the_right(formula: str) -> None:
    with pytest.raises(Unsupported, match="one column on the left"):
        regression(formula)


def test_regression_has_two_methods_and_no_groups() -> None:
    with pytest.raises(Unsupported, match="k-norm"):
        regression("pay ~ age", method="luck")  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="cannot be grouped"):
        regression("pay ~ age").by("sex").check(policy())
    with pytest.raises(Unsupported, match="is a category"):
        regression("pay ~ sex").check(policy())
    with pytest.raises(Unsupported, match="same column twice"):
        count().by("sex", "sex").check(policy())


def test_rho_can_have_persons_as_worlds() -> None:
    people = Policy(Dataset("people", rows=300), ATTRIBUTES, Identification("0.4", worlds="persons", population=301))
    with pytest.raises(Infeasible, match='"person"'):
        resolve_loss((count(),), people, rho="0.4")
    assert resolve_loss((count(),), people, rho="0.6").amount == pytest.approx(math.log(0.6 / 0.4))
