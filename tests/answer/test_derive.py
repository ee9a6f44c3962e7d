"""What follows from earlier answers is free, right, and never more than what was given."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from tidegate.answer import Query, count, histogram, mean, std, sum, variance
from tidegate.answer.folding import sum_quantile
from tidegate.noise import SeededBits, discrete_laplace
from tidegate.policy.predicates import col
from tidegate.session import Session

Ask = Callable[..., Session]
AGE, SEX, TOWN = col("age"), col("sex"), col("town")


def test_a_total_and_a_part_follow_from_a_count_by_columns(ask: Ask) -> None:
    with ask() as session:
        given = session.answer(count().by("town", "sex"), epsilon="0.5").values
        by_sex, part = (session.derive(q) for q in (count().by("sex"), count().where((SEX == "f") & (TOWN != "Aby"))))
        assert (
            session.derive(count()) is None
        )  # rows where sex is missing were dropped from the cells, not from a total
        towns = session.answer(count().by("town"), epsilon="0.5").values
        total = session.derive(count())
    assert by_sex is not None
    assert part is not None
    assert total is not None
    assert (by_sex.values == given.sum(axis=0)).all()
    assert part.values.item() == given[1:3, 0].sum()  # missing towns are not unequal to Aby: that is unknown
    assert total.values.item() == towns.sum()
    assert by_sex.low[0] <= by_sex.values[0] <= by_sex.high[0]


def test_a_range_follows_from_single_values_not_from_bins(ask: Ask) -> None:
    with ask() as session:
        bins = session.answer(histogram("age"), epsilon="0.5").values
        assert session.derive(count().where(AGE >= 35)) is None
        assert session.derive(histogram("age").where(AGE >= 35)) is None  # it cuts through a bin
        aligned = session.derive(histogram("age").where(AGE >= 30))
        assert aligned is not None
        assert aligned.values.tolist() == [0, *bins[1:]]
        singles = session.answer(count().by("age"), epsilon="0.5").values
        found = session.derive(count().where(AGE >= 35))
    assert found is not None
    assert found.values.item() == singles[35 - 18 :].sum()


def test_mean_and_deviation_follow_from_a_variance(ask: Ask) -> None:
    with ask() as session:
        session.answer(variance("age").by("sex"), epsilon="0.5")
        found = session.derive(std("age").by("sex"))
        middle = session.derive(mean("age").by("sex"))
        assert session.derive(mean("age")) is None
        assert session.derive(mean("age").by("town")) is None
    assert found is not None
    assert middle is not None
    assert ((middle.values >= 18) & (middle.values <= 90)).all()


def test_a_mean_follows_from_a_sum_and_a_count_where_every_row_has_a_value(ask: Ask) -> None:
    with ask() as session:
        total, rows = session.answer([sum("pay").by("sex"), count().by("sex")], epsilon="1")
        found = session.derive(mean("pay").by("sex"))
        session.answer([sum("age").by("sex")], epsilon="0.2")
        assert session.derive(mean("age").by("sex")) is None  # some ages are missing
    assert found is not None
    assert found.values == pytest.approx(total.values / rows.values)


def test_a_preview_offers_what_is_free(ask: Ask) -> None:
    with ask() as session:
        session.answer(count().by("town"), epsilon="0.5")
        assert session.preview(count(), epsilon="0.1").expected[0].free.endswith("from entry 2")
        assert session.preview(count().by("sex"), epsilon="0.1").expected[0].free == ""


def test_nothing_follows_before_anything_was_answered(ask: Ask) -> None:
    with ask() as session:
        assert session.derive(count()) is None


@pytest.mark.parametrize("parts", [1, 2, 5, 50])
def test_the_error_of_a_sum_of_noises_covers_at_least_95_in_100(parts: int) -> None:
    """100,000 draws: a bound of true coverage 0.95 shows less than 0.946 here once in ten million."""
    scale = Fraction(7, 2)
    drawn = discrete_laplace(scale, size=100_000 * parts, bits=SeededBits(parts)).reshape(-1, parts).sum(axis=1)
    assert np.mean(np.abs(drawn) <= sum_quantile(scale, parts, 0.95)) >= 0.946


def test_a_query_is_not_changed_by_building_on_it() -> None:
    first = count()
    assert isinstance(first.by("sex"), Query)
    assert first == count()
