"""How much is asked for, where it cannot be had; and answers as pictures, tables and sentences."""

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
from tidegate.answer.spending import resolve_loss
from tidegate.charts import Band, Bar, Interval, Line
from tidegate.errors import Infeasible, SourceUnreadable, Unsupported
from tidegate.policy import Dataset, Identification, Integer, Loss, Policy
from tidegate.policy.predicates import col
from tidegate.session import Session

Ask = Callable[..., Session]
WRONG: dict[str, tuple[tuple[Query, ...], dict[str, Any], str]] = {
    "nothing said": ((count(),), {}, "exactly one of"),
    "two said": ((count(),), {"rho": "0.2", "epsilon": 1}, "exactly one of"),
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
def test_what_cannot_be_had_is_said_with_what_can(case: str) -> None:
    queries, wanted, says = WRONG[case]
    with pytest.raises(Unsupported) as told:
        resolve_loss(queries, policy(rho="0.5"), **wanted)
    assert says in told.value.what


@pytest.mark.parametrize(("rho", "window"), [("1/37", 1), ("0.2", 37), ("0.2", 38), ("0.2", 0), ("0.1", 4)])
def test_a_window_no_better_than_a_guess_cannot_be_kept(rho: str, window: int) -> None:
    with pytest.raises(Infeasible, match="neighboring values of 37"):
        resolve_loss((mean("pay"),), policy(rho="0.5"), rho=rho, calibration="tight", window=window)


def test_a_wider_window_asks_for_more_noise() -> None:
    rules = policy(rho="0.5")
    losses = [
        resolve_loss((mean("pay"),), rules, rho="0.2", calibration="tight", window=window) for window in (1, 2, 4)
    ]
    assert losses == sorted(losses, reverse=True)
    assert len(set(losses)) == 3


def test_an_error_below_that_of_the_largest_loss_is_too_small() -> None:
    rules = Policy(Dataset("people", rows=300), {"gain": Integer(0, 10**7)}, None, Loss(10**5))
    with pytest.raises(Unsupported, match=r"An error of 0\.5 is too small for the sum of gain"):
        resolve_loss((sum("gain"),), rules, error="0.5")
    assert resolve_loss((sum("gain"),), rules, error=10**6) < 100


def test_nothing_and_too_little_are_not_planned() -> None:
    with pytest.raises(Unsupported, match="contains no queries"):
        plan((), policy(), epsilon=Fraction(1))
    with pytest.raises(Unsupported, match="larger than 64-bit"):
        plan((sum("age"),), policy(), epsilon=Fraction(1, 10**29))


@pytest.mark.parametrize("query", [count(), mean("pay"), median("age")], ids=lambda query: query.statistic)
def test_wrong_number_of_rows_refuses_every_answer(ask: Ask, query: Query) -> None:
    with ask(count=301) as session, pytest.raises(SourceUnreadable, match="declares 301 rows"):
        session.answer(query, epsilon="0.1")


def test_pictures_show_bars_for_few_numbers_and_a_line_for_many(ask: Ask) -> None:
    with ask(epsilon="50") as session:
        few = session.answer(count().by("sex"), epsilon=1)
        many = session.answer(histogram("pay").by("town"), epsilon=1)
        one = session.answer(median("age"), epsilon=1)
    bars, whiskers = few.plot().marks
    assert isinstance(bars, Bar)
    assert isinstance(whiskers, Interval)
    assert bars.y == tuple(few.values.tolist())
    assert (whiskers.low, whiskers.high) == tuple(tuple(end.tolist()) for end in few.interval() or ())
    band, line = many.plot().marks
    assert isinstance(band, Band)
    assert isinstance(line, Line)
    assert len(line.y) == many.values.size > 60
    assert f"and {many.values.size - 60:,} more" in many._repr_html_()
    assert "more</p>" not in few._repr_html_()
    assert (few.plot().x.title, one.plot().x.title) == ("sex", "")
    assert (few.plot().y.title, one.plot().y.title) == ("rows", "age")
    assert few.plot().title.startswith("The number of rows by sex. ")
    assert few.plot().table is not None


def test_preview_chart_shows_the_noise_of_one_query(ask: Ask) -> None:
    with ask(epsilon="50") as session:
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


def test_several_answers_are_one_page_one_line_each_and_one_charge(ask: Ask) -> None:
    with ask(epsilon="50") as session:
        both = session.answer([count(), mean("pay")], epsilon=1)
    assert len(both) == 2
    assert [answer.query for answer in both] == [count(), mean("pay")]
    lines = str(both).splitlines()
    assert [line.partition(":")[0] for line in lines[:2]] == ["the number of rows", "the mean of pay"]
    assert lines[2].startswith("cost 1, left 49")
    assert both._repr_html_().count("<table>") == 2
    assert both.to_dict()["cost"] == str(both.cost) == "1"
    assert "cost" not in both.to_dict()["answers"][0]


def test_a_value_without_an_interval_says_its_caution_instead(ask: Ask) -> None:
    with ask(epsilon="50") as session:
        found = session.answer(median("age"), epsilon=1)
    assert found.interval() is None
    assert "low" not in found.rows()[0]
    assert found.caution in found.line()
    assert found.caution in unescape(found._repr_html_())


def test_a_preview_tells_the_risk_before_and_after_as_data(ask: Ask) -> None:
    with ask(rho="0.5") as session:
        seen = session.preview([count().where(col("age") >= 30)], epsilon="0.5")
    told = seen.to_dict()
    assert told["fits"] is True
    assert Fraction(told["left"]) - Fraction(told["left_after"]) == Fraction(told["cost"]) <= Fraction(1, 2)
    assert told["identification"]["age"]["now"] == pytest.approx(1 / 73)
    assert (
        told["identification"]["age"]["after"]
        == told["identification"]["age"]["alone"]
        == pytest.approx(1 / (1 + 72 * math.exp(-float(told["cost"]))), rel=1e-9)
    )
    assert told["expected"][0]["question"] == "the number of rows where age >= 30"
    assert told["expected"][0]["free"] == ""


@pytest.mark.parametrize(
    "formula", ["pay", "pay ~", "~ age", "pay ~ pay", "pay ~ age + age", "pay ~ a + b + c + d + e + f"]
)
def test_a_formula_has_one_column_on_the_left_and_different_ones_on_the_right(formula: str) -> None:
    with pytest.raises(Unsupported, match="one column on the left"):
        regression(formula)


def test_a_regression_has_two_methods_and_no_groups() -> None:
    with pytest.raises(Unsupported, match="k-norm"):
        regression("pay ~ age", method="luck")  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="cannot be grouped"):
        regression("pay ~ age").by("sex").check(policy())
    with pytest.raises(Unsupported, match="is a category"):
        regression("pay ~ sex").check(policy())
    with pytest.raises(Unsupported, match="same column twice"):
        count().by("sex", "sex").check(policy())


def test_persons_may_be_the_worlds_of_a_rho() -> None:
    rules = Policy(Dataset("people", rows=300), ATTRIBUTES, Identification("0.4", worlds="persons", population=301))
    with pytest.raises(Infeasible, match='"person"'):
        resolve_loss((count(),), rules, rho="0.4")
    assert resolve_loss((count(),), rules, rho="0.6") == pytest.approx(math.log(0.6 / 0.4))
